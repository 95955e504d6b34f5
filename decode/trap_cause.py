"""The cause of the last trap, from the registers of a hart that stands in the trap's handler.

N-Trace and Control Transfer Records do not say why a trap was taken. The hart does, until the next trap: xcause, xepc
and xtval of the mode that took it. They are believed where nothing else is possible:

- The trap is the last one in the history, its handler has not returned, and nothing is missing since.
- xepc is the address that the trace says was interrupted, xtvec leads to the handler that the trace says ran, and
  xcause does not contradict what the trace says of the trap.
- The history ends where the hart stands.

Ref: RISC-V Instruction Set Manual II (20240411), "Machine Trap-Vector Base-Address (mtvec)", "Machine Exception Program
Counter (mepc)", "Machine Cause (mcause)"; "Supervisor CSRs" for scause, sepc, stval, stvec.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import (
    ONLY_SAY_WHERE,
    Fact,
    Loss,
    Note,
    NoteCause,
    Start,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.history import Event, History, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction

_DIRECT, _VECTORED = 0, 1  # modes of xtvec; in others a handler's address does not follow from xtvec
_PARTLY = 1 << 16  # instructions of an entry that are told apart

_UNSEEN = frozenset({NoteCause.UNSEEN, NoteCause.CALLS_ALONE})
_SWITCHED_OFF = frozenset({StopReason.TRACE_DISABLED, StopReason.UNSPECIFIED})  # to read the trace out


class TrapRegisters(NamedTuple):
    """What a halted hart says of the last trap into its mode.

    *mode*: 3 for M, 1 for S; *pc*: where it stands; *cause*, *epc*, *value*, *vector*: xcause, xepc, xtval, xtvec.
    """

    mode: int
    pc: int
    cause: int
    epc: int
    value: int
    vector: int


def open_trap(history: History, program: Program) -> Event | None:
    """Return the last trap, if its cause is not known and the hart is certain to be in its handler where the history
    ends.
    """
    place = _last_trap(history)
    if place is None:
        return None
    event = history.events[place]
    if event.last_pc is None or event.next_pc is None or not _seamless(history, place):
        return None
    return event if not _has_returned(history, program, event) else None


def explained(history: History, program: Program, registers: TrapRegisters) -> History:
    """Return the history in which the last trap has the cause in *registers*, if that is certain; else the same one."""
    event = open_trap(history, program)
    if event is None or not _ends_at(history, program, event, registers.pc):
        return history
    trap = _trap_of(event, registers, program.xlen)
    if trap is None:
        return history
    place = _last_trap(history)
    assert place is not None
    found = copy.copy(history)
    found.events = [*history.events[:place], event._replace(fact=trap), *history.events[place + 1 :]]
    return found


def _last_trap(history: History) -> int | None:
    """Return the place among the events of the last trap, if the trace does not have its cause."""
    for place in range(len(history.events) - 1, -1, -1):
        fact = history.events[place].fact
        if isinstance(fact, Trap):
            hidden = fact.cause is not None or fact.from_hidden or fact.into_hidden
            return None if hidden else place
    return None


def _seamless(history: History, place: int) -> bool:
    """Return whether nothing can have run unseen since the event at *place*, such as another trap."""
    begin, end = history.events[place].position, len(history)
    if history.gap_positions and history.gap_positions[-1] >= begin:
        return False
    if any(isinstance(event.fact, Note) and event.fact.cause in _UNSEEN for event in history.events):
        return False
    return all(_harmless(event.fact, at_end=event.position == end) for event in history.events[place + 1 :])


def _harmless(fact: Fact, *, at_end: bool) -> bool:
    if isinstance(fact, Stop):
        return fact.reason is StopReason.DEBUG_MODE or (at_end and fact.reason in _SWITCHED_OFF)
    if isinstance(fact, Start):
        return fact.reason in ONLY_SAY_WHERE or fact.reason.marks or fact.reason.resumes
    return not isinstance(fact, Loss)


def _has_returned(history: History, program: Program, event: Event) -> bool:
    """Return whether the handler of *event* may have returned: an instruction for that ran, or an unknown one."""
    images = _images(history, program, event.position)
    seen: set[int] = set()
    for pcs in _entry_addresses(history, event.position):
        for pc in pcs:
            if pc not in seen:
                if _may_return(pc, images):
                    return True
                seen.add(pc)
    return False


def _images(history: History, program: Program, position: int) -> list[Image]:
    """Return the programs that ran from *position* on."""
    later = (context for begin, context in history.contexts if begin > position)
    contexts = dict.fromkeys([history.context_at(position), *later])
    return [program.image_of(context) for context in contexts]


def _may_return(pc: int, images: Sequence[Image]) -> bool:
    found = [instruction for image in images if (instruction := _decoded_instruction(image, pc)) is not None]
    return not found or any(one.itype is IType.TRAP_RETURN for one in found)


def _entry_addresses(history: History, position: int) -> Iterator[tuple[int, ...]]:
    """Yield the addresses of the instructions from *position* on, of each different entry and part once."""
    if position >= len(history):
        return
    entries, (first, begin) = history.entries, history.entry_at(position)
    if position > begin and len(entries[first]) <= _PARTLY:
        yield from entries[first].chunks(position - begin, entries[first].count)
        first += 1
    seen: set[int] = set()
    for number in range(first, len(entries)):
        entry = entries[number]
        if id(entry) not in seen:
            yield from _parts(entry, seen)


def _parts(part: "PathPart", seen: set[int]) -> Iterator[tuple[int, ...]]:
    """Yield the addresses in *part*, but of none of its parts that are in *seen*; all of them are then."""
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, tuple):
            yield part
        else:
            waiting += [part.path] if isinstance(part, RepeatPath) else part.parts[::-1]


def _ends_at(history: History, program: Program, event: Event, pc: int) -> bool:
    """Return whether the hart can stand at *pc* after the last instruction of the history."""
    if event.position >= len(history):
        return event.next_pc == pc
    last = history.pc(len(history) - 1)
    code = _decoded_instruction(program.image_of(history.context_at(len(history) - 1)), last)
    if code is None or code.itype is IType.EXCEPTION:
        return False
    if code.is_uninferable:
        return True  # only the trace knows where to
    following, target = last + code.length, None if code.offset is None else last + code.offset
    mask = (1 << program.xlen) - 1
    if code.is_branch:
        return pc in {following & mask, target if target is None else target & mask}
    return pc == (target if code.is_inferable_jump and target is not None else following) & mask


def _decoded_instruction(image: Image, pc: int) -> Instruction | None:
    try:
        return image.instruction(pc)
    except (CodeMissing, UndecodableInstruction):
        return None


def _trap_of(event: Event, registers: TrapRegisters, xlen: int) -> Trap | None:
    """Return the trap *event* with its cause, None unless the registers are about it."""
    fact, code = event.fact, registers.cause & (1 << xlen - 1) - 1
    interrupt = bool(registers.cause >> xlen - 1)
    assert isinstance(fact, Trap)
    mode, base = registers.vector & 3, registers.vector & ~3
    handler = base + 4 * code if mode == _VECTORED and interrupt else base
    fits = fact.may_be_interrupt if interrupt else fact.may_be_exception
    if mode not in (_DIRECT, _VECTORED) or handler != event.next_pc or registers.epc != event.last_pc or not fits:
        return None
    kind = TrapKind.INTERRUPT if interrupt else TrapKind.EXCEPTION
    return fact._replace(kind=kind, cause=code, value=registers.value, from_hart=True)
