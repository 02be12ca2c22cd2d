"""Public data sets as they are published are read without a word about columns, wherever their columns have names."""

import pytest

from malmoi import MalmoiError
from malmoi.tasks.reading import Columns, ReadingNotes, find_labels, read_examples

NLI = ["contradiction", "entailment", "neutral"]


@pytest.fixture
def load(data):
    def run(task: str, name: str, **columns):
        run.notes = ReadingNotes()
        return list(read_examples(task, [data / name], Columns(**columns), labelled=True, notes=run.notes))

    return run


def test_nsmc(load):
    examples = load("classify", "nsmc/test.txt", skip_empty=True)
    assert (len(examples), load.notes.empty) == (49_997, 3)
    assert find_labels(examples) == ["0", "1"]
    with pytest.raises(MalmoiError, match=r"test.txt, line 5748, column 'document': the text is empty"):
        load("classify", "nsmc/test.txt")


def test_klue_topics(load):
    examples = load("classify", "klue/ynat_train_dacon.csv")
    assert len(examples) == 45_654
    assert find_labels(examples) == list("0123456")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("klue/klue-nli-v1.1_train.json", 24_998),
        ("klue/klue-nli-v1.1_dev.json", 3_000),
        ("kor-nlu/KorNLI/xnli.dev.ko.tsv", 2_490),
        ("kor-nlu/KorNLI/xnli.test.ko.tsv", 5_010),
    ],
)
def test_korean_inference(load, name, count):
    examples = load("pair", name)
    assert len(examples) == count
    assert find_labels(examples) == NLI
    assert all(example.pair for example in examples)


def test_snli(load):
    columns = {"no_header": True, "label": "0", "text": "1", "pair": "2"}
    assert find_labels(load("pair", "snli/test.tsv", **columns)) == ["-", *NLI]
    examples = load("pair", "snli/test.tsv", **columns, skip_label="-")
    assert (len(examples), load.notes.skipped) == (9_824, 176)
    assert find_labels(examples) == NLI
    with pytest.raises(MalmoiError, match=r"test.tsv, line 1: this line looks like data.* --no-header"):
        load("pair", "snli/test.tsv")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("klue/klue_sts_train.csv", 11_668),
        ("klue/klue-sts-v1.1_dev.json", 519),
        ("kor-nlu/KorSTS/sts-dev.tsv", 1_500),
        ("sts-b/train.tsv", 5_749),
        ("sts-b/dev.tsv", 1_500),
    ],
)
def test_similarity(load, name, count):
    for task in ("regress", "embed"):
        examples = load(task, name)
        assert len(examples) == count
        assert all(example.pair and 0 <= example.score <= 5 for example in examples)


def test_klue_entities(load):
    examples = load("tag", "klue/klue-ner-v1.1_dev.tsv")
    assert len(examples) == 5_000
    kinds = ("DT", "LC", "OG", "PS", "QT", "TI")
    assert find_labels(examples) == [*(f"B-{kind}" for kind in kinds), *(f"I-{kind}" for kind in kinds), "O"]
    assert all(len(word) == 1 for example in examples for word in example.words)
    text, spans = examples[0].lay_out()
    assert " " in text and len(spans) == len(text)


@pytest.mark.parametrize(
    ("name", "count", "impossible"),
    [("dev-v1.1.rebuilt.json", 10_570, 0), ("dev-v2.0.json", 11_873, 5_945), ("xquad.en.json", 1_190, 0)],
)
def test_squad(load, name, count, impossible):
    questions = load("answer", f"squad/{name}")
    assert (len(questions), sum(question.impossible for question in questions)) == (count, impossible)
    assert load.notes.repaired_answers == 0
    for question in questions:
        for answer in question.answers:
            assert question.context[answer.start :].startswith(answer.text)
