"""The verbs of scripts in one table, with their usage and action. `rvtrace run --verbs` prints it."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.checks import Checked
from rvtrace_gdb.console.scripts import asserts
from rvtrace_gdb.console.scripts.language import BLOCKS, NAME, Expected, file_name, filled, seconds, within
from rvtrace_gdb.rows.answer_text import COMPARED
from rvtrace_gdb.rows.report_rows import SECTIONS
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted, is_number


class VerbContext(Protocol):
    """The environment of a verb's action."""

    bench: Bench
    connect: str
    """The default address to connect to."""
    output: Path | None
    """The default file to save to."""

    def value(self, name: str) -> str:
        """Return the value of a variable as text."""
        ...


class Outcome(NamedTuple):
    """The outcome of a verb. *text*: a line for people; *data*: for the report; *passed*: only of an assertion."""

    text: str = ""
    data: Mapping[str, Any] = {}
    passed: bool | None = None


VerbAction = Callable[[VerbContext], Outcome]


class ScriptVerb(NamedTuple):
    """A verb. *read* parses its arguments and raises `Expected`."""

    usage: str
    explained: str
    read: Callable[[str], VerbAction]


def read(word: str, arguments: str) -> VerbAction:
    """Parse a line and return its action. Raises Expected."""
    verb = VERBS.get(word)
    if verb is None:
        raise Expected(
            f"there is no verb `{word}`; expected one of: {', '.join([*VERBS, *BLOCKS])} "
            "(commands of gdb follow the verb `gdb`)"
        )
    try:
        return verb.read(arguments)
    except Expected as error:
        raise Expected(str(error) or f"expected: {verb.usage}") from None


def listing() -> str:
    """Return the description of all verbs, in lines."""
    lines = [f"  {verb.usage}\n      {verb.explained}" for verb in VERBS.values()]
    lines += [f"  {BLOCKS['repeat']} ... end\n      run a block so many times; NAME counts from 1"]
    lines += [f"  {BLOCKS['if']} ... [else ...] end\n      run a block if the expression is not zero"]
    forms = [f"  assert {form.usage}\n      {form.explained}" for form in asserts.FORMS]
    return "\n".join(["Verbs:", *lines, "", "Assertions:", *forms])


def _alone(does: VerbAction) -> Callable[[str], VerbAction]:
    def read_nothing(arguments: str) -> VerbAction:
        if arguments:
            raise Expected
        return does

    return read_nothing


def _needed(arguments: str) -> str:
    if not arguments:
        raise Expected
    return arguments


def _file(arguments: str, context: VerbContext) -> str:
    return file_name(filled(arguments, context.value))


def _connect(arguments: str) -> VerbAction:
    if len(arguments.split()) > 1:
        raise Expected

    def run(context: VerbContext) -> Outcome:
        where = filled(arguments, context.value) or context.connect
        if where or not context.bench.engine.state.connected:  # in the console there can be a connection
            context.bench.connect(where)
        return Outcome(f"at {context.bench.where().place}", {"where": where})

    return run


def _load_program(arguments: str) -> VerbAction:
    def run(context: VerbContext) -> Outcome:
        size = context.bench.load(_file(arguments, context) or None)
        return Outcome(counted(size, "byte"), {"bytes": size})

    return run


def _reset(context: VerbContext) -> Outcome:
    return Outcome(f"at {context.bench.reset().place}")


def _break(arguments: str) -> VerbAction:
    location = _needed(arguments)

    def run(context: VerbContext) -> Outcome:
        number = context.bench.break_at(location)
        return Outcome(f"breakpoint {number}", {"breakpoint": number})

    return run


def _delete(arguments: str) -> VerbAction:
    if arguments and not is_number(arguments):
        raise Expected

    def run(context: VerbContext) -> Outcome:
        context.bench.delete(int(arguments) if arguments else None)
        return Outcome()

    return run


def _start_verb(arguments: str) -> VerbAction:
    def run(context: VerbContext) -> Outcome:
        return _outcome(context.bench.start(arguments))

    return run


def _run_verb(arguments: str) -> VerbAction:
    kind, rest = _first(arguments)
    if kind == "for":
        time = seconds(rest)
        return lambda context: Outcome(f"{time:g} s, now in {context.bench.run_for(time).place}")
    what, limit = within(arguments)
    if not what:
        return lambda context: _stopped(context.bench.run(limit).place)
    word, location = _first(what)
    if word != "until" or not location:
        raise Expected
    return lambda context: _stopped(context.bench.run_until(location, limit).place)


def _first(text: str) -> tuple[str, str]:
    """Split a text into its first word and the rest."""
    word, *rest = text.split(None, 1) or [""]
    return word, rest[0].rstrip() if rest else ""


def _outcome(lines: Sequence[str]) -> Outcome:
    """Return the outcome with lines of the session, in one line without the blanks of their columns."""
    return Outcome("; ".join(" ".join(line.split()) for line in lines), {"said": lines})


def _stopped(place: str) -> Outcome:
    return Outcome(f"at {place}", {"at": place})


def _stop_verb(context: VerbContext) -> Outcome:
    return _outcome(context.bench.stop())


def _pull(context: VerbContext) -> Outcome:
    state = context.bench.pull()
    return Outcome(str(state), {"bytes": state.captured})


def _decode(context: VerbContext) -> Outcome:
    context.bench.decode()
    count = asserts.instructions(context.bench)
    return Outcome(counted(count, "instruction"), {"instructions": count})


def _report_verb(arguments: str) -> VerbAction:
    sections = arguments.split()
    if not set(sections) <= set(SECTIONS):
        raise Expected(f"expected sections of a report: {', '.join(SECTIONS)}")

    def run(context: VerbContext) -> Outcome:
        found = context.bench.report(*sections)
        return Outcome(counted(found["instructions"], "instruction"), {"report": found})

    return run


def _compared_part(row: Checked) -> str:
    return counted(row.lost, "gap") if row.conclusion == COMPARED else f"{row.agree} of {row.intervals} intervals agree"


def _check_verb(context: VerbContext) -> Outcome:
    checks = context.bench.check()
    agree = [f"hart {row.hart}: {_compared_part(row)}: {row.conclusion}" for row in checks]
    rows = [{**row._asdict(), "damaged": [one._asdict() for one in row.damaged]} for row in checks]
    return Outcome("; ".join(agree), {"checks": rows})


def _save(arguments: str) -> VerbAction:
    def run(context: VerbContext) -> Outcome:
        path = _file(arguments, context) or context.output
        if path is None:
            raise RvtraceError("save: no file; name one here, or with -o on the command line")
        saved = context.bench.save(path)
        return Outcome("; ".join(saved.messages), {"file": str(saved.path), "bytes": saved.size})

    return run


def _open_verb(arguments: str) -> VerbAction:
    path = _needed(arguments)

    def run(context: VerbContext) -> Outcome:
        return _outcome(context.bench.open(_file(path, context)))

    return run


def _assert(arguments: str) -> VerbAction:
    check = asserts.check(_needed(arguments))

    def run(context: VerbContext) -> Outcome:
        found = asserts.run(check, context.bench)
        measured = "" if not found.passed or found.measured is None else f"{found.measured}"
        text = "; ".join(filter(None, [measured, found.why]))
        return Outcome(text, {"measured": found.measured, "why": found.why}, found.passed)

    return run


def _set(arguments: str) -> VerbAction:
    found = re.fullmatch(rf"({NAME.pattern})\s*=\s*(\S.*)", arguments)
    if found is None:
        raise Expected
    name, value = found[1], found[2]
    measured = _quantity(value)

    def run(context: VerbContext) -> Outcome:
        context.bench.set(name, value if measured is None else str(measured(context.bench)))
        now = context.bench.value(f"${name}")
        return Outcome(f"${name} = {now}", {"value": now})

    return run


def _quantity(text: str) -> Callable[[Bench], float] | None:
    """Return the measurement that a text names, None if it is an expression."""
    word, location = _first(text)
    if text == "instructions":
        return asserts.instructions
    if text == "losses":
        return lambda bench: len(bench.losses())
    if word == "calls" and location:
        return lambda bench: bench.calls(location)
    asked = asserts.latency(text) or asserts.interval_figure(text)
    return None if asked is None else asked.measure


def _echo(arguments: str) -> VerbAction:
    return lambda context: Outcome(filled(arguments, context.value))


def _timeout(arguments: str) -> VerbAction:
    limit = seconds(arguments)

    def run(context: VerbContext) -> Outcome:
        context.bench.within = limit
        return Outcome()

    return run


def _gdb(prefix: str) -> Callable[[str], VerbAction]:
    def read_command(arguments: str) -> VerbAction:
        command = prefix + _needed(arguments)
        return lambda context: Outcome(said := context.bench.gdb(command).rstrip(), {"said": said.splitlines()})

    return read_command


def _table(*verbs: ScriptVerb) -> dict[str, ScriptVerb]:
    return {verb.usage.partition(" ")[0]: verb for verb in verbs}


VERBS: Mapping[str, ScriptVerb] = _table(
    ScriptVerb("connect [HOST:PORT]", "connect to OpenOCD or QEMU; default: --connect's, or localhost:3333", _connect),
    ScriptVerb(
        "load [FILE]", "write the program into the target's memory; FILE replaces the program from now on",
        _load_program
    ),
    ScriptVerb("reset", "reset the target and halt it (OpenOCD's `reset halt`, QEMU's `system_reset`)", _alone(_reset)),
    ScriptVerb("break LOCATION", "set a breakpoint, for `run`", _break),
    ScriptVerb("delete [NUMBER]", "delete a breakpoint, or all", _delete),
    ScriptVerb("start [OPTIONS]", "begin to trace, with the options of `trace start`", _start_verb),
    ScriptVerb(
        "run [until LOCATION] [within TIME] | run for TIME",
        "let the program run to a place, to a breakpoint, or for some time; it fails if it stops elsewhere", _run_verb,
    ),
    ScriptVerb("stop", "end the trace, and read out the rest", _alone(_stop_verb)),
    ScriptVerb("pull", "read out the trace so far; tracing goes on", _alone(_pull)),
    ScriptVerb("decode", "decode the trace, and print the number of instructions", _alone(_decode)),
    ScriptVerb(
        "check", "check the trace by encoding it again: what differs is a loss from then on", _alone(_check_verb)
    ),
    ScriptVerb(
        "report [SECTION ...]", "where instructions and time went, into the report: see `trace report`", _report_verb
    ),
    ScriptVerb("save [FILE]", "write a capture file; the default is that of -o", _save),
    ScriptVerb("open FILE", "look at a capture file; no target is needed", _open_verb),
    ScriptVerb("assert ...", "check an assertion: see below. A failure is reported, and the script goes on", _assert),
    ScriptVerb(
        "set NAME = EXPRESSION | calls LOCATION | instructions | losses | interrupt latency ... | intervals ...",
        "a variable, which is $NAME in expressions, file names, `echo`, and in gdb", _set,
    ),
    ScriptVerb("echo [TEXT]", "print a line", _echo),
    ScriptVerb("timeout TIME", "how long each following `run` waits, unless it says `within`", _timeout),
    ScriptVerb("gdb COMMAND", "any command of gdb", _gdb("")),
    ScriptVerb("trace COMMAND", "any `trace` command, as in gdb", _gdb("trace ")),
)  # fmt: skip
