"""What loads showed memory to hold: bytes the trace need not have a store to, known from when they were read."""

from bisect import bisect_right
from operator import itemgetter

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.memory_access import LOAD, reach
from rvtrace_gdb.decode.tandem.group import AdditionalState, FullRegister, Instr
from rvtrace_gdb.decode.tandem.layout import FPR_END, GPR, State
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.trace import Trace

_ADDRESSES = (State.EFFECTIVE_ADDRESS, State.PHYSICAL_ADDRESS)


def loads_of(trace: Trace, retired: bytearray, spaces: list[tuple[int, int]]) -> dict[int, MemoryWrites]:
    """The values loaded, by address space, as if the loads had stored them. *retired*, *spaces*: as in `Index`."""
    with_address = [any(form.identifier in _ADDRESSES for form in shape.forms) for shape in trace.automaton.shapes]
    found: dict[int, MemoryWrites] = {}
    sizes: dict[int, int] = {}
    for group, shape in enumerate(trace.shapes):
        if not with_address[shape] or not retired[group]:
            continue
        elements = trace.elements(group)
        word = next(element.word for element in elements if isinstance(element, Instr))
        if word not in sizes:
            sizes[word] = _loaded(word, trace.parameters.xlen)
        values = [e.value for e in elements if isinstance(e, FullRegister) and GPR < e.regno < FPR_END]
        addresses = [e.value for e in elements if isinstance(e, AdditionalState) and e.identifier in _ADDRESSES]
        if sizes[word] and values and addresses:
            space = spaces[bisect_right(spaces, group - 1, key=itemgetter(0)) - 1][1]
            value = values[0] & (1 << 8 * sizes[word]) - 1
            found.setdefault(space, MemoryWrites()).add(group, addresses[0], sizes[word], value)
    return found


def _loaded(word: int, xlen: int) -> int:
    """How many bytes an instruction loads, 0 for what is no load."""
    try:
        found = reach(word, xlen)
    except UndecodableInstruction:
        return 0
    return found.size if found is not None and found.kind == LOAD and found.times == 1 else 0
