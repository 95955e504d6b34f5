"""The stack of a run that went wrong: whether sp was outside of it."""

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.stack.followed import FollowedArea, FollowedStack, LowestStack
from rvtrace_gdb.session.tasks.stack_rooms import TaskRoom
from rvtrace_gdb.support.text import printable

_ASKED_MOST = 1000
"""How often a value of sp is asked for that the code does not say: once for each switch of tasks, say."""
_LATE = 1 << 18
"""Instructions at the end that are looked at if there were more."""


def stack_overflow(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return where sp first got below the stack's section, or into another object."""
    found = _first_outside(evidence, places) if evidence.part else None
    if found is None:
        return None
    (value, position), area = found
    room, low = area.room, area.lowest.value
    assert room is not None
    name = places.function_name(evidence.history.pc(position))
    what = places.below_stack(room, low, position)
    whose = f"the stack of {printable(room.name)}" if isinstance(room, TaskRoom) else "the stack"
    text = f"{whose} runs into {what}: sp is 0x{value:x} in {name}, and its room begins at 0x{room.start:x}"
    details = [f"The lowest sp is 0x{low:x}, {room.start - low} bytes below."] if low < value else []
    number = history_number(position)
    facts = {"sp": f"0x{value:x}", "room": f"0x{room.start:x}", "lowest": f"0x{low:x}", "number": number}
    return ExplainedFinding("stack-overflow", text, places.place_at(position), details, facts)


def _first_outside(evidence: Evidence, places: ProgramPlaces) -> tuple[LowestStack, FollowedArea] | None:
    """Return where sp first was outside of an area, and that area."""
    followed = FollowedStack(evidence, places, _ASKED_MOST, by_function=False)
    left = [(it.outside, it) for it in followed.areas.values() if it.outside is not None and it.room is not None]
    if not left and followed.asked_left == 0 and len(evidence.part) > _LATE:
        return _first_outside(evidence.from_on(evidence.part.stop - _LATE), places)
    return min(left, key=lambda it: it[0].position, default=None)
