"""How a run hears that it is to stop."""

from __future__ import annotations

import signal
import threading


class Signals:
    """Notes that the process was asked to end, so that the step at work can be finished and saved first."""

    def __enter__(self) -> Signals:
        self.received = 0
        # In another thread than the main one nobody can listen; whoever started it decides how it ends.
        can_listen = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGTERM, signal.SIGINT) if can_listen else ()
        self._before = {number: signal.signal(number, self._note) for number in numbers}
        return self

    def _note(self, number: int, frame: object) -> None:
        if self.received:
            raise KeyboardInterrupt  # asked twice: at once
        self.received = number

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
