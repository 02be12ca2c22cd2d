"""Keep big buffers instead of giving them back to the system after every step."""

from __future__ import annotations

import ctypes
import platform

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = (1 << 31) - 1


def keep_buffers() -> None:
    """Tell glibc to reuse large blocks. By default each one is returned when it is freed, and the system has to clear
    its pages anew for the next step, which costs small models a quarter of their time."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE)
