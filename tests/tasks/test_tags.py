"""What the tags of some data are, and what that means for how they are judged and answered."""

from dataclasses import replace

import numpy as np
import pytest
import toys
from toys import ALONE

import malmoi
from malmoi.tasks.entities import find_entities, find_scheme, mark
from malmoi.tasks.examples import Tagged
from malmoi.tasks.finetuning import TaskData, prepare_finetuning
from malmoi.tasks.inference import predict
from malmoi.tasks.kinds import open_kind
from malmoi.tasks.options import FinetuningOptions


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-LOC", "I-LOC"], "marks"),
        (["B-NP", "I-NP"], "marks"),
        (["O", "U-LOC", "B-LOC", "L-LOC", "I-LOC"], "marks"),
        (["B", "I", "O"], "marks"),
        (["O", "B-LOC", "I-LOC", "_"], "marks"),
        (["O", "LOC", "PER"], "types"),
        (["NOUN", "VERB", "ADJ", "INTJ"], "classes"),
        (["0", "1", "2"], "classes"),
        (["-LRB-", "NN", "S-X"], "classes"),
    ],
)
def test_what_tags_are(labels, scheme):
    assert find_scheme(labels) == scheme


def test_words_of_one_type_are_one_entity():
    tags = ["LOC", "LOC", "O", "PER", "LOC", "O"]
    assert find_entities(mark(tags, "types")) == [("LOC", 0, 1), ("PER", 3, 3), ("LOC", 4, 4)]
    assert find_entities(mark(["NOUN", "VERB", "NOUN"], "classes")) == []


def renamed(examples, names):
    return [replace(one, tags=tuple(names[tag] for tag in one.tags)) for one in examples]


def prepare(names, tell=print, **options):
    learned, held_out = (renamed(toys.tags(count, seed), names) for count, seed in ((192, 0), (64, 9)))
    options = {"epochs": 6, "batch_size": 16, "lr": 3e-3, "seed": 1, **options}
    return prepare_finetuning(
        TaskData("tag", learned, held_out),
        toys.make_bundle(),
        FinetuningOptions(**options),
        ALONE,
        model_name="toy",
        tell=tell,
    )


def test_numbers_are_judged_word_by_word(tmp_path):
    told = []
    prepared = prepare({"O": "0", "B-곳": "1", "I-곳": "2"}, told.append)
    assert "each word is judged for itself" in told[0]
    steps = toys.run(prepared, tmp_path / "run")
    values = [one.evaluation for one in steps if one.evaluation is not None]
    assert values[-1]["tag_accuracy"] > 0.95 and values[-1]["macro_f1"] > 0.95
    assert values[0]["tag_accuracy"] < values[-1]["tag_accuracy"]
    model = malmoi.load(tmp_path / "run" / "model")
    kind = open_kind(model, ("tag",))
    found = kind.measure(prepared.dev, predict(kind, model.model, prepared.dev, ALONE.device))
    assert found == pytest.approx(max(values, key=lambda one: one["tag_accuracy"]))
    [answer] = model.tag(["학생이 부산 거리에서 영화를 보았다."])
    assert answer.tags == ("0", "1", "2", "0", "0") and answer.entities == ()
    assert "What was taken for what" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_types_make_entities(tmp_path):
    prepared = prepare({"O": "O", "B-곳": "곳", "I-곳": "곳"})
    assert prepared.kind.metric == "f1"
    steps = toys.run(prepared, tmp_path / "run")
    assert max(one.evaluation["f1"] for one in steps if one.evaluation) > 0.9
    [answer] = malmoi.load(tmp_path / "run" / "model").tag(["학생이 부산 거리에서 영화를 보았다."])
    assert [(one.label, one.text) for one in answer.entities] == [("곳", "부산 거리에서")]


def test_what_classes_got_wrong():
    kind = prepare({"O": "N", "B-곳": "V", "I-곳": "A"}, epochs=1).kind
    gold = Tagged(("학생이", "서울", "보았다."), ("N", "V", "N"), "")
    outputs = [np.eye(3, dtype=np.float32)[[1] * 20]]
    [answer] = kind.interpret([gold], kind.encode([gold]), outputs)
    assert answer.tags == ("N", "N", "N")
    mistake = kind.find_mistake(gold, answer)
    assert (mistake.expected, mistake.predicted) == ("서울/V", "서울/N")
