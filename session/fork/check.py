"""How far an unchanged fork follows the trace, which checks the values of the past, too: `rvtrace fork`."""

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.fork_rows import ForkCheck, ForkEnd
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.fork.ends import end_of
from rvtrace_gdb.session.fork.errors import NoFork
from rvtrace_gdb.session.fork.following import END, ForkFollower, Left
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers
from rvtrace_gdb.session.queries.selected_harts import selected_harts
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent


def fork_checks(
    session: Session, context: Context, args: str = "", progress: Progress = silent, *, through_devices: bool = False
) -> list[ForkCheck]:
    """Return how far a fork of each hart, or of the one that *context* asks for, follows its trace.

    *args*: a RANGE of its history: from the first instruction of it to the last, "": all. *through_devices*: it is not
    left at reads of devices. Raises NoFork, RangeError, and as `Session.selected`.
    """
    shown = selected_harts(session, context, args, progress)
    return [_fork_check(session, it, args, progress, through_devices=through_devices) for it in shown]


def _fork_check(
    session: Session, selected: SelectedHistory, args: str, progress: Progress, *, through_devices: bool
) -> ForkCheck:
    history = selected.history
    part = positions_of_numbers(args, len(history)) if args else range(len(history))
    first = _first_instruction(history, part)
    past = past_of(session, selected, progress)
    fork = ForkedHart(past, selected, session.capture(), first)
    left = ForkFollower(fork, part.stop, through_devices=through_devices).follow(progress)
    places = ProgramPlaces(Evidence(session, selected, part, progress))
    start = places.place_at(first)
    assert start is not None, "there is an instruction"
    return ForkCheck(
        selected.hart, start, part.stop, left.position - first, left.interrupts, left.exceptions, left.passed,
        left.stores, _end(fork, left, places), None if left.reason == END else places.place_at(left.position),
        None if left.pc is None else places.place_of(left.pc),
    )  # fmt: skip


def _first_instruction(history: History, part: range) -> int:
    """Return the position of the first instruction of a part, which a gap may begin."""
    for position in part:
        if history.pc(position) != GAP:
            return position
    raise NoFork(f"no fork at number {history_number(part.start)}: there is no instruction, the trace is lost there")


def _end(fork: ForkedHart, left: Left, places: ProgramPlaces) -> ForkEnd:
    return ForkEnd(left.reason) if left.stop is None else end_of(fork, left.stop, places.data_name)
