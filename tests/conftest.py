"""Where the real data lies, and how a test runs the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import korean_documents, python_documents
from hypothesis import settings

# Two test processes with two threads each would wait for each other on two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples everywhere, and no limit of time: what passes on one machine passes on the next.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora and vocabularies; a test that needs it is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return DATA


@pytest.fixture
def malmoi(tmp_path):
    """Run `malmoi WORDS…` as a user would, in a fresh folder, and return the finished process."""

    def run(*words, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        finished = subprocess.run(
            [sys.executable, "-m", "malmoi", *map(str, words)],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            env={**os.environ, "COLUMNS": "120", **environment},
        )
        return subprocess.CompletedProcess(
            finished.args, finished.returncode, finished.stdout.decode("utf-8"), finished.stderr.decode("utf-8")
        )

    return run


@pytest.fixture
def refuses(malmoi):
    """Assert that a command ends with exit code 2 and one sentence that holds all the given words."""

    def run(*words, says: list[str], stdin: bytes | None = None) -> str:
        finished = malmoi(*words, stdin=stdin)
        assert finished.returncode == 2, finished.stdout + finished.stderr
        assert "Traceback" not in finished.stderr
        sentence = finished.stderr.strip().splitlines()[-1]
        for word in says:
            assert word in sentence, sentence
        return sentence

    return run


@pytest.fixture(scope="session")
def make_store(tmp_path_factory):
    """Build a store from documents (strings) with a tokenizer trained on them."""
    from malmoi.data.prepare import prepare_store
    from malmoi.data.store import Store
    from malmoi.text.reading import Corpus, ReadOptions
    from malmoi.text.tokenizer_training import train_tokenizer

    def make(documents: list[str], *, kind: str = "wordpiece", vocab_size: int = 2000, sentences="rules") -> Store:
        folder = tmp_path_factory.mktemp("store")
        lines = [json.dumps({"text": document}, ensure_ascii=False) for document in documents]
        (folder / "corpus.jsonl").write_text("\n".join(lines), "utf-8")
        tokenizer = train_tokenizer(documents, kind=kind, vocab_size=vocab_size)
        corpus = Corpus([folder / "corpus.jsonl"], ReadOptions())
        prepare_store(corpus, tokenizer, folder / "store", sentences=sentences, workers=1)
        return Store(folder / "store")

    return make


@pytest.fixture(scope="session")
def english_store(make_store):
    return make_store(python_documents())


@pytest.fixture(scope="session")
def korean_store(make_store):
    return make_store(korean_documents())


@pytest.fixture(scope="session")
def real_store(data, tmp_path_factory):
    """Stores of real text: English Wikipedia articles and Korean petitions, with public vocabularies."""
    from malmoi.data.prepare import prepare_store
    from malmoi.data.store import Store
    from malmoi.text.reading import Corpus
    from malmoi.text.tokenizer import load_tokenizer

    made: dict[str, Store] = {}

    def open_store(name: str) -> Store:
        if name not in made:
            paths = {"wikitext": "wikitext-2/test.txt", "petitions": "petitions/petitions_2017-08.jsonl"}
            vocabularies = {"wikitext": "bert-base-uncased_vocab.txt", "petitions": "krbert_char16424_vocab.txt"}
            tokenizer = load_tokenizer(data / "vocabs" / vocabularies[name])
            out = tmp_path_factory.mktemp(name) / "store"
            prepare_store(Corpus([data / paths[name]]), tokenizer, out, workers=1)
            made[name] = Store(out)
        return made[name]

    return open_store
