"""The commands of the shell that show a trace, as commands of `monitor trace`.

They are found in the table of `rvtrace` itself, so that a new one is here without being named: each whose FILE is a
trace, and that needs nothing else. FILE is the trace that is served. Whoever can connect may give the options that take
numbers, words of a list, or nothing; those with names of files and addresses, and those for raw bytes, are left out.
Words are also taken as gdb's commands take them: `/ci`, `-from 600`, `trap`.
"""

import argparse
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from functools import cache

from rvtrace_gdb.console.commands import CommandParser, Subcommand
from rvtrace_gdb.console.options import inputs, raw
from rvtrace_gdb.rows.list_text import MODIFIERS
from rvtrace_gdb.session.queries.lists.search import KINDS
from rvtrace_gdb.support.errors import RvtraceError

ELSEWHERE = {
    "decode": "`monitor trace history`",
    "serve": "is what serves",
    "note": "is one of the monitor's own",
    "fork": "is one of the monitor's own",
    "mcp": "is another server",
    "pack": "it writes a file",
    "import-dt": "FILE is a device tree",
}
"""The commands with a FILE that are not here, and why."""
_CUT = ("data", "dump")
"""The commands whose rows have numbers, and that cannot page themselves."""
_ALL_HARTS = ("report", "explain", "stack", "tasks", "check", "status", "intervals", "sql")
"""The commands that show all harts unless one is given; the others show that of the debugger's thread."""
_TEXTS = (
    ("WHERE", "EXPR"), "BYTE", "COND", "FUNCTION", "KIND", "PROCESS", "THREAD", "T[,T]", "A,B", "PERCENT", "N|all",
    "OPTIONS", "FIELDS", "TASK",
)  # fmt: skip
"""What options may take besides numbers and words of a list: no file, and no address of a network."""
_CLOSED = ("to", "jobs", "color", "quiet", "follow", "baud", "help", "values")
_DEFAULTS = {
    "hart": "(default: that of the debugger's thread)",
    "at": "(default: where the debugger is)",
    "range": "(default: a page, then the next one)",
}
"""What options and arguments stand for here, if they are not given."""
_DEFAULT, _OPTION, _OPTIONAL = re.compile(r"\(default: [^)]*\)"), re.compile(r"--[a-z-]+"), re.compile(r" *\[--[^]]*\]")
_AS_IN_GDB = re.compile(r"[,.] [Aa]s `trace [a-z-]+` does in gdb")
_FLAG, _LETTERS = re.compile(r"-([a-z][a-z-]+)"), re.compile(r"/([a-z]+)")
_TRAPS = re.compile(r"trap|(?:interrupt|exception)(?::.*)?")


class VerbUsage(RvtraceError):
    """Words that a command does not take. *problem*: what is wrong, *advice*: where to read on."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}{advice}")
        self.problem = problem


def verbs(commands: Sequence[Subcommand]) -> Iterator[Subcommand]:
    """Yield the commands of the shell's table that are commands of `monitor trace`."""
    return (row for row in commands if _takes_trace(row))


@cache
def _takes_trace(row: Subcommand) -> bool:
    parser = CommandParser(prog=row.name)
    row.add_arguments(parser)
    files = [it.metavar for it in parser._actions if not it.option_strings]
    needs = any(it.required for it in parser._actions if it.option_strings)
    has_trace = files[:1] == ["FILE"] and files.count("FILE") == 1
    return has_trace and not needs and row.name not in ELSEWHERE


def parser_of(row: Subcommand) -> CommandParser:
    """Return the parser of a command, without what a client may not give."""
    parser = CommandParser(prog=f"monitor trace {row.name}")
    row.add_arguments(parser)
    for action in [it for it in parser._actions if it.option_strings]:
        if action.dest in _raw_options() or not _is_open(action):
            _remove(parser, action)
    for action in parser._actions:
        if action.dest in _DEFAULTS and (action.dest != "hart" or is_of_thread(row.name)):
            action.help = _DEFAULT.sub(_DEFAULTS[action.dest], action.help or "")
    for group in parser._action_groups:
        if not group._group_actions:
            group.title = group.description = None
    usage = re.sub(r" FILE\b(?!:)", "", parser.usage or "")
    parser.usage = _OPTIONAL.sub(lambda it: it[0] if _has_all(parser, it[0]) else "", usage)
    return parser


def _has_all(parser: CommandParser, words: str) -> bool:
    """Return whether a parser has the options in a text."""
    return all(option in parser._option_string_actions for option in _OPTION.findall(words))


@cache
def _raw_options() -> frozenset[str]:
    """Return the options of raw bytes and of programs."""
    parser = CommandParser()
    inputs.add_program_arguments(parser)
    raw.add_arguments(parser)
    return frozenset(action.dest for action in parser._actions)


def _is_open(action: argparse.Action) -> bool:
    if action.dest in _CLOSED or action.option_strings[-1].startswith("--help"):
        return False
    is_number = action.metavar == "N" and action.type is not None
    return action.nargs == 0 or action.choices is not None or is_number or action.metavar in _TEXTS


def _remove(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    parser._actions.remove(action)
    for name in action.option_strings:
        parser._option_string_actions.pop(name, None)
    for group in parser._action_groups:
        if action in group._group_actions:
            group._group_actions.remove(action)
    if action.default is not argparse.SUPPRESS:
        parser.set_defaults(**{action.dest: action.default})


def help_text(row: Subcommand) -> str:
    """Return the help of a command."""
    parser = parser_of(row)
    file = next(it for it in parser._actions if not it.option_strings)
    for group in parser._action_groups:
        if file in group._group_actions:
            group._group_actions.remove(file)
    parser.description = _AS_IN_GDB.sub("", parser.description or "")
    examples, parser.examples = parser.examples, ()
    text = parser.format_help()
    if examples:
        text += "\nexamples:\n"
    for words, what in examples:
        command = re.sub(r" \S+\.rvt\b", "", words, count=1)
        if ".rvt" not in command and _has_all(parser, command):
            text += f"  monitor trace {command}\n          {what}\n"
    return text


def arguments(row: Subcommand, file: str, words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed words after a command. *file*: the name of the trace. Raises VerbUsage."""
    parser, output = parser_of(row), io.StringIO()
    try:
        with redirect_stderr(output):
            return parser.parse_args([file, *_as_options(row.name, words)])
    except SystemExit:
        problem = output.getvalue().rpartition(" error: ")[2].strip()
        raise VerbUsage(f"trace {row.name}: {problem}", f": see `monitor trace help {row.name}`") from None


def is_cut(name: str) -> bool:
    """Return whether the rows of a command are to be shown in pages, which it cannot do itself."""
    return name in _CUT


def is_of_thread(name: str) -> bool:
    """Return whether a command shows the hart of the debugger's thread alone."""
    return name not in _ALL_HARTS


def has_rows_last(row: Subcommand) -> bool:
    """Return whether the RANGE of a command's rows is among its last words: an option --range is another one."""
    return "--range" in parser_of(row)._option_string_actions


def names_something(row: Subcommand, given: Mapping[str, object]) -> bool:
    """Return whether the values of arguments name something besides the trace, which is then asked at a place."""
    parser = CommandParser(prog=row.name)
    row.add_arguments(parser)
    named = [it.dest for it in parser._actions if not it.option_strings and it.metavar != "FILE"]
    return any(given[dest] for dest in named)


def _as_options(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield words as the shell takes them. Raises VerbUsage."""
    if name == "intervals" and words and not words[0].startswith("-"):
        yield from _intervals(list(words))
        return
    for word in words:
        letters, flag = _LETTERS.fullmatch(word), _FLAG.fullmatch(word)
        if name == "calls" and word == "/n":
            yield "--depth"
        elif letters is not None:
            yield from _modifiers(name, letters[1])
        elif word == "-unfolded":
            pass  # nothing is folded here
        elif flag is not None:
            yield f"--{flag[1]}"
        elif name == "events" and word in KINDS:
            yield from ("--kind", word)
        else:
            yield word


def _modifiers(name: str, letters: str) -> Iterator[str]:
    """Yield the options for modifiers. Raises VerbUsage, in gdb's words."""
    if name == "dump":
        yield f"/{letters}"
        return
    known = {it.letter: it.word for it in MODIFIERS.get(name, ()) if not it.gdb_alone}
    for letter in letters:
        if letter not in known:
            raise VerbUsage(f"Invalid modifier: {letter}.")
        yield f"--{known[letter]}"


def _intervals(words: list[str]) -> Iterator[str]:
    """Yield the words of `trace intervals` as the shell takes them."""
    if len(words) == 1 and _TRAPS.fullmatch(words[0]):
        yield "--traps"
        yield from words if words != ["trap"] else []
    elif len(words) == 1:
        yield from ("--calls", *words)
    else:
        yield from words
