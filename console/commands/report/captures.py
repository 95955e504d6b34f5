"""The profiles of a capture, as `rvtrace report` reads it, alone or with others."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rvtrace_gdb.console.captures.profiled_pieces import profiles_in_pieces
from rvtrace_gdb.console.captures.readers import Readers, ReadWhole
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.rows.sampled_rows import SampledReport
from rvtrace_gdb.session import report as session_report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.reports.report import ReportChoice, hart_profiles
from rvtrace_gdb.session.queries.reports.sampled import sampled_reports
from rvtrace_gdb.session.rpc.lists.parts import counted_parts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.task_system import AUTO
from rvtrace_gdb.support.errors import Progress, silent


class TraceProfiles(NamedTuple):
    """The profiles of a trace's harts, and the lines that the user gets about it. *sampled*: the reports of a trace
    that has no flow, but samples or calls.
    """

    profiles: list[Profile]
    lines: list[str]
    sampled: Sequence[SampledReport] = ()


class ProfiledTrace(NamedTuple):
    """A trace that is to be read. *hart*: None for all; *range*: "" for all of it; *capture*: its name, where there are
    several; *intervals*: how long calls and traps took is wanted, too. *choice*: what is shown of a trace without a
    flow; None: nothing. *threads*: by `PARTS`, what counts alone; *rtos*: the system that tasks are of.
    """

    trace: RequestedTrace | LoadedTrace
    hart: int | None
    range: str
    capture: str = ""
    intervals: bool = False
    choice: ReportChoice | None = None
    reads_sources: bool = False
    threads: Mapping[str, str] = MappingProxyType({})
    rtos: str = AUTO

    def with_trace(self, trace: LoadedTrace) -> "ProfiledTrace":
        """Return the same of a trace that has been loaded."""
        return self._replace(trace=trace)

    def read(self, progress: Progress = silent) -> TraceProfiles:
        """Read the trace. Raises RangeError, NoFlow, and as `RequestedTrace.open` and `hart_profiles`."""
        session = Session()
        lines = self._lines(session, self.trace.open(session), progress)
        if self.choice is not None and not self.range and not self.threads:
            shown, top, _, each = self.choice
            sampled = sampled_reports(session, self.hart, shown, top, progress, each=each)
            if sampled:
                return TraceProfiles([], lines, sampled)
        found = hart_profiles(
            session, Context(hart=self.hart, rtos=self.rtos), self.range, self.capture, progress,
            intervals=self.intervals, parts_of=counted_parts(session, self.threads, progress),
        )  # fmt: skip
        return TraceProfiles(list(found.values()), lines)

    def read_by(self, by: Readers, progress: Progress) -> TraceProfiles:
        """Read the trace in pieces. Raises as `profiles_in_pieces`."""
        if self.range:
            raise ReadWhole(f"a RANGE ({self.range}) is of its whole history")
        if self.threads:
            raise ReadWhole(f"which {' and '.join(self.threads)} ran where is found in its whole history")
        if self.intervals:
            raise ReadWhole("the section intervals is of its whole history: name the other sections")
        found = profiles_in_pieces(self.trace.loaded(), self.hart, self.capture, by, progress, sized=True)
        return TraceProfiles(list(found.profiles.values()), self._lines(found.session, found.about, progress))

    @staticmethod
    def _lines(session: Session, about: list[str], progress: Progress) -> list[str]:
        """Return what the user is told about the trace."""
        decoded = session.harts(progress=progress)
        hint = hints_of_history(session.capture(), decoded, progress)
        return [*about, *session_report.histories(decoded.harts), *session.warnings(), *hint]
