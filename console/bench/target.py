"""A gdb of a bench with the target behind it: gdb's own commands (`Gdb`), and running a program (`BenchTarget`)."""

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from rvtrace_gdb.console.bench.trace_queries import NotReached
from rvtrace_gdb.console.gdb_driver.engine import Engine, TextListener
from rvtrace_gdb.console.gdb_driver.mi import GdbError, quoted
from rvtrace_gdb.console.gdb_driver.state import LOST, ProgramStop, stop_of
from rvtrace_gdb.session.program import placement
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

WITHIN = 30.0
"""The default of the seconds that a program may take to reach a place."""
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)")
_TRUTH = {"true": 1, "false": 0}
_COLON = re.compile(r"\b(?:ada|modula-2|pascal)\b")
"""Languages whose = compares."""
# Names of registers that must not be used for variables, besides gdb's list of the target's registers.
_ALIASES = frozenset({"pc", "sp", "fp", "ps", "s0", "trace_pos", *(f"x{n}" for n in range(32))})


class Gdb(Closeable):
    """See `console.bench.bench.Bench`."""

    def __init__(
        self,
        elf: str | os.PathLike[str] | None = None,
        *,
        target: str | os.PathLike[str] | None = None,
        gdb: str | None = None,
        within: float = WITHIN,
        said: TextListener = lambda kind, text: None,
        progress: Progress = silent,
    ) -> None:
        self._use_engine(Engine(elf, target, gdb=gdb, listener=said, progress=progress), within)

    @classmethod
    def of_engine(cls, engine: Engine, within: float = WITHIN) -> Self:
        """Create a bench with a gdb that is already running.

        *within*: how many seconds the program may run where a method is not given another limit.
        """
        bench = cls.__new__(cls)
        bench._use_engine(engine, within)
        return bench

    def _use_engine(self, engine: Engine, within: float) -> None:
        self.within, self.engine = within, engine
        self._registers: frozenset[str] | None = None

    def close(self) -> None:
        """End gdb. A running program keeps running."""
        self.engine.close()

    # gdb

    def gdb(self, command: str) -> str:
        """Run any gdb command and return what it prints."""
        return self.engine.execute(command)

    def trace(self, command: str) -> str:
        """Run any `trace` command and return what it prints."""
        return self.engine.execute(f"trace {command}")

    def value(self, expression: str) -> str:
        """Return the value of an expression in the program's language, as gdb writes it."""
        return self.engine.evaluate(expression)

    def number(self, expression: str) -> int:
        """Return the value of an expression that is a number or a pointer. Raises RvtraceError if it is neither."""
        text = self.value(expression)
        if text.lower().strip(".") in _TRUTH:  # TRUE, .TRUE.
            return _TRUTH[text.lower().strip(".")]
        if _NUMBER.fullmatch(text):
            return int(text, 0)
        if text in ("void", "()"):
            raise RvtraceError(f"{expression} has no value")
        whole = self._complete_text(expression)
        if not _NUMBER.fullmatch(whole):
            raise RvtraceError(f"{expression} is {text}, not a number")
        return int(whole, 0)

    def _complete_text(self, expression: str) -> str:
        """Return a character, a member of an enumeration, a function or a pointer as a number, as C has it; or ""."""
        with contextlib.suppress(GdbError):
            return self.engine.evaluate(f"(long long)({expression})", language="c")
        return ""

    def set(self, name: str, value: str) -> None:
        """Set gdb's variable $NAME to the value of an expression. Raises RvtraceError for the name of a register."""
        if self._registers is None:
            found = self.engine.query("-data-list-register-names").get("register-names", [])
            self._registers = _ALIASES | frozenset(found)
        if name in self._registers:
            raise RvtraceError(f"${name} is a register of the target, not a variable: use another name")
        sign = ":=" if _COLON.search(self.engine.execute("show language")) else "="
        self.engine.evaluate(f"${name} {sign} ({value})")

    def interrupt(self) -> None:
        """End the running method, from another thread or a signal handler. That method raises `Cancelled`."""
        self.engine.interrupt()


class BenchTarget(Gdb):
    """See `console.bench.bench.Bench`."""

    def connect(self, where: str = "") -> str:
        """Connect to OpenOCD or QEMU at HOST:PORT (localhost:3333), through rvtrace; returns gdb's output."""
        return self.engine.execute(f"trace connect {where}".rstrip())

    def load(self, elf: str | os.PathLike[str] | None = None) -> int:
        """Write the program to the target's memory and return its size in bytes. *elf*: use this one from now on."""
        if elf is not None:
            path, offset = placement(os.fspath(elf))
            self.engine.use(Path(path).resolve(), offset)
        if self.engine.offset:
            said = self.engine.execute(f"load {quoted(str(self.engine.elf))} {self.engine.offset:#x}")
            size = re.search(r"load size (\d+)", said)
            return int(size[1]) if size else 0
        return int(self.engine.query("-target-download").get("load-size", 0))

    def reset(self) -> ProgramStop:
        """Reset the target and halt it there, with OpenOCD's `reset halt`, or QEMU's `system_reset`."""
        self.engine.execute("monitor system_reset" if self._is_qemu() else "monitor reset halt")
        self.engine.execute("maintenance flush register-cache")
        return self.where()

    def break_at(self, location: str) -> int:
        """Set a breakpoint, for `run`, and return its number."""
        return int(self._inserted(location, temporary=False)["number"])

    def delete(self, number: int | None = None) -> None:
        """Delete a breakpoint; None: all of them."""
        self.engine.query(f"-break-delete {'' if number is None else number}".rstrip())

    def run(self, within: float | None = None) -> ProgramStop:
        """Let the program run until it stops at a breakpoint.

        Raises `NotReached` if it does not within *within* seconds.
        """
        stop = self._run_to_stop(within, "no breakpoint was reached")
        if stop.reason != "breakpoint-hit":
            raise NotReached(f"no breakpoint was reached: the program stopped at {stop}", stop)
        return stop

    def run_until(self, location: str, within: float | None = None) -> ProgramStop:
        """Let the program run until it reaches a place: a function, FILE:LINE, or *EXPRESSION.

        Raises `NotReached` if it stops elsewhere, or does not get there in *within* seconds; it is stopped then.
        """
        made = self._inserted(location, temporary=True)
        try:
            stop = self._run_to_stop(within, f"{location} was not reached")
            there = stop.reason == "breakpoint-hit" and (
                stop.breakpoint == int(made["number"]) or stop.address in _breakpoint_addresses(made)
            )
            if not there:
                raise NotReached(f"{location} was not reached: the program stopped at {stop}", stop)
            return stop
        finally:
            with contextlib.suppress(RvtraceError):  # gdb has deleted it if it was reached
                self.engine.query(f"-break-delete {made['number']}")

    def run_for(self, seconds: float) -> ProgramStop:
        """Let the program run for some time, and stop it. Raises `NotReached` if it stops by itself before that."""
        before = self.engine.state.stops
        with self.engine.lock:
            began = time.monotonic()
            self.engine.resume()
            stop = self._awaited(before, seconds)
            if stop is None:
                return self.engine.halt()
        ran = time.monotonic() - began
        raise NotReached(f"the program stopped after {ran:.1f} s of {seconds:g} s, at {stop}", stop)

    def where(self) -> ProgramStop:
        """Return where the program is stopped."""
        return stop_of({"frame": self.engine.query("-stack-info-frame").get("frame", {})})

    # Implementation

    def _is_qemu(self) -> bool:
        """Whether the stub is QEMU's: only QEMU answers this packet (QEMU, gdbstub)."""
        try:
            return "ENABLE=" in self.engine.execute("maintenance packet qqemu.sstepbits")
        except GdbError:
            return False  # there is no stub: the reset then reports that

    def _inserted(self, location: str, *, temporary: bool) -> dict[str, Any]:
        flag = "-t " if temporary else ""
        found = self.engine.query(f"-break-insert {flag}{quoted(location)}")["bkpt"]
        made: dict[str, Any] = found[0] if isinstance(found, list) else found
        return made

    def _run_to_stop(self, within: float | None, failed: str) -> ProgramStop:
        seconds = self.within if within is None else within
        before = self.engine.state.stops
        with self.engine.lock:
            self.engine.resume()
            stop = self._awaited(before, seconds)
            if stop is None:
                stop = self.engine.halt()
                longer = f"; {_LONGER}" if within is None else ""
                raise NotReached(f"{failed} within {seconds:g} s: the program is in {stop.place}{longer}", stop)
        if stop.reason == LOST:
            raise RvtraceError("the connection to the target was lost while the program ran")
        return stop

    def _awaited(self, before: int, seconds: float) -> ProgramStop | None:
        """Wait for the next stop. If the wait ends with an exception, the program is stopped."""
        try:
            return self.engine.await_stop(before, seconds)
        except BaseException:
            with contextlib.suppress(RvtraceError):
                self.engine.halt()
            raise


_LONGER = "to wait longer: `timeout 2min` in the script, or --timeout 2min; in Python within=120"


def _breakpoint_addresses(breakpoint_fields: dict[str, Any]) -> Sequence[int]:
    """Return the addresses of a breakpoint."""
    places = breakpoint_fields.get("locations", [breakpoint_fields])
    return [int(str(place["addr"]), 16) for place in places if str(place.get("addr", "")).startswith("0x")]
