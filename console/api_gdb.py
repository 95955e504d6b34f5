"""The Python API: a gdb of its own, its commands, expressions and variables."""

import os
import re
from types import TracebackType
from typing import Self

from rvtrace_gdb.console.engine import Engine
from rvtrace_gdb.console.engine_waiting import Said
from rvtrace_gdb.console.mi_records import quoted
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

WITHIN = 30.0
"""Seconds that a program may take to come to a place, if nothing else is said."""
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)")
_TRUTH = {"true": 1, "false": 0}
# What the user must not change by the name of a variable, besides gdb's list of the target's registers.
_ALIASES = frozenset({"pc", "sp", "fp", "ps", "s0", "trace_pos", *(f"x{n}" for n in range(32))})


class Gdb:
    """See `console.api.Bench`."""

    def __init__(
        self,
        elf: str | os.PathLike[str] | None = None,
        *,
        target: str | os.PathLike[str] | None = None,
        gdb: str | None = None,
        within: float = WITHIN,
        said: Said = lambda kind, text: None,
        progress: Progress = silent,
    ) -> None:
        self._begin(Engine(elf, target, gdb=gdb, said=said, progress=progress), within)

    @classmethod
    def of(cls, engine: Engine, within: float = WITHIN) -> Self:
        """A bench with a gdb that is there already."""
        bench = cls.__new__(cls)
        bench._begin(engine, within)
        return bench

    def _begin(self, engine: Engine, within: float) -> None:
        self.within, self.engine = within, engine
        self._registers: frozenset[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End gdb. A program that runs goes on."""
        self.engine.close()

    # gdb

    def gdb(self, command: str) -> str:
        """Any command of gdb; what it printed."""
        return self.engine.execute(command)

    def trace(self, command: str) -> str:
        """Any `trace` command; what it printed."""
        return self.engine.execute(f"trace {command}")

    def value(self, expression: str) -> str:
        """The value of an expression in the program's language, as gdb writes it."""
        return self.engine.evaluate(expression)

    def number(self, expression: str) -> int:
        """The value of an expression that is a number, or a pointer. Raises RvtraceError if it is none."""
        text = self.value(expression)
        if text in _TRUTH:
            return _TRUTH[text]
        if _NUMBER.fullmatch(text):
            return int(text, 0)
        if text == "void":
            raise RvtraceError(f"{expression} has no value")
        whole = self.value(f"(long long)({expression})")
        if not _NUMBER.fullmatch(whole):
            raise RvtraceError(f"{expression} is {text}, not a number")
        return int(whole, 0)

    def set(self, name: str, value: str) -> None:
        """Make gdb's variable $NAME the value of an expression. Raises RvtraceError for the name of a register."""
        if self._registers is None:
            found = self.engine.query("-data-list-register-names").get("register-names", [])
            self._registers = _ALIASES | frozenset(found)
        if name in self._registers:
            raise RvtraceError(f"${name} is a register of the target, not a variable: take another name")
        self.engine.query(f"-data-evaluate-expression {quoted(f'${name} = ({value})')}")

    def interrupt(self) -> None:
        """End what is under way: from another thread, or a signal handler. The method raises `Cancelled`."""
        self.engine.interrupt()
