"""What a trace never tells: elements that are absent from a partial trace (Trace Protocol Specification, 3.2)."""

from collections.abc import Sequence
from itertools import islice

from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.layout import STORE_DATA, Form, Opcode, State
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL
from rvtrace_gdb.decode.tandem.steps import NOWHERE
from rvtrace_gdb.session.tandem.masks import ADDRESSES, STORES, TRAP_STATUS

_STORE_DATA = frozenset(int(identifier) for identifier in STORE_DATA)
_PLACES = {int(State.PHYSICAL_ADDRESS), int(State.EFFECTIVE_ADDRESS)}
_LOOKED_AT = 1000  # traps
_PAGE = 0x1000


def absent_of(tandem: Tandem) -> set[str]:
    """Which of `masks.ABSENT` no group of a trace tells, though something happened there is to tell of."""
    found = _memory(tandem)
    status = tandem.index.registers.columns.get(csrs.MSTATUS)
    is_untold = status is not None and bool(status.unknown)
    if (tandem.index.traps or is_untold) and not _tells_status(tandem):
        found.add(TRAP_STATUS)
    return found


def _stores_untold(tandem: Tandem) -> bool:
    """Whether something was stored without being told."""
    index = tandem.index
    return any(writes.unknown for writes in index.memory.values()) or len(index.memory_forgotten) > len(index.breaks)


def _memory(tandem: Tandem) -> set[str]:
    """Of the elements about memory."""
    shapes = {number: tandem.trace.automaton.shapes[number] for number in set(tandem.trace.shapes)}
    if not all(shape.known for shape in shapes.values()):
        return set()
    with_data = [shape.forms for shape in shapes.values() if any(_is_data(form) for form in shape.forms)]
    requests = any(form.head == Opcode.MEMORY_REQUEST for shape in shapes.values() for form in shape.forms)
    if requests:
        return set()
    if not with_data:
        return {STORES} if _stores_untold(tandem) else set()
    placed = any(form.identifier in _PLACES for forms in with_data for form in forms if _is_state(form))
    return set() if placed else {ADDRESSES}


def _is_state(form: Form) -> bool:
    return form.head == Opcode.ADDITIONAL_STATE


def _is_data(form: Form) -> bool:
    return _is_state(form) and form.identifier in _STORE_DATA


def _tells_status(tandem: Tandem) -> bool:
    """Whether a trap tells mstatus, or sstatus."""
    columns = tandem.index.registers.columns
    for trapped in islice(tandem.index.traps, _LOOKED_AT):
        for regno in csrs.STATUS & columns.keys():
            written = columns[regno].last(trapped.group)
            if written is not None and written.group == trapped.group and written.value is not None:
                return True
    return False


def foreign_code(tandem: Tandem, program: Image | None) -> list[tuple[int, bytes]]:
    """Instructions that ran outside of the program, by address: a boot ROM, most often."""
    index, trace = tandem.index, tandem.trace
    found: dict[int, bytes] = {}
    inside: dict[int, bool] = {}
    trapped = {trap.group for trap in index.traps}
    previous = NOWHERE
    for group, retired in enumerate(index.retired):
        pc = index.origins.get(group, previous)
        previous = index.pcs[group]
        if not (retired or group in trapped) or pc == NOWHERE or inside.get(pc) or not _is_physical(tandem, group):
            continue
        is_inside = program is not None and program.knows(pc)
        instr = None if is_inside else trace.group(group).instr
        inside[pc] = is_inside or instr is not None
        if instr is not None and pc < _PHYSICAL:
            found[pc] = instr.word.to_bytes(instr.length, "little")
    return sorted(found.items())


_PHYSICAL = 1 << 56
"""No address is physical from here on (RISC-V Privileged Architecture, "Sv39": 56 bits)."""


def _is_physical(tandem: Tandem, group: int) -> bool:
    """Whether instructions are fetched at physical addresses."""
    state = tandem.after(group - 1)
    return state.privilege in (3, None) or state.space == PHYSICAL


def pages(code: Sequence[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """The pages that have some code, (address, bytes), as few pieces as possible."""
    numbers = sorted({at // _PAGE for address, data in code for at in (address, address + len(data) - 1)})
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and sum(found[-1]) == number * _PAGE:
            found[-1] = found[-1][0], found[-1][1] + _PAGE
        else:
            found.append((number * _PAGE, _PAGE))
    return found
