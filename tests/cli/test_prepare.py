"""malmoi prepare and malmoi inspect as a user runs them: what they print, and what they say to mistakes."""

import json
import os
import resource
import subprocess
import sys

import pytest
from corpora import korean_documents, python_documents

from malmoi.text.tokenizer_training import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer") / "tok"
    train_tokenizer(python_documents()[:30] + korean_documents(40), kind="wordpiece", vocab_size=1200).save(folder)
    return folder


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n\n".join(korean_documents(60)), "utf-8")
    return path


@pytest.fixture
def store(malmoi, text, tokenizer, tmp_path):
    made = malmoi("prepare", text, "--tokenizer", tokenizer, "--out", "store")
    assert made.returncode == 0, made.stderr
    return tmp_path / "store"


def test_prepare_says_what_it_took_and_made(malmoi, text, tokenizer):
    made = malmoi("prepare", text, "--tokenizer", tokenizer, "--out", "store")
    assert "corpus.txt: txt, utf-8, documents: blank, 60 documents" in made.stdout
    assert "store: 60 documents" in made.stdout and "0.00% unknown" in made.stdout
    again = malmoi("prepare", text, "--tokenizer", tokenizer, "--out", "store", "--json")
    assert json.loads(again.stdout)["documents"] == 60


def test_prepare_reads_standard_input(malmoi, tokenizer):
    piped = "나는 밥을 먹었다. 맛있었다.\n".encode("cp949")
    made = malmoi("prepare", "-", "--tokenizer", tokenizer, "--out", "store", stdin=piped)
    assert made.returncode == 0, made.stderr
    assert "standard input: txt, cp949" in made.stdout


def test_inspect_shows_examples_and_statistics(malmoi, store):
    shown = malmoi("inspect", store, "--show", 2, "--seed", 3)
    assert shown.returncode == 0, shown.stderr
    assert "[CLS]" in shown.stdout and "[MASK](" in shown.stdout
    assert "step 0, example 1" in shown.stdout and "random next" in shown.stdout


def test_inspect_colours_masks_on_a_terminal(malmoi, store):
    shown = malmoi("inspect", store, "--show", 1, "--examples", 10, FORCE_COLOR="1")
    assert "\x1b[37;41m[MASK]" in shown.stdout


def test_inspect_as_json_holds_the_examples(malmoi, store):
    shown = json.loads(malmoi("inspect", store, "--show", 2, "--examples", 100, "--whole-words", "--json").stdout)
    assert len(shown["examples"]) == 2
    one = shown["examples"][0]
    assert one["tokens"][0] == "[CLS]" and len(one["tokens"]) == len(one["token_type_ids"]) and one["labels"]
    assert abs(shown["statistics"]["selected"] - 0.15) < 0.02


def test_inspect_any_step_is_the_same_twice(malmoi, store):
    words = ("inspect", store, "--step", 123_456, "--show", 1, "--examples", 1, "--json")
    assert malmoi(*words).stdout == malmoi(*words).stdout


def test_a_misspelt_option_is_named_with_the_nearest(refuses, text, tokenizer):
    refuses("prepare", text, "--tokeniser", tokenizer, "--out", "s", says=["--tokeniser", "--tokenizer"])
    refuses("inspect", "s", "--sequence-len", 9, says=["--sequence-len", "--seq-len"])
    refuses("prepair", says=["prepair", "prepare"])
    refuses("inspect", "s", "--objective", "nsp", says=["--objective", "mlm+nsp"])
    refuses("inspect", "s", "--seq-len", "many", says=["--seq-len", "many"])


def test_mistakes_with_inputs(refuses, tokenizer, tmp_path):
    out = ("--tokenizer", tokenizer, "--out", "store")
    refuses("prepare", "nowhere.txt", *out, says=["nowhere.txt"])
    (tmp_path / "empty.txt").touch()
    refuses("prepare", "empty.txt", *out, says=["empty.txt", "no text"])
    (tmp_path / "folder").mkdir()
    refuses("prepare", "folder", *out, says=["folder"])
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    refuses("prepare", "picture.txt", *out, says=["picture.txt", "binary"])
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": \n')
    refuses("prepare", "a.jsonl", *out, says=["a.jsonl", "line 2"])
    refuses("prepare", "a.jsonl", *out, "--field", "txet", says=["txet", "text"])
    (tmp_path / "a.csv").write_text("text,label\nfine,1\nragged,1,2\n")
    refuses("prepare", "a.csv", *out, says=["a.csv", "line 3"])
    (tmp_path / "latin.txt").write_bytes("na\u00efve caf\u00e9 \u00ff".encode("latin-1"))
    refuses("prepare", "latin.txt", *out, says=["latin.txt", "--encoding"])
    (tmp_path / "nul.txt").write_bytes(b"good line\nbad \x00 line\n")
    refuses("prepare", "nul.txt", *out, says=["nul.txt", "line 2", "NUL"])
    (tmp_path / "long.txt").write_bytes(b"word " * (10 << 20))
    refuses("prepare", "long.txt", *out, says=["long.txt", "line 1"])
    assert not list(tmp_path.glob("store*"))


def test_mistakes_with_tokenizer_and_store(refuses, malmoi, text, store, tokenizer, tmp_path):
    refuses("prepare", text, "--tokenizer", "nowhere", "--out", "other", says=["nowhere"])
    train_tokenizer(korean_documents(30), kind="bpe", vocab_size=400).save(tmp_path / "bpe")
    refuses("inspect", store, "--tokenizer", "bpe", says=["store", "another tokenizer"])
    refuses("prepare", text, "--tokenizer", "bpe", "--out", "store", says=["store", "other text, options or tokenizer"])
    refuses("inspect", "nowhere", says=["nowhere", "malmoi prepare"])
    refuses("inspect", store, "--seq-len", 4, says=["--seq-len 4"])
    refuses("inspect", store, "--batch-size", 0, says=["--batch-size 0"])
    refuses("inspect", store, "--step", -1, says=["--step -1"])
    refuses("prepare", text, "--tokenizer", tokenizer, "--out", "x", "--workers", 0, says=["--workers 0"])
    tokens = store / "tokens.bin"
    tokens.write_bytes(tokens.read_bytes()[:-2])
    refuses("inspect", store, says=["tokens.bin", "damaged"])
    manifest = json.loads((store / "store.json").read_text("utf-8"))
    (store / "store.json").write_text(json.dumps({**manifest, "format": 0}))
    refuses("inspect", store, says=["format 0"])


def test_a_tokenizer_without_mask_cannot_make_examples(refuses, malmoi, text, tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##a\n나\n##는\n", "utf-8")
    assert malmoi("prepare", text, "--tokenizer", "vocab.txt", "--out", "s").returncode == 0
    refuses("inspect", "s", says=["[MASK]"])


def test_an_output_that_cannot_be_written(refuses, text, tokenizer, tmp_path):
    refuses("prepare", text, "--tokenizer", tokenizer, "--out", "/proc/malmoi/store", says=["/proc/malmoi"])
    (tmp_path / "file").write_text("in the way")
    refuses("prepare", text, "--tokenizer", tokenizer, "--out", "file", says=["file", "in use"])
    refuses("prepare", text, "--tokenizer", tokenizer, "--out", "file/store", says=["file"])
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_full_disk_loses_nothing(malmoi, text, tokenizer, tmp_path):
    """The system refuses to let files grow beyond a few kilobytes, as a full disk would; with room again it goes on."""
    words = [sys.executable, "-m", "malmoi", "prepare", str(text), "--tokenizer", str(tokenizer), "--out", "store"]
    finished = subprocess.run(
        words,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert finished.returncode == 2, finished.stderr
    assert "Traceback" not in finished.stderr and "store.partial" in finished.stderr
    assert "run the same command again" in finished.stderr
    assert not (tmp_path / "store").exists()
    assert malmoi("prepare", text, "--tokenizer", tokenizer, "--out", "store").returncode == 0
    assert malmoi("inspect", "store").returncode == 0
