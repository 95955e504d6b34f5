"""The registers and the memory at a position, from wherever they are known."""

from collections.abc import Callable

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import PRIVILEGE
from rvtrace_gdb.decode.reconstruction.facts import Value
from rvtrace_gdb.decode.reconstruction.hart import HartState, csr_of
from rvtrace_gdb.decode.semantics.writes import F, X
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.facts import Known
from rvtrace_gdb.support.errors import Progress, silent

Registers = Callable[[int], Value]
"""Returns a register by its number of the Debug Specification, or `PRIVILEGE`; None: unknown."""
_KEPT = 64
_REGISTERS = F + 32


class Values:
    """The values of a history. Those of a few positions are kept."""

    def __init__(self, history: History, known: Known, execution: Execution) -> None:
        self._history, self._known, self._execution = history, known, execution
        self._states: dict[int, HartState | None] = {}
        self._of = execution.forward

    def at(self, position: int, progress: Progress = silent) -> Registers:
        """Return the registers before the instruction at a position."""
        state = self._state(position, progress)
        stop = self._known.stop if position == len(self._history) and self._execution.believes_stop else None

        def value(number: int) -> Value:
            found = None if state is None else _of_state(state, number, self._known.machine.xlen)
            if found is None and stop is not None:
                if X <= number < F:
                    return stop.x[number - X]
                return stop.f[number - F] if F <= number < _REGISTERS else stop.csrs.get(number)
            return 0 if number == X else found

        return value

    def memory(self, position: int, address: int, size: int, progress: Progress = silent) -> list[Value]:
        """Return each byte of memory before the instruction at a position."""
        hart = self._execution.at(position, progress)
        if hart is None or not hart.physical:
            return [None] * size
        return hart.memory.bytes(address, size)

    def stored(self, position: int, address: int, size: int) -> list[Value]:
        """Return each byte of memory after the instruction at a position, before anything that followed it."""
        hart = self._execution.ask(lambda forward: forward.after(position))
        return [None] * size if hart is None or not hart.physical else hart.memory.bytes(address, size)

    def rewritten(self, position: int) -> frozenset[int]:
        """Return the pages whose constants are not those of the program any more."""
        hart = self._execution.at(position)
        return frozenset() if hart is None else hart.memory.rewritten

    def _state(self, position: int, progress: Progress) -> HartState | None:
        if self._of is not self._execution.forward:
            self._states.clear()
        if position in self._states:
            return self._states[position]
        hart = self._execution.at(position, progress)
        if self._of is not self._execution.forward:
            self._states.clear()
            self._of = self._execution.forward
        state = self._states[position] = None if hart is None else hart.snapshot()
        if len(self._states) > _KEPT:
            del self._states[next(iter(self._states))]
        return state


def _of_state(state: HartState, number: int, xlen: int) -> Value:
    if X <= number < F:
        return state.x[number - X]
    if F <= number < _REGISTERS:
        return state.f[number - F]
    return state.privilege if number == PRIVILEGE else csr_of(state, number, xlen)
