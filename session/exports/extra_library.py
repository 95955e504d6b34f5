"""Libraries that not every installation has: one clear line instead of a traceback."""

import shlex
import sys
from importlib import import_module
from types import ModuleType

from rvtrace_gdb.support.errors import RvtraceError


class LibraryMissing(RvtraceError):
    """An export needs a library that is not installed. *name*: the library's; *form*: the export's."""

    def __init__(self, name: str, form: str) -> None:
        python = shlex.quote(sys.executable)
        super().__init__(f"{form}: {name} is not installed: {python} -m pip install {name} (or 'rvtrace-gdb[views]')")
        self.name = name


def library(module: str, name: str, form: str) -> ModuleType:
    """Return a module of a library. Raises LibraryMissing."""
    try:
        return import_module(module)
    except ImportError:
        raise LibraryMissing(name, form) from None
