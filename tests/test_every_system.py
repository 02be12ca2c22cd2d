"""What every system of the catalog has to keep: its weight table, its folder, and exact training on each objective."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from models import SMALL_CONFIGS

from malmoi.catalog import SYSTEMS, find_objective
from malmoi.checkpoint.bundle import create_bundle, load_bundle
from malmoi.objectives.options import ExampleOptions
from malmoi.training.course import Course
from malmoi.training.distributed import World
from malmoi.training.loop import BatchSource, train
from malmoi.training.optimizer import Optimizer
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import PretrainingBatches
from malmoi.training.state import load_checkpoint, save_checkpoint

ALONE = World(0, 1, torch.device("cpu"))
WAYS = [(system, objective) for system, entry in SYSTEMS.items() for objective in entry.objectives]

every_system = pytest.mark.parametrize("system", SYSTEMS)
every_way = pytest.mark.parametrize("system, objective", WAYS)


def make_bundle(system, store, **changes):
    return create_bundle(replace(SMALL_CONFIGS[system], **changes), store.tokenizer)


class Run:
    """A short pre-training of a small model."""

    def __init__(self, system, objective, store, *, dropout=True, **options):
        off = {} if dropout else {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        self.model = make_bundle(system, store, **off).model
        self.options = TrainingOptions(**options)
        self.optimizer = Optimizer(self.model, self.options, ALONE)
        self.objective = find_objective(system, objective)
        examples = ExampleOptions(objective=objective, seq_len=40, whole_words=True, seed=3)
        self.source = PretrainingBatches(self.objective, store, examples, Course(self.options))

    def steps(self, first_step=0, source=None):
        return train(
            self.model,
            self.optimizer,
            source or self.source,
            self.objective.task,
            Course(self.options),
            ALONE,
            seed=3,
            first_step=first_step,
        )

    @property
    def weights(self):
        return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])


@every_system
def test_the_weight_table_is_total_both_ways(system, korean_store):
    bundle = make_bundle(system, korean_store)
    ours = bundle.model.state_dict()
    table = SYSTEMS[system].weights(bundle.config)
    theirs = table.write(ours)
    matched = table.read(theirs, ours)
    assert not matched.missing and not matched.unexpected
    assert all(torch.equal(matched.tensors[name], tensor) for name, tensor in ours.items())
    with pytest.raises(LookupError, match="no row of the weight table names stranger"):
        table.write({**ours, "stranger": torch.zeros(1)})


@every_system
def test_every_preset_can_be_built(system):
    for config in SYSTEMS[system].presets.values():
        with torch.device("meta"):
            model = SYSTEMS[system].model(config)
        assert SYSTEMS[system].weights(config).write(model.state_dict())


@every_system
def test_heads_and_classes_name_parts_of_the_model(system, korean_store):
    parts = {name for name, _ in make_bundle(system, korean_store).model.named_children()}
    entry = SYSTEMS[system]
    assert entry.heads.keys() <= parts
    assert set().union(*entry.architectures.values()) <= entry.heads.keys()
    assert list(entry.architectures.values())[-1] == set(), "the last class has no heads, so that there is always one"


@every_system
def test_a_saved_model_loads_as_it_was(system, korean_store, tmp_path):
    bundle = make_bundle(system, korean_store)
    bundle.save(tmp_path / "model")
    loaded = load_bundle(tmp_path / "model")
    assert loaded.system == system and loaded.config == bundle.config and not loaded.notes
    for name, tensor in bundle.model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], tensor)


@every_way
def test_the_loss_falls(system, objective, korean_store):
    run = Run(system, objective, korean_store, steps=60, lr=5e-3, batch_size=16)
    losses = [step.loss for step in run.steps()]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 1.0


@every_way
def test_an_objective_trains_the_heads_that_it_names_and_no_other(system, objective, korean_store):
    run = Run(system, objective, korean_store, steps=1, batch_size=8)
    list(run.steps())
    updated = {
        name.partition(".")[0]
        for name, parameter in run.model.named_parameters()
        if parameter in run.optimizer.adamw.state
    }
    assert updated & SYSTEMS[system].heads.keys() == run.objective.trains


@every_way
def test_one_batch_can_be_learned_by_heart(system, objective, korean_store):
    run = Run(system, objective, korean_store, dropout=False, steps=100, lr=5e-3, batch_size=4, schedule="constant")

    class Same(BatchSource):
        def batch(self, step, positions):
            return run.source.batch(0, positions)

    *_, last = run.steps(source=Same())
    assert last.loss < 0.1 and set(last.accuracy.values()) == {1.0}


@every_way
@pytest.mark.parametrize("micro_batch", [2, 8])
def test_accumulation_does_not_change_the_step(system, objective, korean_store, micro_batch):
    """With dropout on: a row drops the same elements in any micro-batch."""
    whole = Run(system, objective, korean_store, steps=3, batch_size=16)
    parts = Run(system, objective, korean_store, steps=3, batch_size=16, micro_batch=micro_batch)
    for one, other in zip(whole.steps(), parts.steps(), strict=True):
        assert abs(one.loss - other.loss) < 1e-5 and abs(one.gradient_norm - other.gradient_norm) < 1e-4
        assert one.tokens == other.tokens
    torch.testing.assert_close(parts.weights, whole.weights, atol=2e-6, rtol=0)


@every_way
def test_dropout_acts_in_training_and_nowhere_else(system, objective, korean_store):
    run = Run(system, objective, korean_store, steps=1, batch_size=8)
    calm = Run(system, objective, korean_store, dropout=False, steps=1, batch_size=8)
    assert next(run.steps()).loss != next(calm.steps()).loss
    run, calm = (Run(system, objective, korean_store, dropout=on, steps=1, batch_size=8) for on in (True, False))
    batch = run.source.batch(0, np.arange(8))
    with torch.no_grad():
        losses = [run.objective.task.losses(one.model.eval(), batch, ALONE.device) for one in (run, calm)]
    assert all(float(losses[0][name].total) == float(losses[1][name].total) for name in losses[0])


@every_way
def test_a_resumed_run_is_bit_identical(system, objective, korean_store, tmp_path):
    whole = Run(system, objective, korean_store, steps=8, batch_size=8)
    losses = []
    for step in whole.steps():
        losses.append(step.loss)
        if step.step == 3:
            save_checkpoint(tmp_path, 4, whole.model, whole.optimizer, keep=2, world=ALONE)
    torch.manual_seed(99)  # nothing of the process's own randomness may matter
    resumed = Run(system, objective, korean_store, steps=8, batch_size=8)
    first_step = load_checkpoint(tmp_path / "step-000004", resumed.model, resumed.optimizer)
    assert first_step == 4
    assert [step.loss for step in resumed.steps(first_step)] == losses[4:]
    assert torch.equal(resumed.weights, whole.weights)
