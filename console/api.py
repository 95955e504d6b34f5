"""The Python API of scripted captures: the verbs of `rvtrace run` as methods (docs/scripts.md).

    import rvtrace_gdb

    with rvtrace_gdb.Bench("app.elf", target="board.toml") as bench:
        bench.connect(":3333")
        bench.load()
        bench.start()
        bench.run_until("finish", within=5)
        bench.stop()
        assert bench.ran("on_timer") and not bench.losses()
        bench.save("out.rvt")

A gdb does the work, see `console.engine`; nothing is known here that it does not say.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rvtrace_gdb.console import measuring
from rvtrace_gdb.console.api_gdb import WITHIN
from rvtrace_gdb.console.api_target import Target
from rvtrace_gdb.console.api_types import CheckFailed, Instruction, Latencies, Saved, TraceEvent
from rvtrace_gdb.console.engine_trace import TraceState
from rvtrace_gdb.console.measuring import Ran
from rvtrace_gdb.console.mi import GdbError
from rvtrace_gdb.console.mi_records import quoted

__all__ = ["WITHIN", "Bench"]


class Bench(Target):
    """One target on the bench, or one capture, with a gdb of its own. Use it in a `with` block.

    *elf*: the program; *target*: the target description; *gdb*: the gdb to use, else $RVTRACE_GDB or one that is
    installed; *within*: seconds that `run` and `run_until` wait, if nothing else is said there; *said*: gets what gdb
    says as it comes, (kind, text); *progress*: gets (label, done, total) of work that takes long.

    All methods raise `RvtraceError`, with one line: `GdbError` what gdb refused, `GdbGone`, `NoAnswer`, and
    `CheckFailed` if the program did not do what it should.
    """

    # The trace

    def start(self, *options: str) -> list[str]:
        """Begin to trace, with the options of `trace start`; what was set up, a line each."""
        return self.engine.execute(" ".join(["trace start", *options])).splitlines()

    def stop(self) -> list[str]:
        """End the trace and read out the rest; what there is to say, a line each."""
        return self.engine.execute("trace stop").splitlines()

    def pull(self) -> TraceState:
        """Read out what was traced up to now; tracing goes on."""
        with self._nothing_traced():
            self.engine.execute("trace dump 1,+1")
        return self.status()

    def decode(self) -> int:
        """Decode what was traced; how many instructions and gaps it is. A running trace is read out first."""
        return measuring.length(self.engine)

    def status(self) -> TraceState:
        """The trace components as they are now."""
        return self.engine.trace_state()

    def save(self, path: str | os.PathLike[str]) -> Saved:
        """Write a capture file."""
        file = Path(path).resolve()
        said = self.engine.query(f"-rvtrace-save {quoted(str(file))}").get("messages", [])
        return Saved(file, file.stat().st_size, tuple(said))

    def open(self, path: str | os.PathLike[str]) -> list[str]:
        """Look at a capture file; no target is needed."""
        file = Path(path).resolve()
        return list(self.engine.query(f"-rvtrace-open {quoted(str(file))}").get("messages", []))

    # What ran

    def ran(self, location: str) -> bool:
        """Whether a function was entered, or another place ran, in what was traced, or the program stands there."""
        return self.calls(location) > 0

    def calls(self, location: str) -> int:
        """How often the program came there: also where it stands now, which is not in the trace yet."""
        return self.came(location).came

    def came(self, location: str) -> Ran:
        """The same, with what is to be known about it."""
        return measuring.ran(self.engine, location)

    def losses(self) -> list[str]:
        """What is missing in the history, a line each. The part that a full ring has overwritten is not."""
        return measuring.losses(self.engine)

    def latency(self, handler: str | None = None) -> Latencies:
        """From each interrupt to the first instruction of *handler*; docs/scripts.md says exactly which."""
        return Latencies(handler or "", measuring.latencies(self.engine, handler))

    def check_order(self, *locations: str) -> None:
        """That the first time each of these ran comes after the first time of the one before it.

        Raises `CheckFailed`, also where a loss leaves that open.
        """
        before: tuple[str, int] | None = None
        for location in locations:
            found = measuring.first(self.engine, location)
            if found is None:
                raise CheckFailed(f"{location} did not run")
            if before is None and measuring.loss_before(self.engine, found.position):
                raise CheckFailed(f"something is missing in the trace before {location}: it may have run earlier")
            if before is not None and found.position <= before[1]:
                raise CheckFailed(f"{location} ran first @{found.position}, {before[0]} @{before[1]}")
            before = (location, found.position)

    def history(self, begin: int | None = None, count: int = 100) -> list[Instruction]:
        """Instructions from number *begin* on; None: the newest. At most 4096 at once."""
        first = "" if begin is None else f" --begin {begin}"
        rows = self.engine.query(f"-rvtrace-history{first} --count {count}")["history"]
        return [_instruction(row) for row in rows]

    def events(self, *kinds: str) -> list[TraceEvent]:
        """What happened between the instructions; *kinds*: of `trace events`."""
        chosen = " ".join(f"--kind {kind}" for kind in kinds)
        return [_event(row) for row in measuring.pages(self.engine, f"-rvtrace-events {chosen}".rstrip(), "events")]

    @contextlib.contextmanager
    def _nothing_traced(self) -> Iterator[None]:
        """That there is nothing yet is no error."""
        try:
            yield
        except GdbError:
            if self.status().captured is None:
                raise


def _address(row: dict[str, Any]) -> int | None:
    return int(row["addr"], 16) if "addr" in row else None


def _instruction(row: dict[str, Any]) -> Instruction:
    return Instruction(
        int(row["number"]), _address(row), row.get("func", ""), int(row.get("offset", 0)),
        row.get("fullname") or row.get("file", ""), int(row["line"]) if "line" in row else None,
        row.get("gap") or row.get("inst") or row.get("error", ""),
    )  # fmt: skip


def _event(row: dict[str, Any]) -> TraceEvent:
    return TraceEvent(
        int(row["number"]), int(row["position"]), row["kind"], row.get("text", ""), _address(row),
        row.get("func", ""), int(row["time"]) if "time" in row else None,
    )  # fmt: skip
