"""Scores of any size are learned alike, and come out as they were in the examples."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import toys
import transformers
from toys import ALONE

import malmoi
from malmoi.tasks.finetuning import TaskData, finetune, prepare_finetuning
from malmoi.tasks.inference import predict
from malmoi.tasks.options import FinetuningOptions


def far(examples, factor=1.0, shift=0.0):
    return [replace(one, score=one.score * factor + shift) for one in examples]


def prepare(bundle=None, factor=1.0, shift=0.0, **options):
    options = {"epochs": 5, "batch_size": 16, "lr": 3e-3, "seed": 1, **options}
    learned, held_out = (far(toys.scores(count, seed), factor, shift) for count, seed in ((192, 0), (64, 9)))
    return prepare_finetuning(
        TaskData("regress", learned, held_out),
        bundle or toys.make_bundle(),
        FinetuningOptions(**options),
        ALONE,
        model_name="toy",
        tell=print,
    )


def evaluations(steps):
    return [one.evaluation for one in steps if one.evaluation is not None]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return evaluations(toys.run(prepare(), tmp_path_factory.mktemp("plain") / "run"))


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 2000.0), (0.001, 0.0), (1e6, -3e6)])
def test_scores_of_any_size_are_learned_alike(plain, tmp_path, factor, shift):
    prepared = prepare(factor=factor, shift=shift)
    figures = evaluations(toys.run(prepared, tmp_path / "run"))
    assert max(one["spearman"] for one in plain) > 0.9
    for one, other in zip(figures, plain, strict=True):
        assert one["spearman"] == pytest.approx(other["spearman"], abs=0.03)
        assert one["mean_squared_error"] == pytest.approx(other["mean_squared_error"] * factor**2, rel=0.2)
    # The folder is plain: whoever reads it gets the scores themselves.
    texts, gold = [one.text for one in prepared.dev], np.array([one.score for one in prepared.dev])
    loaded = malmoi.load(tmp_path / "run" / "model")
    assert loaded.head.labels == ("score",) and set(loaded.head.settings) == {"seq_len"}
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "model").eval()
    inputs = transformers.AutoTokenizer.from_pretrained(tmp_path / "run" / "model")(
        texts, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        answers = theirs(**inputs).logits[:, 0].numpy()
    assert np.abs(answers - gold).mean() < 0.5 * gold.std()
    found = [one.score for one in predict(prepared.kind, loaded.model, prepared.dev, ALONE.device)]
    np.testing.assert_allclose(found, answers, rtol=1e-5, atol=1e-5 * gold.std())


def test_resumed_and_learned_further_it_answers_scores(tmp_path):
    whole = toys.run(prepare(shift=2000.0, save_every=10), tmp_path / "whole")
    for one in finetune(prepare(shift=2000.0, save_every=10), tmp_path / "again", ALONE, tell=print):
        if one.step.step == 24:
            break
    resumed = toys.run(prepare(shift=2000.0, save_every=10), tmp_path / "again")
    assert evaluations(resumed) == evaluations(whole)[-len(evaluations(resumed)) :]
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "again")]
    assert weights[0] == weights[1]
    # Other scores, the same head: it begins where it was.
    model = malmoi.load(tmp_path / "whole" / "model")
    before = predict_with(model)
    further = prepare(model, factor=2.0, shift=2000.0, lr=1e-9, epochs=1)
    toys.run(further, tmp_path / "further")
    np.testing.assert_allclose(predict_with(malmoi.load(tmp_path / "further" / "model")), before, atol=0.01)


def test_similar_answers_scores(tmp_path):
    examples = [replace(one, score=one.score + 100) for one in toys.pairs(192, scored=True)]
    prepared = prepare_finetuning(
        TaskData("regress", examples),
        toys.make_bundle(),
        FinetuningOptions(epochs=4, lr=3e-3, batch_size=16),
        ALONE,
        model_name="toy",
        tell=print,
    )
    toys.run(prepared, tmp_path / "run")
    model = malmoi.load(tmp_path / "run" / "model")
    found = [model.similar(one.text, one.pair).score for one in examples[:32]]
    assert min(found) > 95 and max(found) < 110


def predict_with(model):
    from malmoi.tasks.kinds import open_kind

    kind = open_kind(model, ("regress",))
    return [one.score for one in predict(kind, model.model, toys.scores(20, seed=4), ALONE.device)]
