"""Every task is learned by a tiny model beyond chance, and the same rules hold for all of them."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import toys
from safetensors.torch import load_file
from toys import ALONE, TASKS, prepare, run

from malmoi import MalmoiError
from malmoi.checkpoint.bundle import load_bundle
from malmoi.tasks.finetuning import TaskData, finetune, prepare_finetuning
from malmoi.tasks.inference import predict, run_items
from malmoi.tasks.kinds import open_kind
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.ragged import cut_batch

every_task = pytest.mark.parametrize("name", TASKS)


def weights_of(prepared):
    return {name: tensor.clone() for name, tensor in prepared.bundle.model.state_dict().items()}


@every_task
def test_it_is_learned_and_saved(name, tmp_path):
    _, metric, enough = TASKS[name]
    prepared = prepare(name)
    steps = run(prepared, tmp_path / "run")
    figures = [one.evaluation for one in steps if one.evaluation is not None]
    assert len(figures) == prepared.options.epochs and max(one[metric] for one in figures) >= enough, figures
    # The folder holds the best of them, and answers as the model did.
    loaded = load_bundle(tmp_path / "run" / "model")
    if prepared.kind.head is not None:
        assert loaded.head == prepared.kind.head and not loaded.absent
    found = prepared.kind.measure(prepared.dev, predict(prepared.kind, loaded.model, prepared.dev, ALONE.device))
    best = max(one[prepared.kind.metric] for one in figures)
    assert abs(found[prepared.kind.metric] - best) < 1e-6
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "<svg" in page and "Loss" in page and "http" not in page


@every_task
@pytest.mark.parametrize("micro_batch", [4])
def test_accumulation_does_not_change_the_gradient(name, micro_batch):
    """With dropout on, and in a batch that is not full."""
    if name == "embed by contrast":
        pytest.skip("its pairs are compared with all of the batch")
    from malmoi.training.course import Course
    from malmoi.training.loop import train
    from malmoi.training.optimizer import Optimizer

    found = []
    for size in (None, micro_batch):
        prepared = prepare(name, count=20, micro_batch=size, epochs=2)
        optimizer = Optimizer(prepared.bundle.model, prepared.training, ALONE)
        source, course = prepared.batches, Course(prepared.training)
        steps = list(train(prepared.bundle.model, optimizer, source, prepared.kind.task, course, ALONE, seed=1))
        found.append((steps, weights_of(prepared)))
    for one, other in zip(*(steps for steps, _ in found), strict=True):
        assert abs(one.loss - other.loss) < 1e-5 and abs(one.gradient_norm - other.gradient_norm) < 1e-4
        assert one.accuracy == pytest.approx(other.accuracy)
    for name, tensor in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], tensor, atol=1e-4, rtol=0)


@every_task
def test_padding_does_not_change_an_output(name):
    prepared = prepare(name, count=12)
    examples = prepared.dev[:12]
    items = prepared.kind.encode(examples)
    pad_id = prepared.bundle.tokenizer.pad_id
    model = prepared.bundle.model.eval()
    together = run_items(prepared.kind, model, items, ALONE.device)
    for number, expected in enumerate(together):
        with torch.no_grad():
            batch = cut_batch(items, np.array([number]), pad_id)
            found = prepared.kind.outputs(model, batch, ALONE.device)[0].numpy()
        np.testing.assert_allclose(found, expected[: len(found)], atol=1e-5)


@pytest.mark.parametrize("name", ["classify", "tag", "answer"])
def test_a_resumed_run_is_bit_identical(name, tmp_path):
    import shutil

    whole = prepare(name, count=64, save_every=3, epochs=3)
    steps = run(whole, tmp_path / "whole")
    begun = prepare(name, count=64, save_every=3, epochs=3)
    for one in finetune(begun, tmp_path / "again", ALONE, tell=print):
        if one.step.step == 7:
            break  # as if killed: the newest checkpoint is that after step 6
    torch.manual_seed(99)
    resumed = prepare(name, count=64, save_every=3, epochs=3)
    later = run(resumed, tmp_path / "again")
    assert [one.step.loss for one in later] == [one.step.loss for one in steps[6:]]
    assert [one.evaluation for one in later] == [one.evaluation for one in steps[6:]]
    one, other = ((tmp_path / where / "model" / "model.safetensors").read_bytes() for where in ("whole", "again"))
    assert one == other
    # Finished, it has nothing to do, and makes the same model once more.
    shutil.rmtree(tmp_path / "again" / "model")
    assert run(prepare(name, count=64, save_every=3, epochs=3), tmp_path / "again") == []
    assert (tmp_path / "again" / "model" / "model.safetensors").read_bytes() == other


def test_a_run_notices_other_weights_and_other_examples_held_out(tmp_path):
    options = {"count": 32, "epochs": 1}
    run(prepare("classify", **options), tmp_path / "run")
    with pytest.raises(MalmoiError, match=r"the run begun here has other weights in its --model; repeat its command"):
        run(prepare("classify", bundle=toys.make_bundle(seed=5), **options), tmp_path / "run")
    # As many of them, but not the same; where they stand is of no matter.
    begun = prepare("classify", **options)
    others = [toys.sentiment(64, seed=8), [replace(one, place="elsewhere") for one in begun.dev]]
    prepared = [
        prepare_finetuning(
            TaskData("classify", toys.sentiment(32), dev),
            toys.make_bundle(),
            begun.options,
            ALONE,
            model_name="toy",
            tell=print,
        )
        for dev in others
    ]
    with pytest.raises(MalmoiError, match=r"the run begun here has other examples held out \(--dev\); repeat"):
        run(prepared[0], tmp_path / "run")
    assert run(prepared[1], tmp_path / "run") == []


def test_the_report_begins_with_the_model_that_is_kept(tmp_path):
    prepared = prepare("classify", epochs=4)
    values = {}
    for one in finetune(prepared, tmp_path / "run", ALONE, tell=print):
        if one.evaluation is not None:
            values[one.step.step + 1] = one.evaluation["accuracy"]
        if one.step.step + 2 == one.total:  # the last evaluation is to be the worst
            with torch.no_grad():
                prepared.bundle.model.task_head.output.weight.mul_(-1)
    steps = max(values)
    kept = max(values, key=lambda step: (values[step], step))
    assert kept < steps and values[kept] > values[steps]
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    lead = re.search(r'<p class="lead">(.*?)</p>', page)[1]
    assert lead.startswith(f"{steps} steps, of which the best model, after step {kept}, is kept; held out: accuracy ")
    assert f"accuracy {values[kept]:.3f}" in lead
    card = (tmp_path / "run" / "model" / "README.md").read_text("utf-8")
    assert f"the model after step {kept}" in card and f"{values[kept]:.4f}" in card


def test_of_equals_the_later_model_is_kept(tmp_path):
    prepared = prepare("classify", epochs=3, lr=1e-12)
    steps = run(prepared, tmp_path / "run")
    assert len({one.evaluation["accuracy"] for one in steps if one.evaluation}) == 1
    last = load_file(tmp_path / "run" / "checkpoints" / f"step-{len(steps):06d}" / "state.safetensors")
    best = load_file(tmp_path / "run" / "checkpoints" / "best.safetensors")
    assert all(torch.equal(tensor, last[f"model.{name}"]) for name, tensor in best.items())


def test_a_frozen_encoder_stays_bit_for_bit(tmp_path):
    bundle = toys.make_bundle()
    before = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    prepared = prepare("classify", bundle=bundle, freeze=True, epochs=2, lr=None)
    assert prepared.training.lr == 1e-3
    head = prepared.bundle.model.task_head.output.weight.clone()
    run(prepared, tmp_path / "run")
    loaded = load_bundle(tmp_path / "run" / "model").model
    assert not torch.equal(loaded.task_head.output.weight, head)
    shared = loaded.state_dict().keys() & before.keys()
    assert len(shared) > 20 and all(torch.equal(loaded.state_dict()[name], before[name]) for name in shared)


def test_all_weights_move_without_freezing(tmp_path):
    prepared = prepare("classify", epochs=1)
    before = weights_of(prepared)
    run(prepared, tmp_path / "run")
    after = load_bundle(tmp_path / "run" / "model").model.state_dict()
    assert all(not torch.equal(after[name], tensor) for name, tensor in before.items())


def test_early_stopping_keeps_the_best(tmp_path):
    prepared = prepare("classify", epochs=40, patience=2, lr=5e-3)
    steps = run(prepared, tmp_path / "run")
    values = [one.evaluation["accuracy"] for one in steps if one.evaluation is not None]
    assert len(values) < 40 and len(values) - 1 - values.index(max(values)) == 2
    loaded = load_bundle(tmp_path / "run" / "model")
    found = prepared.kind.measure(prepared.dev, predict(prepared.kind, loaded.model, prepared.dev, ALONE.device))
    assert found["accuracy"] == max(values)
    assert run(prepare("classify", epochs=40, patience=2, lr=5e-3), tmp_path / "run") == []


def test_lower_layers_learn_slower():
    from malmoi.tasks.finetuning import _share_rates
    from malmoi.training.optimizer import Optimizer

    prepared = prepare("classify", count=16, layer_decay=0.5)
    share = _share_rates(prepared.bundle, prepared.options)
    names = ("task_head.output.weight", "pooler.weight", "layers.1.attention.qkv.weight", "layers.0.attention.qkv.bias")
    assert [share(name) for name in (*names, "embeddings.words.weight")] == [1, 1, 0.5, 0.25, 0.125]
    optimizer = Optimizer(prepared.bundle.model, prepared.training, ALONE, share)
    optimizer.update(0.8)
    assert {round(group["lr"], 6) for group in optimizer.adamw.param_groups} == {0.8, 0.4, 0.2, 0.1}


def test_rare_labels_count_more_when_balanced():
    examples = [one for one in toys.sentiment(200) if one.labels == ("좋음",)][:60] + [
        one for one in toys.sentiment(200) if one.labels == ("나쁨",)
    ][:20]
    prepared = prepare_finetuning(
        TaskData("classify", examples),
        toys.make_bundle(),
        FinetuningOptions(class_weights="balanced"),
        ALONE,
        model_name="toy",
        tell=print,
    )
    assert dict(zip(prepared.kind.labels, prepared.kind.head.settings["class_weights"], strict=True)) == {
        "나쁨": 2.0,
        "좋음": pytest.approx(2 / 3),
    }


def test_a_length_is_that_of_its_training_alone(tmp_path):
    run(prepare("classify", epochs=1, seq_len=16), tmp_path / "run")

    def again(name):
        return prepare(name, bundle=load_bundle(tmp_path / "run" / "model"), count=16).kind.seq_len

    limit = toys.make_bundle().config.max_position_embeddings
    assert {again(name) for name in ("classify", "pair", "tag", "answer", "embed")} == {limit}
    assert open_kind(load_bundle(tmp_path / "run" / "model"), ("classify",)).seq_len == 16


def test_a_head_for_the_same_labels_is_kept_and_another_made_fresh(tmp_path):
    told = []
    prepared = prepare("classify", told=told, epochs=1)
    assert "fresh weights" in told[0]
    run(prepared, tmp_path / "run")
    told = []
    again = prepare("classify", bundle=load_bundle(tmp_path / "run" / "model"), told=told)
    assert not told
    assert torch.equal(again.bundle.model.task_head.output.weight, prepared.bundle.model.task_head.output.weight)
    other = prepare("tag", bundle=load_bundle(tmp_path / "run" / "model"), told=told)
    assert "fresh weights" in told[0] and other.bundle.model.pooler is None
