import json
import os
import signal
import subprocess
import sys
import time
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
