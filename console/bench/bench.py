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

A gdb does the work (`console.gdb_driver.engine`); a bench has no state but gdb's. `Gdb` has gdb's commands, expressions
and variables; `BenchTarget` connects to a target, loads and runs a program; `Bench` traces it. The file is longer than
others because each question about a trace is a method of this one class.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from rvtrace_gdb.console.bench import checks, intervals, runs_parted, trace_queries
from rvtrace_gdb.console.bench.checks import Checked
from rvtrace_gdb.console.bench.intervals import Intervals
from rvtrace_gdb.console.bench.runs_parted import RunsParted
from rvtrace_gdb.console.bench.trace_queries import (
    CheckFailed,
    HistoryInstruction,
    Latencies,
    NotReached,
    Ran,
    Saved,
    TraceEvent,
)
from rvtrace_gdb.console.gdb_driver.engine import Engine, TextListener
from rvtrace_gdb.console.gdb_driver.mi import GdbError, quoted
from rvtrace_gdb.console.gdb_driver.state import LOST, ProgramStop, TraceState, stop_of
from rvtrace_gdb.session.capture.model import PACK_SUFFIX, PlaceNote
from rvtrace_gdb.session.program import placement
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

__all__ = ["WITHIN", "Bench"]

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


class Bench(BenchTarget):
    """One target, or one capture, with a gdb of its own. Use it in a `with` block.

    *elf*: the program, FILE or FILE@OFFSET as for the command line; *target*: the target description; *gdb*: the gdb to
    use, else $RVTRACE_GDB or one that is installed; *within*: the seconds that `run` and `run_until` wait by default;
    *said*: called with gdb's output as it arrives, (kind, text); *progress*: called with (label, done, total) of long
    work.

    All methods raise `RvtraceError`, with one line: `GdbError` for what gdb refused, `GdbGone`, `GdbTimeout`, and
    `CheckFailed` if the program did not do what was expected.
    """

    # The trace

    def start(self, *options: str) -> list[str]:
        """Start tracing, with the options of `trace start`; returns lines about the setup."""
        return self.engine.execute(" ".join(["trace start", *options])).splitlines()

    def stop(self) -> list[str]:
        """Stop tracing and read out the rest; returns the lines that `trace stop` prints."""
        return self.engine.execute("trace stop").splitlines()

    def pull(self) -> TraceState:
        """Read out what was traced so far, without stopping the trace; returns the state of the trace."""
        with self._nothing_traced():
            self.engine.execute("trace dump 1,+1")
        return self.status()

    def decode(self) -> int:
        """Decode the trace and return its number of instructions and gaps. A running trace is read out first."""
        return trace_queries.length(self.engine)

    def status(self) -> TraceState:
        """Return the current state of the trace components."""
        return self.engine.trace_state()

    def save(self, path: str | os.PathLike[str]) -> Saved:
        """Write a capture file."""
        file = Path(path).resolve()
        said = self.engine.query(f"-rvtrace-save {quoted(str(file))}").get("messages", [])
        return Saved(file, file.stat().st_size, tuple(said))

    def pack(self, path: str | os.PathLike[str], *, sources: bool = True) -> Saved:
        """Write a pack, FILE.rvtz: a capture file with the program, its *sources*, and the target description.

        Raises RvtraceError: it has another suffix.
        """
        file = Path(path).resolve()
        if file.suffix != PACK_SUFFIX:
            raise RvtraceError(f"{file}: the name of a pack ends in {PACK_SUFFIX}")
        options = "" if sources else "--no-sources "
        said = self.engine.query(f"-rvtrace-save {options}{quoted(str(file))}").get("messages", [])
        return Saved(file, file.stat().st_size, tuple(said))

    def open(self, path: str | os.PathLike[str]) -> list[str]:
        """Open a capture file, without a target; returns the messages about it."""
        file = Path(path).resolve()
        return list(self.engine.query(f"-rvtrace-open {quoted(str(file))}").get("messages", []))

    def export(self, name: str, path: str | os.PathLike[str], *options: str) -> list[str]:
        """Write the trace in the form of another program, docs/export.md, such as `report-html`, a page for a browser;
        returns the messages about it. *options*: those of `trace export`: "-hart 1".
        """
        words = [name, quoted(str(Path(path).resolve())), *options]
        return list(self.engine.query(" ".join(["-rvtrace-export", *words])).get("messages", []))

    # What ran

    def ran(self, location: str) -> bool:
        """Whether a function was entered, or another place ran, in the trace, or the program is stopped there."""
        return self.calls(location) > 0

    def calls(self, location: str) -> int:
        """Return how often the program reached a place, counting where it is stopped now, which is not traced yet."""
        return self.came(location).came

    def came(self, location: str) -> Ran:
        """Return how often the program reached a place, with whether it is stopped there and what is missing."""
        return trace_queries.ran(self.engine, location)

    def losses(self) -> list[str]:
        """Return a line for each loss in the history. What a full ring buffer has overwritten is not a loss."""
        return trace_queries.losses(self.engine)

    def check(self) -> list[Checked]:
        """Check the trace: what was decoded, encoded again, must give its bytes. Return what was found, by hart.

        What is damaged is among the `losses` from then on.
        """
        return checks.check(self.engine)

    def report(self, *sections: str, hart: int | None = None, top: int = 0, numbers: str = "") -> dict[str, Any]:
        """Return where instructions and ticks of the trace's clock went, with the names of docs/report.md, as
        `rvtrace report --json` prints it.

        *sections*: those that are wanted, none: all. *hart*: of which, None: all together. *top*: how many rows of
        each, 0: all. *numbers*: a RANGE of instructions, one hart's. Raises `RvtraceError`, as all queries.
        """
        return trace_queries.report_fields(self.engine, sections, hart, top, numbers)

    def explain(self, *, hart: int | None = None, numbers: str = "") -> list[dict[str, Any]]:
        """Return how the run of each hart ended, with the names of docs/explain.md, as `rvtrace explain --json` prints
        it. *hart*: of this one alone. *numbers*: a RANGE of instructions, one hart's. Raises `RvtraceError`.
        """
        return trace_queries.explanation_fields(self.engine, hart, numbers)

    def why(
        self, expression: str, *, branches: bool = False, thin: bool = False, depth: int | None = None
    ) -> list[dict[str, Any]]:
        """Return why a value is what it is where gdb is, with the names of docs/why.md, as `rvtrace why --json` prints
        it. *branches*: also which branches let it run. *thin*: without what addresses were made of. *depth*: how many
        levels. Raises `RvtraceError`.
        """
        return trace_queries.why_rows(self.engine, expression, branches=branches, thin=thin, depth=depth)

    def log(
        self, where: str, *expressions: str, condition: str = "", letter: str = "", numbers: str = ""
    ) -> list[dict[str, Any]]:
        """Return what a dprintf would have printed each time a place ran, as `rvtrace log --json` prints it.

        *letter*: as of `print /x`. *numbers*: a RANGE of the history. Raises `RvtraceError`.
        """
        return trace_queries.log_rows(self.engine, where, expressions, condition, letter, numbers)

    def calls_of(self, function: str, numbers: str = "") -> list[dict[str, Any]]:
        """Return each call of a function, as `rvtrace calls-of --json` prints it. *numbers*: a RANGE of the history in
        which they begin. Raises `RvtraceError`.
        """
        return trace_queries.call_rows(self.engine, function, numbers)

    def stack(self, *, hart: int | None = None, numbers: str = "") -> list[dict[str, Any]]:
        """Return how deep the stacks of each hart were, with the names of docs/stack.md, as `rvtrace stack --json`
        prints it. *hart*: of this one alone. *numbers*: a RANGE of instructions, one hart's. Raises `RvtraceError`.
        """
        return trace_queries.stack_fields(self.engine, hart, numbers)

    def itc(self, *, channel: int | None = None, hart: int | None = None) -> list[dict[str, Any]]:
        """Return each line that a program wrote into its trace, as `rvtrace itc --json` prints it. *channel*, *hart*:
        of this one alone. Raises `RvtraceError`.
        """
        return trace_queries.itc_rows(self.engine, channel, hart)

    def tasks(self, *, hart: int | None = None, numbers: str = "", switches: bool = False) -> dict[str, Any]:
        """Return which tasks of an operating system ran, with the names of docs/tasks.md, as `rvtrace tasks --json`
        prints it. *hart*: on this one alone. *numbers*: a RANGE of instructions, one hart's. *switches*: also where
        they switched. Raises `RvtraceError`.
        """
        return trace_queries.tasks_fields(self.engine, hart, numbers, switches=switches)

    def fork(self, number: int | None = None) -> ProgramStop:
        """Go on live from a place of the past, on the simulated hart; *number*: of `trace history`, None: where gdb is.
        gdb's commands work there as on a target, and nothing of it reaches the target. Raises `RvtraceError`.
        """
        trace_queries.move_to_fork(self.engine, number)
        return self.where()

    def leave_fork(self) -> ProgramStop:
        """Go back to where the fork was made. Raises `RvtraceError`."""
        self.engine.query("-rvtrace-fork --end")
        return self.where()

    def fork_check(
        self, *, hart: int | None = None, numbers: str = "", through_devices: bool = False
    ) -> list[dict[str, Any]]:
        """Return how far a fork that nobody changes does what was traced, for each hart, with the names of
        docs/fork.md, as `rvtrace fork --json` prints it. *hart*: of this one alone. *numbers*: a RANGE of instructions,
        one hart's. *through_devices*: on over reads of devices. Raises `RvtraceError`.
        """
        return trace_queries.fork_fields(self.engine, hart, numbers, through_devices=through_devices)

    def sql(
        self,
        query: str,
        *,
        hart: int | None = None,
        numbers: str = "",
        time: str = "",
        log: Sequence[tuple[str, str]] = (),
        calls_of: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Return the rows of a query, by the names of its columns, as docs/sql.md has the tables. *hart*: of this one
        alone. *numbers*, a RANGE, or *time*, "FIRST,LAST" in ticks: of what began there. *log*: places, and what is
        logged there; *calls_of*: functions. Raises `RvtraceError`.
        """
        part = {"range": numbers, "time": time}
        return trace_queries.query_rows(self.engine, query, hart, part, log, calls_of)

    def top(self, rows: int | None = None) -> dict[str, Any]:
        """Read out a running trace, and return what runs most, with the names of docs/top.md. *rows*: how many of each
        section, 0: all. Without, it is the next table after the one before, with what is new since then.
        """
        return trace_queries.top_fields(self.engine, rows)

    def pgo(
        self,
        form: str,
        path: str | os.PathLike[str],
        *,
        hart: int | None = None,
        program: str = "",
        gcno: str | os.PathLike[str] = "",
    ) -> dict[str, Any]:
        """Write what a compiler or a linker takes, of what ran, and return what `rvtrace pgo --json` prints.

        *form*: one of docs/pgo.md. *hart*: of which, None: all together. *program*: where several ran. *gcno*: GCC's
        notes, for "gcda". Raises `RvtraceError`, as all queries.
        """
        return trace_queries.pgo_facts(self.engine, form, path, hart, program, gcno)

    def latency(self, handler: str | None = None) -> Latencies:
        """Measure from each interrupt to the first instruction of *handler*; docs/scripts.md defines it exactly."""
        return Latencies(handler or "", trace_queries.latencies(self.engine, handler))

    def intervals(
        self, first: str, last: str | None = None, *, ticks: bool = False, numbers: str = "", time: str = ""
    ) -> Intervals:
        """Measure the calls of a function, or the traps of a kind, that *first* names, or from *first* to *last*, as
        `trace intervals` does. *ticks*: the longest are those by the time. *numbers*, a RANGE, or *time*, "FIRST,LAST"
        in ticks: those that begin there alone. Raises RvtraceError.
        """
        places = [first] if last is None else [first, last]
        return intervals.intervals(self.engine, places, ticks=ticks, numbers=numbers, time=time)

    def diff(self, file: str, hart: int | None = None, elf: str | None = None) -> RunsParted:
        """Compare the trace with that in the capture *file*, as `trace diff` does. *hart*: of that capture, None: of
        the same number; *elf*: its program, None: the one that it names. Raises RvtraceError.
        """
        return runs_parted.runs_parted(self.engine, file, hart, elf)

    def check_order(self, *locations: str) -> None:
        """Check that the first execution of each location is after the first execution of the one before it.

        Raises `CheckFailed`, also if a loss makes that uncertain.
        """
        before: tuple[str, int] | None = None
        for location in locations:
            found = trace_queries.first(self.engine, location)
            if found is None:
                raise CheckFailed(f"{location} did not run")
            if before is None and trace_queries.loss_before(self.engine, found.position):
                raise CheckFailed(f"something is missing in the trace before {location}: it may have run earlier")
            if before is not None and found.position <= before[1]:
                raise CheckFailed(f"{location} ran first @{found.position}, {before[0]} @{before[1]}")
            before = (location, found.position)

    def history(self, begin: int | None = None, count: int = 100) -> list[HistoryInstruction]:
        """Return instructions from number *begin* on; None: the newest. *count* is at most 4096."""
        first = "" if begin is None else f" --begin {begin}"
        rows = self.engine.query(f"-rvtrace-history{first} --count {count}")["history"]
        return [_row_instruction(row) for row in rows]

    def events(self, *kinds: str) -> list[TraceEvent]:
        """Return the events between the instructions; *kinds*: as for `trace events`, none: all."""
        chosen = " ".join(f"--kind {kind}" for kind in kinds)
        return [_event(row) for row in trace_queries.pages(self.engine, f"-rvtrace-events {chosen}".rstrip(), "events")]

    def note(self, text: str, at: int | None = None, hart: int | None = None) -> PlaceNote:
        """Note something at the instruction with the number *at*, None: where gdb is in the past; `save` keeps it."""
        return trace_queries.note(self.engine, text, at, hart)

    def notes(self) -> list[PlaceNote]:
        """Return the notes of the trace, in the order of harts and of instructions."""
        return trace_queries.notes(self.engine)

    @contextlib.contextmanager
    def _nothing_traced(self) -> Iterator[None]:
        """Ignore the error that there is no trace yet."""
        try:
            yield
        except GdbError:
            if self.status().captured is None:
                raise


def _row_address(row: dict[str, Any]) -> int | None:
    return int(row["addr"], 16) if "addr" in row else None


def _row_instruction(row: dict[str, Any]) -> HistoryInstruction:
    return HistoryInstruction(
        int(row["number"]), _row_address(row), row.get("func", ""), int(row.get("offset", 0)),
        row.get("fullname") or row.get("file", ""), int(row["line"]) if "line" in row else None,
        row.get("gap") or row.get("inst") or row.get("error", ""),
    )  # fmt: skip


def _event(row: dict[str, Any]) -> TraceEvent:
    return TraceEvent(
        int(row["number"]), int(row["position"]), row["kind"], row.get("text", ""), _row_address(row),
        row.get("func", ""), int(row["time"]) if "time" in row else None,
    )  # fmt: skip
