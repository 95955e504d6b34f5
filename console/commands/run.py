"""`rvtrace run`: a scripted capture, for test benches and CI on hardware (docs/scripts.md)."""

import argparse
import contextlib
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rvtrace_gdb.console import standard_streams
from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.rig import TargetRequest, add_target_options, target_of
from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.progress import ENDING, ending, on_signals
from rvtrace_gdb.console.scripts import verbs
from rvtrace_gdb.console.scripts.language import NAME, Expected, Node, seconds
from rvtrace_gdb.console.scripts.runner import ERROR, FAILED, Runner, ScriptReport, StepLines, connecting, load
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.files import OutputError
from rvtrace_gdb.support.text import counted, printable

EXAMPLES = (
    ("run demo.rvts --elf demo.elf --sim", "a script on a simulated target"),
    ("run demo.rvts --elf demo.elf --target board.toml --connect :3333", "a script on a board"),
)


@dataclass(frozen=True)
class ScriptRequest:
    """What the command line of `rvtrace run` asks for. *output*: the capture. *settings*: NAME=EXPRESSION. *report*:
    the file of the report.
    """

    script: Path | None
    target: TargetRequest
    output: Path | None
    timeout: str
    settings: tuple[str, ...]
    report: Path | None
    json: bool
    quiet: bool


def add_arguments(parser: CommandParser) -> None:
    """Define the sub-command."""
    parser.description = "Run a scripted capture. Exit status: 0 all is as expected, 1 something is not, 2 an error."
    parser.add_argument("script", nargs="?", type=Path, metavar="SCRIPT.rvts", help="the script; - for standard input")
    parser.add_argument("--verbs", action="store_true", help="list the verbs of scripts, and end")
    add_target_options(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.rvt",
        help="the file that `save` writes by default; without a `save`, it is written at the end",
    )  # fmt: skip
    parser.add_argument("--timeout", default="30s", metavar="TIME", help="how long `run` waits: 500ms, 30s, 2min")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=EXPRESSION",
        help="a variable of the script; may be repeated",
    )
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write the report there")
    parser.add_argument("--json", action="store_true", help="print the report, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="print only what fails")
    parser.examples = EXAMPLES
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it; its exit status. What can be said before anything is started is."""
    if arguments.verbs:
        print(verbs.listing())
        return 0
    try:
        return _run_script(_request(arguments))
    except RvtraceError as error:
        print(f"rvtrace: {printable(str(error))}", file=sys.stderr)
    except standard_streams.NotRead:
        raise
    except OSError as error:
        standard_streams.report(error)
    return 2


def _request(args: argparse.Namespace) -> ScriptRequest:
    return ScriptRequest(
        script=args.script, target=TargetRequest.from_arguments(args), output=args.output, timeout=args.timeout,
        settings=tuple(args.set), report=args.report, json=args.json, quiet=args.quiet,
    )  # fmt: skip


def _run_script(request: ScriptRequest) -> int:
    if request.script is None:
        raise RvtraceError("run: which script? `rvtrace run --verbs` lists the verbs of scripts")
    nodes = load(request.script)
    settings, within = [_setting(text) for text in request.settings], _within(request.timeout)
    versions = {"rvtrace": tool(), "python": platform.python_version()}
    elf, target = _path_text(request.target.elf), _path_text(request.target.target)
    report = ScriptReport(str(request.script), versions, elf, target)
    began = time.monotonic()
    try:
        _on_bench(request, nodes, settings, within, report)
    except RvtraceError as error:
        report.ended_by(ERROR, str(error))
    except (KeyboardInterrupt, SystemExit):  # before the script has begun, or a second Ctrl-C
        report.ended_by(ERROR, str(Cancelled()))
    report.seconds = time.monotonic() - began
    tell(report, json=request.json, quiet=request.quiet, file=request.report)
    return report.exit_status


def _on_bench(
    request: ScriptRequest, nodes: Sequence[Node], settings: Sequence[tuple[str, str]], within: float,
    report: ScriptReport,
) -> None:  # fmt: skip
    lines, wanted = StepLines(shown=not (request.quiet or request.json)), request.target
    with (
        ending(),
        target_of(wanted, lambda text: lines.said("target", text)) as (target, connect),
        Bench(
            wanted.elf, target=target, gdb=wanted.gdb, within=within, said=lines.said, progress=lines.progress
        ) as bench,
    ):
        report.versions = {**report.versions, "gdb": bench.gdb("show version").partition("\n")[0]}
        for name, value in settings:
            bench.set(name, value)
        runner = Runner(bench, report, lines, connect, request.output)
        with _cancelled(runner.cancel):
            runner.run(connecting(nodes, report.script) if connect else nodes)


def _cancelled(cancel: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP end the script, so that its capture is saved; a second Ctrl-C ends everything."""

    def do(number: int) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cancel()

    return on_signals((signal.SIGINT, *ENDING), do)


def tell(report: ScriptReport, *, json: bool = False, quiet: bool = False, file: Path | None = None) -> None:
    """Print failures on standard error and the report or a summary, and write the report to *file*.

    Raises RvtraceError.
    """
    unwritten: RvtraceError | None = None
    if file is not None:  # first: standard output may be closed
        try:
            report.write(file)
        except OutputError as error:
            unwritten = error
    for check in report.asserts:
        if not check["passed"]:
            print(f"{report.script}:{check['line']}: {check['text']}: {check['why']}", file=sys.stderr)
    if report.problem is not None:
        line = f":{report.problem['line']}: {report.problem['text']}" if "line" in report.problem else ""
        print(f"{report.script}{line}: {report.problem['message']}", file=sys.stderr)
    if report.unsaved and report.problem is not None and report.problem["message"] != report.unsaved:
        print(f"{report.script}: {report.unsaved}", file=sys.stderr)
    if json:
        print(report.text(), end="", flush=True)
    elif not quiet:
        failed = sum(1 for step in report.steps if step["status"] == FAILED)
        totals = f"{counted(len(report.steps), 'step')}, {counted(len(report.asserts), 'assertion')}, {failed} {FAILED}"
        print(f"{report.script}: {report.status}: {totals}, {report.seconds:.1f} s", flush=True)
    if unwritten is not None:
        raise unwritten


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not NAME.fullmatch(name.strip()) or not value.strip():
        raise RvtraceError(f"--set {text}: expected NAME=EXPRESSION")
    return name.strip(), value.strip()


def _within(text: str) -> float:
    try:
        return seconds(text)
    except Expected as error:
        raise RvtraceError(f"--timeout: {error}") from None


def _path_text(path: Path | None) -> str | None:
    return None if path is None else str(path)
