"""From groups to bytes, and from what a hart does to groups, in any of the forms that the document allows.

Source: Trace Protocol Specification, version 2018-11-20, chapters 2 and 3; Appendix B: what a hart reports (`Retired`).
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.effects import bus_operation, is_atomic
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
    ElementForm,
    Ending,
    FullRegister,
    Group,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    Opcode,
    StateId,
    StateInitialization,
    TandemParameters,
    Widths,
    plain_forms,
    register_form,
    request_form,
    response_form,
    state_forms,
)
from rvtrace_gdb.decode.tandem.wording import element_text
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import counted


class BadElement(RvtraceError):
    """No trace can have this element, or not in this place. *words*: the text of the element, if it has one."""

    def __init__(self, element: Element | None, why: str, words: str = "") -> None:
        self.element, self.why = element, why
        super().__init__(f"a tandem trace cannot have {words}: {why}" if element is not None else why)


_BEGIN, _END = bytes([Opcode.BEGIN_GROUP]), bytes([Opcode.END_GROUP])
_PLAIN = plain_forms()
_BARE = {
    IncrementPc: Opcode.INCREMENT_PC,
    HartReset: Opcode.HART_RESET,
    StateInitialization: Opcode.STATE_INITIALIZATION,
}
_INSTRUCTIONS = {2: Opcode.INSTRUCTION_16, 4: Opcode.INSTRUCTION_32}
_STORE_STATES = {size: state for state, size in STORE_DATA.items()}


def encode(groups: Iterable[Group], parameters: TandemParameters) -> bytes:
    """Return the bytes of *groups*, each with the ending it has. Raises BadElement."""
    listed = list(groups)
    for group, following in pairwise([*listed, None]):
        assert group is not None
        if group.ending is Ending.IMPLIED and (following is None or following.ending is Ending.LOOSE):
            raise BadElement(None, "an end group can only be omitted before a begin group")
    return b"".join(encode_group(group, parameters.widths) for group in listed)


def encode_group(group: Group, widths: Widths) -> bytes:
    """Return the bytes of one group. Raises BadElement."""
    if group.ending is Ending.LOOSE and not group.elements:
        return _END  # an end group without a begin group
    elements, init, pending = [], False, -1
    for element in group.elements:
        elements.append(encode_element(element, widths, in_initialization=init, pending=pending))
        init = init or isinstance(element, StateInitialization)
        pending = element.op if isinstance(element, MemoryRequest) else -1
    body = b"".join(elements)
    if group.ending is Ending.LOOSE:
        return body
    return _BEGIN + body + (_END if group.ending is Ending.EXPLICIT else b"")


def encode_element(
    element: Element, widths: Widths, *, in_initialization: bool = False, pending: int = -1
) -> bytes:  # fmt: skip
    """Return the bytes of one element. *pending*: the operation of the request directly before it.
    Raises BadElement.
    """
    form, values = _layout(element, widths, in_initialization, pending)
    if form is None:
        raise BadElement(element, "it is not in the protocol", _unknown_text(element))
    fields = [
        value.to_bytes(5, "little") if "5s" in form.format and place == 0 and value >> 40 == 0 else value
        for place, value in enumerate(values)
    ]
    try:
        raw = bytearray(form.reader.pack(*fields))
    except struct.error:
        text = element_text(element, TandemParameters(8 * widths.xlen, 8 * widths.flen))
        raise BadElement(element, "a value does not fit into its field", text) from None
    raw[0] = form.head
    if form.identifier:
        raw[1] = form.identifier
    return bytes(raw)


def _unknown_text(element: Element) -> str:
    """Return the text of an element that the protocol does not have, of which not every number has a name."""
    if isinstance(element, Instr):
        return f"an instruction of {counted(element.length, 'byte')} (0x{element.word:x})"
    if isinstance(element, AdditionalState):
        return f"the additional state {element.identifier:#x}"
    if isinstance(element, MemoryRequest):
        return f"a memory request of operation {element.op} and size code {element.size}"
    if isinstance(element, MemoryResponse):
        return f"a memory response of size code {element.size} here, with result {element.result}"
    return "a register that it has no place for" if isinstance(element, FullRegister) else "this element"


def _layout(element: Element, widths: Widths, init: bool, pending: int) -> tuple[ElementForm | None, Sequence[int]]:
    """Return the layout of an element, and its fields in order."""
    if isinstance(element, FullRegister):
        floating = FPR <= element.regno < FPR_END
        return register_form(widths, floating=floating, in_initialization=init), element
    if isinstance(element, IncrementalRegister):
        return _PLAIN[Opcode.INCREMENTAL_REGISTER], element
    if isinstance(element, IncrementalRegisterOr):
        return _PLAIN[Opcode.INCREMENTAL_REGISTER_OR], element
    if isinstance(element, Instr):
        return _PLAIN.get(_INSTRUCTIONS.get(element.length, -1)), (element.word,)
    if isinstance(element, AdditionalState):
        form = state_forms(widths).get(element.identifier)
        return form, (element.value,) if element.own is None else (element.own, element.value)
    if isinstance(element, MemoryRequest):
        packed = element.op | element.size << 4
        form = request_form(widths, packed) if 0 <= packed <= 0xFF else None
        return form, (element.addr, packed) if element.data is None else (element.addr, packed, element.data)
    if isinstance(element, MemoryResponse):
        packed = element.size | element.result << 4
        form = response_form(pending, packed) if pending >= 0 else None
        return form, (packed,) if element.data is None else (packed, element.data)
    return _PLAIN[_BARE[type(element)]], ()


class Retired(NamedTuple):
    """What a hart reports of an instruction or a trap (Appendix B).

    pc         the address at which it continues
    instr      None for an interrupt
    gpr, fpr   (number, new value)
    csrs       (number, new value) each, in the order they are to be sent
    paddr, eaddr  of a load or store
    memdata    (bytes, value) that a store writes; *operand*: of an atomic operation, rs2
    privilege  the new mode, after a trap or a return
    fcsr       its new value: new floating-point exceptions
    own        the address of the instruction, which not every encoder sends
    loaded     (bytes, value) that a load or an atomic operation read, not extended
    pc_paddr   the physical address of *pc*
    own_privilege  the mode the instruction ran in; a trace that begins with it reports it (`GroupEncoder.begin`)
    """

    pc: int | None
    instr: Instr | None = None
    gpr: tuple[int, int] | None = None
    fpr: tuple[int, int] | None = None
    csrs: tuple[tuple[int, int], ...] = ()
    paddr: int | None = None
    eaddr: int | None = None
    memdata: tuple[int, int] | None = None
    privilege: int | None = None
    fcsr: int | None = None
    own: int | None = None
    operand: int | None = None
    loaded: tuple[int, int] | None = None
    pc_paddr: int | None = None
    own_privilege: int | None = None


@dataclass(frozen=True)
class Forms:
    """Which optional forms of the protocol an encoder uses.

    implied_end     leaves an end group out before a begin group
    increment_pc    sends the pc as an increment if the next instruction follows in memory
    incremental     sends a register as an offset if it is small
    incremental_or  sends a register as set bits if nothing else changed
    memory          sends stores, loads and atomic operations as memory requests, too
    fetch           sends the fetch of each instruction as a memory request, too
    """

    implied_end: bool = False
    increment_pc: bool = False
    incremental: bool = False
    incremental_or: bool = False
    memory: bool = False
    fetch: bool = False


class GroupEncoder:
    """An encoder for one hart. `emit` gets the bytes of one group at a time. Raises BadElement."""

    def __init__(
        self, parameters: TandemParameters, emit: Callable[[bytes], object], forms: Forms | None = None
    ) -> None:
        self.parameters, self.forms = parameters, forms or Forms()
        self._emit, self._widths = emit, parameters.widths
        self._values: dict[int, int] = {}
        self._pc: int | None = None
        self._parts = csrs.parts(parameters.xlen)
        self._open = False  # the last group's end group is not sent yet

    def put(self, retired: Retired) -> None:
        """Encode an instruction that retired, or a trap that was taken."""
        dialect = self.parameters.dialect
        sent_pc = retired.pc
        own = retired.own if retired.own is not None else self._pc
        if dialect.xret_pc_is_own and retired.instr is not None and retired.instr.word in csrs.XRETS:
            sent_pc = own
        self._pc = retired.pc
        if retired.privilege is not None:  # a trap or a return changes mstatus, told or not
            for number in csrs.STATUS:
                self._values.pop(number, None)
        if sent_pc is not None and sent_pc < dialect.untraced_below:
            return
        self._group(list(self._elements(retired, own, sent_pc)))

    def reset(self) -> None:
        """Encode a reset of the hart."""
        self._values.clear()
        self._pc = None
        self._group([HartReset()])

    def initialize(self, *elements: Element) -> None:
        """Encode a state initialization: something outside the hart changed its state."""
        self._remember(elements)
        self._group([StateInitialization(), *elements])

    def put_state(self, element: Element) -> None:
        """Encode a state change outside of groups: mtime, mip, a counter."""
        self._close()
        self._remember([element])
        self._emit(encode_element(element, self._widths))

    def begin(self, pc: int, privilege: int | None = None, held: Sequence[FullRegister] = ()) -> None:
        """Encode the address of the first instruction, its privilege mode, and what registers hold, as a state
        initialization.
        """
        self._pc = pc
        elements: list[Element] = [StateInitialization(), self._pc_element(pc, pc)]
        if privilege is not None:
            elements.append(AdditionalState(StateId.PRIVILEGE_MODE, privilege))
        self._remember(held)
        self._group([*elements, *held])

    def finish(self) -> None:
        """End the trace."""
        self._close()

    def _group(self, elements: list[Element]) -> None:
        if self.forms.implied_end:
            self._emit(encode_group(Group(tuple(elements), Ending.IMPLIED), self._widths))
            self._open = True
        else:
            self._emit(encode_group(Group(tuple(elements)), self._widths))

    def _close(self) -> None:
        if self._open:
            self._emit(_END)
            self._open = False

    def _elements(self, retired: Retired, own: int | None, sent_pc: int | None) -> Iterable[Element]:
        """Yield the elements in the order in which real encoders send them."""
        if sent_pc is not None:
            yield self._reported_pc(retired, own, sent_pc)
        if retired.pc_paddr is not None:
            yield AdditionalState(StateId.PC_PHYSICAL_ADDRESS, retired.pc_paddr)
        if self.forms.fetch and retired.instr is not None and own is not None:
            yield from _fetch(own, retired.instr)
        if retired.instr is not None:
            yield retired.instr
        if retired.privilege is not None:
            yield AdditionalState(StateId.PRIVILEGE_MODE, retired.privilege)
        if retired.gpr is not None and retired.gpr[0]:
            yield self._register_element(GPR + retired.gpr[0], retired.gpr[1])
        if retired.fpr is not None:
            yield self._register_element(FPR + retired.fpr[0], retired.fpr[1])
        yield from self._memory_elements(retired)
        for number, value in retired.csrs:
            yield self._register_element(number, value)
        if retired.fcsr is not None:
            yield self._register_element(csrs.FCSR, retired.fcsr)

    def _reported_pc(self, retired: Retired, own: int | None, sent_pc: int) -> Element:
        follows = own is not None and retired.instr is not None and sent_pc == own + retired.instr.length
        if self.forms.increment_pc and follows and retired.privilege is None:
            return IncrementPc()
        return self._pc_element(own, sent_pc)

    def _pc_element(self, own: int | None, pc: int) -> Element:
        dialect = self.parameters.dialect
        if dialect.pc_register >= 0:
            return FullRegister(dialect.pc_register, pc)
        if dialect.pcs == 2:
            return AdditionalState(StateId.PC, pc, pc if own is None else own)
        return AdditionalState(StateId.PC, pc)

    def _memory_elements(self, retired: Retired) -> Iterable[Element]:
        address = retired.paddr if retired.paddr is not None else retired.eaddr
        if self.forms.memory and address is not None:
            yield from _transaction(retired, address)
        if retired.memdata is not None:
            size, value = retired.memdata
            word = retired.instr.word if retired.instr is not None else 0
            if is_atomic(word) and self.parameters.dialect.amo_data is AmoData.OPERAND and retired.operand is not None:
                value = retired.operand & (1 << 8 * size) - 1
            yield AdditionalState(_STORE_STATES[size], value)
        if retired.eaddr is not None:
            yield AdditionalState(StateId.EFFECTIVE_ADDRESS, retired.eaddr)
        if retired.paddr is not None:
            yield AdditionalState(StateId.PHYSICAL_ADDRESS, retired.paddr)

    def _register_element(self, regno: int, value: int) -> Element:
        """Return the element for a register's new value, in the shortest requested form that fits."""
        old = self._values.get(regno)
        self._values[regno] = value
        self._forget_relatives(regno)
        if old is not None:
            added = value & ~old
            if self.forms.incremental_or and old & ~value == 0 and added <= 0xFF:
                return IncrementalRegisterOr(regno, added)
            if self.forms.incremental and -0x80 <= value - old <= 0x7F:
                return IncrementalRegister(regno, value - old)
        return FullRegister(regno, value)

    def _forget_relatives(self, regno: int) -> None:
        """Forget the registers that a write changes besides the register itself: a difference to them cannot be sent
        any more.
        """
        part = self._parts.get(regno)
        related = {other for other, one in self._parts.items() if part and one.register == part.register}
        if FPR <= regno < FPR_END or regno in csrs.FLOATING:
            related |= csrs.STATUS  # its FS is Dirty
        for other in related - {regno}:
            self._values.pop(other, None)

    def _remember(self, elements: Iterable[Element]) -> None:
        for element in elements:
            if isinstance(element, FullRegister):
                self._register_element(element.regno, element.value)
            elif isinstance(element, IncrementalRegister | IncrementalRegisterOr):
                self._values.pop(element.regno, None)


def _fetch(own: int, instr: Instr) -> Iterable[Element]:
    size = SIZES.index(instr.length)
    yield MemoryRequest(own, MemoryOp.INSTRUCTION_FETCH, size)
    yield MemoryResponse(size, SUCCESS, instr.word)


def _transaction(retired: Retired, address: int) -> Iterable[Element]:
    """Yield the transaction of an instruction on the system bus, as far as it is known."""
    op = bus_operation(0 if retired.instr is None else retired.instr.word)
    if op is None:
        op = MemoryOp.LOAD if retired.memdata is None else MemoryOp.STORE
    stored, loaded = retired.memdata, retired.loaded
    if op in (MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL):
        if stored is not None:
            yield MemoryRequest(address, op, SIZES.index(stored[0]), stored[1])
            yield MemoryResponse(SIZES.index(stored[0]), SUCCESS)
    elif loaded is not None:
        size, value = loaded
        if op in (MemoryOp.LOAD, MemoryOp.LOAD_RESERVED):
            yield MemoryRequest(address, op, SIZES.index(size))
        elif retired.operand is not None:
            yield MemoryRequest(address, op, SIZES.index(size), retired.operand & (1 << 8 * size) - 1)
        else:
            return
        yield MemoryResponse(SIZES.index(size), SUCCESS, value)
    elif stored is not None:  # an atomic operation whose old value is not known: what it writes
        yield MemoryRequest(address, MemoryOp.STORE, SIZES.index(stored[0]), stored[1])
        yield MemoryResponse(SIZES.index(stored[0]), SUCCESS)
