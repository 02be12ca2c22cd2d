"""A full disk is one sentence that names the file or the folder, whatever was being written.

A limit on the size of files stands for it: the system answers a write beyond it in the same way.
"""

import os
import resource
import subprocess
import sys

import pytest

LIMIT = 3000


@pytest.fixture
def on_a_full_disk(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "malmoi", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )

    return run


def refused(finished, name):
    assert finished.returncode == 2, finished.stderr
    [sentence] = [line for line in finished.stderr.splitlines() if line.startswith("malmoi: ")]
    assert f"{name}: File too large" in sentence
    assert "Traceback" not in finished.stderr


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("The reader reads the news. Then the writer wrote it.\n" * 300)
    return path


def test_a_tokenizer(on_a_full_disk, corpus, tmp_path):
    refused(on_a_full_disk("tokenizer", "train", corpus, "--vocab-size", 200, "--out", "tok"), "tok")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_a_store(malmoi, on_a_full_disk, corpus, tmp_path):
    assert malmoi("tokenizer", "train", corpus, "--vocab-size", 60, "--out", "tok").returncode == 0
    refused(on_a_full_disk("prepare", corpus, "--tokenizer", "tok", "--out", "store"), "store.partial")
    assert malmoi("prepare", corpus, "--tokenizer", "tok", "--out", "store").returncode == 0
