"""The kernel, if there is one that was made of this source."""

import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from rvtrace_gdb.decode.kernel.source import source_hash


def kernel() -> ModuleType | None:
    """Return the kernel to use, None if there is none or RVTRACE_KERNEL is 0 in the environment now."""
    return None if absence() else _built()[0]


def absence() -> str:
    """Return why no kernel is used, "" if one is."""
    return "RVTRACE_KERNEL is 0" if os.environ.get("RVTRACE_KERNEL") == "0" else _built()[1]


@cache
def _built() -> tuple[ModuleType | None, str]:
    """Return the kernel, else why there is none."""
    try:
        from rvtrace_gdb.decode.kernel import _kernel
    except ImportError:
        return None, "it is not built"
    if source_hash(Path(__file__).parent) != _kernel.SOURCE:
        return None, "it was built from another source"
    if sys.hexversion < _kernel.PYTHON:
        return None, f"it was built for Python {_kernel.PYTHON >> 24}.{_kernel.PYTHON >> 16 & 0xff} and later"
    return _kernel, ""
