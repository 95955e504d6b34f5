"""Groups of a tandem trace in one line each: what each element tells as a column, in the order of the trace.

    Group prv=3 pc=0x80000004 instr=0x00000073 mstatus=0x1800 mepc=0x80000138 mcause=0xb # exception 11 (...)

Names are those of the registers; values hold no blanks. `decode.tandem.wording` has the long form, a line for each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from rvtrace_gdb.decode.causes import trap_text
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
    MemoryResponse,
    StateInitialization,
)
from rvtrace_gdb.decode.tandem.layout import SIZES, SUCCESS, MemoryOp, State
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.session.tandem.items import MOST_RAW, Item

_CAUSES = (0x342, 0x142, 0x242)  # mcause, scause, vscause
_STATES: Mapping[int, str] = {
    State.PRIVILEGE_MODE: "prv", State.PHYSICAL_ADDRESS: "paddr", State.EFFECTIVE_ADDRESS: "eaddr",
    State.STORE_DATA_8: "store8", State.STORE_DATA_16: "store16", State.STORE_DATA_32: "store32",
    State.STORE_DATA_64: "store64", State.MTIME: "mtime", State.PC_PHYSICAL_ADDRESS: "pc-paddr", State.PC: "pc",
}  # fmt: skip


class Wording:
    """The lines of a trace with these parameters."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def text(self, item: Item, *, raw: bool = False) -> str:
        """The line for *item*, without its offset. *raw*: with the bytes."""
        group = item.group
        columns = _columns(group) if group is not None else iter([("BYTES", str(item.size))])
        shown: dict[str, str] = {}
        times: Counter[str] = Counter()
        for name, value in columns:
            times[name] += 1
            shown[name if times[name] == 1 else f"{name}-{times[name]}"] = value
        if raw or group is None:
            shown["RAW"] = f"{item.raw[:MOST_RAW].hex()}{'..' if item.size > MOST_RAW else ''}"
        line = " ".join([_name(group), *(f"{name}={value}" for name, value in shown.items())])
        meaning = "; ".join(_meaning(item, self._parameters.xlen))
        return f"{line} # {meaning}" if meaning else line

    def is_odd(self, item: Item) -> bool:
        """Whether it is nothing that an encoder sends."""
        return item.group is None or any(not problem.is_warning for problem in item.problems)


def _name(group: Group | None) -> str:
    if group is None:
        return "NoGroup"
    return "Loose" if group.ending is Ending.LOOSE else "Group"


def _columns(group: Group) -> Iterator[tuple[str, str]]:
    for element in group.elements:
        yield from _column(element, group)


def _column(element: Element, group: Group) -> Iterator[tuple[str, str]]:
    if isinstance(element, FullRegister):
        yield _register(element.regno), f"{element.value:#x}"
    elif isinstance(element, Instr):
        yield "instr", f"0x{element.word:0{2 * element.length}x}"
    elif isinstance(element, AdditionalState):
        if element.own is not None:
            yield "own-pc", f"{element.own:#x}"
        is_mode = element.identifier == State.PRIVILEGE_MODE
        yield _STATES[element.identifier], str(element.value) if is_mode else f"{element.value:#x}"
    elif isinstance(element, IncrementPc):
        yield "pc", f"+{group.instr.length if group.instr else '?'}"
    elif isinstance(element, IncrementalRegister):
        yield _register(element.regno), f"{element.offset:+d}"
    elif isinstance(element, IncrementalRegisterOr):
        yield _register(element.regno), f"|{element.mask:#x}"
    elif isinstance(element, MemoryRequest | MemoryResponse):
        yield _transaction(element)


def _transaction(element: MemoryRequest | MemoryResponse) -> tuple[str, str]:
    size, data = SIZES[element.size], "" if element.data is None else f",{element.data:#x}"
    if isinstance(element, MemoryRequest):
        return "request", f"{MemoryOp(element.op).name.lower()}{8 * size},{element.addr:#x}{data}"
    return "response", f"{'success' if element.result == SUCCESS else 'failure'}{8 * size}{data}"


def _register(regno: int) -> str:
    """As gdb calls it."""
    return register_name(regno).partition(" (")[0].replace(" ", "-")


def _meaning(item: Item, xlen: int) -> Iterator[str]:
    if item.group is None:
        yield item.why
        return
    for kind, text in ((HartReset, "hart reset"), (StateInitialization, "state initialization")):
        if any(isinstance(element, kind) for element in item.group.elements):
            yield text
    yield from _trap(item.group, xlen)
    if item.group.ending is Ending.IMPLIED:
        yield "its end is implied"
    if item.group.ending is Ending.LOOSE and not item.problems:
        yield "outside of groups"
    yield from (problem.value for problem in item.problems)


def _trap(group: Group, xlen: int) -> Iterator[str]:
    """A cause that is told with a privilege mode is that of a trap; alone it was written by an instruction."""
    if group.state(State.PRIVILEGE_MODE) is None:
        return
    registers = group.registers
    for regno in _CAUSES:
        if regno in registers:
            cause = registers[regno]
            yield trap_text(cause & (1 << xlen - 1) - 1, bool(cause >> xlen - 1))
