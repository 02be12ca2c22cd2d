"""Which of several processes this is: torchrun says so in the environment, where it can be asked without torch."""

from __future__ import annotations

import os
import time
from functools import cache

_PATIENCE = 10.0


def is_first_rank() -> bool:
    """Whether this is the process that speaks; one that runs alone is."""
    return os.environ.get("RANK", "0") == "0"


@cache
def let_first_rank_speak() -> None:
    """Call this where a process is about to fail: what is wrong is mostly wrong for all ranks, and to be said once.

    The first one says it and ends, whereupon torchrun ends the others while they wait here. Where that does not happen
    the failure is this rank's own, and it goes on to say so.
    """
    if not is_first_rank():
        time.sleep(_PATIENCE)
