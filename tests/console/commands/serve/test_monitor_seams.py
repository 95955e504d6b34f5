"""What `monitor trace` is made of: the table of the shell, the words in messages, the OpenOCD of the client."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import CommandParser, Subcommand
from rvtrace_gdb.console.commands.serve.monitor import places
from rvtrace_gdb.console.commands.serve.monitor.recording import RecordingCommands
from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest
from rvtrace_gdb.console.commands.serve.monitor.shell_verbs import (
    _CLOSED,
    _raw_options,
    arguments,
    names_something,
    parser_of,
    verbs,
)
from rvtrace_gdb.console.commands.serve.monitor.typed_commands import in_monitor
from rvtrace_gdb.console.main import COMMANDS
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.link import MARK
from rvtrace_gdb.support.errors import silent
from tests.console.commands.serve.served import capture

CLOSED = {"ADDRESS", "DIR", "FILE", "FILE.html", "FILE.rvt", "HOST:PORT", "NAME|FILE", "OUT", "PATH"}
"""What options may take that clients do not have: all of these name files, hosts, or what is in no capture."""


def test_a_command_shows_so_many_rows_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_ROWS", 10)
    session = Session()
    RequestedTrace(str(capture(tmp_path).file), None, Programs()).open(session)
    there = places.PastPlaces(session, ProxyDebugger(session, Context()), 0, silent)
    *shown, last = there.history(["101,250"], 0)
    assert [line.split()[0] for line in shown if line[0] != "\t"] == [str(number) for number in range(101, 111)]
    assert last == "10 rows are the most at once: `trace history 111,250` shows the others."


def test_commands_in_messages_are_those_that_are_typed_here() -> None:
    typed = in_monitor({"history", "save", "start"}, "x.rvt")
    assert typed("`trace history -all`, `trace open`") == "`monitor trace history -all`, `rvtrace serve`"
    assert typed("`trace save FILE` or `trace waves x`") == "`monitor trace save` or `trace waves x`"
    assert typed("`set trace hart N`, trace history") == "`--hart N`, trace history"
    assert in_monitor({"history"}, "x.rvt")("`trace save FILE`") == "`trace save FILE`"
    assert typed("Next: rvtrace history x.rvt, rvtrace decode x.rvt") == (
        "Next: monitor trace history, rvtrace decode x.rvt"
    )


class AddedCommand(Subcommand):
    """A command of the shell that is not there yet."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("capture", metavar="FILE")
        parser.add_argument("where", metavar="WHERE", nargs="?")
        parser.add_argument("--at", type=int, metavar="N")
        parser.add_argument("--if", dest="condition", metavar="CONDITION")
        parser.add_argument("--output", metavar="FILE")


def test_a_new_command_of_the_shell_is_here_by_itself() -> None:
    row = AddedCommand("told", "say what was told", "none")
    assert list(verbs([row])) == [row]
    assert set(parser_of(row)._option_string_actions) == {"--at"}
    assert names_something(row, vars(arguments(row, "x.rvt", ["main", "-at", "5"])))
    assert not names_something(row, vars(arguments(row, "x.rvt", [])))


def test_it_is_known_of_each_option_whether_clients_have_it() -> None:
    """An option that takes a text may name a file: only those that are known not to are open."""
    elsewhere = {*_raw_options(), *_CLOSED}
    for row in verbs(COMMANDS):
        parser = CommandParser(prog=row.name)
        row.add_arguments(parser)
        there = parser_of(row)._option_string_actions
        closed = {
            str(action.metavar) for name, action in parser._option_string_actions.items()
            if name not in there and action.dest not in elsewhere and action.nargs != 0
        }  # fmt: skip
        assert closed <= CLOSED, f"{row.name}: is it open (`_TEXTS` of shell_verbs.py), or does it name a file?"


class OpenOcdClient:
    """A client whose target says *version*. *said*: the commands that it got."""

    hart = 0

    def __init__(self, version: str) -> None:
        self._version, self.said = version, list[str]()

    def live(self) -> bool:
        return True

    def monitor(self, command: str) -> str:
        self.said.append(command)
        return self._version


def test_the_session_knows_the_openocd_of_the_client() -> None:
    """Its Tcl port may be that of another one, with another chip."""
    session = Session()
    debugger, openocd = ProxyDebugger(session, Context()), OpenOcdClient("Open On-Chip Debugger 0.12.0")
    recording = RecordingCommands(None)
    marks = []
    for connection in (openocd, openocd, OpenOcdClient("Open On-Chip Debugger 0.12.0"), OpenOcdClient("unknown")):
        request = MonitorRequest(session, debugger, connection, silent, 10, 0)  # type: ignore[arg-type]
        mark = recording.context(request).openocd
        assert connection.said[1:] == ([] if mark is None else [f"set {MARK} {mark}"])
        marks.append(mark)
    assert marks[0] == marks[1] != marks[2] and marks[3] is None
