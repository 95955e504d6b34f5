"""What must hold of the history of any trace, cut, rotated, mixed or damaged, whatever its format."""

from collections.abc import Sequence
from itertools import pairwise

from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind, NoteCause
from rvtrace_gdb.decode.history.history import GAP, History
from tests.decode.ntrace.messages import difference, of_kind
from tests.decode.synthetic import Program
from tests.decode.synthetic_code import BRANCHES, DIRECT, INDIRECT

MANY = 3000  # positions looked at: one flipped bit can make a loop of four billion rounds
LOSSES = GAP_KINDS - {EventKind.TRACE_OFF}


def check_bookkeeping(history: History, data: bytes) -> None:
    total, decoded, idle, skipped = history.accounting
    assert total == len(data) == decoded + idle + skipped
    assert min(decoded, idle, skipped) >= 0
    positions = [event.position for event in history.events]
    assert positions == sorted(positions)
    assert all(0 <= event.offset <= len(data) for event in history.events)
    gaps = {event.position for event in history.events if event.kind in GAP_KINDS and event.position < len(history)}
    gaps = {position for position in gaps if history.pc(position) == GAP}
    assert len(gaps) == history.gaps
    for i in gaps:
        cause = history.gap_at(i)
        assert cause.text
        assert cause.last_pc == history.pc(i - 1)
        assert i + 1 == len(history) or cause.next_pc is not None


def check_possible(program: Program, history: History, anywhere: Sequence[str] = INDIRECT) -> None:
    """No step from one instruction to the next that the code cannot take, unless an event stands there that can.

    *anywhere*: the kinds of instructions that may lead to any place. Of a loop that a damaged message repeats very
    often, the traps of the first rounds are listed, and a note says so.
    """
    elsewhere = {event.position for event in history.events if event.kind is not EventKind.NOTE}
    pcs = list(history.pcs(0, MANY))
    left_out = any(getattr(event.fact, "cause", None) is NoteCause.NOT_LISTED for event in history.events)
    repeated = {(pcs[i - 1], pcs[i]) for i in elsewhere if left_out and 0 < i < len(pcs)}
    for i, (pc, after) in enumerate(pairwise(pcs), 1):
        spot = program.spots.get(pc)
        if GAP in (pc, after) or i in elsewhere or spot is None or spot.kind in anywhere or (pc, after) in repeated:
            continue
        ways = set(spot.targets) if spot.kind in (*BRANCHES, *DIRECT) else set()
        if spot.kind not in DIRECT:
            ways.add(pc + spot.length & program.mask)
        assert after in ways, (i, hex(pc), hex(after), spot)


def check_stop_at_error(stopped: History, data: bytes, history: History) -> None:
    """Decoding that gave up at the first loss has the same up to there, and nothing behind it."""
    assert sum(stopped.accounting[1:]) == stopped.accounting.total == len(data)
    count = len(stopped)
    while count and stopped.pc(count - 1) == GAP:
        count -= 1
    assert not difference(stopped.pcs(0, min(count, MANY)), history.pcs(0, min(count, MANY)))
    lost = [event.offset for event in of_kind(history, *LOSSES)]
    assert [event.offset for event in of_kind(stopped, *LOSSES)] == lost[:1]


def check_pieces_ran(history: History, pcs: Sequence[int], *breaks: EventKind) -> None:
    """The rows of instructions between gaps are in *pcs*, in this order; there may be one at an event of *breaks*."""
    at = 0
    for piece in _pieces(history, {event.position for event in of_kind(history, *breaks)}):
        starts = range(at, len(pcs) - len(piece) + 1)
        found = next((start for start in starts if list(pcs[start : start + len(piece)]) == piece), None)
        assert found is not None, f"{len(piece)} instructions from 0x{piece[0]:x} on never ran after instruction {at}"
        at = found + len(piece)


def _pieces(history: History, breaks: set[int]) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for i, pc in enumerate(history.pcs()):
        if pc == GAP or i in breaks:
            found.append([])
        if pc != GAP:
            found[-1].append(pc)
    return [piece for piece in found if piece]
