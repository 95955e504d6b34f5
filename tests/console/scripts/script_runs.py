"""Running scripts in tests, and what the simulated hart itself says that ran."""

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.commands.run import tell
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.scripts.runner import Runner, ScriptReport, StepLines, load
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.reverse.walk_model import Code
from tests.gdbext.gdb_process import in_time


class Run(NamedTuple):
    """How a script ended: exit status, standard output and error, and the report."""

    status: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def asserts(self) -> list[bool]:
        return [check["passed"] for check in self.report["asserts"]]


def run_script(folder: Path, text: str, *words: object, name: str = "x.rvts") -> Run:
    """`rvtrace run` of a script with this text, in this process."""
    script, report = folder / name, folder / "report.json"
    script.write_text(text)
    report.unlink(missing_ok=True)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["run", str(script), "--report", str(report), *map(str, words)])
    found = json.loads(report.read_text()) if report.exists() else {}
    return Run(status, in_time(out.getvalue()), in_time(err.getvalue()).replace(f"{folder}/", ""), found)


def run_on(bench: Bench, folder: Path, text: str) -> Run:
    """The same of a script whose gdb is there already, and has a trace; without a line for the connection."""
    script = folder / "x.rvts"
    script.write_text(text)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        report = ScriptReport(str(script), {})
        Runner(bench, report, StepLines(shown=True)).run(load(script))
        tell(report)
    return Run(report.exit_status, out.getvalue(), err.getvalue().replace(f"{folder}/", ""), report.as_json())


class Truth:
    """What the hart retired, by the names of the program's functions. Positions are counted from 1."""

    def __init__(self, elf: Path, log: Path) -> None:
        self.pcs: Sequence[int] = retired_pcs(log)
        self.code = Code(elf)
        self.symbols = self.code.symbols

    def until(self, name: str) -> "Truth":
        """Only what ran before a function was entered the first time, if it was."""
        entry = self.symbols[name]
        self.pcs = self.pcs[: self.pcs.index(entry)] if entry in self.pcs else self.pcs
        return self

    def entries(self, name: str) -> list[int]:
        """Positions at which the first instruction of a function ran."""
        return [number for number, pc in enumerate(self.pcs, 1) if pc == self.symbols[name]]

    def latencies(self, vector: str, handler: str) -> list[int]:
        """From each trap to the first instruction of its handler, of those traps that have this handler."""
        found, handlers = [], self.entries(handler)
        for trap in self.entries(vector):
            end = next((at for at in range(trap, len(self.pcs)) if self.pcs[at - 1] in self.code.trap_returns), trap)
            found += [at - trap for at in handlers if trap <= at < end][:1]
        return found
