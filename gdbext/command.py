"""The class of rvtrace's gdb commands: what a command is called stands in the line of its class.

    class Stop(Command, name="trace stop", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):

The class's docstring is the command's help, and `invoke` what it does.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gdb

COMPLETED_BY_METHOD = -1
"""gdb completes with the command's method `complete`, if it has one."""


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

    def __init__(self) -> None:
        super().__init__(*self._given)

    def refuse_argument(self, argument: str) -> None:
        """Raise gdb.GdbError if there is an argument."""
        if argument.strip():
            raise gdb.GdbError(f"Usage: {self._given[0]}")
