"""The class of rvtrace's gdb commands: what a command is called stands in the line of its class.

    class Stop(Command, name="trace stop", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):

The class's docstring is the command's help, and `invoke` what it does.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, ClassVar

import gdb

from rvtrace_gdb.gdbext.text import error_line

COMPLETED_BY_METHOD = -1
"""gdb completes with the command's method `complete`, if it has one."""


def _with_errors_in_a_line(invoke: Callable[..., None]) -> Callable[..., None]:
    """Have a command say in a line what gdb refused (registers of a hart that is off), and that gdb has no text for a
    name in the program, instead of an error of Python's.
    """

    @functools.wraps(invoke)
    def wrapped(self: Command, argument: str, from_tty: bool) -> None:
        try:
            invoke(self, argument, from_tty)
        except UnicodeError as error:
            found = getattr(error, "object", b"")[:80]
            raise gdb.GdbError(f"{self._given[0]}: a path or a name is not text in this locale: {found!r}") from None
        except gdb.error as error:
            raise gdb.GdbError(error_line(error)) from None

    return wrapped


class Command(gdb.Command):
    """A command of gdb. *kind*: the list of `help` that has it; *completer*: what gdb completes as its argument.

    *is_prefix*: whether there are commands below it.
    """

    _given: ClassVar[tuple[Any, ...]]

    def __init_subclass__(
        cls, name: str, kind: int = gdb.COMMAND_DATA, completer: int = COMPLETED_BY_METHOD, is_prefix: bool = False
    ) -> None:
        super().__init_subclass__()
        cls._given = name, kind, completer, is_prefix
        if "invoke" in cls.__dict__:
            cls.invoke = _with_errors_in_a_line(cls.invoke)  # type: ignore[method-assign]

    def __init__(self) -> None:
        super().__init__(*self._given)

    def refuse_argument(self, argument: str) -> None:
        """Raise gdb.GdbError if there is an argument."""
        if argument.strip():
            raise gdb.GdbError(f"Usage: {self._given[0]}")
