"""The Python API: a target that is connected to, loaded, and run."""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.api_gdb import Gdb
from rvtrace_gdb.console.api_types import NotReached
from rvtrace_gdb.console.engine_state import LOST, Stop, stop_of
from rvtrace_gdb.console.mi import GdbError
from rvtrace_gdb.console.mi_records import quoted
from rvtrace_gdb.support.errors import RvtraceError


class Target(Gdb):
    """See `console.api.Bench`."""

    def connect(self, where: str = "") -> str:
        """Connect to OpenOCD or QEMU at HOST:PORT (localhost:3333), through rvtrace; what gdb said."""
        return self.engine.execute(f"trace connect {where}".rstrip())

    def load(self, elf: str | os.PathLike[str] | None = None) -> int:
        """Write the program into the target's memory; how many bytes that was. *elf*: take this one from now on."""
        if elf is not None:
            self.engine.query(f"-file-exec-and-symbols {quoted(str(Path(elf).resolve()))}")
        return int(self.engine.query("-target-download").get("load-size", 0))

    def reset(self) -> Stop:
        """Reset the target and halt it there, with OpenOCD's `reset halt`, or QEMU's `system_reset`."""
        self.engine.execute("monitor system_reset" if self._is_qemu() else "monitor reset halt")
        self.engine.execute("maintenance flush register-cache")
        return self.where()

    def break_at(self, location: str) -> int:
        """Set a breakpoint, for `run`; its number."""
        return int(self._inserted(location, temporary=False)["number"])

    def delete(self, number: int | None = None) -> None:
        """Delete a breakpoint; None: all of them."""
        self.engine.query(f"-break-delete {'' if number is None else number}".rstrip())

    def run(self, within: float | None = None) -> Stop:
        """Let the program run until it stops at a breakpoint. Raises `NotReached` if it does not within *within* s."""
        stop = self._run(within, "no breakpoint was reached")
        if stop.reason != "breakpoint-hit":
            raise NotReached(f"no breakpoint was reached: the program stopped at {stop}", stop)
        return stop

    def run_until(self, location: str, within: float | None = None) -> Stop:
        """Let the program run until it comes to a place: a function, FILE:LINE, or *EXPRESSION.

        Raises `NotReached` if it stops elsewhere, or does not come there in *within* seconds; it is stopped then.
        """
        made = self._inserted(location, temporary=True)
        try:
            stop = self._run(within, f"{location} was not reached")
            there = stop.reason == "breakpoint-hit" and (
                stop.breakpoint == int(made["number"]) or stop.address in _addresses(made)
            )
            if not there:
                raise NotReached(f"{location} was not reached: the program stopped at {stop}", stop)
            return stop
        finally:
            with contextlib.suppress(RvtraceError):  # it has gone by itself if it was reached
                self.engine.query(f"-break-delete {made['number']}")

    def run_for(self, seconds: float) -> Stop:
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

    def where(self) -> Stop:
        """Where the program stands."""
        return stop_of({"frame": self.engine.query("-stack-info-frame").get("frame", {})})

    # Below: how it is done

    def _is_qemu(self) -> bool:
        """Whether the stub is QEMU's: none else has an answer to this question (QEMU, gdbstub)."""
        try:
            return "ENABLE=" in self.engine.execute("maintenance packet qqemu.sstepbits")
        except GdbError:
            return False  # there is no stub: the reset says so

    def _inserted(self, location: str, *, temporary: bool) -> dict[str, Any]:
        flag = "-t " if temporary else ""
        found = self.engine.query(f"-break-insert {flag}{quoted(location)}")["bkpt"]
        made: dict[str, Any] = found[0] if isinstance(found, list) else found
        return made

    def _run(self, within: float | None, failed: str) -> Stop:
        seconds = self.within if within is None else within
        before = self.engine.state.stops
        with self.engine.lock:
            self.engine.resume()
            stop = self._awaited(before, seconds)
            if stop is None:
                stop = self.engine.halt()
                raise NotReached(f"{failed} within {seconds:g} s: the program is in {stop.place}", stop)
        if stop.reason == LOST:
            raise RvtraceError("the connection to the target was lost while the program ran")
        return stop

    def _awaited(self, before: int, seconds: float) -> Stop | None:
        """The next stop; whatever ends the wait otherwise, the program is stopped."""
        try:
            return self.engine.await_stop(before, seconds)
        except BaseException:
            with contextlib.suppress(RvtraceError):
                self.engine.halt()
            raise


def _addresses(made: dict[str, Any]) -> Sequence[int]:
    """Where a breakpoint stops."""
    places = made.get("locations", [made])
    return [int(str(place["addr"]), 16) for place in places if str(place.get("addr", "")).startswith("0x")]
