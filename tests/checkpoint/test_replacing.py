"""A folder is replaced entirely or not at all, even by a process that dies at any single file operation of it."""

import subprocess
import sys
from threading import Thread

import pytest

from malmoi.checkpoint import replacing
from malmoi.checkpoint.replacing import fill_folder, restore_folder

FILES = {"config.json", "model.safetensors"}

# Writes "new" over "old" again and again, each time in a child that dies one file operation later, until one does not.
# What a child leaves is read through `restore_folder`, as loading does it, and then a whole save follows.
KILLS = """
import os, sys
from pathlib import Path
from malmoi.checkpoint import replacing
from malmoi.checkpoint.replacing import fill_folder, restore_folder

if "fallback" in sys.argv:
    replacing.exchange_folders = lambda one, other: False
out = Path("run/model")

def save(content):
    with fill_folder(out) as partial:
        for name in ("config.json", "model.safetensors"):
            (partial / name).write_text(content)

def save_until(last):
    done = 0
    def count(event, arguments):
        nonlocal done
        if event == "open" or event.startswith(("os.", "fcntl.")):
            done += 1
            if done > last:
                os._exit(9)
    sys.addaudithook(count)
    fsync = os.fsync
    os.fsync = lambda handle: (count("os.fsync", ()), fsync(handle))
    save("new")
    os._exit(0)

code = last = 0
while True:
    save("old")
    assert os.listdir("run") == ["model"], os.listdir("run")
    child = os.fork()
    if child == 0:
        save_until(last)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    missing = not out.exists()
    restore_folder(out)
    [content] = {(out / name).read_text() for name in ("config.json", "model.safetensors")}
    print(code, content, "missing" if missing else "there", *sorted(os.listdir("run")))
    if code == 0:
        break
    last += 1
"""


@pytest.mark.parametrize("way", ["exchange", "fallback"])
def test_killed_at_every_file_operation(tmp_path, way):
    finished = subprocess.run([sys.executable, "-c", KILLS, way], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    results = [line.split() for line in finished.stdout.splitlines()]
    assert len(results) > 15 and {result[0] for result in results} == {"9", "0"}
    contents = [result[1] for result in results]
    assert contents == sorted(contents, reverse=True) and set(contents) == {"old", "new"}
    # Only where the system cannot exchange two folders there is a moment without one, and loading ends it.
    assert any(result[2] == "missing" for result in results) == (way == "fallback")
    assert results[-1] == ["0", "new", "there", "model"]


def write(folder, content):
    for name in FILES:
        (folder / name).write_text(content)


def test_what_raises_leaves_the_old_one(tmp_path, monkeypatch):
    out = tmp_path / "model"
    with fill_folder(out) as partial:
        write(partial, "old")

    def fail(*_):
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"), fill_folder(out):
        fail()
    monkeypatch.setattr(replacing, "exchange_folders", lambda *_: False)
    monkeypatch.setattr(replacing, "publish_folder", fail)
    with pytest.raises(OSError, match="no room"), fill_folder(out) as partial:
        write(partial, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["model"] and (out / "config.json").read_text() == "old"


def test_an_old_one_is_put_back_even_over_an_empty_folder(tmp_path):
    old, out = tmp_path / ".model.old", tmp_path / "model"
    old.mkdir()
    write(old, "old")
    out.mkdir()
    with pytest.raises(OSError, match="no room"), fill_folder(out):
        raise OSError("no room")
    assert [path.name for path in tmp_path.iterdir()] == ["model"] and (out / "config.json").read_text() == "old"


def test_writers_wait_for_each_other(tmp_path):
    out = tmp_path / "model"

    def save(content):
        for _ in range(20):
            with fill_folder(out) as partial:
                write(partial, content)
            restore_folder(out)

    threads = [Thread(target=save, args=(content,)) for content in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert len({(out / name).read_text() for name in FILES}) == 1
