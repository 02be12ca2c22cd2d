"""The published builder, to the last token."""

import numpy as np

from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.reference import build_reference, digest_instances

GOLDEN = "a4c1d376c9d419475f719bf34e5f0e9b5cd7970c80e3307466acf50d0c18ec24"


def test_the_command_line_reproduces_the_golden_digest(data, malmoi, tmp_path):
    """Google's sample text, vocabulary and settings; the digest is that of Google's own program."""
    vocabulary = data / "vocabs" / "bert-base-uncased_vocab.txt"
    sample = data / "bert" / "sample_text.txt"
    made = malmoi("prepare", sample, "--tokenizer", vocabulary, "--out", "s", "--sentences=lines", "--documents=blank")
    assert made.returncode == 0, made.stderr
    shown = malmoi("inspect", "s", "--reference", "--seed", 12345, "--duplicates", 5, "--max-predictions", 20)
    assert shown.returncode == 0, shown.stderr
    lines = dict(line.rsplit(maxsplit=1) for line in shown.stdout.splitlines())
    assert lines == {
        "instances": "60",
        "mean length": "103.45",
        "selected": "0.1485",
        "random next": "0.5333",
        "sha256": GOLDEN,
    }


def test_it_differs_by_seed_and_repeats_itself(korean_store):
    digests = [digest_instances(build_reference(korean_store, ExampleOptions(seed=seed))) for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_whole_words_are_taken_by_their_marks(english_store):
    instances = build_reference(english_store, ExampleOptions(seed=0, whole_words=True))
    joined = 0
    for one in instances:
        chosen = set(one.masked_positions)
        original = list(one.tokens)
        for position, label in zip(one.masked_positions, one.masked_labels, strict=True):
            original[position] = label
        for position, token in enumerate(original):
            if token.startswith("##") and original[position - 1] not in ("[CLS]", "[SEP]"):
                assert (position in chosen) == (position - 1 in chosen)
                joined += 1
    assert joined > 100
    assert 0.5 < np.mean([one.is_random_next for one in instances]) < 0.65
