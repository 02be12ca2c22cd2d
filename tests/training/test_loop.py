"""A step is a function of the weights and its number: accumulation, ranks and resuming cannot change it."""

import copy
import json

import numpy as np
import pytest
import torch

from malmoi.data.holdout import split_store
from malmoi.errors import MalmoiError
from malmoi.objectives.masked import MASKED
from malmoi.objectives.options import ExampleOptions
from malmoi.systems.bert import Bert, BertConfig
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.loop import plan_rows, train
from malmoi.training.optimizer import Optimizer, find_learning_rate
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import PretrainingBatches
from malmoi.training.state import list_checkpoints, load_checkpoint, save_checkpoint, take_up_checkpoints

ALONE = World(0, 1, torch.device("cpu"))
EXAMPLES = ExampleOptions(seq_len=48, whole_words=True, seed=3)


def make_model(store, dropout=0.1):
    torch.manual_seed(0)
    return Bert(
        BertConfig(
            vocab_size=store.manifest.vocab_size,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
    )


def run(store, model, training, *, first_step=0, optimizer=None, world=ALONE):
    optimizer = optimizer or Optimizer(model, training, ALONE)
    course = Course(training)
    source = PretrainingBatches(MASKED, store, EXAMPLES, course)
    return train(model, optimizer, source, MASKED.task, course, world, seed=3, first_step=first_step)


def weights_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_a_loss_that_is_not_finite_stops_before_the_update(korean_store):
    model = make_model(korean_store)
    options = TrainingOptions(steps=2, batch_size=8)
    batch = PretrainingBatches(MASKED, korean_store, EXAMPLES, Course(options)).batch(0, np.arange(8))
    rows_of = {word: np.flatnonzero((batch.input_ids == word).any(axis=1)) for word in np.unique(batch.input_ids)}
    word = next(word for word, rows in rows_of.items() if len(rows) == 2)
    model.embeddings.words.register_forward_hook(
        lambda module, inputs, output: output.masked_fill((inputs[0] == word)[..., None], torch.inf)
    )
    before = weights_of(copy.deepcopy(model))
    with pytest.raises(MalmoiError, match=r"step 0: the loss \(mlm nan, nsp nan\) is not finite") as failure:
        list(run(korean_store, model, options))
    assert f"It comes from row {', '.join(map(str, rows_of[word]))} of the batch." in str(failure.value)
    assert f"malmoi inspect {korean_store.folder} --step 0 --batch-size 8 --show 8" in str(failure.value)
    assert "--seq-len 48 --whole-words --seed 3" in str(failure.value)
    assert torch.equal(weights_of(model), before)


def test_a_gradient_that_is_not_finite_stops_before_the_update(korean_store):
    model = make_model(korean_store)
    model.embeddings.norm.weight.register_hook(lambda gradient: gradient * torch.inf)
    before = weights_of(copy.deepcopy(model))
    with pytest.raises(MalmoiError, match=r"step 0: the gradient is not finite"):
        list(run(korean_store, model, TrainingOptions(steps=2, batch_size=8)))
    assert torch.equal(weights_of(model), before)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_learns_and_resumes_bit_for_bit(korean_store, tmp_path, precision):
    options = TrainingOptions(steps=30, lr=5e-3, batch_size=8, precision=precision)
    model = make_model(korean_store)
    optimizer = Optimizer(model, options, ALONE)
    if precision == "fp16":
        optimizer.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=5)  # overflows at first
    before = weights_of(copy.deepcopy(model))
    steps = []
    for step in run(korean_store, model, options, optimizer=optimizer):
        steps.append(step)
        if step.step == 0 and precision == "fp16":
            assert not np.isfinite(step.gradient_norm) and torch.equal(weights_of(model), before)
        if step.step == 22:
            save_checkpoint(tmp_path, 23, model, optimizer, keep=2, world=ALONE)
    resumed = make_model(korean_store)
    fresh = Optimizer(resumed, options, ALONE)
    first_step = load_checkpoint(tmp_path / "step-000023", resumed, fresh)
    later = list(run(korean_store, resumed, options, first_step=first_step, optimizer=fresh))
    assert [step.loss for step in later] == [step.loss for step in steps[23:]]
    assert torch.equal(weights_of(resumed), weights_of(model))
    if precision == "fp16":
        made = int(optimizer.adamw.state[model.pooler.weight]["step"])
        assert 5 < made < 30 and fresh.scaler.get_scale() == optimizer.scaler.get_scale() != 2.0**40


def test_the_examples_of_a_step_can_be_looked_at(korean_store, malmoi):
    """The command that a failed step names shows the very batch of that step."""
    options = TrainingOptions(steps=10, batch_size=4, long_seq_len=64, long_share=0.2, eval_share=0.1)
    learned, _ = split_store(korean_store, 0.1, EXAMPLES.seed)
    source = PretrainingBatches(MASKED, learned, EXAMPLES, Course(options))
    for step in (3, 9):
        shown = malmoi(*source.locate(step).split()[1:], "--json", "--examples", "4")
        assert shown.returncode == 0, shown.stderr
        rows = [one["tokens"] for one in json.loads(shown.stdout)["examples"]]
        batch = source.batch(step, np.arange(4))
        for row, ids in zip(rows, batch.input_ids, strict=True):
            assert row == [korean_store.tokenizer.token(int(id_)) for id_ in ids[: len(row)]]


def test_ranks_get_their_rows():
    options = TrainingOptions(batch_size=24)
    rows = [plan_rows(options, World(rank, 3, ALONE.device)) for rank in range(3)]
    assert [own[0][:3].tolist() for own in rows] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert sorted(np.concatenate([own[0] for own in rows])) == list(range(24))
    with pytest.raises(MalmoiError, match="--batch-size 24 cannot be divided among 5 ranks"):
        plan_rows(options, World(0, 5, ALONE.device))
    with pytest.raises(MalmoiError, match="--micro-batch 6: it must divide the 8 sequences"):
        plan_rows(TrainingOptions(batch_size=24, micro_batch=6), World(0, 3, ALONE.device))
    with pytest.raises(MalmoiError, match="--micro-batch 7: it must divide --batch-size 24"):
        TrainingOptions(batch_size=24, micro_batch=7)


def test_learning_rates():
    linear = TrainingOptions(steps=100, warmup_steps=10, lr=1.0)
    assert find_learning_rate(0, linear) == 0.1 and find_learning_rate(9, linear) == 1.0
    assert find_learning_rate(55, linear) == 0.5
    assert find_learning_rate(99, linear) == pytest.approx(1 / 90)
    cosine = TrainingOptions(steps=100, warmup_steps=0, lr=1.0, schedule="cosine")
    assert find_learning_rate(50, cosine) == pytest.approx(0.5)
    assert find_learning_rate(70, TrainingOptions(steps=100, lr=1.0, schedule="constant")) == 1.0


def test_biases_and_norms_do_not_decay(korean_store):
    optimizer = Optimizer(make_model(korean_store), TrainingOptions(), ALONE).adamw
    decaying, exempt = optimizer.param_groups
    assert decaying["weight_decay"] == 0.01 and all(parameter.dim() == 2 for parameter in decaying["params"])
    assert exempt["weight_decay"] == 0.0 and all(parameter.dim() == 1 for parameter in exempt["params"])


def test_two_lengths(korean_store):
    options = TrainingOptions(steps=10, batch_size=4, long_seq_len=64, long_share=0.2)
    source = PretrainingBatches(MASKED, korean_store, EXAMPLES, Course(options))
    widths = [source.batch(step, np.arange(4)).input_ids.shape[1] for step in range(10)]
    assert max(widths[:8]) <= 48 < max(widths[8:]) <= 64


def test_held_out_documents_are_not_trained_on(korean_store):
    learned, held_out = split_store(korean_store, 0.1, seed=0)
    both = np.sort(np.concatenate([learned.document_begins, held_out.document_begins]))
    assert both.tolist() == korean_store.document_begins.tolist()
    assert 5 < len(held_out.document_begins) < 40
    assert split_store(korean_store, 0.0, seed=0)[1] is None
    from malmoi.objectives.examples import Examples

    for options in (ExampleOptions(seq_len=32), ExampleOptions(seq_len=32, objective="mlm")):
        batch = Examples(held_out, options).batch(0, 64)
        tokens = set(batch.labels[batch.labels >= 0].tolist())
        own = [
            korean_store.tokens[korean_store.sentences[begin] : korean_store.sentences[end]]
            for begin, end in zip(held_out.document_begins, held_out.document_ends, strict=True)
        ]
        assert tokens <= set(np.concatenate(own).tolist())


def test_what_the_optimizer_remembers_lies_beside_its_weight(korean_store, tmp_path):
    """A fused update on a GPU needs all of it there; torch's device without storage stands for one."""
    options = TrainingOptions(steps=1, batch_size=8)
    model = make_model(korean_store)
    optimizer = Optimizer(model, options, ALONE)
    list(run(korean_store, model, options, optimizer=optimizer))
    save_checkpoint(tmp_path, 1, model, optimizer, keep=1, world=ALONE)
    optimizer.adamw.state.clear()
    load_checkpoint(tmp_path / "step-000001", model.to("meta"), optimizer)
    assert len(optimizer.adamw.state) == len(list(model.parameters()))
    for state in optimizer.adamw.state.values():
        assert {name: value.device.type for name, value in state.items()} == dict.fromkeys(state, "meta")


def test_checkpoints_are_verified_and_the_newest_good_one_is_taken(korean_store, tmp_path):
    options = TrainingOptions(steps=4, batch_size=8)
    model = make_model(korean_store)
    optimizer = Optimizer(model, options, ALONE)
    for step in run(korean_store, model, options, optimizer=optimizer):
        save_checkpoint(tmp_path, step.step + 1, model, optimizer, keep=3, world=ALONE)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-000002", "step-000003", "step-000004"]
    newest = tmp_path / "step-000004" / "state.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    (tmp_path / "step-000003" / "manifest.json").unlink()
    (tmp_path / ".step-000009.partial").mkdir()  # what a kill leaves behind
    found, complaints = take_up_checkpoints(tmp_path)
    assert found == tmp_path / "step-000002"
    assert len(complaints) == 2 and "state.safetensors: damaged" in complaints[0]
    assert "set aside as step-000004.damaged" in complaints[0]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"step-000002", "step-000003.damaged", "step-000004.damaged"}
    # What follows is counted without those that were set aside, whose numbers are higher.
    save_checkpoint(tmp_path, 3, model, optimizer, keep=1, world=ALONE)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-000003"]
    assert take_up_checkpoints(tmp_path) == (tmp_path / "step-000003", [])
