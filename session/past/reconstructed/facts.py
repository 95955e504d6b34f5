"""What the values of a history are reconstructed from, and what came of it: typed, the wording is elsewhere."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import SATP, F
from rvtrace_gdb.decode.reconstruction.facts import (
    KERNEL_HALF,
    HaltWrites,
    HartMachine,
    KnownState,
    KnownValue,
    StopState,
)
from rvtrace_gdb.decode.semantics.templates import BOX


class HartFacts(NamedTuple):
    """What is known of a hart besides its trace.

    beginning  None: nothing is known where the history begins
    halts      what a debugger wrote at halts in the middle; at other halts everything may have changed
    stop       the state after the last instruction, None: not known
    memory     whether memory is wanted at all, besides the constants of the program
    shared     other harts or devices write the memory, and synchronize by fences
    """

    machine: HartMachine
    beginning: KnownState | None = None
    halts: Sequence[HaltWrites] = ()
    stop: StopState | None = None
    memory: bool = True
    shared: bool = False

    @property
    def is_bare_at_stop(self) -> bool:
        """Whether addresses are certainly not translated after the last instruction."""
        satp = None if self.stop is None else self.stop.csrs.get(SATP)
        return satp is not None and not satp >> (60 if self.machine.xlen == 64 else 31)

    def kernel_memory(self, address: int, size: int) -> bytes:
        """Return the memory of a kernel after the last instruction, where addresses are translated: the bytes from an
        address on, up to the first one that is not known.
        """
        if self.stop is None or address < KERNEL_HALF or self.is_bare_at_stop:
            return b""
        return self.stop.memory(address, size)

    @property
    def flen(self) -> int:
        """Bits of the floating-point registers, 0 without any."""
        extensions = self.machine.extensions
        return 64 if "D" in extensions else 32 if "F" in extensions else 0

    def boxed(self) -> "HartFacts":
        """Return the same with floating-point registers of 64 bits, as they are executed."""
        if self.flen != 32:
            return self
        beginning, stop = self.beginning, self.stop
        return self._replace(
            beginning=None if beginning is None else beginning._replace(f=[_boxed(it) for it in beginning.f]),
            stop=None if stop is None else stop._replace(f=[_boxed(it) for it in stop.f]),
            halts=[it._replace(registers={n: _boxed_at(n, v) for n, v in it.registers.items()}) for it in self.halts],
        )


def _boxed(value: KnownValue) -> KnownValue:
    return None if value is None else value | BOX


def _boxed_at(number: int, value: int) -> int:
    return value | BOX if F <= number < F + 32 else value


class Dropped(StrEnum):
    """What is not believed any more after a contradiction."""

    RAM = "ram"
    CONSTANTS = "constants"
    EVERYTHING = "everything"


class Disagreement(NamedTuple):
    """The instruction at *position* cannot have done what the history says, with what was believed.

    at_stop  it is the last one, and the registers read afterwards differ
    window   it showed in this part of the history, positions first and behind the last, as a whole
    """

    position: int
    pc: int
    dropped: Dropped
    at_stop: bool = False
    window: tuple[int, int] | None = None
