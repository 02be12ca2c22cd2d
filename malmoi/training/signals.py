"""How a run hears that it is to stop."""

from __future__ import annotations

import signal
import threading
import time

from malmoi.training.distributed import World

_ECHO_SECONDS = 2.0


class Signals:
    """Notes that the process was asked to end, so that the step at work can be finished and saved first."""

    def __init__(self, world: World) -> None:
        self.received = 0
        # torchrun hands on to its ranks what the terminal has sent to all of them: that is not asking twice.
        self._echo_seconds = _ECHO_SECONDS if world.size > 1 else 0.0

    def __enter__(self) -> Signals:
        # In another thread than the main one nobody can listen; whoever started it decides how it ends.
        can_listen = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGTERM, signal.SIGINT) if can_listen else ()
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def _note(self, number: int, frame: object) -> None:
        if not self.received:
            self.received, self._first = number, time.monotonic()
        elif time.monotonic() - self._first >= self._echo_seconds:
            raise KeyboardInterrupt  # asked twice: at once

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
