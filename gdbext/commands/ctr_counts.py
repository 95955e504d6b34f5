"""`trace ctr count`, `counts` and `sample`: how often each recorded transfer happened, over many stops.

A hart keeps its last transfers only. Counting takes what it has at a stop, adds it to the counts and clears the
records, so that nothing is counted twice. Sampling stops the program by itself, again and again.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, results
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import ctr
from rvtrace_gdb.gdbext.commands.control_transfers import record_pc, transfer_place
from rvtrace_gdb.gdbext.mi.fields import MiRows
from rvtrace_gdb.gdbext.options import Option, OptionError, Table
from rvtrace_gdb.gdbext.paged_list import PagedList
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.text import counted, print_line
from rvtrace_gdb.gdbext.tracer import arguments
from rvtrace_gdb.rows.list_rows import RecordRow
from rvtrace_gdb.rows.list_text import RowFields

_MOST = 256  # entries of a hart
_SHOWN = 10
EVERY, TIMES = 100, 10
_NUMBER_MOST = (1 << 31) - 1
SAMPLE = Table(
    "trace ctr sample", (Option("-every", most=_NUMBER_MOST, shown="MS"), Option("-times", most=_NUMBER_MOST))
)


class CountedTransfer(NamedTuple):
    """A transfer that is counted: None stands for an address in a mode that is not recorded."""

    source: int | None
    target: int | None
    kind: str


class TransferCounts:
    """How often each transfer was recorded, and how often mispredicted, in how many stops."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.times: Counter[CountedTransfer] = Counter()
        self.mispredicted: Counter[CountedTransfer] = Counter()
        self.stops = self.full = 0

    def add(self) -> None:
        """Take the records that the hart has, and clear them. Raises gdb.GdbError."""
        state = ctr.request("ctr_status").get("state", {}).get("records", {})
        rows: Sequence[RecordRow] = []
        if state.get("there"):
            with ctr.csr_access_of_session() as access:
                rows = PagedList("records", access=access).page(args="", size=_MOST).rows
        for row in rows:
            if row.type is not None:
                transfer = CountedTransfer(record_pc(row.source), record_pc(row.target), row.type)
                self.times[transfer] += 1
                self.mispredicted[transfer] += row.mispredicted
        self.stops += 1
        self.full += bool(state.get("there")) and state.get("there") == state.get("depth")
        ctr.request("ctr_clear")

    def ordered(self) -> list[CountedTransfer]:
        """Return the transfers, the most frequent first."""
        return sorted(self.times, key=lambda it: (-self.times[it], it.source or 0, it.target or 0, it.kind))

    def fields(self, transfers: list[CountedTransfer]) -> list[RowFields]:
        """Return transfers for programs."""
        rows, found = MiRows(), []
        for it in transfers:
            known = [(name, pc) for name, pc in (("from", it.source), ("to", it.target)) if pc is not None]
            places = {name: rows.place((pc,)) for name, pc in known}
            found.append({**places, "type": it.kind, "times": self.times[it], "mispredicted": self.mispredicted[it]})
        return found

    def lines(self, transfers: list[CountedTransfer]) -> Iterator[str]:
        """Return the lines for transfers, under a heading."""
        if transfers:
            yield f"{'times':>9}{'mispredicted':>14}  transfer"
        for it in transfers:
            places = f"{transfer_place(it.source)} -> {transfer_place(it.target)}"
            yield f"{self.times[it]:>9}{self.mispredicted[it] or '-':>14}  {places}\t{it.kind}"

    def __str__(self) -> str:
        total = sum(self.times.values())
        text = f"{counted(total, 'transfer')} at {counted(self.stops, 'stop')}, {len(self.times)} different"
        if self.full:
            text += f"; the records were full at {counted(self.full, 'stop')}: older ones are not counted"
        return text


counts = TransferCounts()


class CtrCountCommand(Command, name="trace ctr count", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Add the records to the counts, and clear them; recording continues.
    Usage: trace ctr count

    For the commands of a breakpoint:
        (gdb) break on_trap
        (gdb) commands
        silent
        trace ctr count
        continue
        end
    `trace ctr counts` prints the counts, `trace ctr sample` counts at stops that
    it makes itself. The hart is the selected one."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        counts.add()
        results.add(_summary())


class ShowCountsCommand(Command, name="trace ctr counts"):
    """Print how often each counted transfer happened, the most frequent first.
    Usage: trace ctr counts [-all | -clear] [--json]

    Ten are shown, with -all all of them. -clear: begin to count anew.
    --json: an object for each, for programs."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace ctr counts`.")
        unknown = [word for word in words if word not in ("-all", "-clear", "--json")]
        if unknown:
            raise gdb.GdbError(f"trace ctr counts: unknown option {unknown[0]}. See `help trace ctr counts`.")
        if "-clear" in words:
            counts.clear()
            return
        if not counts.stops:
            raise gdb.GdbError("nothing is counted yet: `trace ctr count` counts here, `trace ctr sample` at stops")
        transfers = counts.ordered()
        show(transfers if "-all" in words else transfers[:_SHOWN], as_json="--json" in words)

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, ("-all", "-clear", "--json"))


class SampleCommand(Command, name="trace ctr sample", kind=gdb.COMMAND_RUNNING):
    __doc__ = f"""Let the program run, stop it again and again, and count its transfers.
{SAMPLE.usage()}

-every MS  milliseconds that the program runs between two stops ({EVERY})
-times N   how many stops ({TIMES})

Each stop adds the hart's records to the counts and clears them. A breakpoint,
another signal and Ctrl-C end it. The program is stopped afterwards."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            options = SAMPLE.parse(arguments(argument, "See `help trace ctr sample`."))
        except OptionError as error:
            raise gdb.GdbError(f"trace ctr sample: {error}") from None
        every, times = options.get("every", EVERY), options.get("times", TIMES)
        if position.number() is not None:
            raise gdb.GdbError("trace ctr sample: gdb is in the past: `trace live` returns to the present")
        ctr.request("ctr_clear")
        for _ in range(times):
            ours = _run_for(every / 1000)
            if not gdb.selected_inferior().threads():
                raise gdb.GdbError(f"trace ctr sample: the program has ended; counted so far: {counts}")
            counts.add()
            if not ours:
                print("The program stopped by itself.")
                break
        show(counts.ordered()[:_SHOWN])

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, SAMPLE.complete(text))


def show(transfers: list[CountedTransfer], *, as_json: bool = False) -> None:
    """Print transfers with their counts."""
    fields = counts.fields(transfers) if as_json or results.WANTED else []
    results.add({"counts": fields, **_summary()})
    if as_json:
        for row in fields:
            print(json.dumps(row))
        return
    print_line(counts)
    for line in counts.lines(transfers):
        print_line(line)


def _summary() -> RowFields:
    return {"stops": counts.stops, "transfers": sum(counts.times.values()), "different": len(counts.times)}


def _run_for(seconds: float) -> bool:
    """Let the program run for some time, and stop it. Return whether it stopped because of that. Raises gdb.error."""
    stopped: list[Any] = []
    timer = threading.Timer(seconds, lambda: gdb.post_event(_interrupt))
    gdb.events.stop.connect(stopped.append)
    timer.start()
    try:
        gdb.execute("continue", False, True)
    finally:
        timer.cancel()
        gdb.events.stop.disconnect(stopped.append)
    event = stopped[-1] if stopped else None
    return isinstance(event, gdb.SignalEvent) and event.stop_signal in ("SIGINT", "0")


def _interrupt() -> None:
    """Stop the program, unless it has stopped meanwhile."""
    thread = gdb.selected_thread()
    if thread is not None and thread.is_valid() and thread.is_running():
        with contextlib.suppress(gdb.error):
            gdb.execute("interrupt")


COMMANDS = (CtrCountCommand, ShowCountsCommand, SampleCommand)
