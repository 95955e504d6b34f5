"""The registers and the memory at a position, from wherever they are known."""

from collections.abc import Callable, Sequence

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import PRIVILEGE, F, X
from rvtrace_gdb.decode.reconstruction.facts import KnownValue
from rvtrace_gdb.decode.reconstruction.hart import RegistersCopy, csr_of
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.past.reconstructed.windows import Windows
from rvtrace_gdb.support.errors import Progress, silent

RegistersAt = Callable[[int], KnownValue]
"""Returns a register by its number of the Debug Specification, or `PRIVILEGE`; None: unknown."""
_KEPT = 64
_POOR = 4
"""So many integer registers must be unknown that a part of the history beside the stop is looked at as a whole."""
_REGISTERS = F + 32


class ReconstructedValues:
    """The values of a history. Those of a few positions are kept."""

    def __init__(self, history: History, facts: HartFacts, execution: Execution, windows: Windows) -> None:
        self._history, self._facts, self._execution, self._windows = history, facts, execution, windows
        self._states: dict[int, RegistersCopy | None] = {}
        self._of = execution.forward

    def registers_at(self, position: int, progress: Progress = silent) -> RegistersAt:
        """Return the registers before the instruction at a position."""
        state = self._registers_copy(position, progress)
        is_poor = state is None or state.x.count(None) >= _POOR

        def value(number: int) -> KnownValue:
            found = None if state is None else _of_state(state, number, self._facts.machine.xlen)
            if found is None and number != X:
                found = self._elsewhere(position, number, is_poor=is_poor)
            return 0 if number == X else found

        return value

    def integers(self, position: int, progress: Progress = silent) -> Sequence[KnownValue]:
        """Return the integer registers, without work for parts of the history that were not looked at as a whole."""
        state = self._registers_copy(position, progress)
        window = self._windows.built_window(position)
        x = (None,) * 32 if state is None else state.x
        return x if window is None else [window.x(position, n) if it is None else it for n, it in enumerate(x)]

    def _elsewhere(self, position: int, number: int, *, is_poor: bool) -> KnownValue:
        """Return a register that does not follow from the beginning."""
        is_integer, is_float = X <= number < F, F <= number < _REGISTERS
        stop = self._facts.stop
        if position == len(self._history) and stop is not None and self._execution.believes_stop:
            found = stop.x[number - X] if is_integer else stop.f[number - F] if is_float else stop.csrs.get(number)
            if found is not None:
                return found
        window = self._windows.around(position, block=is_poor and is_integer)
        if window is None:
            return None
        if is_integer:
            return window.x(position, number - X)
        return window.f(position, number - F) if is_float else window.csr(position, number)

    def memory(self, position: int, address: int, size: int, progress: Progress = silent) -> list[KnownValue]:
        """Return each byte of memory before the instruction at a position."""
        hart = self._execution.hart_at(position, progress)
        found: list[KnownValue] = [None] * size
        if hart is not None and hart.physical:
            found = hart.memory.bytes(address, size)
        if None in found and self._execution.believes_ram and self._is_ram(address, size):
            window = self._windows.around(position, progress, block=hart is None or hart.x.count(None) >= _POOR)
            if window is not None:
                other = window.memory(position, address, size)
                found = [b if a is None else a for a, b in zip(found, other, strict=True)]
        return found

    def _is_ram(self, address: int, size: int) -> bool:
        return any(begin < address + size and address < begin + n for begin, n in self._facts.machine.rams)

    def stored(self, position: int, address: int, size: int) -> list[KnownValue]:
        """Return each byte of memory after the instruction at a position, before anything that followed it."""
        hart = self._execution.ask(lambda forward: forward.after(position))
        found: list[KnownValue] = [None] * size
        if hart is not None and hart.physical:
            found = hart.memory.bytes(address, size)
        if None in found and not self._history.events_between(position + 1, position + 2):
            return self.memory(position + 1, address, size)
        return found

    def rewritten(self, position: int) -> frozenset[int]:
        """Return the pages whose constants are not those of the program any more."""
        hart = self._execution.hart_at(position)
        return frozenset() if hart is None else hart.memory.rewritten

    def _registers_copy(self, position: int, progress: Progress) -> RegistersCopy | None:
        if self._of is not self._execution.forward:
            self._states.clear()
        if position in self._states:
            return self._states[position]
        hart = self._execution.hart_at(position, progress)
        if self._of is not self._execution.forward:
            self._states.clear()
            self._of = self._execution.forward
        state = self._states[position] = None if hart is None else hart.snapshot()
        if len(self._states) > _KEPT:
            del self._states[next(iter(self._states))]
        return state


def _of_state(state: RegistersCopy, number: int, xlen: int) -> KnownValue:
    if X <= number < F:
        return state.x[number - X]
    if F <= number < _REGISTERS:
        return state.f[number - F]
    return state.privilege if number == PRIVILEGE else csr_of(state, number, xlen)
