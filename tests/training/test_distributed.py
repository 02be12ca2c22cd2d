"""Which device a rank computes on, and a run in another thread than the main one."""

import os
import socket
import subprocess
import sys
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


MEETING = """
import os
from malmoi.training.distributed import join_world
with join_world("cpu") as world:
    world.wait()
    if not world.is_first:
        os._exit(9)
    world.sum_numbers({"one": 1.0})
"""


def test_a_rank_that_is_killed_ends_the_first_one_with_a_sentence():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    first, second = [
        subprocess.Popen(
            [sys.executable, "-c", MEETING],
            env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE if rank == 0 else None,
            text=True,
        )
        for rank in range(2)
    ]
    said = first.communicate()[1]
    assert second.wait() == 9
    assert "malmoi.errors.MalmoiError: another rank has ended" in said.splitlines()[-1]
