"""Commands of the machine interface: `-rvtrace-history` and others, for IDEs (docs/ide.md).

Each is a row of `TABLE`. It sends the same request to the session as the `trace` command of that name, and answers with
tuples instead of lines. The lines of the session's result are in the field `messages`. The arguments of each command,
`--begin 5 --count 100 LOCATION`, are described in a table. gdb supports MI commands in Python from version 12 on.
The file is longer than others because the table has a row, with its few lines, for each command.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext import expressions, neutral, results, settings
from rvtrace_gdb.gdbext.commands import capture as commands_capture
from rvtrace_gdb.gdbext.commands import check as commands_check
from rvtrace_gdb.gdbext.commands import coverage as commands_coverage
from rvtrace_gdb.gdbext.commands import diff as commands_diff
from rvtrace_gdb.gdbext.commands import explain as commands_explain
from rvtrace_gdb.gdbext.commands import find as commands_find
from rvtrace_gdb.gdbext.commands import fork as commands_fork
from rvtrace_gdb.gdbext.commands import goto as commands_goto
from rvtrace_gdb.gdbext.commands import intervals as commands_intervals
from rvtrace_gdb.gdbext.commands import itc as commands_itc
from rvtrace_gdb.gdbext.commands import note as commands_note
from rvtrace_gdb.gdbext.commands import pgo as commands_pgo
from rvtrace_gdb.gdbext.commands import report as commands_report
from rvtrace_gdb.gdbext.commands import sql as commands_sql
from rvtrace_gdb.gdbext.commands import stack as commands_stack
from rvtrace_gdb.gdbext.commands import tasks as commands_tasks
from rvtrace_gdb.gdbext.commands import top as commands_top
from rvtrace_gdb.gdbext.commands import values as commands_values
from rvtrace_gdb.gdbext.commands import who_wrote
from rvtrace_gdb.gdbext.commands import why as commands_why
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.mi.fields import (
    MiRows,
    diff_fields,
    interval_fields,
    list_fields,
    note_row_fields,
    page_fields,
    part_fields,
    writer_fields,
)
from rvtrace_gdb.gdbext.options import MACHINE, Option, OptionError, Table
from rvtrace_gdb.gdbext.paged_list import THREADS
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.text import error_line, print_line
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.rows import answer_text, values_text
from rvtrace_gdb.rows.answers import OFF_HART, CoveredFunction
from rvtrace_gdb.rows.explain_text import explanation_fields
from rvtrace_gdb.rows.fork_text import fork_check_fields
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS, TICKS
from rvtrace_gdb.rows.itc_text import itc_fields
from rvtrace_gdb.rows.list_text import RowFields, options_of
from rvtrace_gdb.rows.report_text import report_fields
from rvtrace_gdb.rows.running_thread import RunningThread
from rvtrace_gdb.rows.sampled_text import sampled_fields
from rvtrace_gdb.rows.sql_text import cells_fields
from rvtrace_gdb.rows.stack_text import stack_fields
from rvtrace_gdb.rows.task_text import tasks_fields
from rvtrace_gdb.rows.top_text import top_fields

COUNT_MOST = 4096
"""The largest number of rows in one answer: the session's own limit, and an IDE waits for the whole answer."""
COUNT = 100
NUMBER_MOST = (1 << 63) - 1


BEGIN = Option("-begin", most=NUMBER_MOST)
PAGE = (BEGIN, Option("-count", least=0, most=COUNT_MOST, default=COUNT))
"""The options of commands that answer with a part of a list."""
FOUND = (*PAGE, Option("-from", most=NUMBER_MOST))
"""The same of lists of places in the history, which can begin with the first row at or after an instruction."""


class Arguments(NamedTuple):
    """The arguments of a command: options by their keys, and the other words."""

    options: dict[str, Any]
    words: list[str]


PROTOCOL = 1
"""The version of these commands: it rises when a field or an option changes its meaning, not for new ones."""


class MiCommand(NamedTuple):
    """A command `-rvtrace-NAME`. *words*: the name of the argument after the options, "" if there is none. *raw*:
    whether its arguments are not parsed.
    """

    name: str
    answer: Callable[[Arguments], RowFields]
    options: tuple[Option, ...] = ()
    words: str = ""
    raw: bool = False

    def run(self, argv: list[str]) -> RowFields:
        """Return the result. Raises gdb.GdbError, one line."""
        name = f"-rvtrace-{self.name}"
        try:
            if self.raw:
                return self.answer(Arguments({}, argv))
            return self.answer(Arguments(*Table(name, self.options, MACHINE, self.words).parse_line(argv)))
        except OptionError as error:
            raise gdb.GdbError(f"{name}: {error}") from None
        except gdb.error as error:
            raise gdb.GdbError(error_line(error)) from None


def info(given: Arguments) -> RowFields:
    """Return the version of rvtrace, that of these commands, and their names."""
    tool = tracer().request("hello")["tool"]
    return {"tool": tool, "protocol": PROTOCOL, "commands": [f"rvtrace-{command.name}" for command in TABLE]}


def start(given: Arguments) -> RowFields:
    """Start tracing, with the options of `trace start`."""
    words = (word[1:] if word.startswith("--") else word for word in given.words)
    return _run_command(" ".join(["trace start", *words]))


def stop(given: Arguments) -> RowFields:
    return _run_command("trace stop")


def status(given: Arguments) -> RowFields:
    found = tracer().request("status", context=tracer().context())
    tracer().reported = None
    return _with_messages(found.get("state", {}), found["lines"])


def reported_state(given: Arguments) -> RowFields:
    """Return the state of the trace that commands have reported since the last call, and notes.

    The target is not accessed.
    """
    state, tracer().reported = tracer().reported, None
    return _with_messages({} if state is None else {"told": state}, mode.prompt_lines())


def history(given: Arguments) -> RowFields:
    """Return the instructions that ran."""
    return _list(given, "history", opcodes=given.options["opcodes"])


def events(given: Arguments) -> RowFields:
    """Return the events between the instructions."""
    return _list(given, "events", kinds=given.options["kind"])


def gaps(given: Arguments) -> RowFields:
    """Return the places where the history is not complete."""
    return _list(given, "gaps")


def check(given: Arguments) -> RowFields:
    """Check the trace of all harts."""
    found = commands_check.answer()
    return _with_messages({"checks": [answer_text.check_fields(row) for row in found["rows"]]}, found["lines"])


def find(given: Arguments) -> RowFields:
    """Return the places where a function was entered or an instruction ran."""
    wanted = commands_find.parse_location(" ".join(given.words), "-rvtrace-find")
    parameters: dict[str, Any] = {**position.present_pc(settings.hart()), **wanted}
    return _list(given, "executions", **parameters)


def log(given: Arguments) -> RowFields:
    """Return what a dprintf would have printed: the place is the first word, each other one an expression."""
    if len(given.words) < 2:
        raise gdb.GdbError("-rvtrace-log: a place, and at least one expression, or a format, are needed.")
    where, *expressions = given.words
    condition, letter, numbers, time = ("".join(given.options[name]) for name in ("if", "letter", "range", "time"))
    parameters: dict[str, Any] = {"condition": condition, "letter": letter, "numbers": numbers, "time": time}
    place = commands_find.parse_location(where, "-rvtrace-log")
    return _list(given, "log", where=place, expressions=expressions, **parameters)


def calls_of(given: Arguments) -> RowFields:
    """Return the calls of a function."""
    place = commands_find.parse_location(" ".join(given.words), "-rvtrace-calls-of")
    part: dict[str, Any] = {"numbers": "".join(given.options["range"]), "time": "".join(given.options["time"])}
    return _list(given, "calls_of", where=place, **part)


def functions(given: Arguments) -> RowFields:
    """Return the functions that ran."""
    parameters: dict[str, Any] = {word: given.options[word] for word in _words("functions")}
    return _list(given, "functions", **parameters)


def calls(given: Arguments) -> RowFields:
    """Return the tree of calls, one row for each line."""
    return _list(given, "calls", depth=given.options["depth"])


def coverage(given: Arguments) -> RowFields:
    """Return how much of each function ran."""
    found = tracer().request("coverage", context=tracer().context(), ranges=[0, 0], functions=True)
    functions = [CoveredFunction(*it) for it in found["functions"]]
    fields: RowFields = {"hart": found["hart"]}
    fields["coverage"] = commands_coverage.table_fields(functions, everything=given.options["all"])
    if found["overwritten"]:
        fields["overwritten"] = 1
    return _with_messages(fields, found["lines"])


def profile_reports(given: Arguments) -> RowFields:
    """Return where instructions and time went."""
    options = {name: given.options[name] for name in ("hart", "each", "top", "depth")}
    numbers = "".join(given.options["range"])
    found = commands_report.answer(list(given.options["section"]), numbers, options, _threads(given))
    reports = [*map(report_fields, found["reports"]), *map(sampled_fields, found["sampled"])]
    return _with_messages({"reports": reports, **({"overwritten": 1} if found["overwritten"] else {})}, found["lines"])


def explain(given: Arguments) -> RowFields:
    """Return how the run of each hart ended."""
    found = commands_explain.answer("".join(given.options["range"]), {"hart": given.options["hart"]})
    return _with_messages({"explanations": [explanation_fields(it) for it in found["explanations"]]}, found["lines"])


def console_log(given: Arguments) -> RowFields:
    """Return what programs wrote into their trace."""
    found = commands_itc.answer({name: given.options[name] for name in ("channel", "hart")})
    return _with_messages({"itc": [itc_fields(row) for row in found["rows"]]}, found["lines"])


def tasks(given: Arguments) -> RowFields:
    """Return which tasks ran, and where they switched if that is asked for."""
    switches = bool(given.options["switches"])
    found = commands_tasks.answer("".join(given.options["range"]), given.options["hart"], switches=switches)
    return _with_messages(tasks_fields(found["answer"], switches=switches), found["lines"])


def stack_depths(given: Arguments) -> RowFields:
    """Return how deep the stacks of each hart were."""
    found = commands_stack.answer("".join(given.options["range"]), given.options["hart"])
    return _with_messages({"depths": [stack_fields(it) for it in found["depths"]]}, found["lines"])


def sql(given: Arguments) -> RowFields:
    """Return a part of the answer to a query in SQL."""
    parameters: dict[str, Any] = {} if given.options["hart"] is None else {"hart": given.options["hart"]}
    parameters |= {name: "".join(given.options[option]) for option, name in commands_sql.PART.items()}
    places = [(where, text) for where, _, text in (it.partition(" ") for it in given.options["log"])]
    parameters["logs"] = [commands_sql.log_parameters(*it, command="-rvtrace-sql") for it in places]
    functions = given.options["calls_of"]
    parameters["calls_of"] = [{"where": commands_find.parse_location(it, "-rvtrace-sql")} for it in functions]
    question = commands_sql.SqlQuestion(" ".join(given.words), parameters)
    begin = given.options["begin"]
    found = commands_sql.answer(question, 1 if begin is None else begin, given.options["count"])
    rows = [cells_fields(row) for row in found["rows"]]
    fields: RowFields = {"columns": found["columns"], "rows": rows, **({"more": 1} if found["more"] else {})}
    return _with_messages(fields, found["lines"])


def pgo(given: Arguments) -> RowFields:
    """Write a profile for a compiler or a linker."""
    if len(given.words) != 2:
        raise gdb.GdbError("-rvtrace-pgo: the name of a form and of one file are needed.")
    found = commands_pgo.answer(given.words[0], given.words[1], given.options)
    return _with_messages({"pgo": found["facts"]}, found["lines"])


def intervals(given: Arguments) -> RowFields:
    """Return the lengths of calls, of traps, or from one place to another."""
    name = "-rvtrace-intervals"
    unit = TICKS if given.options["ticks"] else INSTRUCTIONS
    numbers, time = ("".join(given.options[option]) for option in ("range", "time"))
    places = commands_intervals.parsed(" ".join(given.words), name).places
    asked = commands_intervals.AskedIntervals(places, unit, numbers, time, tuple(_threads(given).items()))
    found = commands_intervals.answer(asked, name)
    return _with_messages({"intervals": interval_fields(found)}, found.lines)


def diff(given: Arguments) -> RowFields:
    """Return where this run and that of another capture part, and a part of the list of what differs."""
    if len(given.words) != 1:
        raise gdb.GdbError("-rvtrace-diff: one file is needed.")
    question = commands_diff.request_of(given.words[0], given.options)
    found = commands_diff.answer(question)
    return {"diff": diff_fields(found), **_list(given, "differences", **question)}


def top(given: Arguments) -> RowFields:
    """Read out a running trace, and return what runs most. Without --on no read-out is before it."""
    on = given.options["on"]
    if on and given.options["top"] is not None:
        raise gdb.GdbError("-rvtrace-top: --top is for the first table, --on for those that follow it: give one.")
    found = commands_top.read_out(begin=not on, top=given.options["top"])
    facts = {name: 1 for name in ("running", "overwritten") if found[name]}
    return _with_messages({"top": top_fields(found["table"]), **facts}, found["lines"])


def export(given: Arguments) -> RowFields:
    """Write the trace in the form of another program, with the arguments of `trace export`."""
    if not given.words:
        return {"exports": [{"name": name, "help": text} for name, text in commands_capture.export_names()]}
    words = [*given.words[:2], *(word[1:] if word.startswith("--") else word for word in given.words[2:])]
    found = commands_capture.write_export(words)
    return _with_messages({}, found["lines"])


def who_wrote_last(given: Arguments) -> RowFields:
    """Return the last writer of a register or memory."""
    place = expressions.storage("-rvtrace-who-wrote", " ".join(given.words))
    asked = who_wrote.Query(place, given.options["below"])
    found = asked.answer()
    if found.writer is None:
        return _with_messages({"hart": found.hart}, [*found.lines, *found.none])
    fields: RowFields = {"hart": found.hart, "writer": MiRows().writer(place, found.writer, found.below)}
    if asked.below is None:
        fields |= part_fields(asked.parts())
    return _with_messages(fields, [*found.lines, *found.writer.doubts])


def why(given: Arguments) -> RowFields:
    """Return why a value is what it is."""
    options = {name: given.options[name] for name in ("branches", "thin", "depth")}
    asked = commands_why.parameters("-rvtrace-why", " ".join(given.words), options)
    return _list(given, "why", anew=True, **asked)


def why_row(given: Arguments) -> RowFields:
    """Go on from a row of the answer before, and return all of its rows."""
    return _list(given, "why", row=commands_why.row("-rvtrace-why-row", " ".join(given.words)))


def values_known(given: Arguments) -> RowFields:
    """Return how much is known of registers and memory in the past."""
    found = commands_values.answer()
    return _with_messages({"values": values_text.fields(found["row"])}, found["lines"])


def note(given: Arguments) -> RowFields:
    """Note something at a place of the past."""
    options = {name: value for name, value in given.options.items() if value is not None}
    return _notes(commands_note.note(" ".join(given.words), options))


def notes(given: Arguments) -> RowFields:
    """Return all notes; with --delete, delete one before."""
    lines = []
    if given.options["delete"] is not None:
        lines = commands_note.note("", given.options)["lines"]
    found = commands_note.note("", {})
    return _notes({**found, "lines": [*lines, *found["lines"]]})


def _notes(answer: dict[str, Any]) -> RowFields:
    return _with_messages({"notes": [note_row_fields(row) for row in answer["notes"]]}, answer["lines"])


def save(given: Arguments) -> RowFields:
    more = {"no_sources": True} if given.options["no_sources"] else {}
    return _with_messages({}, tracer().request("save", path=_file(given), context=tracer().context(), **more)["lines"])


def open_file(given: Arguments) -> RowFields:
    return _with_messages({}, commands_capture.open_capture(_file(given))["lines"])


def goto(given: Arguments) -> RowFields:
    """Go to a place in the past."""
    return _moved(commands_goto.goto(" ".join(given.words)), given)


def move_to_fork(given: Arguments) -> RowFields:
    """Go into a fork, or out of it."""
    number = given.options["number"]
    if given.options["end"]:
        return _moved(commands_fork.leave(), given)
    return _moved(commands_fork.go_into("" if number is None else str(number)), given)


def fork_checks(given: Arguments) -> RowFields:
    """Return how far forks follow the trace."""
    options = given.options
    found = commands_fork.answer("".join(options["range"]), options["hart"], through_devices=options["through_devices"])
    return _with_messages({"forks": [fork_check_fields(it) for it in found["forks"]]}, found["lines"])


def live(given: Arguments) -> RowFields:
    """Return to the present."""
    return _moved(commands_goto.live(), given)


def taken_results(given: Arguments) -> RowFields:
    """Return what the commands since the last call have printed, as JSON in base64; in the past with the place."""
    import base64  # for the console alone
    import json

    found = results.take()
    position_now = gdb_position()
    if position_now["state"] == "past":
        found["position"] = position_now
    return {"json": base64.b64encode(json.dumps(found).encode()).decode()}


def gdb_place(given: Arguments) -> RowFields:
    """Return where the selected thread is, and unless that takes too long for a client, who runs there."""
    return gdb_position(with_runner=not given.options["brief"])


def gdb_position(*, with_runner: bool = False) -> RowFields:
    """Return whether the selected thread is in the present or the past, and where in it. *with_runner*: and the task,
    process or thread that runs there, for which the turns of tasks in the whole history are found once.

    The field `reverse` says whether gdb is connected through rvtrace, so that it can go backward.
    """
    thread, hart = gdb.selected_thread(), selected_hart()
    if thread is None or not thread.is_valid():
        return {"state": "none"}
    of = {} if hart in (None, OFF_HART) else {"hart": hart}
    if thread.is_running():
        return {"state": "running", **of}
    of["reverse"] = int(position.is_available())
    number = position.number()
    if number is None:
        return {"state": "live", **of}
    place = tracer().request("place", thread_hart=hart, tasks=with_runner or None)
    runner = RunningThread(**place["runner"])
    return {"state": "past", "number": number, "length": place["length"], **of, **runner.fields}


def _words(what: str) -> list[str]:
    """Return the words of the modifiers of the list *what* that add to the fields of its rows on request alone."""
    return [it.word for it in options_of(what) if it.computed]


_RANGE = Option("-range", text="a range", shown="A,B", default=())
_FORK = (commands_stack.HART, Option("-through-devices", default=False))
_REPORT = (
    *commands_report.OPTIONS,
    Option("-section", text="a section", shown="NAME", default=()),
    _RANGE,
)
_INTERVALS = (
    Option("-ticks", default=False),
    _RANGE,
    Option("-time", text="a time, or two", shown="T,T", default=()),
)
_SQL = (
    Option("-hart", least=0, most=NUMBER_MOST),
    *(Option(f"-{name}", text=name.upper(), default=()) for name in commands_sql.PART),
    Option("-log", text="a place and what is logged there", shown="'WHERE EXPR'", default=()),
    Option("-calls-of", text="a function", shown="FUNCTION", default=()),
)
_DIFF = (
    Option("-hart", least=0, most=NUMBER_MOST),
    Option("-elf", text="a file", shown="FILE", default=()),
)
_WHY = (Option("-branches"), Option("-thin"), Option("-depth", most=commands_why.DEPTH_MOST))
_LOG = (*FOUND, *(Option(f"-{name}", text=name.upper(), default=()) for name in ("if", "letter", "range", "time")))
_THREADS = tuple(Option(name, text="a number, or a name", shown=name[1:].upper(), default=()) for name in THREADS)
TABLE = (
    MiCommand("info", info),
    MiCommand("start", start, raw=True),
    MiCommand("stop", stop),
    MiCommand("status", status),
    MiCommand("told", reported_state),
    MiCommand("history", history, (*PAGE, *_THREADS, Option("-opcodes", default=False))),
    MiCommand("events", events, (*FOUND, *_THREADS, Option("-kind", text="a kind of event", shown="TEXT", default=()))),
    MiCommand("gaps", gaps, (*FOUND, *_THREADS)),
    MiCommand("check", check),
    MiCommand("find", find, (*FOUND, *_THREADS), "LOCATION"),
    MiCommand("log", log, _LOG, "EXPR"),
    MiCommand("calls-of", calls_of, (*FOUND, *_LOG[-2:]), "FUNCTION"),
    MiCommand("functions", functions, (*PAGE, *(Option(f"-{word}") for word in _words("functions")), *_THREADS)),
    MiCommand("calls", calls, (*PAGE, *_THREADS, Option("-depth", least=0, most=NUMBER_MOST, default=0))),
    MiCommand("coverage", coverage, (Option("-all", default=False),)),
    MiCommand("report", profile_reports, (*_REPORT, *_THREADS)),
    MiCommand("explain", explain, (*commands_explain.OPTIONS, _RANGE)),
    MiCommand("itc", console_log, commands_itc.OPTIONS),
    MiCommand("stack", stack_depths, (commands_stack.HART, _RANGE)),
    MiCommand("tasks", tasks, (commands_tasks.HART, Option("-switches", default=False), _RANGE)),
    MiCommand("sql", sql, (*PAGE, *_SQL), "QUERY"),
    MiCommand("intervals", intervals, (*_INTERVALS, *_THREADS), "PLACE"),
    MiCommand("diff", diff, (*PAGE, *_DIFF), "FILE"),
    MiCommand("top", top, (Option("-on", default=False), Option("-top", least=0, most=NUMBER_MOST))),
    MiCommand("pgo", pgo, commands_pgo.OPTIONS, "NAME FILE"),
    MiCommand("who-wrote", who_wrote_last, (Option("-below", most=NUMBER_MOST),), "EXPRESSION"),
    MiCommand("why", why, (*PAGE, *_WHY), "EXPRESSION"),
    MiCommand("why-row", why_row, PAGE, "ROW"),
    MiCommand("values", values_known),
    MiCommand("note", note, commands_note.MI_OPTIONS, "TEXT"),
    MiCommand("notes", notes, (Option("-delete", most=NUMBER_MOST),)),
    MiCommand("save", save, (Option("-no-sources", default=False),), "FILE"),
    MiCommand("open", open_file, (), "FILE"),
    MiCommand("export", export, raw=True),
    MiCommand("goto", goto, (), "PLACE"),
    MiCommand("fork", move_to_fork, (Option("-number", most=NUMBER_MOST), Option("-end", default=False))),
    MiCommand("fork-check", fork_checks, (*_FORK, _RANGE)),
    MiCommand("live", live),
    MiCommand("position", gdb_place, (Option("-brief", default=False),)),
)


_OF_CONSOLE = MiCommand("results", taken_results)
"""It is for `rvtrace console` alone, which says what it wants when it starts gdb."""


def define_commands() -> None:
    """Define the commands, if this gdb supports MI commands in Python."""
    if not hasattr(gdb, "MICommand"):  # gdb < 12
        return

    class Defined(gdb.MICommand):
        """A command of the table."""

        def __init__(self, command: MiCommand) -> None:
            super().__init__(f"-rvtrace-{command.name}")
            self._command = command

        def invoke(self, arguments: list[str]) -> dict[str, object] | None:
            return self._command.run(arguments)

    results.makers.update(page=page_fields, writer=writer_fields, parts=part_fields, diff=diff_fields)
    results.makers.update(intervals=interval_fields, note=note_row_fields)
    for command in (*TABLE, *([_OF_CONSOLE] if results.WANTED else [])):
        Defined(command)


def _list(given: Arguments, what: str, *, opcodes: bool = False, **parameters: Any) -> RowFields:
    """Return the part of a list that the options of a command ask for."""
    begin, since = given.options["begin"], given.options.get("from")
    if begin is not None and since is not None:
        raise gdb.GdbError("--begin and --from are two ways to say where the rows begin: give one.")
    parameters.update(_threads(given))
    part = {"begin": begin, "count": given.options["count"], **({} if since is None else {"since": since})}
    return list_fields(what, parameters, part, opcodes=opcodes)


def _threads(given: Arguments) -> dict[str, str]:
    """Return what is shown alone, by the options of a command."""
    keys = (option.key for option in _THREADS if given.options.get(option.key))
    return {key: "".join(given.options[key]) for key in keys}


def _with_messages(fields: RowFields, lines: Sequence[str]) -> RowFields:
    return {**fields, "messages": lines} if lines else fields


def _moved(result: dict[str, Any], given: Arguments) -> RowFields:
    """Return the result if gdb did not have to move; else gdb itself answers ^running and then *stopped."""
    if not result["moves"]:
        return _with_messages(gdb_position(), result["lines"])
    for line in result["lines"]:
        print_line(line)
    return {}


def _run_command(command: str) -> RowFields:
    """Run a `trace` command, and return what it prints."""
    return _with_messages({}, neutral.printed(command).splitlines())


def _file(given: Arguments) -> str:
    return os.path.abspath(os.path.expanduser(" ".join(given.words)))


COMMANDS: tuple[Callable[[], object], ...] = (define_commands,)
"""These are called when rvtrace is loaded, in this order."""
