"""The kernel, if there is one that was made of this source: `KERNEL`. Else `ABSENT` says why not.

RVTRACE_KERNEL=0 in the environment: do without it.
"""

import os
from pathlib import Path
from types import ModuleType

from rvtrace_gdb.decode.kernel.source import source_hash


def _load() -> tuple[ModuleType | None, str]:
    if os.environ.get("RVTRACE_KERNEL") == "0":
        return None, "RVTRACE_KERNEL is 0"
    try:
        from rvtrace_gdb.decode.kernel import _kernel
    except ImportError:
        return None, "it is not built"
    if source_hash(Path(__file__).parent) != _kernel.SOURCE:
        return None, "it was built from another source"
    return _kernel, ""


KERNEL, ABSENT = _load()


def kernel() -> ModuleType | None:
    """Return the kernel to use now, None to do without: a process that was forked may have another environment."""
    return None if os.environ.get("RVTRACE_KERNEL") == "0" else KERNEL
