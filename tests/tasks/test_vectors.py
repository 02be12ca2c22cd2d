"""Whoever compares or learns vectors makes them as the model's folder says: its pooling, and its longest text."""

import numpy as np
import pytest
import toys
from toys import ALONE, prepare, run

import malmoi
from malmoi.checkpoint.sentence_modules import SentenceModules
from malmoi.tasks.inference import predict
from malmoi.tasks.use import open_task

LONG = " ".join(toys.PLACES * 10)
POOLINGS = ["cls", "max", "mean", "mean-sqrt-len", "weighted-mean"]


def make_embedder(pool, length=None):
    return malmoi.Pretrained(**vars(toys.make_bundle()) | {"sentence": SentenceModules(pool, False, length)})


def cosine(model, first, second):
    one, other = model.embed([first, second], normalize=True, truncate="right")
    return float(one @ other)


@pytest.mark.parametrize("pool", POOLINGS)
def test_the_pooling_of_the_folder(pool, tmp_path):
    model = make_embedder(pool)
    model.save(tmp_path / "model")
    pairs = toys.pairs(8)
    expected = [cosine(model, one.text, one.pair) for one in pairs]
    assert len({round(score, 5) for score in expected}) > 4
    assert model.similar(pairs[0].text, pairs[0].pair).score == pytest.approx(expected[0], abs=1e-5)
    opened = open_task(tmp_path / "model", "embed", None, "cpu")
    for kind in (opened.kind, opened.kind_for(pairs)):
        found = predict(kind, opened.bundle.model, pairs, opened.device)
        np.testing.assert_allclose([one.score for one in found], expected, atol=2e-6)


@pytest.mark.parametrize("length", [12, None])
def test_the_length_of_the_folder(length):
    """With nothing said, all that the model has positions for."""
    model = make_embedder("mean", length)
    found = model.similar(LONG, toys.PLACES[0]).score
    assert found == pytest.approx(cosine(model, LONG, toys.PLACES[0]), abs=1e-5)
    assert abs(found - make_embedder("mean", 10).similar(LONG, toys.PLACES[0]).score) > 1e-4


def test_fine_tuning_keeps_what_the_folder_says(tmp_path):
    """What a model has learned with is what its folder says, so that its figures are met again."""
    made = prepare("embed", bundle=make_embedder("cls", 20), epochs=1)
    assert (made.kind.sentence.pool, made.kind.seq_len) == ("cls", 20)
    run(made, tmp_path / "run")
    model = malmoi.load(tmp_path / "run" / "model")
    assert model.sentence == SentenceModules("cls", False, 20)
    dev = toys.pairs(64, seed=9, scored=True)
    learned = [one.score for one in predict(made.kind, made.bundle.model, dev, ALONE.device)]
    np.testing.assert_allclose(learned, [cosine(model, one.text, one.pair) for one in dev], atol=1e-4)


def test_fine_tuning_writes_down_what_it_used(tmp_path):
    run(prepare("embed", epochs=1, seq_len=24), tmp_path / "run")
    model = malmoi.load(tmp_path / "run" / "model")
    assert model.sentence == SentenceModules("mean", True, 24)
    assert np.linalg.norm(model.embed([LONG], truncate="right")) == pytest.approx(1, abs=1e-5)


def test_what_is_not_computed_is_said():
    model = make_embedder("mean")
    model.sentence = SentenceModules(unsupported="modules.json: the module Dense is not one that malmoi computes")
    with pytest.raises(malmoi.MalmoiError, match="Dense"):
        model.similar("서울", "부산")
    with pytest.raises(malmoi.MalmoiError, match="Dense"):
        prepare("embed", bundle=model)
