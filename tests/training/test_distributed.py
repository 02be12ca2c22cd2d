"""Which device a rank computes on, and a run in another thread than the main one."""

import threading

import pytest
import torch

import malmoi
from malmoi.errors import MalmoiError
from malmoi.training.distributed import choose_device


def test_each_rank_of_a_machine_has_its_own_device(monkeypatch):
    """There is no GPU here: torch's device without storage stands for it."""
    assert choose_device("meta") == torch.device("meta")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert choose_device("meta") == torch.device("meta", 1)
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(MalmoiError, match="--device cuda:0: all ranks of this machine would share it; give cuda"):
        choose_device("cuda:0")


def test_a_run_in_another_thread(korean_store, tmp_path):
    """Only the main thread may listen to signals; an application may train in any."""
    results = []

    def train():
        training = malmoi.TrainingOptions(steps=1, batch_size=4, eval_every=0)
        examples = malmoi.ExampleOptions(seq_len=32)
        results.append(
            malmoi.pretrain(
                korean_store.folder, out=tmp_path / "run", model="bert-tiny", examples=examples, training=training
            )
        )

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert results == [tmp_path / "run" / "model"]
