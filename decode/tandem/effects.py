"""What an instruction can do, and what one group reports and implies of it: its pc, its trap, its stores, its
registers.

An instruction leaves few addresses for the next pc (`Steps`). Its stores, or those of a transaction on the bus, need
care because atomic operations and conditional stores do not always store. `GroupEffects` evaluates a group element by
element.

Sources: RISC-V ISA, "A Extension", "Zacas"; Trace Protocol Specification 2018-11-20, chapter 2 (memory requests).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    STORE,
    IType,
    UndecodableInstruction,
    classify,
    length,
    reach,
)
from rvtrace_gdb.decode.semantics.destinations import Destinations
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    FPR_END,
    GPR,
    SIZES,
    STORE_DATA,
    SUCCESS,
    AdditionalState,
    AmoData,
    Element,
    FullRegister,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    StateInitialization,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.registers import RegisterWrites

NOWHERE = 0xFFFF_FFFF_FFFF_FFFF
"""Stands for an unknown address. No instruction can be there: it is odd."""


class Anywhere:
    """A container of every distance there can be between two instructions."""

    def __contains__(self, distance: object) -> bool:
        return not isinstance(distance, int) or not distance & 1


_ANYWHERE = Anywhere()
Distances = frozenset[int] | Anywhere


class Steps(Computed[int, Distances]):
    """The distances from an instruction to the next one without a trap, by instruction word; modulo 2**XLEN.

    *without*: words whose distances are empty, for callers that handle them in another way.
    """

    def __init__(self, xlen: int, without: Iterable[int] = ()) -> None:
        super().__init__(self._distances)
        self._xlen, self._mask, self._without = xlen, (1 << xlen) - 1, frozenset(without)

    def origin(self, word: int, next_pc: int) -> int:
        """Return the address of an instruction that continued at *next_pc*; NOWHERE if there is more than one."""
        distance = self._only(word)
        return NOWHERE if distance is None else next_pc - distance & self._mask

    def target(self, word: int, pc: int) -> int:
        """Return the address at which an instruction at *pc* continues; NOWHERE if there is more than one."""
        distance = self._only(word)
        return NOWHERE if distance is None else pc + distance & self._mask

    def _only(self, word: int) -> int | None:
        """Return the distance if there is only one."""
        distances = self[word]
        return None if isinstance(distances, Anywhere) or len(distances) != 1 else next(iter(distances))

    def _distances(self, word: int) -> Distances:
        if word in self._without:
            return frozenset()
        try:
            size = length(word & 0xFFFF)
            instruction = classify(word, self._xlen)
            may_be_zcm = classify(word, self._xlen, zcm=True) != instruction
        except UndecodableInstruction:
            return _ANYWHERE
        if instruction.custom or instruction.is_uninferable or instruction.itype is IType.EXCEPTION or may_be_zcm:
            return _ANYWHERE  # ecall and ebreak go on where the trap does, whether or not the group tells of a trap
        if instruction.is_inferable_jump:
            return _ANYWHERE if instruction.offset is None else frozenset({instruction.offset & self._mask})
        if instruction.offset is not None:
            return frozenset({size, instruction.offset & self._mask})
        return frozenset({size})


_AMO = 0x2F
_LR, _SC, _CAS = 0b00010, 0b00011, 0b00101
_AMOS = {
    0b00001: MemoryOp.AMO_SWAP, 0b00000: MemoryOp.AMO_ADD, 0b00100: MemoryOp.AMO_XOR, 0b01100: MemoryOp.AMO_AND,
    0b01000: MemoryOp.AMO_OR, 0b10000: MemoryOp.AMO_MIN, 0b10100: MemoryOp.AMO_MAX, 0b11000: MemoryOp.AMO_MINU,
    0b11100: MemoryOp.AMO_MAXU,
}  # fmt: skip
"""The operations by funct5."""


class StoreEffect(NamedTuple):
    """*size* bytes at *address*; *value* None: the trace does not report it. *physical*: a physical address in any
    case.
    """

    address: int
    size: int
    value: int | None
    physical: bool = False


def stored_size(word: int, xlen: int) -> int:
    """Return how many bytes an instruction stores: 0 none; -1 more than one piece, or an unknown number."""
    found = reach(word, xlen)
    if found is None or found.kind not in (STORE, ATOMIC):
        return 0
    return found.size if found.size and found.times == 1 else -1


def is_atomic(word: int) -> bool:
    """Return whether the instruction is one of the A extension, whose store data need not be what it writes."""
    return word & 0x7F == _AMO


def bus_operation(word: int) -> MemoryOp | None:
    """Return what an instruction of the A extension is on the system bus; None: not one of it, or one the protocol
    lacks.
    """
    if not is_atomic(word):
        return None
    return {_LR: MemoryOp.LOAD_RESERVED, _SC: MemoryOp.STORE_CONDITIONAL, **_AMOS}.get(word >> 27)


def atomic_store(word: int, stored: StoreEffect, rd: int | None, amo_data: AmoData) -> StoreEffect | None:
    """Return what an atomic instruction really stores, if its group has this store data; None: nothing.

    *rd*: the new value of its destination register, None if the group has none.
    """
    funct5 = word >> 27
    if funct5 == _LR:
        return None
    if funct5 == _SC:
        if rd is None:
            return stored._replace(value=None)
        return None if rd else stored
    if funct5 not in _AMOS:  # amocas: it may have failed; load-acquire and store-release do not come with rd
        return stored if funct5 == 0b00111 else stored._replace(value=None)
    if amo_data is AmoData.RESULT:
        return stored
    if amo_data is AmoData.UNKNOWN or rd is None or stored.value is None:
        return stored._replace(value=None)
    return stored._replace(value=amo_result(_AMOS[funct5], rd, stored.value, stored.size))


def amo_result(op: MemoryOp, old: int, operand: int, size: int) -> int:
    """Return what an atomic operation on *size* bytes writes."""
    mask, sign = (1 << 8 * size) - 1, 1 << 8 * size - 1
    old, operand = old & mask, operand & mask
    as_signed = [(value ^ sign) - sign for value in (old, operand)]
    results = {
        MemoryOp.AMO_SWAP: operand, MemoryOp.AMO_ADD: old + operand, MemoryOp.AMO_XOR: old ^ operand,
        MemoryOp.AMO_AND: old & operand, MemoryOp.AMO_OR: old | operand, MemoryOp.AMO_MIN: min(as_signed),
        MemoryOp.AMO_MAX: max(as_signed), MemoryOp.AMO_MINU: min(old, operand), MemoryOp.AMO_MAXU: max(old, operand),
    }  # fmt: skip
    return results[op] & mask


def bus_stores(elements: Sequence[Element]) -> Iterator[StoreEffect]:
    """Yield what the memory requests of a group store, at physical addresses."""
    for request, follower in pairwise([*elements, None]):
        if isinstance(request, MemoryRequest) and request.data is not None:
            response = follower if isinstance(follower, MemoryResponse) else None
            stored = StoreEffect(request.addr, SIZES[request.size], request.data, physical=True)
            value = _bus_value(request, response)
            if value is not NOTHING:
                yield stored._replace(value=value)


NOTHING = -1


def _bus_value(request: MemoryRequest, response: MemoryResponse | None) -> int | None:
    """Return the value a transaction leaves in memory; NOTHING: it certainly failed; None: not reported."""
    failed = response is not None and response.result != SUCCESS
    if request.op == MemoryOp.STORE:
        return None if failed else request.data
    if request.op == MemoryOp.STORE_CONDITIONAL:
        return None if response is None else NOTHING if failed else request.data
    if failed or response is None or response.data is None or request.data is None:
        return None
    return amo_result(MemoryOp(request.op), response.data, request.data, SIZES[request.size])


UNKNOWN_CAUSE = -1
"""The `Trapped.cause` if the trace does not report it."""


class TrapEffect(NamedTuple):
    """A group that took a trap. *epc*, *tval*, *handler*: None if the trace does not report them.

    *interrupt*: if the cause is not reported, the more frequent case; `fact` has what is known.
    """

    group: int
    cause: int
    interrupt: bool
    epc: int | None
    tval: int | None
    handler: int | None

    @property
    def fact(self) -> Trap:
        """The trap, as far as the trace reports it."""
        if self.cause == UNKNOWN_CAUSE:
            return Trap(TrapKind.UNKNOWN)
        return Trap.with_cause(self.cause, self.tval, interrupt=self.interrupt)


_STATES: dict[int, int] = {
    StateId.PRIVILEGE_MODE: csrs.PRIVILEGE,
    StateId.MTIME: csrs.MTIME,
    StateId.PC_PHYSICAL_ADDRESS: csrs.PC_PHYSICAL,
}
_ADDRESSES_AND_DATA = frozenset({StateId.EFFECTIVE_ADDRESS, StateId.PHYSICAL_ADDRESS, *STORE_DATA})
_NONE: frozenset[int] = frozenset()
_SRET = 0x1020_0073
_MODES = (0, 1, 3)
_CAUSES = 64

@cache
def destinations(xlen: int) -> Destinations:
    """Return the registers that instructions write, by their words."""
    return Destinations(xlen)


_RegisterElement = FullRegister | IncrementalRegister | IncrementalRegisterOr


class GroupEffects:
    """The effects of group number *group*.

    *before*: what registers held; *loose*: it is an element outside of groups.

    instr     its instruction
    pc        the address it reports for the pc; *own*: that of the instruction itself, if the dialect has it
    is_reset, initializes, increments   it has such an element
    data      memory store data: (bytes, value), in order
    reports_memory  it has addresses, store data, or memory requests
    """

    def __init__(
        self,
        group: int,
        elements: Sequence[Element],
        parameters: TandemParameters,
        before: RegisterWrites,
        *,
        loose: bool,
    ) -> None:
        self.group, self.elements = group, elements
        self._parameters, self._before, self._loose = parameters, before, loose
        kinds = set(map(type, elements))
        self.is_reset = HartReset in kinds
        self.initializes = StateInitialization in kinds
        self.increments = IncrementPc in kinds
        self.instr = next((element for element in elements if isinstance(element, Instr)), None)
        self._states: dict[int, list[int]] = {}
        self.own: int | None = None
        self.data: list[tuple[int, int]] = []
        for element in elements:
            if isinstance(element, AdditionalState):
                self._states.setdefault(element.identifier, []).append(element.value)
                self.own = element.own if element.own is not None and not self._is_nowhere(element.own) else self.own
                if element.identifier in STORE_DATA:
                    self.data.append((STORE_DATA[StateId(element.identifier)], element.value))
        self.reports_memory = MemoryRequest in kinds or not _ADDRESSES_AND_DATA.isdisjoint(self._states)
        self.pc = self._reported_pc()

    def _is_nowhere(self, address: int) -> bool:
        return self._parameters.dialect.partial and bool(address & 1)

    def _reported_pc(self) -> int | None:
        if StateId.PC in self._states:
            return self._states[StateId.PC][-1]
        register = self._parameters.dialect.pc_register
        if register < 0:
            return None
        sent = [e.value for e in self.elements if isinstance(e, FullRegister) and e.regno == register]
        return sent[-1] if sent else None

    @cached_property
    def trap(self) -> TrapEffect | None:
        """The trap it took: it wrote xcause, and either it also wrote xepc, or it has no instruction that could have
        written xcause.
        """
        if self.is_reset or self.initializes or self._loose:
            return None
        taken = self._written_trap_csrs
        if taken is not None:
            values = self._reported
            cause, interrupt = self._cause(values[taken.cause])
            return TrapEffect(self.group, cause, interrupt, values.get(taken.epc), values.get(taken.tval), None)
        if self.pc is not None and (self.instr is None or self._traps_for_unknown_cause):
            return TrapEffect(self.group, UNKNOWN_CAUSE, self.instr is None, None, None, None)
        return None

    @property
    def _traps_for_unknown_cause(self) -> bool:
        """Whether the instruction trapped, though the cause is not reported: it changed the privilege mode."""
        is_return = self.instr is not None and self.instr.word in csrs.XRETS
        return self._parameters.dialect.partial and StateId.PRIVILEGE_MODE in self._states and not is_return

    @property
    def _written_trap_csrs(self) -> csrs.TrapCsrs | None:
        """The registers that a trap wrote."""
        written = (csrs.TRAP_OF_CAUSE[regno] for regno in self._reported if regno in csrs.TRAP_OF_CAUSE)
        return next((taken for taken in written if self.instr is None or taken.epc in self._reported), None)

    def _cause(self, value: int | None) -> tuple[int, bool]:
        """Return the two parts of xcause. If the kind is not known: without an instruction it
        usually was an interrupt.
        """
        if value is None:
            return UNKNOWN_CAUSE, self.instr is None
        top = self._parameters.xlen - 1
        return value & (1 << top) - 1, bool(value >> top)

    @property
    def retires(self) -> bool:
        """Whether an instruction retired."""
        return self.instr is not None and self.trap is None

    @property
    def rd(self) -> int | None:
        """The new value of the integer register it wrote, in whatever form it is reported."""
        return next((value for regno, value in self._reported.items() if GPR < regno < FPR), None)

    def states(self, identifier: StateId) -> list[int]:
        """Return the values of all additional states with this identifier."""
        return self._states.get(identifier, [])

    def registers(self) -> dict[int, int | None]:
        """Return the registers it wrote, and those it must have changed without a report: None."""
        written = dict(self._reported)
        if self.trap is not None and (self._written_trap_csrs is not None or self._parameters.dialect.partial):
            _complete_trap(self._written_trap_csrs or self._presumed(written), written)
        elif self.instr is not None and self.instr.word in csrs.XRETS and self.trap is None:
            _complete_return(self.instr.word, self._before.value(csrs.MSTATUS, self.group), written)
        for regno in self.unreported():
            written.setdefault(regno, None)
        return written

    def _presumed(self, written: dict[int, int | None]) -> csrs.TrapCsrs:
        """Return the registers that a trap wrote without a report: those of the mode that it reports."""
        taken = next((taken for taken in csrs.TRAPS if taken.mode == written.get(csrs.PRIVILEGE)), csrs.TRAPS[0])
        written.setdefault(taken.cause, None)
        return taken

    def unreported(self) -> frozenset[int]:
        """Return the registers that the instruction writes, some of which are not reported because they are unknown."""
        if not self._parameters.dialect.partial or self.instr is None or self.trap is not None:
            return _NONE
        return destinations(self._parameters.xlen)[self.instr.word]

    @cached_property
    def _reported(self) -> dict[int, int | None]:
        """Return the registers and states it reports; None: changed from an unknown value."""
        reported: dict[int, int | None] = {}
        for element in self.elements:
            if isinstance(element, _RegisterElement) and element.regno != self._parameters.dialect.pc_register:
                reported[element.regno] = self._new_value(element, reported)
            elif isinstance(element, AdditionalState) and element.identifier in _STATES:
                reported[_STATES[element.identifier]] = element.value
        return reported

    def dirties(self, written: dict[int, int | None]) -> bool:
        """Return whether it changed floating-point state, and so mstatus, without reporting that."""
        floating = any(FPR <= regno < FPR_END or regno in csrs.FLOATING for regno in written)
        return floating and self.instr is not None and not written.keys() & csrs.STATUS

    def _new_value(self, element: _RegisterElement, reported: dict[int, int | None]) -> int | None:
        if isinstance(element, FullRegister):
            return element.value
        regno = element.regno
        old = reported[regno] if regno in reported else self._before.reported(regno, self.group)
        if old is None:
            return None
        if isinstance(element, IncrementalRegisterOr):
            return old | element.mask
        xlen, flen = self._parameters.xlen, self._parameters.flen
        return old + element.offset & (1 << (flen or xlen if FPR <= regno < FPR_END else xlen)) - 1


def _complete_trap(taken: csrs.TrapCsrs, written: dict[int, int | None]) -> None:
    """Add the registers that a trap writes but the group does not report, as unknown."""
    for regno in (taken.status, taken.epc, taken.tval):
        written.setdefault(regno, None)
    written.setdefault(csrs.PRIVILEGE, taken.mode)


def _complete_return(word: int, status: int | None, written: dict[int, int | None]) -> None:
    """Add the changes of mret and sret to mstatus and the privilege mode. *status*: mstatus before it."""
    if csrs.XRETS[word] == csrs.MEPC:
        mode = None if status is None else status >> csrs.MPP_SHIFT & 3
    else:
        mode = None if status is None or word != _SRET else status >> csrs.SPP_SHIFT & 1
    written.setdefault(csrs.PRIVILEGE, mode)
    if not written.keys() & csrs.STATUS:
        written[csrs.MSTATUS] = None


def impossible(seen: GroupEffects) -> str:
    """Return the report in a group that no hart makes, so the group is damaged; "" without one.

    Privileged Architecture, "Privilege Levels" (2 is reserved) and "Machine Cause" (codes from 64 on are reserved);
    ISA, "Base Instruction-Length Encoding": the low bits of an instruction determine whether it has 16 bits.
    """
    for mode in seen.states(StateId.PRIVILEGE_MODE):
        if mode not in _MODES:
            return f"privilege mode {mode}"
    for pc in (seen.pc, seen.own):
        if pc is not None and pc & 1:
            return f"a pc of 0x{pc:x}"
    if seen.trap is not None:
        cause = 0 if seen.trap.cause == UNKNOWN_CAUSE else seen.trap.cause
        return f"trap cause 0x{cause:x}" if cause >= _CAUSES else ""
    instr = seen.instr
    if instr is not None and (instr.word & 3 == 3) != (instr.length == 4):
        return f"the instruction 0x{instr.word:x} of {8 * instr.length} bits"
    return ""
