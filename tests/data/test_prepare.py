import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from corpora import korean_documents, python_documents

from malmoi.data import prepare as module
from malmoi.data.folders import FolderLock
from malmoi.data.prepare import prepare_store
from malmoi.data.store import ARRAY_FILES, Store
from malmoi.errors import MalmoiError
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.tokenizer import load_tokenizer
from malmoi.text.tokenizer_training import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(python_documents()[:40] + korean_documents(50), kind="wordpiece", vocab_size=1500)


@pytest.fixture(scope="module")
def corpus_file(tmp_path_factory):
    """About 8 MB in documents separated by blank lines: eight blocks."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    text = "\n\n".join(document.replace("\n\n", "\n") for document in python_documents() + korean_documents(200))
    path.write_text("\n\n".join([text] * 14), "utf-8")
    return path


@pytest.fixture(scope="module")
def expected(corpus_file, tokenizer, tmp_path_factory):
    """The files of the store, made in one go in one process."""
    out = tmp_path_factory.mktemp("expected") / "store"
    prepare_store(Corpus([corpus_file]), tokenizer, out, workers=1)
    return files_of(out)


def files_of(folder):
    return {name: (folder / name).read_bytes() for name in ARRAY_FILES}


STORE_NAMES = sorted([*ARRAY_FILES, "store.json", "tokenizer"])


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_workers_do_not_change_the_store(corpus_file, tokenizer, expected, tmp_path):
    prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=3)
    assert files_of(tmp_path / "store") == expected
    assert not list(tmp_path.glob("*partial*"))


def test_the_same_command_again_has_nothing_to_do(corpus_file, tokenizer, tmp_path):
    first, made = prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert made
    second, made = prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert second == first and not made


def test_an_existing_store_is_not_overwritten(corpus_file, tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("Some text here.\n")
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    before = files_of(tmp_path / "store")
    for corpus, options in ((Corpus([corpus_file]), {}), (Corpus([tmp_path / "a.txt"]), {"sentences": "lines"})):
        with pytest.raises(MalmoiError, match="store made from other text, options or tokenizer"):
            prepare_store(corpus, tokenizer, tmp_path / "store", **options)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(MalmoiError, match="not a store"):
        prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "other")
    assert files_of(tmp_path / "store") == before


def test_an_empty_folder_may_be_the_output(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("Some text here.\n")
    (tmp_path / "store").mkdir()
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    assert Store(tmp_path / "store").manifest.documents == 1


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_an_interrupted_run_goes_on_where_it_stopped(corpus_file, tokenizer, expected, tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(module, "_BLOCKS_BETWEEN_NOTES", 1)
    append = module._Writer.append
    encoded = []

    def fail_after(self, block):
        if len(encoded) == blocks:
            # Half a block is in the files when the power goes.
            self._write("tokens.bin", np.arange(1000))
            raise Interrupted
        encoded.append(block)
        append(self, block)

    monkeypatch.setattr(module._Writer, "append", fail_after)
    with pytest.raises(Interrupted):
        prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert not (tmp_path / "store").exists()

    resumed = []
    monkeypatch.setattr(module._Writer, "append", lambda self, block: (resumed.append(block), append(self, block))[1])
    prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert files_of(tmp_path / "store") == expected
    total = -(-len(expected["tokens.bin"]) // 2)
    assert sum(len(block.ids) for block in encoded + resumed) == total  # nothing was encoded twice


def test_after_a_kill_the_same_command_completes_the_store(corpus_file, tokenizer, expected, tmp_path):
    tokenizer.save(tmp_path / "tok")
    command = [sys.executable, "-m", "malmoi", "prepare", str(corpus_file), "--tokenizer", "tok", "--out", "store"]
    running = subprocess.Popen([*command, "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE)
    partial = tmp_path / "store.partial" / "tokens.bin"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (partial.exists() and partial.stat().st_size):
        time.sleep(0.005)
    children = subprocess.run(["pgrep", "-P", str(running.pid)], capture_output=True, text=True).stdout.split()
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stderr.close()
    while time.monotonic() < deadline and any(is_running(child) for child in children):
        time.sleep(0.02)
    assert not any(is_running(child) for child in children)  # no worker outlives its parent
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert files_of(tmp_path / "store") == expected


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_partial_store_of_other_text_is_begun_anew(corpus_file, tokenizer, expected, tmp_path):
    partial = tmp_path / "store.partial"
    partial.mkdir()
    (partial / "journal.json").write_text(json.dumps({"recipe": {}, "blocks": 3, "tokens": 10}))
    for name in ARRAY_FILES:
        (partial / name).write_bytes(b"x" * 1000)
    prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert files_of(tmp_path / "store") == expected


def test_two_runs_cannot_write_the_same_store(corpus_file, tokenizer, tmp_path):
    (tmp_path / "store.partial").mkdir()
    with FolderLock(tmp_path / "store.partial"), pytest.raises(MalmoiError, match="another malmoi is writing here"):
        prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store")


_PAUSE_AT_PUBLISHING = """
import sys, time
from pathlib import Path
from malmoi.cli import main
from malmoi.data import folders

def sync(path, sync=folders._sync):
    if path.name == "tokens.bin":
        Path("publishing").touch()
        while not Path("go").exists():
            time.sleep(0.01)
    sync(path)

folders._sync = sync
sys.argv[0] = "malmoi"
main()
"""


def test_a_second_run_leaves_one_alone_that_is_publishing(corpus_file, tokenizer, expected, tmp_path):
    tokenizer.save(tmp_path / "tok")
    arguments = ["prepare", str(corpus_file), "--tokenizer", "tok", "--out", "store", "--workers", "1"]
    first = subprocess.Popen([sys.executable, "-c", _PAUSE_AT_PUBLISHING, *arguments], cwd=tmp_path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (tmp_path / "publishing").exists():
        time.sleep(0.01)
    command = [sys.executable, "-m", "malmoi", *arguments]
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert second.returncode == 2 and "another malmoi is writing here" in second.stderr
    (tmp_path / "go").touch()
    assert first.wait(60) == 0
    assert files_of(tmp_path / "store") == expected
    assert Store(tmp_path / "store").manifest.tokens
    assert names_in(tmp_path / "store") == STORE_NAMES
    third = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "nothing to do" in third.stdout
    assert not list(tmp_path.glob("*partial*"))


def test_a_store_that_another_finished_meanwhile_is_recognised(corpus_file, tokenizer, expected, tmp_path, monkeypatch):
    prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    recognise = module._recognise
    looks = []
    # The first look comes too early.
    monkeypatch.setattr(module, "_recognise", lambda *what: recognise(*what) if looks else looks.append(what))
    _, made = prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    assert not made and not list(tmp_path.glob("*partial*"))


@pytest.mark.parametrize("sentences", ["rules", "lines"])
def test_parts_of_long_documents_make_the_same_store(tokenizer, tmp_path, monkeypatch, sentences):
    """Also where an interruption falls between two parts of a document, and where parts hold no token."""
    nothing = "\u200b" * 300
    long = "\n".join(document + "\n" + nothing for document in python_documents()[:4] + korean_documents(20))
    records = [long, "Short one.", nothing, long.replace("\n", " "), nothing + "\n" + "Last one. It ends here."]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in records), "utf-8")
    corpus = Corpus([tmp_path / "a.jsonl"])
    whole, _ = prepare_store(corpus, tokenizer, tmp_path / "whole", sentences=sentences, workers=1)
    monkeypatch.setattr(module, "_BLOCK_CHARACTERS", 200)
    monkeypatch.setattr(module, "_BLOCKS_BETWEEN_NOTES", 1)
    append, blocks = module._Writer.append, []

    def fail_now_and_then(self, block):
        append(self, block)
        blocks.append(block)
        if len(blocks) % 11 == 5:
            raise Interrupted

    monkeypatch.setattr(module._Writer, "append", fail_now_and_then)
    cut = None
    while cut is None:
        with suppress(Interrupted):
            cut, _ = prepare_store(corpus, tokenizer, tmp_path / "cut", sentences=sentences, workers=1)
    assert len(blocks) > 50 and sum(block.goes_on for block in blocks) > 40
    assert files_of(tmp_path / "cut") == files_of(tmp_path / "whole")
    assert (cut.documents, cut.sentences, cut.tokens) == (whole.documents, whole.sentences, whole.tokens)


@pytest.mark.parametrize("damage", ["flipped", "short", "missing"])
def test_a_damaged_store_is_made_anew(corpus_file, tokenizer, expected, tmp_path, damage):
    prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1)
    tokens = tmp_path / "store" / "tokens.bin"
    content = bytearray(tokens.read_bytes())
    if damage == "missing":
        tokens.unlink()
    elif damage == "short":
        tokens.write_bytes(content[:-2])
    else:
        content[1000] ^= 1
        tokens.write_bytes(content)
    said = []
    _, made = prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=1, tell=said.append)
    assert made and len(said) == 1 and "tokens.bin" in said[0] and "It is made anew" in said[0]
    assert files_of(tmp_path / "store") == expected
    assert names_in(tmp_path / "store") == STORE_NAMES
    assert names_in(tmp_path) == ["store"]


@pytest.mark.parametrize("operation", range(8))
def test_killed_while_a_damaged_store_is_replaced(tokenizer, tmp_path, monkeypatch, operation):
    """Wherever the process dies in publishing, the same command ends with the store, and nothing else is left."""
    (tmp_path / "a.txt").write_text("Some text here.\n")
    out = tmp_path / "store"
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)
    whole = files_of(out)
    (out / "tokens.bin").write_bytes(b"")
    count = iter(range(operation + 1))

    def die_in_time(function):
        def dying(*args, **options):
            if next(count, None) is None:
                raise Interrupted
            return function(*args, **options)

        return dying

    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr("malmoi.data.growing.GrowingFolder.discard", die_in_time(lambda self: None))
        for name in ("rename", "unlink", "rmdir"):
            patched.setattr(Path, name, die_in_time(getattr(Path, name)))
        prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)
        raise Interrupted
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)
    assert files_of(out) == whole
    assert names_in(out) == STORE_NAMES
    assert names_in(tmp_path) == ["a.txt", "store"]


def test_a_store_without_a_manifest_names_what_helps(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("Some text here.\n")
    out = tmp_path / "store"
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)
    for content in ("", "{}"):
        (out / "store.json").write_text(content)
        with pytest.raises(MalmoiError, match=rf"damaged.*rm -r {out}"):
            prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)
    (out / "store.json").unlink()
    with pytest.raises(MalmoiError, match=rf"store.json.*rm -r {out}"):
        prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, out)


def test_another_version_of_the_splitter_makes_another_store(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("Some text here.\n")
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    monkeypatch.setattr("malmoi.text.sentences.SPLITTER_VERSION", 0)
    with pytest.raises(MalmoiError, match="another version of what splits"):
        prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    monkeypatch.setattr("importlib.metadata.version", {"kiwipiepy": "0.1"}.__getitem__)
    assert module.describe_recipe(Corpus([tmp_path / "a.txt"]), tokenizer, "kiwi")["splitter"] == "0, kiwipiepy 0.1"


def test_text_that_leaves_no_token_is_refused(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("\u200b\u200b\n", "utf-8")
    with pytest.raises(MalmoiError, match=r"no tokens in .*a\.txt"):
        prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    assert not list(tmp_path.glob("store*"))


def test_unknown_tokens_are_counted_also_where_their_id_is_zero(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nknown\n", "utf-8")
    (tmp_path / "a.txt").write_text("known strange known odd\n", "utf-8")
    tokenizer = load_tokenizer(tmp_path / "vocab.txt")
    manifest, _ = prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    assert (manifest.tokens, manifest.unknown_tokens) == (4, 2)


def test_a_worker_that_dies_is_a_sentence(corpus_file, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("malmoi.data.workers._encode_in_worker", die)
    with pytest.raises(MalmoiError, match="a worker process died"):
        prepare_store(Corpus([corpus_file]), tokenizer, tmp_path / "store", workers=2)


def die(documents):
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_manifest_says_what_was_taken(tokenizer, tmp_path):
    (tmp_path / "a.csv").write_bytes("id,본문\n1,나는 밥을 먹었다.\n".encode("cp949"))
    corpus = Corpus([tmp_path / "a.csv"], ReadOptions(field="본문"))
    manifest, _ = prepare_store(corpus, tokenizer, tmp_path / "store")
    [source] = manifest.sources
    assert (source["format"], source["encoding"], source["field"], source["documents"]) == ("csv", "cp949", "본문", 1)
