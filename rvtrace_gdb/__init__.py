"""rvtrace: the past of a RISC-V program, inside gdb.

`import rvtrace_gdb` is the public Python API: the names in `__all__`, and nothing else, are meant to be used by others.
Each is loaded when it is asked for. The import itself loads nothing, because gdb loads this file, too (`rvtrace.py`),
and gdb's Python may be older than the project's.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Not that of `typing`: to load it is a third of what Python does before `console.start` runs."""

if TYPE_CHECKING:
    from typing import Any as _Any

    from rvtrace_gdb.console.bench.bench import Bench
    from rvtrace_gdb.console.bench.checks import Checked, Damaged
    from rvtrace_gdb.console.bench.intervals import Intervals, Lengths, WorstInterval
    from rvtrace_gdb.console.bench.rig import QemuRig, Rig
    from rvtrace_gdb.console.bench.runs_parted import RunsParted
    from rvtrace_gdb.console.bench.trace_queries import (
        CheckFailed,
        Latencies,
        Latency,
        NotReached,
        Saved,
        TraceEvent,
    )
    from rvtrace_gdb.console.bench.trace_queries import HistoryInstruction as Instruction
    from rvtrace_gdb.console.gdb_driver.state import ProgramStop as Stop
    from rvtrace_gdb.console.gdb_driver.state import TraceState
    from rvtrace_gdb.decode.history.events import EventKind
    from rvtrace_gdb.decode.history.history import GAP, Event, History
    from rvtrace_gdb.decode.program.image import Image
    from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
    from rvtrace_gdb.reports.coverage.program_coverage import merged as merged_coverage
    from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, source_coverage
    from rvtrace_gdb.reports.profile.hottest import hot_blocks, hot_branches, hot_edges, hot_functions, hot_lines
    from rvtrace_gdb.reports.profile.model import Profile
    from rvtrace_gdb.reports.profile.sums import sum_of as sum_of_profiles
    from rvtrace_gdb.rows.blame_rows import BlameAnswer, BlamedCode
    from rvtrace_gdb.session.capture.file import load as load_capture
    from rvtrace_gdb.session.capture.file import save as save_capture
    from rvtrace_gdb.session.capture.model import Capture, PlaceNote
    from rvtrace_gdb.session.context import Context
    from rvtrace_gdb.session.queries.coverage.program_coverage import program_coverage
    from rvtrace_gdb.session.queries.reports.report import hart_profiles
    from rvtrace_gdb.session.questions.blame.ranking import blame
    from rvtrace_gdb.session.questions.divergence.question import RunDifference, diff_sessions
    from rvtrace_gdb.session.session import Session
    from rvtrace_gdb.support.errors import RvtraceError

_HOMES = {
    "GAP": ("rvtrace_gdb.decode.history.history", "GAP"),
    "Bench": ("rvtrace_gdb.console.bench.bench", "Bench"),
    "BlameAnswer": ("rvtrace_gdb.rows.blame_rows", "BlameAnswer"),
    "BlamedCode": ("rvtrace_gdb.rows.blame_rows", "BlamedCode"),
    "Capture": ("rvtrace_gdb.session.capture.model", "Capture"),
    "CheckFailed": ("rvtrace_gdb.console.bench.trace_queries", "CheckFailed"),
    "Checked": ("rvtrace_gdb.console.bench.checks", "Checked"),
    "Context": ("rvtrace_gdb.session.context", "Context"),
    "Damaged": ("rvtrace_gdb.console.bench.checks", "Damaged"),
    "Event": ("rvtrace_gdb.decode.history.history", "Event"),
    "EventKind": ("rvtrace_gdb.decode.history.events", "EventKind"),
    "FileCoverage": ("rvtrace_gdb.reports.coverage.source_coverage", "FileCoverage"),
    "History": ("rvtrace_gdb.decode.history.history", "History"),
    "Image": ("rvtrace_gdb.decode.program.image", "Image"),
    "Instruction": ("rvtrace_gdb.console.bench.trace_queries", "HistoryInstruction"),
    "Intervals": ("rvtrace_gdb.console.bench.intervals", "Intervals"),
    "Latencies": ("rvtrace_gdb.console.bench.trace_queries", "Latencies"),
    "Latency": ("rvtrace_gdb.console.bench.trace_queries", "Latency"),
    "Lengths": ("rvtrace_gdb.console.bench.intervals", "Lengths"),
    "NotReached": ("rvtrace_gdb.console.bench.trace_queries", "NotReached"),
    "PlaceNote": ("rvtrace_gdb.session.capture.model", "PlaceNote"),
    "Profile": ("rvtrace_gdb.reports.profile.model", "Profile"),
    "ProgramCoverage": ("rvtrace_gdb.reports.coverage.program_coverage", "ProgramCoverage"),
    "QemuRig": ("rvtrace_gdb.console.bench.rig", "QemuRig"),
    "Rig": ("rvtrace_gdb.console.bench.rig", "Rig"),
    "RunDifference": ("rvtrace_gdb.session.questions.divergence.question", "RunDifference"),
    "RunsParted": ("rvtrace_gdb.console.bench.runs_parted", "RunsParted"),
    "RvtraceError": ("rvtrace_gdb.support.errors", "RvtraceError"),
    "Saved": ("rvtrace_gdb.console.bench.trace_queries", "Saved"),
    "Session": ("rvtrace_gdb.session.session", "Session"),
    "Stop": ("rvtrace_gdb.console.gdb_driver.state", "ProgramStop"),
    "TraceEvent": ("rvtrace_gdb.console.bench.trace_queries", "TraceEvent"),
    "TraceState": ("rvtrace_gdb.console.gdb_driver.state", "TraceState"),
    "WorstInterval": ("rvtrace_gdb.console.bench.intervals", "WorstInterval"),
    "blame": ("rvtrace_gdb.session.questions.blame.ranking", "blame"),
    "diff_sessions": ("rvtrace_gdb.session.questions.divergence.question", "diff_sessions"),
    "hart_profiles": ("rvtrace_gdb.session.queries.reports.report", "hart_profiles"),
    **{
        f"hot_{rows}": ("rvtrace_gdb.reports.profile.hottest", f"hot_{rows}")
        for rows in ("blocks", "branches", "edges", "functions", "lines")
    },
    "load_capture": ("rvtrace_gdb.session.capture.file", "load"),
    "merged_coverage": ("rvtrace_gdb.reports.coverage.program_coverage", "merged"),
    "program_coverage": ("rvtrace_gdb.session.queries.coverage.program_coverage", "program_coverage"),
    "save_capture": ("rvtrace_gdb.session.capture.file", "save"),
    "source_coverage": ("rvtrace_gdb.reports.coverage.source_coverage", "source_coverage"),
    "sum_of_profiles": ("rvtrace_gdb.reports.profile.sums", "sum_of"),
}
"""Public name -> the module and the name in it. A test compares it with the imports above."""


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _HOMES[name]
    return getattr(import_module(module), original)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "GAP",
    "Bench",
    "BlameAnswer",
    "BlamedCode",
    "Capture",
    "CheckFailed",
    "Checked",
    "Context",
    "Damaged",
    "Event",
    "EventKind",
    "FileCoverage",
    "History",
    "Image",
    "Instruction",
    "Intervals",
    "Latencies",
    "Latency",
    "Lengths",
    "NotReached",
    "PlaceNote",
    "Profile",
    "ProgramCoverage",
    "QemuRig",
    "Rig",
    "RunDifference",
    "RunsParted",
    "RvtraceError",
    "Saved",
    "Session",
    "Stop",
    "TraceEvent",
    "TraceState",
    "WorstInterval",
    "blame",
    "diff_sessions",
    "hart_profiles",
    "hot_blocks",
    "hot_branches",
    "hot_edges",
    "hot_functions",
    "hot_lines",
    "load_capture",
    "merged_coverage",
    "program_coverage",
    "save_capture",
    "source_coverage",
    "sum_of_profiles",
]
