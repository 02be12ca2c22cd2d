"""The recipes that answer a question each: from a file in the layout of the real data to the answer."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import toys

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
QUICK = ("--epochs", "6", "--batch-size", "16", "--lr", "3e-3", "--out", "out")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes") / "model"
    toys.make_bundle().save(folder)
    return folder


@pytest.fixture
def ask(model, tmp_path):
    def run(recipe, lines, *words):
        (tmp_path / "file").with_suffix(".csv" if "," in lines[0] else ".txt").write_text(
            "\n".join(lines) + "\n", "utf-8"
        )
        [file] = tmp_path.iterdir()
        command = [sys.executable, str(RECIPES / recipe), str(model), str(file), *words]
        finished = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.splitlines()

    return run


def test_sentiment(ask):
    rows = [f"{n}\t{one.text}\t{int(one.labels[0] == '좋음')}" for n, one in enumerate(toys.sentiment(160))]
    good, bad = ask(
        *("sentiment.py", ["id\tdocument\tlabel", *rows, "999\t\t1"]),
        *("학생이 훌륭한 영화를 보았다.", "학생이 끔찍한 영화를 보았다.", *QUICK),
    )
    assert re.fullmatch(r"(9\d|100)% good: 학생이 훌륭한 영화를 보았다\.", good)
    assert re.fullmatch(r"\d% good: 학생이 끔찍한 영화를 보았다\.", bad)


def test_topic(ask):
    # 4 is the world, 5 sport
    rows = [f"{n},{one.text},{4 + (one.labels[0] == '좋음')}" for n, one in enumerate(toys.sentiment(160))]
    said = ask("topic.py", ["index,title,topic_idx", *rows], "고양이가 즐거운 노래를 들었다.", *QUICK)
    assert re.fullmatch(r"스포츠 \(\d+%\): 고양이가 즐거운 노래를 들었다\.", *said)


def test_next_sentence(ask, tmp_path):
    stories = [f"{who} 서울 보았다. {what} 들었다. {who} 썼다.\n" for who in toys.WHO for what in toys.WHAT]
    answer = ask("next_sentence.py", stories, "학생이 서울 보았다.", "노래를 들었다.", *QUICK)
    assert re.fullmatch(r"\d+% that it follows", *answer)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    true, random = ([row for row in rows if row["label"] == label] for label in ("next", "random"))
    assert len(true) == len(random) == 2 * len(stories)
    assert all(f"{row['text']} {row['pair']}" in "".join(stories) for row in true)
    assert sorted(row["pair"] for row in true) == sorted(row["pair"] for row in random)
    assert [row["pair"] for row in true] != [row["pair"] for row in random]


def test_same_meaning(ask):
    rows = [f"{one.score}\t{one.text}\t{one.pair}" for one in toys.pairs(160, scored=True)]
    same = ask(
        "same_meaning.py", ["score\tsentence1\tsentence2", *rows], "학생이 서울 영화를", "영화를 서울 학생이", *QUICK
    )
    assert float(re.fullmatch(r"(-?\d\.\d\d) \(1 is the same\)", *same)[1]) > 0.7


def test_key_sentences(ask):
    said = ["학생이 서울에서 영화를 보았다. 친구가 서울에서 영화를 보았다. 학생이 서울에서 사진을 보았다. 안녕!"]
    chosen = ask("key_sentences.py", said, "--top", "2")
    assert len(chosen) == 2 and all(re.fullmatch(r"\d\.\d\d .+ 보았다\.", line) for line in chosen)


def test_each_is_short():
    names = {"sentiment", "topic", "next_sentence", "same_meaning", "key_sentences"}
    assert all(len((RECIPES / f"{name}.py").read_text("utf-8").splitlines()) <= 30 for name in names)
