"""A folder that grows: only what was noted is trusted, only the same work goes on with it, failures are a sentence."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from malmoi.data.folders import FolderLock, publish_file
from malmoi.data.growing import GrowingFolder
from malmoi.errors import MalmoiError

NAMES = ("a", "b")


def grow(path, recipe=None, *, can_resume=True):
    return GrowingFolder(path / "out.partial", NAMES, recipe or {"files": ("x", 1)}, can_resume=can_resume)


@pytest.fixture
def interrupted(tmp_path):
    """A folder in which one block was noted and half of another written."""
    with pytest.raises(KeyboardInterrupt), grow(tmp_path) as files:
        assert files.facts is None
        files.append("a", b"one")
        files.append("b", b"1")
        files.note({"blocks": 1})
        files.append("a", b"tw")
        raise KeyboardInterrupt
    return tmp_path


def read(path):
    return [(path / "out.partial" / name).read_bytes() for name in NAMES]


def test_what_stands_behind_the_last_note_is_cut_off(interrupted):
    assert read(interrupted) == [b"onetw", b"1"]
    with grow(interrupted) as files:
        assert files.facts == {"blocks": 1}
        files.append("a", b"two")
        files.note({"blocks": 2})
    assert read(interrupted) == [b"onetwo", b"1"]
    with grow(interrupted) as files:
        assert files.facts == {"blocks": 2}


@pytest.mark.parametrize("change", ["recipe", "pipe", "journal", "missing", "short"])
def test_what_cannot_be_trusted_is_begun_anew(interrupted, change):
    folder = interrupted / "out.partial"
    recipe = {"files": ("x", 2)} if change == "recipe" else None
    if change == "journal":
        (folder / "journal.json").write_text('{"recipe": {}, "blocks"')
    elif change == "missing":
        (folder / "b").unlink()
    elif change == "short":
        (folder / "a").write_bytes(b"on")
    with grow(interrupted, recipe, can_resume=change != "pipe") as files:
        assert files.facts is None
    assert read(interrupted) == [b"", b""]


def test_one_process_at_a_time(tmp_path):
    with grow(tmp_path), pytest.raises(MalmoiError, match="another malmoi is writing here"), grow(tmp_path):
        pass


def test_a_failure_to_write_says_what_is_kept(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(MalmoiError, match=r"out\.partial: No space left on device; what was done"), grow(tmp_path):
        raise full
    with pytest.raises(MalmoiError, match=r"No space left on device\.$"), grow(tmp_path, can_resume=False):
        raise full
    with pytest.raises(FileNotFoundError), grow(tmp_path):
        (tmp_path / "corpus.txt").read_text()


def test_nothing_is_left_of_what_is_discarded(interrupted):
    with grow(interrupted) as files:
        files.discard()
    assert not (interrupted / "out.partial").exists()


@pytest.fixture
def operations(monkeypatch):
    """What is synced, renamed and removed, by name and in order."""
    seen = []

    def name(path):
        return Path(path).name if not isinstance(path, int) else Path(f"/proc/self/fd/{path}").readlink().name

    def watch(verb, function):
        def watched(*paths, **options):
            seen.append((verb, *map(name, paths)))
            return function(*paths, **options)

        monkeypatch.setattr(os, function.__name__, watched)

    for verb, function in (("sync", os.fsync), ("rename", os.replace), ("rename", os.rename), ("remove", os.unlink)):
        watch(verb, function)
    return seen


def test_the_journal_vouches_for_nothing_that_is_not_on_the_disk(tmp_path, operations):
    with grow(tmp_path) as files:
        files.append("a", b"one")
        files.note({"blocks": 1})
        assert read(tmp_path)[0] == b"one"
    assert operations[:4] == [
        ("sync", "a"),
        ("sync", "b"),
        ("sync", "journal.json.partial"),
        ("rename", "journal.json.partial", "journal.json"),
    ]


def test_the_journal_goes_when_the_folder_has_its_name(tmp_path, operations):
    with grow(tmp_path) as files:
        files.append("a", b"one")
        files.note({"blocks": 1})
        files.close()
        del operations[:]
        files.publish(tmp_path / "out")
    place = operations.index(("rename", "out.partial", "out"))
    assert {("sync", "a"), ("sync", "b"), ("sync", "out.partial")} <= set(operations[:place])
    assert operations[place + 1 :] == [("sync", tmp_path.name), ("remove", "journal.json"), ("remove", "lock")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b"]


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, operations):
    (tmp_path / "made").write_text("whole")
    publish_file(tmp_path / "made", tmp_path / "out")
    assert operations == [("sync", "made"), ("rename", "made", "out"), ("sync", tmp_path.name)]


def test_a_folder_that_was_renamed_while_we_waited_for_it_is_not_ours(tmp_path, monkeypatch):
    """Between opening the lock's file and locking it, the one who held it gives the folder its name."""
    partial, out = tmp_path / "out.partial", tmp_path / "out"
    partial.mkdir()
    flock = fcntl.flock

    def published_meanwhile(file, operation):
        if not out.exists():
            partial.rename(out)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", published_meanwhile)
    with FolderLock(partial), pytest.raises(MalmoiError, match="another malmoi"), FolderLock(partial):
        pass
    with FolderLock(out):
        pass


def test_what_is_discarded_is_held_to_the_end(tmp_path, monkeypatch):
    with grow(tmp_path) as files:
        files.append("a", b"one")
        files.note({})
        unlink = Path.unlink

        def nobody_gets_in(path, missing_ok=False):
            with pytest.raises(MalmoiError, match="another malmoi"), FolderLock(path.parent):
                pass
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", nobody_gets_in)
        files.discard()
    assert not (tmp_path / "out.partial").exists()
