"""What was read from memory, and when: for watchpoints. Values are not looked at, and loads to x0 read, too."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.memory_access import ATOMIC, LOAD, reach
from rvtrace_gdb.decode.tandem.group import AdditionalState, Instr, MemoryRequest
from rvtrace_gdb.decode.tandem.layout import SIZES, MemoryOp, State
from rvtrace_gdb.decode.tandem.memory import MemoryWrites
from rvtrace_gdb.decode.tandem.plans import Plan, plan_of
from rvtrace_gdb.decode.tandem.spaces import PHYSICAL
from rvtrace_gdb.decode.tandem.trace import Trace

_ADDRESSES = (State.EFFECTIVE_ADDRESS, State.PHYSICAL_ADDRESS)
_NO_DATA = (MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL, MemoryOp.INSTRUCTION_FETCH)
"""What reads no data."""
_UNTOLD = -1


class Reads(NamedTuple):
    """*memory*: what was read, by address space, as if it had been stored. *untold*: groups that read, but what?"""

    memory: dict[int, MemoryWrites]
    untold: "array[int]"


def reads_of(trace: Trace, retired: bytearray, spaces: list[tuple[int, int]]) -> Reads:
    """The loads and atomic operations of a trace. *retired*, *spaces*: as in `Index`."""
    found = Reads({}, array("I"))
    sizes = _ReadSizes(trace.parameters.xlen)
    starts = [group + 1 for group, _ in spaces]
    plans = [plan_of(shape) for shape in trace.automaton.shapes]
    for group, shape in enumerate(trace.shapes):
        if not retired[group]:
            continue
        for address, size, is_physical in _reads(trace, group, plans[shape], sizes):
            if size == _UNTOLD:
                found.untold.append(group)
                continue
            space = PHYSICAL if is_physical else spaces[bisect_right(starts, group) - 1][1]
            found.memory.setdefault(space, MemoryWrites()).add(group, address, size, 0)
    return found


def _reads(trace: Trace, group: int, plan: Plan | None, sizes: "_ReadSizes") -> Iterator[tuple[int, int, bool]]:
    """(address, size, physical) of what a group reads; a size of _UNTOLD: the trace does not tell."""
    if plan is not None:
        values = plan.unpack(trace.data, trace.offsets[group])
        size = sizes[values[plan.word]]
        if size:
            at = plan.address
            yield (values[at], size, plan.physical) if at >= 0 and size > 0 else (0, _UNTOLD, False)
        return
    elements = trace.elements(group)
    size = next((sizes[element.word] for element in elements if isinstance(element, Instr)), 0)
    if not size:
        return
    states = [e for e in elements if isinstance(e, AdditionalState) and e.identifier in _ADDRESSES]
    told = [(e.value, size, e.identifier == State.PHYSICAL_ADDRESS) for e in states]
    on_bus = [(e.addr, SIZES[e.size], True) for e in elements if isinstance(e, MemoryRequest) and e.op not in _NO_DATA]
    yield from (told or on_bus) if size > 0 and (told or on_bus) else [(0, _UNTOLD, False)]


class _ReadSizes(dict[int, int]):
    """How many bytes an instruction reads, by its word: 0 none, _UNTOLD more than one piece."""

    def __init__(self, xlen: int) -> None:
        super().__init__()
        self._xlen = xlen

    def __missing__(self, word: int) -> int:
        try:
            found = reach(word, self._xlen)
        except UndecodableInstruction:
            found = None
        size = 0
        if found is not None and found.kind in (LOAD, ATOMIC):
            size = found.size if found.size and found.times == 1 else _UNTOLD
        self[word] = size
        return size
