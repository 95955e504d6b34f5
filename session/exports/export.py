"""The table of exports, and what its writers have: the trace of one hart or of all, and a file.

A row of `EXPORTS` names a module of this package. The module has a function `write(trace, file, progress) -> Written`,
and is loaded when its export is used. `rvtrace export` and `trace export` offer every row. Which harts are written, and
which part of what they ran, is in `session.exports.selection`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session import report
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import counted

if TYPE_CHECKING:
    from rvtrace_gdb.session.tasks.turns import TaskTurns


class ExportedTrace:
    """The trace of one hart, as a writer gets it.

    groups      numbers of the groups of a tandem trace that are to be written, counted from 0; None: all
    mode        the privilege mode where the trace does not have it; None: what needs one is left out
    part        the positions of the history that are to be written; default: all
    exact       the positions at which nothing is summed up, whatever the resolution; default: none
    resolution  what is shorter is summed up, in units of the time axis of the form; 0: nothing is summed up; None: the
                writer chooses it by the size of the file
    itrace      what is made of the trace, as perf's option says it (`exports.perf.itrace`); None: the writer's choice
    harts       the traces of all harts that are to be written, of which this is one; a form of one hart has this alone
    """

    def __init__(
        self, session: PastSource, selected: SelectedHistory, *, groups: range | None = None, mode: int | None = None,
        part: range | None = None, exact: range | None = None, resolution: int | None = None,
        itrace: str | None = None,
    ) -> None:  # fmt: skip
        self.session, self.selected = session, selected
        self.groups, self.mode = groups, mode
        self.part = range(len(selected.history)) if part is None else part
        self.exact = range(0) if exact is None else exact
        self.resolution, self.itrace = resolution, itrace
        self.harts: Sequence[ExportedTrace] = (self,)

    @property
    def hart(self) -> int:
        """The number of the hart."""
        return self.selected.hart

    @property
    def history(self) -> History:
        """What the hart ran."""
        return self.selected.history

    @property
    def program(self) -> ContextImages:
        """The programs of all contexts; `program.base` is the one that was named."""
        return self.selected.program

    @property
    def is_sampled(self) -> bool:
        """Return whether there are PC samples alone, of which a profile can be made, and no instruction."""
        return not len(self.history)

    @property
    def unit(self) -> str:
        """Return what a profile counts."""
        return "samples" if self.is_sampled else "instructions"

    def tasks(self, progress: Progress = silent) -> "TaskTurns | None":
        """Return which task ran where; None if the program has no operating system that is known. Raises BadTaskSystem,
        and what *progress* raises.
        """
        from rvtrace_gdb.session.tasks.tasks import known_tasks  # values of memory, which few exports need

        return known_tasks(self.session, self.selected, progress)

    def task_stacks(self, progress: Progress = silent) -> "TaskTurns | None":
        """Return the same, each turn from where the call stack of its task runs."""
        from rvtrace_gdb.session.tasks.stack_turns import known_stack_turns  # as above

        return known_stack_turns(self.session, self.selected, progress)

    def owners(self, progress: Progress = silent) -> list[tuple[int, str | None]]:
        """Return from which position on which task runs, see `session.tasks.stack_turns.known_owners`."""
        from rvtrace_gdb.session.tasks.stack_turns import known_owners  # as above

        return known_owners(self.session, self.selected, progress)

    def calls(self, progress: Progress = silent) -> CallHistory:
        """Return the functions that ran. Raises what *progress* raises."""
        return call_history(self.session, self.selected, progress)


class Written(NamedTuple):
    """What a writer wrote.

    lines     how many lines, None if the form has no lines
    left_out  what the form has and the trace does not: how often, by a text that begins with a noun in the plural
    """

    lines: int | None = None
    left_out: Mapping[str, int] = {}

    def notes(self) -> list[str]:
        """Return a line for each thing that is left out."""
        return [_left_out(number, what) for what, number in sorted(self.left_out.items()) if number]

    def summary(self, name: str, file: str) -> list[str]:
        """Return the lines for the user. *name*: the export's; *file*: what was written."""
        lines = "" if self.lines is None else f", {counted(self.lines, 'line')}"
        return [*report.notes(self.notes()), f"{file}: {name}{lines}"]


def _left_out(number: int, what: str) -> str:
    if number > 1:
        return f"{number} {what} are left out"
    noun, _, rest = what.partition(" ")
    return f"1 {noun.removesuffix('s')} {rest} is left out"


class Export(NamedTuple):
    """An export. *help*: what it writes; *module*: the module of this package that has its writer.

    *several*: the form has the traces of several harts; of the others one hart is written. *options*: the options that
    the writer honours, of `OPTIONS` in `session.exports.selection`. *sampled*: it can be of PC samples alone.
    """

    name: str
    help: str
    module: str
    several: bool = False
    options: frozenset[str] = frozenset()
    sampled: bool = False


_PART = frozenset({"range", "time"})
_SAMPLED = _PART | {"itrace"}
_DRAWN = _PART | {"resolution", "exact"}

EXPORTS = (
    Export("spike", "the log that `spike -l --log-commits` writes", "logs.spike_log"),
    Export("riscv-dv", "the trace CSV of riscv-dv, a row for each instruction", "logs.riscv_dv"),
    Export("rvvi", "RVVI-TEXT, an event for each instruction", "logs.rvvi"),
    Export("tandem", "a capture with a tandem trace of all values that are known", "logs.tandem"),
    Export("folded", "folded stacks, for FlameGraph, inferno and speedscope", "profiles.folded", True, _PART, True),
    Export("speedscope", "a profile for speedscope", "profiles.speedscope", True, _PART, True),
    Export("pprof", "a profile for pprof, of the calls (extra `views`)", "profiles.pprof", True, _PART, True),
    Export("report-html", "the report as a page for a browser (extra `views`)", "profiles.report_html", True, _PART),
    Export("callgrind", "a profile for KCachegrind: calls, lines, branches", "profiles.callgrind", True, _PART),
    Export("perf-script", "`perf script` text with brstack, for llvm-profgen", "perf.script", True, _PART),
    Export("perf-data", "perf.data with branch stacks, for perf report and AutoFDO", "perf.data", True, _SAMPLED),
    Export("perf-stacks", "`perf script` text with call stacks, for FlameGraph", "perf.call_stacks", True, _PART),
    Export("vcd", "waveforms of pc, function, privilege and traps (extra `views`)", "timelines.vcd", True, _PART),
    Export("fst", "the same in GTKWave's compressed form (needs its vcd2fst)", "timelines.fst", True, _PART),
    Export("ctf", "the Common Trace Format, for Trace Compass and Babeltrace", "timelines.ctf", True, _PART),
    Export("lcov", "coverage of lines, functions and branches, for lcov and genhtml", "coverage.lcov", True, _PART),
    Export("cobertura", "the same as XML of Cobertura, for GitLab and Jenkins", "coverage.cobertura", True, _PART),
    Export("gcov-json", "the same as JSON of gcov, for gcovr", "coverage.gcov_json", True, _PART),
    Export("coverage-html", "the same as a page with the source (extra `views`)", "coverage.html_page", True, _PART),
    Export("perfetto", "a timeline for Perfetto (extra `views`)", "timelines.perfetto", several=True, options=_DRAWN),
    Export("chrome", "a timeline in Chrome's Trace Event Format", "timelines.chrome", several=True, options=_DRAWN),
    Export("csv", "a row for each instruction, and for gaps and traps", "tables.csv", several=True, options=_PART),
    Export("jsonl", "the same as JSON lines", "tables.jsonl", several=True, options=_PART),
    Export("sqlite", "a database with the tables of `rvtrace sql`", "tables.sqlite", several=True),
)
"""All exports, in the order of the help."""


class NoSuchExport(RvtraceError):
    """The name is that of no export."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no export {name}: the exports are {', '.join(row.name for row in EXPORTS)}")


class _ExportWriter(Protocol):
    def write(self, trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written: ...


def named(name: str) -> Export:
    """Return the export of that name. Raises NoSuchExport."""
    for row in EXPORTS:
        if row.name == name:
            return row
    raise NoSuchExport(name)


def write(name: str, trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write an export to a file. Raises NoSuchExport, what its writer raises, and what *progress* and *file* raise."""
    writer = cast(_ExportWriter, import_module(f"{__package__}.{named(name).module}"))
    return writer.write(trace, file, progress)
