"""Libraries that not every installation has: one clear line instead of a traceback."""

import shlex
import sys
from importlib import import_module
from types import ModuleType

from rvtrace_gdb.support.errors import RvtraceError


class LibraryMissing(RvtraceError):
    """Something needs a library that is not installed. *name*: the library's; *form*: what needs it, such as an export;
    *extra*: the extra of rvtrace that has it.
    """

    def __init__(self, name: str, form: str, extra: str = "views") -> None:
        python = shlex.quote(sys.executable)
        super().__init__(f"{form}: {name} is not installed: {python} -m pip install {name} (or 'rvtrace-gdb[{extra}]')")
        self.name = name


def library(module: str, name: str, form: str, extra: str = "views") -> ModuleType:
    """Return a module of a library, see LibraryMissing, which it raises."""
    try:
        return import_module(module)
    except ImportError:
        raise LibraryMissing(name, form, extra) from None
