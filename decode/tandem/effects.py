"""What one group says and implies, element by element: its trap, its pc, the registers it changed."""

from collections.abc import Sequence
from functools import cached_property

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.group import (
    AdditionalState,
    Element,
    FullRegister,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryRequest,
    StateInitialization,
)
from rvtrace_gdb.decode.tandem.index import UNTOLD_CAUSE, Trapped
from rvtrace_gdb.decode.tandem.layout import FPR, FPR_END, GPR, STORE_DATA, State
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.registers import Registers

_STATES: dict[int, int] = {
    State.PRIVILEGE_MODE: csrs.PRIVILEGE,
    State.MTIME: csrs.MTIME,
    State.PC_PHYSICAL_ADDRESS: csrs.PC_PHYSICAL,
}
_ADDRESSES_AND_DATA = frozenset({State.EFFECTIVE_ADDRESS, State.PHYSICAL_ADDRESS, *STORE_DATA})
_SRET = 0x1020_0073
_MODES = (0, 1, 3)
_CAUSES = 64

_Register = FullRegister | IncrementalRegister | IncrementalRegisterOr


class Effects:
    """Group number *group*. *before*: what registers held; *loose*: it is an element outside of groups.

    instr     its instruction
    pc        the address it tells for the pc; *own*: and for the instruction itself, where the dialect has that
    is_reset, initializes, increments   it has such an element
    data      memory store data: (bytes, value), in order
    tells_memory   it has addresses, store data, or memory requests
    """

    def __init__(
        self, group: int, elements: Sequence[Element], parameters: Parameters, before: Registers, *, loose: bool
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
                self.own = element.own if element.own is not None else self.own
                if element.identifier in STORE_DATA:
                    self.data.append((STORE_DATA[State(element.identifier)], element.value))
        self.tells_memory = MemoryRequest in kinds or not _ADDRESSES_AND_DATA.isdisjoint(self._states)
        self.pc = self._told_pc()

    def _told_pc(self) -> int | None:
        if State.PC in self._states:
            return self._states[State.PC][-1]
        register = self._parameters.dialect.pc_register
        if register < 0:
            return None
        sent = [e.value for e in self.elements if isinstance(e, FullRegister) and e.regno == register]
        return sent[-1] if sent else None

    @cached_property
    def trap(self) -> Trapped | None:
        """The trap it took: it wrote xcause, and either xepc, too, or no instruction is there that could have."""
        if self.is_reset or self.initializes or self._loose:
            return None
        taken = self._taken
        if taken is not None:
            cause, interrupt = self._cause(self._told[taken.cause])
            return Trapped(self.group, cause, interrupt, self._told.get(taken.epc), self._told.get(taken.tval), None)
        if self.instr is None and self.pc is not None:
            return Trapped(self.group, UNTOLD_CAUSE, True, None, None, None)
        return None

    @property
    def _taken(self) -> csrs.TrapCsrs | None:
        """The registers a trap wrote."""
        written = (csrs.TRAP_OF_CAUSE[regno] for regno in self._told if regno in csrs.TRAP_OF_CAUSE)
        return next((taken for taken in written if self.instr is None or taken.epc in self._told), None)

    def _cause(self, value: int | None) -> tuple[int, bool]:
        """The two parts of xcause. Where it is not known: without an instruction it was an interrupt, most often."""
        if value is None:
            return UNTOLD_CAUSE, self.instr is None
        top = self._parameters.xlen - 1
        return value & (1 << top) - 1, bool(value >> top)

    @property
    def retires(self) -> bool:
        """An instruction retired."""
        return self.instr is not None and self.trap is None

    @property
    def rd(self) -> int | None:
        """The new value of the integer register it wrote, in whatever form it is told."""
        return next((value for regno, value in self._told.items() if GPR < regno < FPR), None)

    def states(self, identifier: State) -> list[int]:
        """The values of all additional states with this identifier."""
        return self._states.get(identifier, [])

    def registers(self) -> dict[int, int | None]:
        """What it wrote, and what it must have changed without telling: None."""
        written = dict(self._told)
        if self.trap is not None and self._taken is not None:
            _complete_trap(self._taken, written)
        elif self.instr is not None and self.instr.word in csrs.XRETS and self.trap is None:
            _complete_return(self.instr.word, self._before.value(csrs.MSTATUS, self.group), written)
        return written

    @cached_property
    def _told(self) -> dict[int, int | None]:
        """The registers and states it tells; None: changed from something that is not known."""
        told: dict[int, int | None] = {}
        for element in self.elements:
            if isinstance(element, _Register) and element.regno != self._parameters.dialect.pc_register:
                told[element.regno] = self._new_value(element, told)
            elif isinstance(element, AdditionalState) and element.identifier in _STATES:
                told[_STATES[element.identifier]] = element.value
        return told

    def dirties(self, written: dict[int, int | None]) -> bool:
        """Whether it changed floating-point state, and so mstatus, without telling that."""
        floating = any(FPR <= regno < FPR_END or regno in csrs.FLOATING for regno in written)
        return floating and self.instr is not None and not written.keys() & csrs.STATUS

    def _new_value(self, element: _Register, told: dict[int, int | None]) -> int | None:
        if isinstance(element, FullRegister):
            return element.value
        regno = element.regno
        old = told[regno] if regno in told else self._before.told(regno, self.group)
        if old is None:
            return None
        if isinstance(element, IncrementalRegisterOr):
            return old | element.mask
        xlen, flen = self._parameters.xlen, self._parameters.flen
        return old + element.offset & (1 << (flen or xlen if FPR <= regno < FPR_END else xlen)) - 1


def _complete_trap(taken: csrs.TrapCsrs, written: dict[int, int | None]) -> None:
    """A trap writes all of its registers: what of them is not told is not known."""
    for regno in (taken.status, taken.epc, taken.tval):
        written.setdefault(regno, None)
    written.setdefault(csrs.PRIVILEGE, taken.mode)


def _complete_return(word: int, status: int | None, written: dict[int, int | None]) -> None:
    """mret and sret change mstatus and the privilege mode. *status*: mstatus before it."""
    if csrs.XRETS[word] == csrs.MEPC:
        mode = None if status is None else status >> csrs.MPP_SHIFT & 3
    else:
        mode = None if status is None or word != _SRET else status >> csrs.SPP_SHIFT & 1
    written.setdefault(csrs.PRIVILEGE, mode)
    if not written.keys() & csrs.STATUS:
        written[csrs.MSTATUS] = None


def impossible(seen: Effects) -> str:
    """What a group tells that no hart does: it is damaged; "" for nothing.

    Privileged Architecture, "Privilege Levels" (2 is reserved) and "Machine Cause" (codes from 64 on are reserved);
    ISA, "Base Instruction-Length Encoding": the low bits of an instruction say whether it has 16 bits.
    """
    for mode in seen.states(State.PRIVILEGE_MODE):
        if mode not in _MODES:
            return f"privilege mode {mode}"
    for pc in (seen.pc, seen.own):
        if pc is not None and pc & 1:
            return f"a pc of 0x{pc:x}"
    if seen.trap is not None:
        cause = 0 if seen.trap.cause == UNTOLD_CAUSE else seen.trap.cause
        return f"trap cause 0x{cause:x}" if cause >= _CAUSES else ""
    instr = seen.instr
    if instr is not None and (instr.word & 3 == 3) != (instr.length == 4):
        return f"the instruction 0x{instr.word:x} of {8 * instr.length} bits"
    return ""
