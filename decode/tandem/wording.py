"""Elements in words, as the examples of the specification's Appendix C have them.

begin group
increment pc
32-bit instruction 0x006281b3
full register gp (x3) = 0x0000000000001234
end group
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.group import (
    AdditionalState,
    Element,
    Ending,
    FullRegister,
    Group,
    HartReset,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryRequest,
    StateInitialization,
)
from rvtrace_gdb.decode.tandem.layout import FPR, FPR_END, GPR, SIZES, STORE_DATA, SUCCESS, MemoryOp, State
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.register_names import F, X

_MODES = {0: "user mode", 1: "supervisor mode", 3: "machine mode"}
_STATES = {
    State.PHYSICAL_ADDRESS: "physical address",
    State.EFFECTIVE_ADDRESS: "effective address",
    State.MTIME: "mtime",
    State.PC_PHYSICAL_ADDRESS: "pc physical address",
    State.PC: "pc",
}
_OPERATIONS = {
    MemoryOp.LOAD: "load", MemoryOp.STORE: "store", MemoryOp.LOAD_RESERVED: "load reserved",
    MemoryOp.STORE_CONDITIONAL: "store conditional", MemoryOp.AMO_SWAP: "AMO swap", MemoryOp.AMO_ADD: "AMO add",
    MemoryOp.AMO_XOR: "AMO xor", MemoryOp.AMO_AND: "AMO and", MemoryOp.AMO_OR: "AMO or", MemoryOp.AMO_MIN: "AMO min",
    MemoryOp.AMO_MAX: "AMO max", MemoryOp.AMO_MINU: "AMO minu", MemoryOp.AMO_MAXU: "AMO maxu",
    MemoryOp.INSTRUCTION_FETCH: "instruction fetch",
}  # fmt: skip


def register_name(regno: int) -> str:
    """A register as people know it, with its number where that is another name: gp (x3), mepc."""
    if GPR <= regno < FPR:
        return f"{X[regno - GPR]} (x{regno - GPR})"
    return f"{F[regno - FPR]} (f{regno - FPR})" if FPR <= regno < FPR_END else csrs.name(regno)


def lines(group: Group, parameters: Parameters) -> Iterator[str]:
    """A group, a line for each element, with its begin and end."""
    if group.ending is Ending.LOOSE:
        yield from (words(element, parameters) for element in group.elements)
        if not group.elements:
            yield "end group, without a begin group"
        return
    yield "begin group"
    yield from (words(element, parameters) for element in group.elements)
    yield "end group" if group.ending is Ending.EXPLICIT else "(end group implied)"


def words(element: Element, parameters: Parameters) -> str:
    """One element."""
    if isinstance(element, FullRegister):
        bits = parameters.flen or parameters.xlen if element.regno >= FPR else parameters.xlen
        return f"full register {register_name(element.regno)} = {_hex(element.value, bits)}"
    if isinstance(element, IncrementalRegister):
        return f"incremental register update {register_name(element.regno)} {element.offset:+d}"
    if isinstance(element, IncrementalRegisterOr):
        return f"incremental register update (OR) {register_name(element.regno)} |= {_hex(element.mask, 8)}"
    if isinstance(element, Instr):
        return f"{8 * element.length}-bit instruction {_hex(element.word, 8 * element.length)}"
    if isinstance(element, AdditionalState):
        return _state(element, parameters)
    if isinstance(element, MemoryRequest):
        data = "" if element.data is None else f" = {_hex(element.data, 8 * SIZES[element.size])}"
        address = _hex(element.addr, parameters.mlen_bits)
        return f"memory request {_OPERATIONS[MemoryOp(element.op)]} {_bytes(SIZES[element.size])} at {address}{data}"
    if isinstance(element, IncrementPc):
        return "increment pc"
    if isinstance(element, HartReset):
        return "hart reset"
    if isinstance(element, StateInitialization):
        return "state initialization"
    data = "" if element.data is None else f" = {_hex(element.data, 8 * SIZES[element.size])}"
    return (
        f"memory response {'success' if element.result == SUCCESS else 'failure'} {_bytes(SIZES[element.size])}{data}"
    )


def _state(element: AdditionalState, parameters: Parameters) -> str:
    if element.identifier == State.PRIVILEGE_MODE:
        return f"privilege mode {_MODES.get(element.value, element.value)}"
    if element.identifier in STORE_DATA:
        size = STORE_DATA[State(element.identifier)]
        return f"memory store data {_bytes(size)} = {_hex(element.value, 8 * size)}"
    bits = 64 if element.identifier == State.MTIME else parameters.xlen
    own = "" if element.own is None else f" (from {_hex(element.own, bits)})"
    return f"{_STATES[State(element.identifier)]} {_hex(element.value, bits)}{own}"


def _hex(value: int, bits: int) -> str:
    return f"0x{value:0{(bits + 3) // 4}x}"


def _bytes(count: int) -> str:
    return f"{count} byte{'s' if count > 1 else ''}"
