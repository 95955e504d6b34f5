"""`rvtrace mcp`: a server of the Model Context Protocol on standard input and output, for programs that ask a capture.

It only reads: the capture, its program, and the source files of that program. It has no connection to any target.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.mcp.questions import Questions
from rvtrace_gdb.console.commands.mcp.tools import BadCall, remedy
from rvtrace_gdb.console.commands.mcp.verb_rows import ShellVerbs
from rvtrace_gdb.console.main import COMMANDS
from rvtrace_gdb.console.options import inputs, raw
from rvtrace_gdb.console.options.request import OPEN_TRACES, OpenTrace, RequestedTrace
from rvtrace_gdb.reports.program_sources import ProgramSources
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError

EXAMPLES = (
    ("mcp demo.rvt", "what a client is configured to start"),
    ("mcp demo.rvt --no-sources", "for clients that may not see source code"),
)


class InputTaken(RvtraceError):
    """The trace is to come from standard input, where the client is."""

    def __init__(self) -> None:
        super().__init__("FILE: standard input is the client's: give the name of a file")


@dataclass(frozen=True)
class McpRequest:
    """*sources*: whether the text of source lines is in the answers; *other*: a capture to compare with, "": none."""

    trace: RequestedTrace
    sources: bool
    other: str = ""


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace mcp`."""
    parser.usage = "%(prog)s FILE [--other FILE] [--no-sources] [options]"
    parser.description = (
        "Serves a program that asks, such as a coding agent, by the Model Context Protocol on standard input and"
        " output. Its tools answer from the trace, and only read: the capture, its program, and source files. Needs"
        " the package mcp (rvtrace-gdb[agents])."
    )
    what = "a capture, or raw bytes with --ntrace, --etrace or --tandem"
    parser.add_argument("capture", metavar="FILE", help=what)
    parser.add_argument("--no-sources", action="store_true", help="leave the text of source lines out of the answers")
    parser.add_argument("--other", default="", metavar="FILE", help="another capture, to compare this one with")
    inputs.add_program_arguments(parser)
    raw.add_arguments(parser)
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve one client until it leaves. Raises LibraryMissing, InputTaken, and as `RequestedTrace.open`."""
    if args.capture == "-":
        raise InputTaken
    anyio = library("anyio", "mcp", "rvtrace mcp", "agents")
    server = library("rvtrace_gdb.console.commands.mcp.server", "mcp", "rvtrace mcp", "agents")
    request = McpRequest(raw.trace_request(args, args.capture), not args.no_sources, args.other)
    asked = AskedTrace(request)
    try:
        anyio.run(server.QuestionServer(asked.ask).run)
    finally:
        asked.close()
    return 0


class AskedTrace:
    """A trace that is asked. Its file is read at once; it is decoded by the first question. Raises as
    `RequestedTrace.open`.
    """

    def __init__(self, request: McpRequest) -> None:
        self._session, self._request, self.file = Session(), request, request.trace.file
        about = request.trace.open(self._session)
        OPEN_TRACES[self.file] = OpenTrace(self._session, tuple(about))
        self._verbs = ShellVerbs(COMMANDS, self.file)
        self._sources: tuple[Decoded, ProgramSources] | None = None

    def ask(self, tool: str, arguments: Mapping[str, Any], progress: Progress) -> str:
        """Answer a tool with its checked arguments. Raises BadCall, AskedWrongly, and as the commands of the shell."""
        decoded = self._session.harts(progress=progress)
        self._session.restart_pages()  # each call begins anew, whatever was asked before
        if self._sources is None or self._sources[0] is not decoded:
            self._sources = decoded, ProgramSources(decoded.program.all_programs, shown=self._request.sources)
        given = dict(arguments)
        named = given.pop("hart", None)
        hart = decoded.harts.number(named)
        sources, other = self._sources[1], self._request.other
        questions = Questions(self._session, self._verbs, sources, hart, named is not None, progress, other)
        try:
            return str(getattr(questions, f"{tool}_answer")(**given))
        except (Cancelled, BadCall):
            raise
        except RvtraceError as error:
            about = named if decoded.harts.histories.get(hart) else None  # a hart without a history is not asked again
            raise BadCall(str(error), remedy(tool, about)) from None

    def close(self) -> None:
        """Close the trace."""
        OPEN_TRACES.pop(self.file, None)
        self._session.close()
