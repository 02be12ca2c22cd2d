"""What an objective does not train is not saved as if it had been: hidden words alone leave other heads as they are."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file

import malmoi
from malmoi.checkpoint.bundle import load_bundle

ALONE = malmoi.ExampleOptions(objective="mlm", seq_len=48, seed=7)
PAIRS = malmoi.ExampleOptions(seq_len=48, seed=7)
TRAINING = malmoi.TrainingOptions(steps=4, batch_size=8, save_every=2, eval_every=2, eval_share=0.05)
UNTRAINED = {"pooler", "next_sentence_head"}


def train(store, out, model, examples=ALONE):
    return malmoi.pretrain(store.folder, out=out, model=model, examples=examples, training=TRAINING)


def class_of(model):
    return json.loads((model / "config.json").read_text())["architectures"]


def names_of(path):
    with safe_open(path, "pt") as file:
        return set(file.keys())


@pytest.fixture(scope="module")
def alone(korean_store, tmp_path_factory):
    """The model of a run on hidden words alone, from fresh weights."""
    return train(korean_store, tmp_path_factory.mktemp("alone") / "run", "bert-tiny")


def test_hidden_words_alone_make_a_masked_language_model(alone):
    assert class_of(alone) == ["BertForMaskedLM"]
    assert not [name for name in names_of(alone / "model.safetensors") if "pooler" in name or "relation" in name]
    _, loading = transformers.AutoModelForMaskedLM.from_pretrained(alone, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    bundle = load_bundle(alone)
    assert bundle.absent == UNTRAINED and not malmoi.load(alone).embedder.engine.has_pooler
    count = sum(tensor.numel() for tensor in load_file(alone / "model.safetensors").values())
    assert f"| parameters | {count:,} |" in (alone / "README.md").read_text("utf-8")


def test_nothing_is_remembered_of_what_is_not_trained(alone):
    for path in alone.parent.glob("checkpoints/*/state.safetensors"):
        names = names_of(path)
        assert "exp_avg.word_head.bias" in names
        assert not [name for name in names if any(part in name for part in UNTRAINED)]


def test_a_run_without_those_parts_goes_on_bit_for_bit(alone, korean_store, tmp_path):
    shutil.copytree(alone.parent, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-000004")
    shutil.rmtree(tmp_path / "run" / "model")
    again = train(korean_store, tmp_path / "run", "bert-tiny")
    assert (again / "model.safetensors").read_bytes() == (alone / "model.safetensors").read_bytes()


def test_heads_that_a_model_came_with_are_kept_and_named(korean_store, small, tmp_path, capsys):
    went_on = train(korean_store, tmp_path / "run", small)
    said = capsys.readouterr().err
    assert f"--objective mlm does not train the head for the next sentence and the pooler: kept as in {small}" in said
    assert class_of(went_on) == ["BertForPreTraining"]
    assert "not trained further | the head for the next sentence" in (went_on / "README.md").read_text("utf-8")
    before, after = (load_file(model / "model.safetensors") for model in (small, went_on))
    assert before.keys() == after.keys()
    same = {name for name, tensor in before.items() if torch.equal(tensor, after[name])}
    assert same == {name for name in before if "pooler" in name or "seq_relationship" in name}


def test_pairs_train_what_was_absent(alone, korean_store, tmp_path, capsys):
    assert class_of(train(korean_store, tmp_path / "still", alone)) == ["BertForMaskedLM"]
    assert "does not train" not in capsys.readouterr().err
    assert class_of(train(korean_store, tmp_path / "run", alone, PAIRS)) == ["BertForPreTraining"]
    assert not load_bundle(tmp_path / "run" / "model").absent


@pytest.mark.parametrize("shard, is_fresh", [(False, True), (True, False)])
def test_ranks_leave_out_the_same(alone, korean_store, small, tmp_path, shard, is_fresh):
    model = "bert-tiny" if is_fresh else small
    whole = alone if is_fresh else train(korean_store, tmp_path / "whole", small)
    words = ["pretrain", korean_store.folder, "--model", model, "--out", "run", *ALONE.spell().split()]
    words += ["--steps", 4, "--batch-size", 8, "--save-every", 2, "--eval-every", 2, "--eval-share", 0.05]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "malmoi"]
    finished = subprocess.run(
        [*command, *map(str, words), *(["--shard"] if shard else [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert finished.returncode == 0, finished.stderr
    assert ("does not train" in finished.stderr) is not is_fresh
    assert class_of(tmp_path / "run" / "model") == class_of(whole)
    expected, found = (load_file(one / "model.safetensors") for one in (whole, tmp_path / "run" / "model"))
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=0)
