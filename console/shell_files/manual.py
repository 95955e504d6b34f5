"""The manual page rvtrace(1), in roff with the macros of man(7)."""

import argparse
from collections.abc import Iterable, Iterator

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.help_pages import PAGES
from rvtrace_gdb.console.shell_files.command_line import ShellOption, commands_of, option
from rvtrace_gdb.session.version import tool

_ABOUT = (
    "rvtrace gives a RISC-V programmer the past of the program that is debugged, inside gdb: it sets up the trace"
    " hardware of the target, decodes what it recorded, and lets gdb's own commands go back.",
    "In gdb, the command `source $(rvtrace gdb-script)` loads it, and `help trace` lists its commands. The commands of"
    " this page run in a shell.",
)
_WIDTH = 72  # columns of a usage, which is not filled
_ENDS = (
    ("0", "the command did what it was asked for"),
    ("1", "an error, one line on standard error; of `run` and `tandem verify`: something is not as expected"),
    ("2", "a command line that cannot be read; of `console`, `run` and `tandem verify`: the work could not be done"),
    ("130", "Ctrl-C"),
)
_ENVIRONMENT = (
    ("NO_COLOR", "if it is not empty: no colours, unless --color=always is given"),
    ("CLICOLOR_FORCE", "if it is neither empty nor 0: colours in pipes, too"),
    ("TERM", "`dumb`: no colours, and no progress"),
    ("RVTRACE_GDB", "the gdb that is started"),
    ("RVTRACE_TARGET", "the target description that is used without --target or `set trace target`"),
)


def page(parser: argparse.ArgumentParser) -> str:
    """Return the page for the command line of *parser*."""
    return "".join(f"{line}\n" for line in _page(parser))


def _page(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield '.\\" Made by `rvtrace man` of the table of its commands.'
    yield f'.TH RVTRACE 1 "" "{_escaped(tool())}" "User Commands"'
    yield from [".SH NAME", r"rvtrace \- the past of a RISC\-V program, inside gdb"]
    yield from [".SH SYNOPSIS", r".B rvtrace", r"\fICOMMAND\fR [\fIARGUMENT\fR ...]", ".br", ".B rvtrace help"]
    yield r"[\fICOMMAND\fR]"
    yield ".SH DESCRIPTION"
    for text in _ABOUT:
        yield from [".PP", _escaped(text)]
    yield ".SH COMMANDS"
    commands = list(commands_of(parser))
    for command in commands:
        yield f'.SS "rvtrace {" ".join(map(_escaped, command.words))}"'
        yield from _command(command.parser)
    yield ".SH OPTIONS OF MANY COMMANDS"
    for known in PAGES:
        parser = next(it.parser for it in commands if it.words == (known.command,))
        for words in parser.variants:
            said = " ".join(["rvtrace", known.command, *words, f"--help-{known.name}"])
            yield from [f'.SS "{_escaped(said)}"', _escaped(known.text).capitalize() + "."]
            yield from _groups(parser.variant(words).groups_of(known.name))
    yield from _table("EXIT STATUS", _ENDS)
    yield from _table("ENVIRONMENT", _ENVIRONMENT)
    yield from [".SH SEE ALSO", r".BR gdb (1),", r".BR openocd (1)"]


def _command(parser: CommandParser) -> Iterator[str]:
    """Yield the text about a command: its usage, what it does, the options of its short help, examples."""
    yield from [".nf", *map(_escaped, _usage(parser)), ".fi"]
    if parser.description:
        yield from [".PP", _escaped(parser.description)]
    yield from _groups(parser.short_groups())
    if parser.examples:
        yield from [".PP", "Examples:"]
    for words, text in parser.examples:
        yield from [".TP", rf"\fBrvtrace {_escaped(words)}\fR", _escaped(text)]


def _usage(parser: CommandParser) -> list[str]:
    formatter = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help().rstrip().splitlines()


def _groups(groups: Iterable["argparse._ArgumentGroup"]) -> Iterator[str]:
    for group in groups:
        actions = [it for it in group._group_actions if it.help != argparse.SUPPRESS]
        actions = [it for it in actions if not isinstance(it, argparse._SubParsersAction)]
        if group.description and actions:
            yield from [".PP", _escaped(group.description)]
        for action in actions:
            yield from [".TP", _heading(option(action)), _escaped(option(action).meaning)]


def _heading(one: ShellOption) -> str:
    if not one.names:
        return rf"\fI{_escaped(one.value)}\fR"
    value = rf" \fI{_escaped(one.value)}\fR" if one.value else ""
    return ", ".join(rf"\fB{_escaped(name)}\fR{value}" for name in one.names)


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {title}"
    for name, text in rows:
        yield from [".TP", rf"\fB{_escaped(name)}\fR", _escaped(text)]


def _escaped(text: str) -> str:
    """Return a text in which nothing is a request, an escape, or a hyphen where - is typed."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("`", r"\(ga").replace("'", r"\(aq")
    return rf"\&{text}" if text.startswith((".", r"\(aq")) else text
