"""Several ranks under torchrun, as a user meets them: what is wrong is said once, and stopping stops all of them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from malmoi import cli, ranks

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "malmoi"]


@pytest.fixture
def start(korean_store, small, tmp_path):
    def run(store=korean_store.folder, **options):
        options = {"model": small, "seq-len": 48, "batch-size": 8, "steps": 4, "out": "run", **options}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        return subprocess.Popen(
            [*TORCHRUN, "pretrain", str(store), *words],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )

    return run


@pytest.mark.parametrize("mistake", [{"store": "nowhere"}, {"out": "used"}])
def test_a_mistake_is_said_once(start, tmp_path, mistake):
    """By all ranks before they have met, and by the first one while the others wait for it."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("precious")
    said = start(**mistake).communicate()[1]
    sentences = [line for line in said.splitlines() if line.startswith("malmoi: ")]
    assert len(sentences) == 1 and next(iter(mistake.values())) in sentences[0], said
    # What else there is comes from torchrun itself: its own end, and a table of the ranks.
    assert said.count("Traceback") == 1 and "[rank" not in said and "exitcode  : 2" in said, said


def test_ctrl_c_stops_all_ranks_in_order(start, tmp_path):
    """torchrun hands it on to them; they agree on the step after which they stop."""
    running = start(steps=100_000)
    log = tmp_path / "run" / "log.jsonl"
    while not log.exists() or log.read_bytes().count(b"\n") < 3:
        time.sleep(0.01)
        assert running.poll() is None
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate()[1]
    assert said.count("malmoi: ") == 1 and "malmoi: stopped by signal 2 after step" in said, said
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


def test_a_failure_of_a_single_rank_is_said_after_a_while(monkeypatch, capsys):
    waited = []
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(sys, "argv", ["malmoi", "inspect", "nowhere"])
    monkeypatch.setattr(ranks.time, "sleep", waited.append)
    ranks.let_first_rank_speak.cache_clear()
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and len(waited) == 1
    assert "malmoi: nowhere: there is no such folder" in capsys.readouterr().err
    ranks.let_first_rank_speak.cache_clear()
