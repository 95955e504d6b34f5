"""Elements and registers in words. Elements look as in the examples of the specification's Appendix C:

    begin group
    increment pc
    32-bit instruction 0x006281b3
    full register gp (x3) = 0x0000000000001234
    end group

Names and numbers of registers are those of the Debug Specification, "Abstract Register Numbers", the RISC-V ELF psABI,
"Register Convention", and gdb's names for the same CSRs.
"""

import re
from collections.abc import Iterator

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import CSRS, MTIME, PRIVILEGE
from rvtrace_gdb.decode.tandem.protocol import (
    FPR,
    FPR_END,
    GPR,
    SIZES,
    STORE_DATA,
    SUCCESS,
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
    MemoryOp,
    MemoryRequest,
    StateId,
    StateInitialization,
    TandemParameters,
)
from rvtrace_gdb.support.text import number_in

X = (
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{i}" for i in range(8)),
    *(f"s{i}" for i in range(2, 12)), "t3", "t4", "t5", "t6",
)  # fmt: skip
F = (
    *(f"ft{i}" for i in range(8)), "fs0", "fs1", *(f"fa{i}" for i in range(8)), *(f"fs{i}" for i in range(2, 12)),
    *(f"ft{i}" for i in range(8, 12)),
)  # fmt: skip
_OTHERS = {"sptbr": "satp", "mbadaddr": "mtval", "sbadaddr": "stval", "dscratch": "dscratch0"}
NUMBERS = {
    **{name: GPR + n for n, name in enumerate(X)},
    **{name: FPR + n for n, name in enumerate(F)},
    **{f"x{n}": GPR + n for n in range(32)},
    **{f"f{n}": FPR + n for n in range(32)},
    **CSRS,
    **{other: CSRS[name] for other, name in _OTHERS.items()},
    "fp": GPR + 8,
    "priv": PRIVILEGE,
}
"""The numbers of the registers, by the names that gdb and its stubs use."""
_STATE_NUMBERS = {"privilege": PRIVILEGE, "mtime": MTIME}
_UNNAMED = re.compile("csr([0-9]{1,4})")
_NUMBER = re.compile("0x[0-9a-f]{1,16}|[0-9]{1,20}")


def regno_of(name: str) -> int | None:
    """Return the number of a register as gdb and stubs name it: csr2048 is the CSR 0x800. None: no
    register of a trace.
    """
    number = NUMBERS.get(name)
    if number is None and (found := _UNNAMED.fullmatch(name)) and int(found[1]) < GPR:
        number = int(found[1])
    return number


def number_of(text: str) -> int | None:
    """Return the number of a register in the user's spelling: as `regno_of`, and $MSTATUS, 0x300, privilege, mtime."""
    name = text.removeprefix("$").lower()
    if _NUMBER.fullmatch(name):
        number = number_in(name)
        return number if number < FPR_END else None
    return _STATE_NUMBERS.get(name, regno_of(name))


_MODES = {0: "user mode", 1: "supervisor mode", 3: "machine mode"}
_STATES = {
    StateId.PHYSICAL_ADDRESS: "physical address",
    StateId.EFFECTIVE_ADDRESS: "effective address",
    StateId.MTIME: "mtime",
    StateId.PC_PHYSICAL_ADDRESS: "pc physical address",
    StateId.PC: "pc",
}
_OPERATIONS = {
    MemoryOp.LOAD: "load", MemoryOp.STORE: "store", MemoryOp.LOAD_RESERVED: "load reserved",
    MemoryOp.STORE_CONDITIONAL: "store conditional", MemoryOp.AMO_SWAP: "AMO swap", MemoryOp.AMO_ADD: "AMO add",
    MemoryOp.AMO_XOR: "AMO xor", MemoryOp.AMO_AND: "AMO and", MemoryOp.AMO_OR: "AMO or", MemoryOp.AMO_MIN: "AMO min",
    MemoryOp.AMO_MAX: "AMO max", MemoryOp.AMO_MINU: "AMO minu", MemoryOp.AMO_MAXU: "AMO maxu",
    MemoryOp.INSTRUCTION_FETCH: "instruction fetch",
}  # fmt: skip


def register_name(regno: int) -> str:
    """Return the common name of a register, with its number's name if that differs: gp (x3), mepc."""
    if GPR <= regno < FPR:
        return f"{X[regno - GPR]} (x{regno - GPR})"
    return f"{F[regno - FPR]} (f{regno - FPR})" if FPR <= regno < FPR_END else csrs.csr_name(regno)


def group_lines(group: Group, parameters: TandemParameters) -> Iterator[str]:
    """Yield the lines of a group: one for each element, with its begin and end."""
    if group.ending is Ending.LOOSE:
        yield from (element_text(element, parameters) for element in group.elements)
        if not group.elements:
            yield "end group, without a begin group"
        return
    yield "begin group"
    yield from (element_text(element, parameters) for element in group.elements)
    yield "end group" if group.ending is Ending.EXPLICIT else "(end group implied)"


def element_text(element: Element, parameters: TandemParameters) -> str:
    """Return the text of one element."""
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
        return _state_text(element, parameters)
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
    result = "success" if element.result == SUCCESS else "failure"
    return f"memory response {result} {_bytes(SIZES[element.size])}{data}"


def _state_text(element: AdditionalState, parameters: TandemParameters) -> str:
    if element.identifier == StateId.PRIVILEGE_MODE:
        return f"privilege mode {_MODES.get(element.value, element.value)}"
    if element.identifier in STORE_DATA:
        size = STORE_DATA[StateId(element.identifier)]
        return f"memory store data {_bytes(size)} = {_hex(element.value, 8 * size)}"
    bits = 64 if element.identifier == StateId.MTIME else parameters.xlen
    own = "" if element.own is None else f" (from {_hex(element.own, bits)})"
    return f"{_STATES[StateId(element.identifier)]} {_hex(element.value, bits)}{own}"


def _hex(value: int, bits: int) -> str:
    return f"0x{value:0{(bits + 3) // 4}x}"


def _bytes(count: int) -> str:
    return f"{count} byte{'s' if count > 1 else ''}"
