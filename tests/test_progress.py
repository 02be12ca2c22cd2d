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


def test_slow_steps_have_a_rate(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with progress("training", 100, "steps") as show:
        for seconds, done in ((0, 1), (40, 9), (80, 10)):
            now[0] = seconds
            show(done)
    assert capsys.readouterr().err.splitlines() == [
        "training: 9 steps of 100 steps, 455 s left, 0.2 steps/s",
        "training: 10 steps of 100 steps, 800 s left, 0.11 steps/s",
    ]


def test_no_rate_before_there_is_one():
    assert module._rate(0, 12.0, "steps") == "" and module._rate(0, 12.0, "B") == ""
    assert module._rate(3, 2.0, "steps") == "1.5 steps/s" and module._rate(30_000, 2.0, "steps") == "15,000 steps/s"


def test_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(module.sys, "stderr", screen)
    with progress("training", 1000, "steps") as show:
        show(900)
        show(1000)
    assert "training" in screen.getvalue() and "100%" in screen.getvalue()
