"""`rvtrace functions`, `calls`, `find`, `events`, `gaps`, `check`, `coverage` and `status`.

They print what gdb's commands of these names print, of a capture file or of raw trace bytes, without gdb.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.console.commands import CommandParser, source_coverage
from rvtrace_gdb.console.commands.shown_list import ShownTrace, print_harts
from rvtrace_gdb.console.commands.shown_list.early_list import EarlyList
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.options.part import RANGE_FORMS, is_range
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.threads import add_threads, threads_asked_for
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.rows import answer_text
from rvtrace_gdb.rows.answers import CoveredFunction
from rvtrace_gdb.rows.list_text import options_of
from rvtrace_gdb.session import report
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.search import KINDS
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.task_system import AUTO, system_of
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted, json_line, printable

DEPTH = 10
"""The levels of the tree of calls that are shown without --depth, as in gdb."""


class ListError(RvtraceError):
    """Arguments that make no sense for this trace."""


@dataclass(frozen=True)
class ListRequest:
    """What the command line of a list asks for: the options of its command, the others have their defaults.

    *hart*: None: all. *threads*: by `PARTS`, what is shown alone; *rtos*: the system that tasks are of.
    *locations*: those of `find`. *modifiers*: words of the list's modifiers. *checked*: whether the trace is checked
    first.
    """

    trace: RequestedTrace
    hart: int | None = None
    range: str = ""
    since: int | None = None
    threads: Mapping[str, str] = field(default_factory=dict)
    rtos: str = AUTO
    kinds: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    depth: int = DEPTH
    modifiers: frozenset[str] = frozenset()
    idle: bool = False
    """Whether `coverage` shows functions that did not run, too."""
    checked: bool = False


def _functions(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    return shown.lines("functions", args=request.range, **request.threads)


def _calls(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    return shown.lines("calls", depth=request.depth, **request.threads)


def _find_lines(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    where = Locations(shown.image)
    first, *also = map(where.search, request.locations)
    return shown.lines("executions", args=request.range, since=request.since, **request.threads, **first, also=also)


def _check_lines(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    row = next((row for row in shown.decoded.checked or () if row.hart == shown.hart), None)
    if row is None:
        return
    if shown.output.json:
        yield json_line(answer_text.check_fields(row))
        return
    histories, several = shown.decoded.harts.histories, shown.is_one_of_several
    rows = [it for it in shown.decoded.checked or () if several and len(histories.get(it.hart, ()))]
    of = next((of for of, it in answer_text.folded_checks(rows or [row]) if it is row), None)
    if of is None:
        return  # it is said with another hart
    yield f"{of}{answer_text.check_line(row)}."
    for one in row.differing:
        yield from answer_text.differing_lines(one, shown.output.paint)
    yield answer_text.check_conclusion(row)


def _events(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    kinds = list(request.kinds)
    return shown.lines("events", args=request.range, since=request.since, **request.threads, kinds=kinds)


def _gaps(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    return shown.lines("gaps", args=request.range, since=request.since, **request.threads)


def _coverage(shown: ShownTrace, request: ListRequest) -> Iterator[str]:
    function = request.range if _is_name(request.range) else ""
    wanted = Locations(shown.image).functions(function) if function else []
    if function and not wanted:
        raise ListError(f"{function}: neither a function of the program, nor a RANGE: {_RANGES}")
    asked = shown.params(args="" if function else request.range, functions=True)
    found = analysis.coverage(shown.session, asked, shown.output.progress)
    if not shown.output.json:
        yield shown.output.paint("heading", f"{'entered':>10}{'instructions run':>20}  function")
    hidden = 0
    for row in sorted(found["functions"], key=lambda row: row.name):
        if function and row.start not in wanted:
            continue
        if row.ran or request.idle or function:
            yield shown.line(row, lambda row, _: answer_text.covered_fields(row), _covered_line)
        else:
            hidden += 1
    if hidden:
        shown.output.say([f"{counted(hidden, 'function')} did not run: --all also shows them"])


_RANGES = f"numbers, {RANGE_FORMS}"


def _is_name(text: str) -> bool:
    """Return whether the argument RANGE begins as none does."""
    return bool(text.strip()) and not text.lstrip()[0].isdecimal() and text.strip() not in ("+", "-")


def _covered_line(row: CoveredFunction, shown: ShownTrace) -> str:
    share = 100 * row.ran // row.instructions if row.instructions else 0
    ran = f"{f'{row.ran} of {row.instructions} {share:3}%':>20}"
    name = shown.paint("function", printable(row.name))
    return f"{row.entered or '':>10}{ran if row.ran else shown.paint('gap', ran)}  {name}"


class ListVerb(NamedTuple):
    """A command: the rows it shows, and what its arguments mean."""

    show: Callable[[ShownTrace, ListRequest], Iterator[str]] | None
    usage: str
    description: str
    of_json: str
    """What a JSON object stands for."""


VERBS = {
    "functions": ListVerb(
        _functions, "FILE [RANGE]",
        "Prints the functions that ran, oldest first, as `trace functions` does in gdb.", "each function that ran",
    ),
    "calls": ListVerb(
        _calls, "FILE [--depth N]", "Prints who called whom, as a tree, as `trace calls` does in gdb.",
        "each line of the tree",
    ),
    "find": ListVerb(
        _find_lines, "FILE LOCATION ... [RANGE]",
        "Prints when a function was entered or an instruction ran, as `trace find` does in gdb. LOCATION: FUNCTION,"
        " FILE:FUNCTION, FILE:LINE, ADDRESS, *FUNCTION (its first instruction), or ADDRESS,ADDRESS (each arrival in"
        " that range). Of several there is one list, in the order in which they ran.",
        "each execution",
    ),
    "events": ListVerb(
        _events, "FILE [RANGE] [--kind KIND]",
        "Prints what happened between the instructions, as `trace events` does in gdb.", "each event",
    ),
    "gaps": ListVerb(
        _gaps, "FILE [RANGE]", "Prints where the history is not complete, and why, as `trace gaps` does in gdb.",
        "each gap",
    ),
    "check": ListVerb(
        _check_lines, "FILE",
        "Checks a trace: what is listed of it, encoded again with the capture's own settings, must give its bytes."
        " Where most intervals between synchronizations agree, one that differs is damaged; where most differ, the"
        " encoder is built in a way that is not known here, and the check cannot tell. N-Trace and E-Trace. Exit"
        " status: 0 all that can be compared agrees, 3 something differs or is lost, 4 it cannot be told.",
        "each hart",
    ),
    "coverage": ListVerb(
        _coverage, "FILE [RANGE | FUNCTION] [--files]",
        "Prints how often each function was entered, and how many of its instructions ran. RANGE: only these"
        " instructions of the history count. FUNCTION: this function alone. --files: lines, functions and branches by"
        " source files, of one capture or of several (--merge), for other programs (--to), and with a limit.",
        "each function, or each source file",
    ),
    "status": ListVerb(None, "FILE", "Prints what a trace has, as `trace status` does in gdb.", "the trace"),
}  # fmt: skip
"""The commands of this module, by their names."""


EXAMPLES = {
    "functions": (
        ("functions demo.rvt", "the functions, in the order in which they ran"),
        ("functions demo.rvt 1,20 --calls", "the first 20, indented by their calls"),
        ("functions linux.rvt --process sh", "of Linux: those of one process"),
        ("functions app.rvt --task logger", "the functions that a task of FreeRTOS or another system ran"),
    ),
    "calls": (
        ("calls demo.rvt", "the tree of calls, what took longest first"),
        ("calls demo.rvt --depth 3", "three levels of it"),
    ),
    "find": (
        ("find demo.rvt on_trap", "each time on_trap was entered, and where from"),
        ("find demo.rvt demo.c:36", "each time that line ran"),
        ("find demo.rvt fib on_trap --from 600", "both, from instruction 600 on"),
    ),
    "events": (
        ("events demo.rvt", "traps, losses, where tracing began and ended"),
        ("events demo.rvt --kind trap", "the traps alone"),
    ),
    "gaps": (
        ("gaps demo.rvt", "each place where trace is missing, and why"),
    ),
    "check": (
        ("check demo.rvt", "whether the trace can be believed, and where not"),
        ("gaps demo.rvt --check", "what is damaged, among the gaps"),
    ),
    "coverage": (
        ("coverage demo.rvt", "how much of each function ran"),
        ("coverage demo.rvt 1,1000 --all", "in the first 1000 instructions"),
        ("coverage a.rvt --merge b.rvt --fail-under 90", "of two runs: do 90% of the lines run?"),
    ),
    "status": (
        ("status demo.rvt", "what the capture has, and what was lost"),
    ),
}
"""Command lines of the help, and what they do."""


CHECKED = ("events", "gaps", "status")
"""The commands that can show what a check finds."""
OF_THREADS = ("functions", "calls", "find", "events", "gaps")
"""The commands that can show what is of a task, a process or a thread alone."""
LOST, UNSURE = 3, 4
"""The exit statuses of `check`: something differs or is lost; it cannot be told."""


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add `--check`, for commands that show losses."""
    parser.add_argument("--check", action="store_true", help="check the trace first: what differs is a loss")


def _add_arguments(name: str, parser: CommandParser) -> None:
    """Define the command line of a command."""
    verb = VERBS[name]
    parser.set_defaults(location=(), range="", since=None, kind=(), depth=DEPTH, rtos=AUTO)
    parser.set_defaults(modifiers=(), all=False, check=False, process="", thread="", task="")  # what a command lacks
    modifiers = options_of("executions" if name == "find" else name)
    words = "".join(f" [--{it.word}]" for it in modifiers)
    aligned = f"\n{' ' * 24}" if modifiers else ""
    parser.usage = f"%(prog)s {verb.usage}{words}{aligned} [--hart N] [options]"
    parser.description = verb.description
    _add_place(name, parser)
    for it in modifiers:
        parser.add_argument(
            f"--{it.word}", dest="modifiers", action="append_const", const=it.word, default=[], help=it.help
        )
    _add_own(name, parser)
    parser.add_argument(
        "--hart", type=inputs.number_from(0, (1 << 32) - 1), metavar="N", help="the hart (default: all harts)"
    )
    if name in CHECKED:
        add_check(parser)
    trace_answer.add_arguments(parser, verb.of_json, EXAMPLES[name], run, color=verb.show is not None)
    parser.set_defaults(verb=verb)


def _add_place(name: str, parser: CommandParser) -> None:
    """Add the trace, and which part of it a command is about."""
    verb = VERBS[name]
    inputs.add_capture(parser)
    if name == "find":
        parser.add_argument("location", nargs="+", metavar="LOCATION", help="what is searched; then, if any, a RANGE")
    elif "[RANGE" in verb.usage:
        covers = name == "coverage"
        numbers, more = "of the history" if covers else "of this list", "; or the name of a function" if covers else ""
        text = f"numbers {numbers}: {RANGE_FORMS} (default: all){more}"
        parser.add_argument("range", nargs="?", default="", metavar="RANGE", help=text)


def _add_own(name: str, parser: CommandParser) -> None:
    """Add the options that a few commands have."""
    if name == "calls":
        depth = inputs.number_from(0, (1 << 31) - 1)
        parser.add_argument("--depth", type=depth, default=DEPTH, metavar="N", help=f"levels (default {DEPTH}), 0: all")
    if name == "events":
        text = f"only this kind; may be repeated: {', '.join(KINDS)}"
        parser.add_argument("--kind", action="append", default=[], choices=KINDS, metavar="KIND", help=text)
    if name in OF_THREADS:
        add_threads(parser)
    if name in ("find", "events", "gaps"):
        parser.add_argument(
            "--from", dest="since", type=inputs.number_from(1, (1 << 63) - 1), metavar="N",
            help="only what is at or after this instruction of the history",
        )  # fmt: skip
    if name == "coverage":
        parser.add_argument("--all", action="store_true", help="also functions that did not run")
        source_coverage.add_arguments(parser)


add_functions, add_calls, add_find = (partial(_add_arguments, name) for name in ("functions", "calls", "find"))
add_events, add_gaps = (partial(_add_arguments, name) for name in ("events", "gaps"))
add_coverage, add_status, add_check_verb = (
    partial(_add_arguments, name) for name in ("coverage", "status", "check")
)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the list. Raises ListError, RangeError, and as `raw.trace_request`, `Session.open_capture` and
    `Session.harts`.
    """
    verb: ListVerb = args.verb
    if verb.show is _coverage:
        status = source_coverage.run_if_requested(args)
        if status is not None:
            return status
    return _print_list(verb, _request(verb, args), OutputOptions.from_arguments(args))


def _request(verb: ListVerb, args: argparse.Namespace) -> ListRequest:
    """Return what the command line asks for. Raises ListError, and as `raw.trace_request`."""
    locations, numbers = list(args.location), args.range
    if len(locations) > 1 and is_range(locations[-1]):
        numbers = locations.pop()
    if args.since is not None and numbers:
        raise ListError("give --from N or a RANGE, not both")
    if _is_name(numbers) and verb.show is not _coverage:
        raise ListError(f"{numbers}: is not a RANGE of this list: {_RANGES}")
    return ListRequest(
        trace=raw.trace_request(args, args.capture),
        hart=args.hart,
        range=numbers,
        since=args.since,
        threads=threads_asked_for(args),
        rtos=args.rtos,
        kinds=tuple(args.kind),
        locations=tuple(locations),
        depth=args.depth,
        modifiers=frozenset(args.modifiers),
        idle=args.all,
        checked=args.check or verb.show is _check_lines,
    )


def _print_list(verb: ListVerb, request: ListRequest, options: OutputOptions) -> int:
    with CommandOutput(options, "reading the trace") as shown:
        session = Session()
        about = request.trace.open(session)
        early = EarlyList(session, shown, _grows(verb, request), request.hart, request.modifiers, about)
        decoded = session.harts(progress=early.progress)
        if request.checked:
            decoded = session.check(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        lines = [*report.histories(decoded.harts), *_own_check_lines(verb, decoded), *session.warnings(), *hint]
        if not early.written:
            lines = [*about, *lines]
        found = decoded.harts.histories
        harts = [decoded.harts.number(request.hart)] if request.hart is not None else [
            hart for hart in sorted(found) if len(found) == 1 or len(found[hart])
        ]  # fmt: skip
        if verb.show is None:
            return _print_status(session, lines, shown)
        shown.say(lines)
        show, several, words = verb.show, len(harts) > 1, request.modifiers
        each = (
            ShownTrace(session, decoded, shown, hart, several, words, early.written_of(hart), request.rtos)
            for hart in harts
        )
        print_harts(shown, each, lambda hart: show(hart, request))
    return _checked_status(decoded, harts) if verb.show is _check_lines else 0


def _grows(verb: ListVerb, request: ListRequest) -> Callable[[ShownTrace], Iterator[str]] | None:
    """Return what shows the list of a trace that is still decoded, None if it needs the whole trace."""
    show = verb.show
    if show not in (_find_lines, _events, _gaps) or request.checked or request.range or request.since is not None:
        return None
    if request.threads:
        return None
    return partial(_early_lines, show, request)


def _early_lines(
    show: Callable[[ShownTrace, ListRequest], Iterator[str]], request: ListRequest, shown: ShownTrace
) -> Iterator[str]:
    """Yield the lines of a list of a trace that is still decoded. Raises ListError: they say what runs, which is known
    at the end.
    """
    threads, image = shown.session.require_capture().capture.threads, shown.decoded.program.base
    if show is _find_lines and (threads or system_of(image, request.rtos) is not None):
        raise ListError("which task ran is known when the whole trace is decoded")
    return show(shown, request)


def _own_check_lines(verb: ListVerb, decoded: Decoded) -> list[str]:
    """Return what a check has found, except for the command that prints it anyway."""
    return [] if verb.show is _check_lines else report.checks(decoded.checked or ())


_SOUND = (answer_text.AGREES, answer_text.COMPARED)


def _checked_status(decoded: Decoded, harts: Sequence[int]) -> int:
    """Return the exit status of `check`."""
    rows = [row for row in decoded.checked or () if row.hart in harts]
    if any(row.lost or row.conclusion == answer_text.DIFFERS for row in rows):
        return LOST
    return 0 if rows and all(row.conclusion in _SOUND for row in rows) else UNSURE


def _print_status(session: Session, lines: list[str], shown: CommandOutput) -> int:
    from rvtrace_gdb.session.rpc.protocol import reported_facts

    if shown.json:
        shown.facts({**reported_facts(lines), "messages": [str(line) for line in lines]})
    else:
        shown.rows([str(line) for line in lines])
    return 0
