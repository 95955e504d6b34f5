"""The stack of a run that went wrong: whether sp was outside of it."""

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.explain_rows import ExplainedFinding
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.stack.followed import FollowedStack

_ASKED_MOST = 64
"""How often a value of sp is asked for that the code does not say."""


def stack_overflow(evidence: Evidence, places: ProgramPlaces) -> ExplainedFinding | None:
    """Return where sp first got below the stack's section, or into another object."""
    areas = FollowedStack(evidence, places, _ASKED_MOST, by_function=False).areas.values() if evidence.part else ()
    left = [(it.outside, it) for it in areas if it.outside is not None and it.room is not None]
    if not left:
        return None
    (value, position), area = min(left, key=lambda it: it[0].position)
    room, low = area.room, area.lowest.value
    assert room is not None
    name = places.function_name(evidence.history.pc(position))
    what = places.below_stack(room.start - 1)
    text = f"the stack runs into {what}: sp is 0x{value:x} in {name}, and its room begins at 0x{room.start:x}"
    details = [f"The lowest sp is 0x{low:x}, {room.start - low} bytes below."] if low < value else []
    number = history_number(position)
    facts = {"sp": f"0x{value:x}", "room": f"0x{room.start:x}", "lowest": f"0x{low:x}", "number": number}
    return ExplainedFinding("stack-overflow", text, places.place_at(position), details, facts)
