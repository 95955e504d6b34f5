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

A gdb does the work (`console.gdb_driver.engine`); a bench has no state but gdb's. What needs no trace is in
`target`: gdb's commands, and running a program. Each question about a trace is a method of `Bench`.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.bench import checks, intervals, runs_parted, trace_queries
from rvtrace_gdb.console.bench.checks import Checked
from rvtrace_gdb.console.bench.intervals import Intervals
from rvtrace_gdb.console.bench.runs_parted import RunsParted
from rvtrace_gdb.console.bench.target import WITHIN, BenchTarget
from rvtrace_gdb.console.bench.trace_queries import CheckFailed, HistoryInstruction, Latencies, Ran, Saved, TraceEvent
from rvtrace_gdb.console.gdb_driver.mi import GdbError, quoted
from rvtrace_gdb.console.gdb_driver.state import ProgramStop, TraceState
from rvtrace_gdb.session.capture.model import PACK_SUFFIX, PlaceNote
from rvtrace_gdb.support.errors import RvtraceError

__all__ = ["WITHIN", "Bench"]


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
