"""The rate and the time left are those of this run, whatever an earlier one had done."""

import io

import malmoi.progress as module
from malmoi.progress import progress


def test_a_run_that_goes_on(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with progress("training", 1000, "steps") as show:
        for seconds, done in ((20, 901), (40, 921), (50, 931)):
            now[0] = seconds
            show(done)
    # The second call is the first that can tell a rate; the third comes too soon after it.
    assert capsys.readouterr().err == "training: 921 steps of 1,000 steps, 79 s left, 1 steps/s\n"


def test_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(module.sys, "stderr", screen)
    with progress("training", 1000, "steps") as show:
        show(900)
        show(1000)
    assert "training" in screen.getvalue() and "100%" in screen.getvalue()
