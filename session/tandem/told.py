"""What one group tells, in the form a verifier compares."""

from collections.abc import Sequence

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.decoder import Tandem
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
from rvtrace_gdb.decode.tandem.layout import GPR, STORE_DATA, State

_STATES = {State.PRIVILEGE_MODE: csrs.PRIVILEGE, State.MTIME: csrs.MTIME}
_STORED = frozenset(STORE_DATA)


class Told:
    """Group number *group*.

    instr       its instruction
    registers   what it tells, by number, PRIVILEGE and MTIME among them; None: told as a change of what is not known
    pc          it tells a pc (where the hart goes on is `Index.pcs`)
    effective, physical   the first address of each kind
    stores      it has store data or memory requests; *requests*: those
    reset, initializes    it has such an element
    """

    __slots__ = (
        "effective", "group", "initializes", "instr", "pc", "physical", "registers", "requests", "reset", "stores",
    )  # fmt: skip

    def __init__(self, group: int, elements: Sequence[Element], tandem: Tandem, pc_register: int) -> None:
        self.group = group
        self.instr: Instr | None = None
        self.registers: dict[int, int | None] = {}
        self.effective: int | None = None
        self.physical: int | None = None
        self.pc = self.stores = self.requests = self.reset = self.initializes = False
        for element in elements:
            kind = type(element)
            if isinstance(element, FullRegister):
                if element.regno == pc_register:
                    self.pc = True
                elif element.regno != GPR:
                    self.registers[element.regno] = element.value
            elif isinstance(element, AdditionalState):
                self._state(element)
            elif isinstance(element, Instr):
                self.instr = element
            elif isinstance(element, IncrementalRegister | IncrementalRegisterOr):
                written = tandem.index.registers.columns[element.regno].last(group)
                self.registers[element.regno] = None if written is None else written.value
            elif kind is MemoryRequest:
                self.stores = self.requests = True
            elif kind is IncrementPc:
                self.pc = True
            elif kind is HartReset:
                self.reset = True
            elif kind is StateInitialization:
                self.initializes = True

    def _state(self, element: AdditionalState) -> None:
        identifier, value = element.identifier, element.value
        if identifier == State.PC:
            self.pc = True
        elif identifier == State.EFFECTIVE_ADDRESS:
            self.effective = value if self.effective is None else self.effective
        elif identifier == State.PHYSICAL_ADDRESS:
            self.physical = value if self.physical is None else self.physical
        elif identifier in _STORED:
            self.stores = True
        elif identifier in _STATES:
            self.registers[_STATES[State(identifier)]] = value
