"""What is known before an instruction of a past, for the evaluation of expressions."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.tandem.wording import F, X, regno_of

_FLOATS, _CSRS = 32, 4096
"""Where the numbers of the debug information have floating-point registers, and CSRs."""
_CSR_NAMES = {number: name for name, number in CSRS.items()}


class MomentValues(Protocol):
    """The part of a past that is asked here."""

    def registers(self, position: int) -> Mapping[str, int]: ...

    def memory(self, position: int, address: int, size: int) -> Sequence[int | None]: ...


class UnknownPast:
    """The past of a history of which no values are known."""

    def registers(self, position: int) -> Mapping[str, int]:
        return {}

    def memory(self, position: int, address: int, size: int) -> Sequence[int | None]:
        return [None] * size




class FunctionEntries:
    """Where the functions that run were entered. *calls*: returns the calls of the history."""

    def __init__(self, history: History, calls: Callable[[], CallHistory]) -> None:
        self._history, self._calls = history, calls
        self._frames: CallFrames | None = None

    def entry(self, position: int) -> int | None:
        """Return the position at which the function at a position was entered by a call, None: that is not known."""
        if self._frames is None:
            self._frames = CallFrames(self._history, self._calls())
        found = list(islice(self._frames.frames(position), 2))
        if len(found) < 2 or found[1].kind is not StackOperationKind.CALL or found[1].call is None:
            return None
        entry = found[1].call + 1
        return entry if self._history.pc(entry) == found[0].function else None  # it was not a tail call


class PastMoment:
    """The moment before the instruction at a *position* of a *past*, or after the last one."""

    def __init__(self, past: MomentValues, position: int, pc: int, entries: "FunctionEntries | None" = None) -> None:
        self._past, self.position, self.pc, self._entries = past, position, pc, entries
        self._registers: Mapping[str, int] | None = None
        self._pieces: dict[tuple[int, int], Sequence[int | None]] = {}

    def register(self, number: int) -> int | None:
        """Return a register by its number of the debug information."""
        return 0 if not number else self.register_values().get(_name(number))

    def named_register(self, name: str) -> int | None:
        """Return a register by gdb's name. Raises KeyError: there is none."""
        if name == "pc":
            return self.pc
        if regno_of(name) is None:
            raise KeyError(name)
        return 0 if name in ("zero", "x0") else self.register_values().get(name)

    def entry_register(self, number: int) -> int | None:
        """Return a register as it was where the function was entered."""
        entry = None if self._entries is None else self._entries.entry(self.position)
        return None if entry is None else self._past.registers(entry).get(_name(number))

    def memory(self, address: int, size: int) -> Sequence[int | None]:
        """Return each byte of memory."""
        found = self._pieces.get((address, size))  # no more: what is unknown takes long to look for
        if found is None:
            found = self._pieces[address, size] = self._past.memory(self.position, address, size)
        return found

    def register_values(self) -> Mapping[str, int]:
        """Return the registers that are known, by gdb's names."""
        if self._registers is None:
            self._registers = self._past.registers(self.position)
        return self._registers


def _name(number: int) -> str:
    if number < _FLOATS:
        return X[number]
    if number < 2 * _FLOATS:
        return F[number - _FLOATS]
    return _CSR_NAMES.get(number - _CSRS, "")
