"""A group of state changes, as typed elements. Names are the specification's (Trace Protocol 2018-11-20, chapter 2)."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.layout import Form, Opcode, State


class IncrementPc(NamedTuple):
    """Increment pc by instruction length."""


class FullRegister(NamedTuple):
    """A register's new value. *regno*: as in the RISC-V Debug Specification."""

    regno: int
    value: int


class IncrementalRegister(NamedTuple):
    """A register changed by a signed offset of 8 bits."""

    regno: int
    offset: int


class IncrementalRegisterOr(NamedTuple):
    """Bits of the low byte of a register were set."""

    regno: int
    mask: int


class AdditionalState(NamedTuple):
    """One of the states that are no register. *identifier*: see `layout.State`.

    *own*: of a pc in a dialect that sends two addresses, that of the instruction itself.
    """

    identifier: int
    value: int
    own: int | None = None


class MemoryRequest(NamedTuple):
    """A transaction on the system bus. *size*: the field, 0 to 3; *data*: None where the operation has none."""

    addr: int
    op: int
    size: int
    data: int | None = None


class MemoryResponse(NamedTuple):
    """What came back, right behind its request. *data*: None where the operation has none."""

    size: int
    result: int
    data: int | None = None


class HartReset(NamedTuple):
    """The hart was reset."""


class StateInitialization(NamedTuple):
    """The changes of this group come from outside the processor: a debug module, most often."""


class Instr(NamedTuple):
    """The instruction that retired, or caused an exception. *length* in bytes: 2 or 4."""

    word: int
    length: int


Element = (
    IncrementPc
    | FullRegister
    | IncrementalRegister
    | IncrementalRegisterOr
    | AdditionalState
    | MemoryRequest
    | MemoryResponse
    | HartReset
    | StateInitialization
    | Instr
)


class Ending(Enum):
    """How a group ends."""

    EXPLICIT = "end group"
    IMPLIED = "implied by the next begin group"
    LOOSE = "none: a state change outside of groups"


class Group(NamedTuple):
    """State changes that occur together. A change outside of groups is one by itself, with the ending LOOSE.

    *offset*: of its first byte in the trace; -1 for a group that is not from one. *size*: its bytes; an implied end
    has none.
    """

    elements: tuple[Element, ...]
    ending: Ending = Ending.EXPLICIT
    offset: int = -1
    size: int = 0

    @property
    def instr(self) -> Instr | None:
        """Its instruction."""
        return next((element for element in self.elements if isinstance(element, Instr)), None)

    def state(self, identifier: State) -> int | None:
        """The last of the additional states with this identifier."""
        found = [e.value for e in self.elements if isinstance(e, AdditionalState) and e.identifier == identifier]
        return found[-1] if found else None

    @property
    def registers(self) -> dict[int, int]:
        """Full registers by number; the last value of each."""
        return {element.regno: element.value for element in self.elements if isinstance(element, FullRegister)}


BARE: dict[int, Element] = {
    Opcode.INCREMENT_PC: IncrementPc(),
    Opcode.HART_RESET: HartReset(),
    Opcode.STATE_INITIALIZATION: StateInitialization(),
}
"""Elements without fields, by opcode."""


Maker = Callable[[Sequence[int]], Element]
"""Makes an element of its fields, in the order of the trace."""

_MAKERS: dict[int, Maker] = {
    Opcode.FULL_REGISTER: FullRegister._make,
    Opcode.INCREMENTAL_REGISTER: IncrementalRegister._make,
    Opcode.INCREMENTAL_REGISTER_OR: IncrementalRegisterOr._make,
    Opcode.MEMORY_REQUEST: lambda v: MemoryRequest(v[0], v[1] & 15, v[1] >> 4, *v[2:]),
    Opcode.MEMORY_RESPONSE: lambda v: MemoryResponse(v[0] & 15, v[0] >> 4, *v[1:]),
    Opcode.INSTRUCTION_16: lambda v: Instr(v[0], 2),
    Opcode.INSTRUCTION_32: lambda v: Instr(v[0], 4),
}


def maker_of(form: Form) -> Maker:
    """What makes the elements of a form."""
    if form.head in BARE:
        bare = BARE[form.head]
        return lambda values: bare
    if form.head != Opcode.ADDITIONAL_STATE:
        return _MAKERS[form.head]
    identifier = form.identifier
    if form.values > 1:
        return lambda values: AdditionalState(identifier, values[1], values[0])
    return lambda values: AdditionalState(identifier, values[0])
