"""malmoi tokenizer: what is printed, what is written, what is refused."""

import json
import subprocess
import sys

import pytest

TEXT = "The reader reads the news.\n동생은 공원에서 책을 읽었다. 나는 낱말을 모았다.\n" * 20


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, "utf-8")
    return path


def test_train_extend_and_report(malmoi, corpus, tmp_path):
    finished = malmoi("tokenizer", "train", corpus, "--kind", "wordpiece", "--vocab-size", 75, "--out", "tok")
    assert finished.returncode == 0, finished.stderr
    assert "tokens a word" in finished.stdout
    assert {path.name for path in (tmp_path / "tok").iterdir()} == {
        "tokenizer.json",
        "vocab.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
    }
    (tmp_path / "words.txt").write_text("말모이\n", "utf-8")
    finished = malmoi("tokenizer", "extend", "tok", corpus, "--add", 3, "--words", "words.txt", "--out", "tok2")
    assert finished.returncode == 0, finished.stderr
    assert " + 4 = " in finished.stdout.splitlines()[0]
    assert "말모이" in (tmp_path / "tok2" / "vocab.txt").read_text("utf-8").split()
    before, after = (
        json.loads(malmoi("tokenizer", "report", folder, corpus, "--json").stdout) for folder in ("tok", "tok2")
    )
    assert after["tokens_per_word"] < before["tokens_per_word"]
    assert after["vocab_size"] == before["vocab_size"] + 4


def test_training_says_how_many_pieces_the_text_supports(malmoi, corpus):
    finished = malmoi("tokenizer", "train", corpus, "--kind", "bpe", "--vocab-size", 9000, "--out", "tok")
    assert "of the 9,000 asked for" in finished.stdout.splitlines()[0]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_standard_input_trains_what_a_file_trains(malmoi, corpus, tmp_path, kind):
    options = ("--kind", kind, "--vocab-size", 300, "--documents", "line", "--json")
    assert malmoi("tokenizer", "train", corpus, *options, "--out", "file").returncode == 0
    piped = malmoi("tokenizer", "train", "-", *options, "--out", "pipe", stdin=TEXT.encode())
    assert piped.returncode == 0, piped.stderr
    json.loads(piped.stdout)
    with corpus.open() as file:
        words = [sys.executable, "-m", "malmoi", "tokenizer", "train", "-", *map(str, options), "--out", "redirected"]
        subprocess.run(words, cwd=tmp_path, stdin=file, capture_output=True, check=True)
    expected = (tmp_path / "file/tokenizer.json").read_bytes()
    for name in ("pipe", "redirected"):
        assert (tmp_path / name / "tokenizer.json").read_bytes() == expected


def test_nothing_is_overwritten_but_the_same_tokenizer_may_stand_there(malmoi, refuses, corpus, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not touch")
    refuses("tokenizer", "train", corpus, "--vocab-size", 75, "--out", "mine", says=["--out mine exists already"])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    assert malmoi("tokenizer", "train", corpus, "--vocab-size", 75, "--out", "tok").returncode == 0
    saved = (tmp_path / "tok" / "tokenizer.json").read_bytes()
    assert malmoi("tokenizer", "train", corpus, "--vocab-size", 75, "--out", "tok").returncode == 0
    refuses("tokenizer", "train", corpus, "--vocab-size", 76, "--out", "tok", says=["tok", "different tokenizer"])
    assert (tmp_path / "tok" / "tokenizer.json").read_bytes() == saved


def test_refusals_write_nothing(refuses, corpus, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "words.txt").write_text("\n")
    before = sorted(tmp_path.iterdir())
    refuses("tokenizer", "train", corpus, "--vocab-size", 20, "--out", "tok", says=["--vocab-size 20", "smallest"])
    refuses("tokenizer", "train", corpus, "--kind", "bytes", "--out", "tok", says=["bytes"])
    refuses("tokenizer", "train", "empty.txt", "--out", "tok", says=["text"])
    refuses("tokenizer", "train", "absent.txt", "--out", "tok", says=["absent.txt"])
    refuses("tokenizer", "report", "absent", corpus, says=["absent", "does not exist"])
    refuses("tokenizer", "extend", "absent", corpus, "--out", "tok", says=["--add", "--words"])
    refuses("tokenizer", "extend", "absent", "--add", "5", "--out", "tok", says=["--add 5", "files"])
    refuses("tokenizer", "extend", "absent", corpus, "--add", "5", "--out", "tok", says=["absent"])
    assert sorted(tmp_path.iterdir()) == before


def test_a_sample_is_said_and_counts_for_what_is_learned(malmoi, refuses, tmp_path):
    (tmp_path / "large.txt").write_text("".join(f"common word{number} words\n\n" for number in range(20_000)), "utf-8")
    options = ("tokenizer", "train", "large.txt", "--vocab-size", 120, "--kind", "unigram")
    sampled = malmoi(*options, "--sample", 0.05, "--out", "sampled")
    assert sampled.returncode == 0, sampled.stderr
    assert "learning from 0.05" in sampled.stderr and "million characters of the text, evenly" in sampled.stderr
    assert sampled.stderr.count("learning from") == 1
    whole = malmoi(*options, "--out", "whole")
    assert "learning from" not in whole.stderr
    refuses(*options, "--sample", -1, "--out", "x", says=["--sample -1", "millions"])
