"""The comparison of a hart's history with that of another capture: made once, and asked for its parts."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.rows.diff_rows import BY_INSTRUCTIONS, DiffAnswer
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.rows.list_rows import DifferenceRow
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.pages import LIST_NUMBERS, Cursor, PageSelection
from rvtrace_gdb.session.questions.divergence.alignment import FlowSide
from rvtrace_gdb.session.questions.divergence.builds import compared_programs
from rvtrace_gdb.session.questions.divergence.comparison import DIFFERS, ENDS, LOST, WAITS, ComparedSide, compare
from rvtrace_gdb.session.questions.divergence.content import SymbolOfPc
from rvtrace_gdb.session.questions.divergence.flow import Flow, FlowCut, HistorySymbols
from rvtrace_gdb.session.questions.divergence.places import ComparedRun, difference_row, divergence_row
from rvtrace_gdb.session.questions.divergence.set_aside import interrupts, lost_stretches
from rvtrace_gdb.session.questions.divergence.waiting import WaitingLoops
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class NotComparable(RvtraceError):
    """Two captures that cannot be compared."""


class ComparedTrace(NamedTuple):
    """The history of a hart in a session's trace. *name*: of the capture, for people."""

    session: Session
    selected: SelectedHistory
    name: str


class HartComparison:
    """The comparison of two histories. Raises what *progress* raises."""

    def __init__(self, one: ComparedTrace, other: ComparedTrace, progress: Progress = silent) -> None:
        self._one, self._other = one, other
        programs = compared_programs(one.selected.program.base, other.selected.program.base)
        self.by = programs.by
        self._cut: list[list[FlowCut]] = []
        side, self._mine = self._side(one, programs.symbol_of, progress)
        other_side, self._its = self._side(other, programs.other_symbol_of, progress)
        self._found = compare(side, other_side, progress)
        shown = (DIFFERS, LOST, WAITS)
        self._stretches = [it for it in self._found.stretches if it.kind in shown]
        self._cursor = Cursor("list of differences", numbers=LIST_NUMBERS)
        self._cursor.reset(1)
        self._answer: DiffAnswer | None = None

    def _side(
        self, trace: ComparedTrace, symbol_of: SymbolOfPc | None, progress: Progress
    ) -> tuple[ComparedSide, ComparedRun]:
        history, program = trace.selected.history, trace.selected.program
        calls = call_history(trace.session, trace.selected, progress)
        cuts = [*interrupts(calls, program, progress), *lost_stretches(history, program)]
        self._cut.append(cuts)
        instructions = Flow(HistorySymbols(history, None, progress), cuts)
        flow = instructions if symbol_of is None else Flow(HistorySymbols(history, symbol_of, progress), cuts)
        named = self.by != BY_INSTRUCTIONS and trace is self._other
        run = ComparedRun(trace.session, trace.selected, flow, instructions, SourceLines(program.all_programs), named)
        side = FlowSide(flow, program, symbol_of)
        return ComparedSide(side, WaitingLoops(flow, instructions, program), trace.selected.overwritten), run

    def answer(self, progress: Progress = silent) -> DiffAnswer:
        """Return what came out, with the place where the runs part first. Raises what *progress* raises."""
        if self._answer is None:
            self._answer = self._new_answer(progress)
        return self._answer

    def _new_answer(self, progress: Progress) -> DiffAnswer:
        found, mine, its = self._found, self._mine, self._its
        first = found.divergence
        ends = [it for it in found.stretches if it.kind == ENDS]
        aside = [sum(1 for cut in cuts if not cut.lost and cut.end - cut.begin > 1) for cuts in self._cut]
        begins = [
            None if index is None else history_number(run.flow.position(index))
            for run, index in ((mine, found.begin), (its, found.other_begin))
        ]
        return DiffAnswer(
            name=self._one.name,
            other_name=self._other.name,
            by=self.by,
            hart=self._one.selected.hart,
            other_hart=self._other.selected.hart,
            begin=begins[0],
            other_begin=begins[1],
            same=found.same,
            length=len(self._one.selected.history),
            other_length=len(self._other.selected.history),
            interrupts=aside[0],
            other_interrupts=aside[1],
            waits=found.waits,
            lost=sum(it.kind == LOST for it in found.stretches),
            differences=sum(it.kind in (DIFFERS, WAITS) for it in found.stretches),
            rough=found.rough,
            rest=sum(it.end - it.begin for it in ends),
            other_rest=sum(it.other_end - it.other_begin for it in ends),
            first=None if first is None else divergence_row(mine, its, first, progress),
        )

    def __len__(self) -> int:
        return len(self._stretches)

    def select(self, args: str, size: int) -> PageSelection:
        """Return which rows the user's RANGE means, and move there. Raises RangeError."""
        if not self._stretches:
            return PageSelection(1, 1)
        return self._cursor.select(args, size, len(self._stretches))

    def restart(self) -> None:
        """Let the next page be the first one."""
        self._cursor.reset(1)

    def rows(self, begin: int, end: int) -> Sequence[DifferenceRow]:
        """Return the rows numbered *begin* to *end* - 1."""
        return [
            difference_row(number, self._mine, self._its, self._stretches[number - 1])
            for number in range(begin, min(end, len(self._stretches) + 1))
        ]


class Comparisons:
    """The comparisons of a history with those of other captures, and the captures, which are read once."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str | None, float], Session] = {}
        self._known: dict[tuple[object, int], HartComparison] = {}

    def with_file(
        self, one: ComparedTrace, path: str, elf: str | None, hart: int | None, progress: Progress = silent
    ) -> HartComparison:
        """Return the comparison with a capture. *elf*: its program, None: the one it names; *hart*: of it, None: of the
        same number. Raises NotComparable, CaptureError, and as `Session.open_capture`.
        """
        key = path, elf, _changed(path)
        if key not in self._sessions:
            self._sessions = {}
            self._known.clear()
            session = Session()
            session.open_capture(capture_file.load(path, progress), path, elf)
            self._sessions[key] = session
        name = os.path.basename(path)
        other = compared_trace(self._sessions[key], one.selected.hart if hart is None else hart, name, progress)
        place = key, other.selected.hart
        if place not in self._known:
            self._known[place] = HartComparison(one, other, progress)
        return self._known[place]


def compared_trace(session: Session, hart: int, name: str, progress: Progress = silent) -> ComparedTrace:
    """Return the history of a hart. Raises NotComparable, and as `Session.selected`."""
    decoded = session.harts(progress=progress)
    if hart not in decoded.harts.histories and len(decoded.harts.histories) > 1:
        raise NotComparable(f"{name}: has no hart {hart}, but {_listed(decoded)}: say which one (--hart)")
    number = hart if hart in decoded.harts.histories else next(iter(decoded.harts.histories))
    return ComparedTrace(session, session.selected(Context(hart=number), progress), name)


class RunDifference(NamedTuple):
    """Where two runs part, and all *rows* of the list of what differs."""

    answer: DiffAnswer
    rows: Sequence[DifferenceRow]


def diff_sessions(
    one: Session, other: Session, hart: int = 0, other_hart: int | None = None, progress: Progress = silent
) -> RunDifference:
    """Return where the runs of two sessions part, and what differs: of a hart, and of the hart of the same number in
    the other one, or of another. Raises NotComparable, and as `Session.selected`.
    """
    names = [it.opened or "this trace" for it in (one, other)]
    mine = compared_trace(one, hart, names[0], progress)
    its = compared_trace(other, hart if other_hart is None else other_hart, names[1], progress)
    comparison = HartComparison(mine, its, progress)
    return RunDifference(comparison.answer(progress), comparison.rows(1, len(comparison) + 1))


def _listed(decoded: Decoded) -> str:
    return harts_text(sorted(decoded.harts.histories))


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
