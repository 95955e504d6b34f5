"""Where interrupts hit whose trace does not say so: in E-Trace, those before the target of a jump has retired.

The address in their packet is undefined (payloads, format 3 subformat 1, thaddr). A handler that returns shows the
place. It is used for the call stack alone: the handler may have gone on in another task, so no event gets it as a fact.
"""

from collections.abc import Iterable
from itertools import islice

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction

LONGEST_HANDLER = 1 << 16
"""How many instructions are looked at for the end of a handler."""


def with_places(
    history: History, program: Program, traps: dict[int, list[Event]], turns: Iterable[int] = ()
) -> dict[int, list[Event]]:
    """Return *traps*, by position, in which the first of each chain has the place where it hit, if its end shows it.
    *turns*: where another task is known to begin its turn: a handler in which one does ends elsewhere.
    """
    hit = {event.position for event in history.events if event.kind is EventKind.TRAP}
    found, begins = dict(traps), set(turns)
    for position, chain in traps.items():
        if chain[0].last_pc is None:
            image = program.image_of(history.context_at(position - 1))
            place = _resumed_at(history, program, position, len(chain), hit, begins)
            if place is not None and _leads_to(image, history.pc(position - 1), place):
                found[position] = [chain[0]._replace(last_pc=place), *chain[1:]]
    return found


def _resumed_at(
    history: History, program: Program, position: int, depth: int, hit: set[int], turns: set[int]
) -> int | None:
    """Return where the hart went on after *depth* handlers, which begin at *position*; None if that is not seen.

    *hit*: the positions of all traps; *turns*: where other tasks begin to run.
    """
    image = program.image_of(history.context_at(position))
    returns: dict[int, bool] = {}
    returned = False
    for at, pc in enumerate(islice(history.pcs(position), LONGEST_HANDLER), position):
        if pc == GAP or (at in turns and at != position):
            return None
        if at in hit and at != position:
            if returned:
                return None  # a trap right after the return: where that led is not known either
            depth += 1
        if returned and not depth:
            return pc
        known = returns.get(pc)
        if known is None:
            known = returns[pc] = _itype(image, pc) is IType.TRAP_RETURN
        returned = known
        depth -= known
    return None


def _leads_to(image: Image, pc: int, place: int) -> bool:
    """Whether the jump at *pc* may have led to *place*: within its function, to the start of one, or back to a call."""
    itype = _itype(image, pc)
    if itype is IType.RETURN:
        return True  # the call stack knows where to
    function = image.function(place)
    if itype is IType.UNINFERABLE_CALL:
        return function == place
    return itype is IType.UNINFERABLE_JUMP and function is not None and function in (place, image.function(pc))


def _itype(image: Image, pc: int) -> IType | None:
    try:
        return image.instruction(pc).itype
    except (CodeMissing, UndecodableInstruction):
        return None
