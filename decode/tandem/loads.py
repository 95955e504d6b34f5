"""What memory held when it was loaded: bytes the trace need not have a store to, known from when they were read."""

from bisect import bisect_right
from functools import partial
from operator import itemgetter

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.program.instructions import LOAD, reach
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR, AdditionalState, FullRegister, Instr, StateId
from rvtrace_gdb.decode.tandem.trace import TraceGroups

_ADDRESSES = (StateId.EFFECTIVE_ADDRESS, StateId.PHYSICAL_ADDRESS)


def loads_of(trace: TraceGroups, retired: bytearray, spaces: list[tuple[int, int]]) -> dict[int, MemoryWrites]:
    """Return the values loaded, by address space, as if the loads had stored them. *retired*,
    *spaces*: as in `Index`.
    """
    with_address = [any(form.identifier in _ADDRESSES for form in shape.forms) for shape in trace.automaton.shapes]
    found: dict[int, MemoryWrites] = {}
    sizes = Computed(partial(_load_size, xlen=trace.parameters.xlen))
    for group, shape in enumerate(trace.shapes):
        if not with_address[shape] or not retired[group]:
            continue
        elements = trace.elements(group)
        word = next(element.word for element in elements if isinstance(element, Instr))
        values = [e.value for e in elements if isinstance(e, FullRegister) and GPR < e.regno < FPR_END]
        addresses = [e.value for e in elements if isinstance(e, AdditionalState) and e.identifier in _ADDRESSES]
        if sizes[word] and values and addresses:
            space = spaces[bisect_right(spaces, group - 1, key=itemgetter(0)) - 1][1]
            value = values[0] & (1 << 8 * sizes[word]) - 1
            found.setdefault(space, MemoryWrites()).add(group, addresses[0], sizes[word], value)
    return found


def _load_size(word: int, xlen: int) -> int:
    """Return how many bytes an instruction loads, 0 if it is not a load."""
    found = reach(word, xlen)
    return found.size if found is not None and found.kind == LOAD and found.times == 1 else 0
