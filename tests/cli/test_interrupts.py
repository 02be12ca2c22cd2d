"""Ctrl-C, sent for real: one sentence that says what is kept and how to go on, and exit code 130."""

import signal
import subprocess
import sys
import time

import pytest
from corpora import korean_documents

import malmoi
from malmoi.blocks.heads import Head


@pytest.fixture(scope="module")
def work(tmp_path_factory, small):
    """A folder with much text, and models to read it."""
    folder = tmp_path_factory.mktemp("interrupts")
    text = "\n".join(sentence for document in korean_documents(200) for sentence in document.split(". "))
    (folder / "many.txt").write_text(f"{text}\n" * 10, "utf-8")
    (folder / "corpus.txt").write_text(f"{text}\n\n" * 400, "utf-8")
    bundle = malmoi.load(small)
    bundle.change_head(Head("sequence", ("a", "b"), "single_label_classification", task="classify"))
    bundle.absent = frozenset()
    bundle.save(folder / "classifier")
    return folder


@pytest.fixture
def interrupt(work):
    """Start a command, send SIGINT as often as told once `is_time` says so, and return what it said."""

    def run(*words, is_time, times=1):
        process = subprocess.Popen(
            [sys.executable, "-m", "malmoi", *map(str, words)],
            cwd=work,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not is_time():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.005)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        said = process.communicate()[1].splitlines()
        assert process.returncode == 130 and said[-1].startswith("malmoi: interrupted: "), said
        assert not any("Traceback" in line for line in said)
        return said[-1]

    return run


@pytest.mark.parametrize(
    "words",
    [
        ["embed", "{small}", "many.txt", "-o", "{out}"],
        ["predict", "classifier", "many.txt", "-o", "{out}"],
        ["prepare", "corpus.txt", "--tokenizer", "{small}", "--out", "{out}", "--workers", "1"],
        ["prepare", "corpus.txt", "--tokenizer", "{small}", "--out", "{out}", "--workers", "2"],
    ],
)
def test_what_grows_is_kept_and_goes_on(interrupt, work, small, words, request):
    number = request.node.callspec.indices["words"]
    out = f"out{number}" + {"embed": ".npy", "predict": ".jsonl"}.get(words[0], "")
    words = [word.format(small=small, out=out) for word in words]
    partial = work / f"{out}.partial"
    said = interrupt(*words, is_time=(partial / "journal.json").exists)
    assert f"what was done is kept in {partial.name}; run the same command again and it goes on" in said
    assert partial.is_dir() and not (work / out).exists()


def test_where_nothing_is_kept_it_says_so(interrupt, work):
    began = time.monotonic()
    words = ["tokenizer", "train", "corpus.txt", "--vocab-size", "30000", "--out", "tok"]
    said = interrupt(*words, is_time=lambda: time.monotonic() > began + 2)
    assert "nothing new was kept; run the same command again" in said
    assert not (work / "tok").exists()


def test_the_second_one_stops_a_run_at_once(interrupt, work, small, korean_store):
    words = ["pretrain", korean_store.folder, "--model", small, "--seq-len", 48, "--batch-size", 8]
    words += ["--steps", 100_000, "--save-every", 2, "--out", "run"]
    first = work / "run" / "checkpoints" / "step-000002"
    said = interrupt(*words, is_time=first.is_dir, times=2)
    assert "run/checkpoints/step-0" in said and "is kept; run the same command again" in said
