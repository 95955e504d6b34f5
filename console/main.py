"""The command line `rvtrace ...`: the table of its sub-commands, and their exit status.

A sub-command is a module of `console/commands/`; only the one that is used is loaded.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rvtrace_gdb.console import standard_streams
from rvtrace_gdb.console.commands import Subcommand, add_commands
from rvtrace_gdb.console.help_pages import PAGES
from rvtrace_gdb.session.version import tool_and_kernel
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.system import OutOfMemory, frozen_startup
from rvtrace_gdb.support.text import printable

COMMANDS = (
    Subcommand(
        "console", "gdb with rvtrace loaded: completion, history, status line; or commands from a pipe", "console"
    ),
    Subcommand("run", "run a scripted capture: connect, load, trace, check assertions, save", "run"),
    Subcommand("sim", "run a program on the simulated target, for OpenOCD to connect to", "sim"),
    Subcommand("qemu", "run a program on QEMU and record what it runs", "qemu"),
    Subcommand("usb", "adapters, harts, registers and memory over USB, without OpenOCD", "usb"),
    Subcommand("decode", "list the instructions in a capture file or in raw trace bytes", "decode"),
    Subcommand("dump", "list the messages in a capture file or in raw trace bytes", "dump"),
    Subcommand("data", "list the accesses to memory in a capture file or in raw trace bytes", "data"),
    Subcommand("itc", "print what a program wrote into its trace, as a console log", "itc"),
    Subcommand("functions", "list the functions that ran in a trace", "lists", "add_functions"),
    Subcommand("calls", "list who called whom, and how often, in a trace", "lists", "add_calls"),
    Subcommand("find", "list when a function was entered or a line ran in a trace", "lists", "add_find"),
    Subcommand("events", "list the traps, losses and other events of a trace", "lists", "add_events"),
    Subcommand("gaps", "list where a trace is not complete, and why", "lists", "add_gaps"),
    Subcommand("check", "say how sure one can be of a trace, by encoding it again", "lists", "add_check_verb"),
    Subcommand("coverage", "list how much of each function ran in a trace", "lists", "add_coverage"),
    Subcommand("report", "say where the instructions and the time of a trace went", "report"),
    Subcommand("explain", "say how a run ended, and what went wrong", "explain"),
    Subcommand("stack", "say how deep the stack was, and which calls and functions took it", "stack"),
    Subcommand("tasks", "list the tasks of an operating system that ran, and their switches", "tasks"),
    Subcommand("fork", "run on the simulated hart from a place of a trace, and say how far it follows", "fork"),
    Subcommand("top", "show what runs most while a trace probe delivers it", "top"),
    Subcommand("intervals", "measure calls, traps, or from one place to another in a trace", "intervals"),
    Subcommand("diff", "say where two runs part, and what differs after that", "diff"),
    Subcommand("blame", "rank lines and branches by how they tell bad runs from good ones", "blame"),
    Subcommand("status", "say what a trace has", "lists", "add_status"),
    Subcommand("values", "list registers and memory in the past, or say how much is known", "past", "add_values"),
    Subcommand("who-wrote", "say which instruction wrote a register or memory last", "past", "add_who_wrote"),
    Subcommand("log", "print what a dprintf would have printed, each time a place ran", "log"),
    Subcommand("why", "say why a value of the past is what it is: what made it, and what let that run", "why"),
    Subcommand("calls-of", "list each call of a function: arguments, what it returned, how long it took", "calls_of"),
    Subcommand("sql", "ask a trace in SQL: calls, lines, branches, events and more as tables", "sql"),
    Subcommand("note", "note something at a place of a trace, in its file; list the notes", "note"),
    Subcommand("pack", "put a trace, its program and its sources into one file for somebody else", "pack"),
    Subcommand("serve", "let gdb, LLDB and other debuggers go back in a trace", "serve"),
    Subcommand("lldb-dap", "let editors that use lldb-dap step back in a trace", "lldb_dap"),
    Subcommand("mcp", "let a coding agent ask a trace: a server of the Model Context Protocol", "mcp"),
    Subcommand("export", "write what ran in the form of another program, as a log of Spike", "export"),
    Subcommand("perf-script", "print what ran as perf script does: events, call chains, branch stacks", "perf_script"),
    Subcommand("pgo", "write what a compiler takes to make the program faster", "pgo"),
    Subcommand("import", "make a capture file from raw trace bytes", "import_trace"),
    Subcommand("targets", "list the boards that rvtrace knows by name, and how far each is proved", "targets"),
    Subcommand("init", "make a target description for a board that no file describes", "init"),
    Subcommand("import-dt", "make a target description from a device tree", "import_dt"),
    Subcommand("encode", "encode a trace from a log of Spike, QEMU or another simulator", "encode"),
    Subcommand("tandem", "show, convert and verify tandem-verification traces", "tandem"),
    Subcommand("demo", "show a program being traced, and gdb going back in it", "demo"),
    Subcommand("doctor", "say what rvtrace is used with is here, and what is missing", "doctor"),
    Subcommand("completion", "print the completion for bash, zsh or fish", "completion"),
    Subcommand("man", "print the manual page", "manual"),
    Subcommand("skill", "print a page that teaches programs with a shell to ask a capture", "skill"),
    Subcommand("gdb-script", "print the path of the file to `source` in gdb", "gdb_script"),
)
"""The sub-commands, in the order of the help."""


class _Version(argparse.Action):
    """Print the version and end; it is found out only then."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: object, **options: object) -> None:
        print(tool_and_kernel())
        parser.exit()


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line. *only*: of the lines that begin with this command."""
    root = argparse.ArgumentParser(prog="rvtrace", description="The past of a RISC-V program, inside gdb.")
    root.add_argument("-V", "--version", action=_Version, nargs=0, help="show program's version number and exit")
    add_commands(root, [row for row in COMMANDS if only in (None, row.name)])
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. An error is one line on standard error, never a traceback."""
    if argv is None:
        standard_streams.prepare()
    try:
        try:
            return _run_command(argv)
        finally:  # not when Python exits, which would not report the error
            standard_streams.flush()
    except standard_streams.NotRead:  # `rvtrace decode ... | head`
        standard_streams.drop_output()
        return 0
    except OSError as error:
        standard_streams.report(error)
        return 1


def _run_command(argv: Sequence[str] | None) -> int:
    """Return the exit status. Raises OSError, for standard output `standard_streams.NotWritten` and `NotRead`."""
    words = _words_as_options(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in (row.name for row in COMMANDS):
        print(f"rvtrace: there is no command {printable(command)}{_suggestion(command)}", file=sys.stderr)
        return 2
    try:
        with frozen_startup() if argv is None else nullcontext():
            arguments = parser(command if words[0] == command else None).parse_args(words)
        with _interruptible() if argv is None else nullcontext():
            return int(arguments.run(arguments))
    except RvtraceError as error:
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"rvtrace: {OutOfMemory()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _interrupted()
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made of a module that is being loaded
            return _interrupted()
        raise


def _interrupted() -> int:
    print("rvtrace: interrupted", file=sys.stderr)
    return 130


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within this context Ctrl-C raises KeyboardInterrupt; before and after it the program just ends, see
    `console.start`.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if before is signal.SIG_DFL:
            signal.signal(signal.SIGINT, before)


def _words_as_options(words: Sequence[str]) -> list[str]:
    """Return a command line with `help`, `help COMMAND`, `version` and nothing as the options they stand for."""
    if not words:
        return ["--help"]
    if words and words[0] == "help":
        page = next((page for page in PAGES if [page.name] == list(words[1:])), None)
        return [*words[1:], "--help"] if page is None else [page.command, f"--help-{page.name}"]
    return ["--version"] if list(words) == ["version"] else list(words)


def _suggestion(word: str) -> str:
    """Return what follows the message that *word* is not a command: which one may have been meant."""
    from difflib import get_close_matches  # only where it is wrong

    close = get_close_matches(word, [row.name for row in COMMANDS], 1)
    return f": did you mean `rvtrace {close[0]}`?" if close else ": `rvtrace help` lists them"


if __name__ == "__main__":
    sys.exit(main())
