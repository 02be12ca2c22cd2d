"""malmoi pretrain as a user runs it: to the end, killed, stopped, on a full disk, on two ranks."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from malmoi.runs import _open_model

OPTIONS = (
    *("--steps", 12, "--batch-size", 8, "--seq-len", 48, "--save-every", 4, "--eval-every", 6),
    *("--eval-share", 0.05, "--seed", 7, "--whole-words"),
)


@pytest.fixture(scope="module")
def command(korean_store, small):
    words = ["pretrain", korean_store.folder, "--model", small, *OPTIONS]
    return [sys.executable, "-m", "malmoi", *map(str, words)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, command):
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    finished = subprocess.run([*command, "--out", "run"], cwd=folder, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return folder / "run"


def losses_of(run):
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == list(range(12))
    return [(record["loss"], record["gradient_norm"], record.get("evaluation")) for record in records]


def weights_of(run):
    return (run / "model" / "model.safetensors").read_bytes()


def test_a_run_leaves_everything_in_its_folder(whole):
    assert {path.name for path in whole.iterdir()} >= {
        "config.json",
        "log.jsonl",
        "checkpoints",
        "model",
        "report.html",
    }
    assert list(whole.glob("events.out.tfevents.*"))
    assert sorted(path.name for path in (whole / "checkpoints").iterdir()) == ["step-000008", "step-000012"]
    record = json.loads((whole / "log.jsonl").read_text().splitlines()[5])
    assert {"step", "loss", "parts", "accuracy", "learning_rate", "tokens", "seconds", "evaluation"} <= record.keys()
    assert "unigram loss" in (whole / "model" / "README.md").read_text("utf-8")
    page = (whole / "report.html").read_text("utf-8")
    assert "<svg" in page and "Hidden words: loss" in page and "What it fills in" in page and "http" not in page


def test_transformers_reads_the_model(whole):
    import transformers

    model = transformers.AutoModelForPreTraining.from_pretrained(whole / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole / "model")
    assert model(**tokenizer("나는 밥을", return_tensors="pt")).prediction_logits.shape[-1] == model.config.vocab_size


def test_the_same_command_again_has_nothing_to_do(whole, command):
    before = weights_of(whole)
    finished = subprocess.run([*command, "--out", whole], capture_output=True, text=True)
    assert finished.returncode == 0 and weights_of(whole) == before
    assert len(losses_of(whole)) == 12


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_or_stopped_run_goes_on_bit_for_bit(whole, command, tmp_path, number):
    running = subprocess.Popen(
        [*command, "--out", "run"], cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    log = tmp_path / "run" / "log.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not log.exists() or log.read_bytes().count(b"\n") < 6):
        time.sleep(0.002)
    running.send_signal(number)
    code = running.wait()
    if number == signal.SIGTERM and code != 0:
        assert code == 128 + signal.SIGTERM
    finished = subprocess.run([*command, "--out", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert losses_of(tmp_path / "run") == losses_of(whole)
    assert weights_of(tmp_path / "run") == weights_of(whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(whole, command, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    state = tmp_path / "run" / "checkpoints" / "step-000012" / "state.safetensors"
    content = bytearray(state.read_bytes())
    content[-5] ^= 4
    state.write_bytes(content)
    finished = subprocess.run([*command, "--out", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "state.safetensors: damaged" in finished.stderr and "going on after step 8" in finished.stderr
    assert losses_of(tmp_path / "run") == losses_of(whole) and weights_of(tmp_path / "run") == weights_of(whole)


def test_a_full_disk_in_a_save_loses_nothing(whole, command, tmp_path):
    finished = subprocess.run(
        [*command, "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
    )
    assert finished.returncode == 2 and "Traceback" not in finished.stderr, finished.stderr
    assert not (tmp_path / "run" / "model").exists()
    finished = subprocess.run([*command, "--out", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert losses_of(tmp_path / "run") == losses_of(whole) and weights_of(tmp_path / "run") == weights_of(whole)


@pytest.mark.parametrize("shard", [False, True])
def test_two_ranks_compute_what_one_does(whole, command, tmp_path, shard):
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *command[1:]]
    finished = subprocess.run(
        [*ranks, "--out", "run", *(["--shard"] if shard else [])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert finished.returncode == 0, finished.stderr
    for (one, norm, held_out), (two, other_norm, other) in zip(
        losses_of(whole), losses_of(tmp_path / "run"), strict=True
    ):
        assert abs(one - two) < 1e-4 and abs(norm - other_norm) < 1e-3
        assert held_out is None or abs(held_out["mlm_loss"] - other["mlm_loss"]) < 1e-4
    expected, found = (load_file(run / "model" / "model.safetensors") for run in (whole, tmp_path / "run"))
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=0)


def test_mistakes(refuses, whole, korean_store, english_store, small, tmp_path):
    store = korean_store.folder
    refuses("pretrain", store, "--model", "bert-tinny", "--out", "x", says=["bert-tinny", "bert-tiny"])
    refuses("pretrain", english_store.folder, "--model", small, "--out", "x", says=["another tokenizer"])
    refuses("pretrain", store, "--model", small, "--seq-len", 100, "--out", "x", says=["--seq-len 100", "64 positions"])
    for option, value in {"--lr": 0, "--clip": -1, "--weight-decay": "nan", "--warmup-steps": -1}.items():
        refuses("pretrain", store, "--model", small, option, value, "--out", "x", says=[option, str(value)])
    refuses("pretrain", store, "--model", small, "--seq-len", 48, "--shard", "--out", "x", says=["--shard", "torchrun"])
    refuses("pretrain", store, "--model", small, "--device", "abacus", "--out", "x", says=["--device abacus", "cpu"])
    refuses(
        "pretrain",
        store,
        "--model",
        small,
        "--batch-size",
        8,
        "--micro-batch",
        3,
        "--out",
        "x",
        says=["--micro-batch 3"],
    )
    refuses(
        "pretrain",
        store,
        "--model",
        small,
        *OPTIONS,
        "--lr",
        0.1,
        "--out",
        whole,
        says=["--lr 0.0005, not 0.1", "--out"],
    )
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("precious")
    refuses("pretrain", store, "--model", small, "--seq-len", 48, "--out", "used", says=["thesis.tex", "--out"])
    assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_fresh_weights_are_announced_with_their_number(malmoi, korean_store, tmp_path):
    options = ("--model", "bert-tiny", "--batch-size", 2, "--seq-len", 16, "--out", "run")
    words = ("pretrain", korean_store.folder, *options)
    begun = malmoi(*words, "--steps", 1)
    assert begun.returncode == 0, begun.stderr
    count = json.loads(malmoi("info", "run/model", "--json").stdout)["parameters"]
    assert f"malmoi: bert-tiny: fresh weights, {count:,} parameters.\n" in begun.stderr
    assert "fresh weights" not in malmoi(*words, "--steps", 2).stderr


def test_millions_of_parameters_are_rounded(korean_store, tmp_path):
    said = []
    bundle = _open_model("bert-mini", korean_store, tmp_path, 0, said.append)
    count = sum(weight.numel() for weight in bundle.model.parameters())
    assert said == [f"bert-mini: fresh weights, {count / 10**6:.1f}M parameters."]


def test_published_names_are_not_taken_for_fresh_weights(refuses, korean_store):
    start = ("pretrain", korean_store.folder, "--out", "x", "--model")
    refuses(*start, "bert-base-uncased", says=["google-bert/bert-base-uncased", "that size are bert-base."])
    refuses(*start, "bert-large-cased", says=["google-bert/bert-large-cased", "that size are bert-large."])
    refuses(*start, "bert-base-multilingual-cased", says=["google-bert/bert-base-multilingual-cased"])
    refuses(*start, "roberta-base", says=["FacebookAI/roberta-base", "bert-mini"])


def test_two_runs_in_one_folder(refuses, korean_store, small, tmp_path):
    from malmoi.data.folders import FolderLock

    (tmp_path / "run").mkdir()
    with FolderLock(tmp_path / "run"):
        refuses(
            "pretrain", korean_store.folder, "--model", small, "--seq-len", 48, "--out", "run", says=["another malmoi"]
        )
