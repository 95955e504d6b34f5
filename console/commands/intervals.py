"""`rvtrace intervals`: how long calls and traps take, and what is between two places, as `trace intervals` in gdb."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lists import ListError
from rvtrace_gdb.console.commands.shown_list import ShownTrace
from rvtrace_gdb.console.help_pages import THREADS, group_of
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.options.part import is_range
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.threads import TITLE, add_threads, threads_asked_for
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.console.trace_text import say_about_trace
from rvtrace_gdb.rows.intervals import text
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS, UNITS, answer_of
from rvtrace_gdb.rows.intervals.places import TRAPS, IntervalPlace, place_of
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.reports import intervals
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.task_system import AUTO
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import json_line

EXAMPLES = (
    ("intervals demo.rvt --calls on_trap", "how long each call of on_trap took"),
    ("intervals demo.rvt --traps interrupt:7", "the same of the timer's interrupts, from the trap to the return"),
    ("intervals demo.rvt interrupt on_trap", "from each interrupt to the next entry of on_trap"),
    ("intervals demo.rvt 1000,2000 --calls fib", "of those calls that begin at instructions 1000 to 2000"),
    ("intervals app.rvt --calls on_key --task logger", "of those calls that a task of an operating system made"),
    ("intervals demo.rvt demo.c:36 demo.c:36 --unit ticks", "from each time to the next, by the trace's timestamps"),
)


@dataclass(frozen=True)
class IntervalsRequest:
    """What the command line asks for. *places*: from the first to the second; one alone: a function, or traps.
    *hart*: None: all; *part*: where they begin; *threads*: by `PARTS`, in whose turns; *rtos*: the system of tasks.
    """

    trace: RequestedTrace
    places: tuple[IntervalPlace, ...]
    unit: str
    hart: int | None
    part: HistoryPart
    threads: Mapping[str, str] = field(default_factory=dict)
    rtos: str = AUTO

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> Self:
        """Return what a command line asks for. Raises ListError, BadTime, and as `raw.trace_request`."""
        ranges = [word for word in args.place if is_range(word)]
        if len(ranges) > 1:
            raise ListError(f"{ranges[0]} and {ranges[1]}: give one RANGE; addresses are written in hexadecimal")
        places = _places([word for word in args.place if word not in ranges], args.calls, args.traps)
        part = HistoryPart("".join(ranges), args.time)
        part.check(1)
        threads = threads_asked_for(args)
        return cls(raw.trace_request(args, args.capture), places, args.unit, args.hart, part, threads, args.rtos)

    def params(self, where: Locations, **context: Any) -> dict[str, Any]:
        """Return the parameters of the session's method. Raises LocationError."""
        first, *last = (parameters(place, where) for place in self.places)
        part = {"args": self.part.numbers, "time": self.part.time}
        return {"first": first, "last": last[0] if last else None, "unit": self.unit, **part, **self.threads, **context}

    def longest(self, session: Session, hart: int, progress: Progress) -> int:
        """Return the number of the instruction where the longest interval of a hart begins.

        Raises ListError: there is none; LocationError, and as `intervals.intervals`.
        """
        where = Locations(session.harts(progress=progress).program.all_programs)
        params = Params(self.params(where, context={"hart": hart, "rtos": self.rtos}), "intervals")
        answer = answer_of(intervals.intervals(session, params, progress))
        if not answer.worst:
            raise ListError(f"{answer.name}: none is measured: see `trace intervals`")
        return answer.worst[0].first


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace intervals`."""
    parser.usage = (
        "%(prog)s FILE FROM TO [RANGE] [--unit UNIT] [--hart N] [options]\n"
        "       %(prog)s FILE [RANGE] --calls FUNCTION | --traps [KIND[:CAUSE]]"
    )
    parser.description = (
        "Measures intervals: from each time the place FROM came to the next time TO came, each call of a function, or"
        " each trap; their number, lengths, histogram, the ways they took, and what distinguishes the slow ones. As"
        " `trace intervals` does in gdb. FROM, TO: FUNCTION, FILE:LINE, ADDRESS, as for find; return:FUNCTION; trap,"
        " interrupt or exception, with :CAUSE if wanted; trap-return. What a gap of the trace cuts is counted apart."
    )
    inputs.add_capture(parser)
    parser.add_argument(
        "place", nargs="*", metavar="PLACE",
        help="FROM and TO; RANGE: only those that begin at these numbers of the list, with all of their length: A,B or"
        " A,+N or A,-N, or A for all from A on",
    )  # fmt: skip
    time = "only those that begin at this time, or from one time to another, in ticks of the trace"
    parser.add_argument("--time", default="", metavar="T[,T]", help=time)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--calls", metavar="FUNCTION", help="each call of this function, from its entry to its return")
    traps = "each trap, to the return from it: trap (default), interrupt, exception, CAUSE, or KIND:CAUSE"
    one.add_argument("--traps", nargs="?", const=TRAPS[0], metavar="KIND", help=traps)
    unit = "what is compared: instructions (default), or ticks of the trace's timestamps"
    parser.add_argument("--unit", choices=UNITS, default=INSTRUCTIONS, help=unit)
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="the hart (default: all harts)")
    add_threads(group_of(parser, THREADS, TITLE))
    trace_answer.add_arguments(parser, "each hart", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the intervals. Raises ListError, LocationError, BadQuery, RangeError, BadTime, and as `raw.trace_request`,
    `Session.open_capture` and `Session.harts`.
    """
    _print(IntervalsRequest.from_arguments(args), OutputOptions.from_arguments(args))
    return 0


def _places(places: list[str], function: str | None, traps: str | None) -> tuple[IntervalPlace, ...]:
    """Return the places of a command line. Raises ListError."""
    if function is not None or traps is not None:
        if places:
            option = "--calls" if traps is None else "--traps"
            raise ListError(f"{option} needs no other place: {' '.join(places)}")
        return (place_of(f"{function}") if traps is None else _traps(traps),)
    if len(places) != 2:
        raise ListError(f"two places are needed, FROM and TO, or --calls FUNCTION, or --traps: there are {len(places)}")
    return tuple(map(place_of, places))


def _traps(given: str) -> IntervalPlace:
    found = place_of(f"{TRAPS[0]}:{given}" if given.isdecimal() else given)
    if found.kind not in TRAPS:
        raise ListError(f"--traps {given}: it is trap, interrupt or exception, a cause, or both as interrupt:7")
    return found


def _print(request: IntervalsRequest, options: OutputOptions) -> None:
    with CommandOutput(options, "reading the trace") as shown:
        session = Session()
        decoded = say_about_trace(request.trace, session, shown)
        found = decoded.harts.histories
        harts = [decoded.harts.number(request.hart)] if request.hart is not None else [
            hart for hart in sorted(found) if len(found) == 1 or len(found[hart])
        ]  # fmt: skip
        request.part.check(len(harts))
        for hart in harts:
            shown.rows(_lines(ShownTrace(session, decoded, shown, hart, len(harts) > 1, rtos=request.rtos), request))


def _lines(shown: ShownTrace, request: IntervalsRequest) -> Iterator[str]:
    params = shown.params(**request.params(Locations(shown.image)))
    answer = answer_of(intervals.intervals(shown.session, params, shown.output.progress))
    if shown.output.json:
        yield json_line(text.fields(answer, shown))
        return
    if shown.is_one_of_several:
        yield shown.paint("heading", f"hart {shown.hart}")
    yield from text.lines(answer, shown)


def parameters(place: IntervalPlace, where: Locations) -> dict[str, Any]:
    """Return a place as the request has it. Raises LocationError."""
    search = where.search(place.location) if place.location else {}
    return {"place": place.kind, "cause": place.cause, **search}
