"""malmoi inspect, in a user's hands."""

import json

import pytest


@pytest.fixture
def store(malmoi):
    """A small store in the folder where commands run."""
    random_words = [f"{first}{second}" for first in ("ba", "ko", "li") for second in ("n", "rat", "so", "tep")]
    text = "\n\n".join(". ".join(" ".join(random_words[k:] + random_words[:k]) for k in range(9)) for _ in range(8))
    for words, given in (
        (("tokenizer", "train", "/dev/stdin", "--vocab-size", "60", "--out", "t"), text.encode()),
        (("prepare", "/dev/stdin", "--tokenizer", "t", "--out", "s", "--documents=blank"), text.encode()),
    ):
        made = malmoi(*words, stdin=given)
        assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--eval-share", "1"], ["--eval-share 1.0", "from 0 to 1"]),
        (["--eval-share", "0.9999"], ["--eval-share 0.9999 holds out all"]),
        (["--step", "9223372036854775807"], ["--step 9223372036854775807", "no run comes so far"]),
        (["--seq-len", "1" + "0" * 20], ["--seq-len 1" + "0" * 20, "at most"]),
        (["--batch-size", "1" + "0" * 17], ["not enough memory", "--batch-size"]),
        (["--examples", "0"], ["--examples 0"]),
    ],
)
def test_numbers_nobody_can_mean(store, refuses, words, says):
    refuses("inspect", "s", *words, says=says)


def test_a_share_that_is_off_is_said_beside_the_json(store, malmoi):
    shown = malmoi("inspect", "s", "--max-predictions", 2, "--objective", "mlm", "--json")
    assert shown.returncode == 0, shown.stderr
    assert "--max-predictions 2 allows no more" in shown.stderr
    assert json.loads(shown.stdout)["statistics"]["without_predictions"] == 0
    assert not malmoi("inspect", "s", "--objective", "mlm").stderr


def test_training_says_it_too(store, malmoi):
    options = ("--max-predictions", 2, "--objective", "mlm", "--seq-len", 64)
    made = malmoi("pretrain", "s", "--out", "r", "--model", "bert-tiny", "--steps", 1, "--batch-size", 2, *options)
    assert made.returncode == 0, made.stderr
    assert "of sequences of 64, 3.1% of the tokens are to be predicted, not 15.0%" in made.stderr
