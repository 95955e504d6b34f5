"""What a tandem verifier asks of the model it runs in step with a trace.

Source: Trace Protocol Specification, version 2018-11-20, Appendix A (Tandem Verifier Interface): "1. Read tandem
verifier state, including registers and memory, 2. Write tandem verifier state, including registers and memory, 3.
Attempt to execute one instruction, and 4. Reset the tandem verifier." What that leaves open is decided here.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rvtrace_gdb.decode.tandem.csrs import MTIME, PRIVILEGE
from rvtrace_gdb.support.errors import RvtraceError

__all__ = [
    "MTIME", "PC", "PRIVILEGE", "Expected", "Model", "ModelFailed", "Running", "Step", "Stored", "Trap",
]  # fmt: skip

PC = 0x1_0003
"""The pc's number, beyond those of the Debug Specification, beside those of `decode.tandem.csrs` (PRIVILEGE, MTIME)."""


class ModelFailed(RvtraceError):
    """The model is gone, or cannot go on: its process died, it does not have what it was asked to begin with."""


class Stored(NamedTuple):
    """Bytes that an instruction stored. *address*: the effective one; *physical*: None where the model cannot say."""

    address: int
    data: bytes
    physical: int | None = None


class Trap(NamedTuple):
    """*cause*: as in xcause, without the bit that says it is an interrupt."""

    cause: int
    interrupt: bool = False


class Step(NamedTuple):
    """What an attempt to execute one instruction did: it retired, or a trap was taken instead.

    pc         where the hart was
    instr      what is there, 16 or 32 bits; None: it could not be fetched, or was not (an interrupt)
    next_pc    where it goes on: after a trap, the handler; its first instruction is not executed in the same step
    registers  by number, what they hold after it: all x, f and CSR that it changed, of a trap too (xepc, xcause,
               xtval, xstatus), and PRIVILEGE if the mode changed. Registers that were written with what they held
               may be there, too. Without counters, and without views: of sstatus, sie, sip, fflags, frm those need
               not be there where mstatus, mie, mip, fcsr are
    stores     in order; an sc that failed has none
    """

    pc: int
    instr: int | None
    next_pc: int
    registers: Mapping[int, int]
    stores: tuple[Stored, ...] = ()
    trap: Trap | None = None


class Expected(NamedTuple):
    """A step in which nothing happens but this: no trap, and the privilege mode stays.

    instr      16 bits, or 32
    registers  x and f, by number: all it writes, though they may have held that before
    load       the address of the one load it makes; None: it makes none
    store      the one store it makes: address, size in bytes, value
    """

    pc: int
    instr: int
    next_pc: int
    registers: Mapping[int, int]
    load: int | None = None
    store: tuple[int, int, int] | None = None


class Model(Protocol):
    """A hart, its registers and its memory; a program is loaded into it. All values are unsigned, pcs XLEN bits wide.

    Registers have the numbers of the Debug Specification (x: 0x1000, f: 0x1020, FLEN bits, a CSR its own), PRIVILEGE
    (0 U, 1 S, 3 M), PC, MTIME. Addresses of memory are physical. Each may raise ModelFailed. A model may put writes off
    until the next step or read, so that they cost no round trip of their own.
    """

    def read_register(self, regno: int) -> int | None:
        """A register; None: the model does not have it."""

    def write_register(self, regno: int, value: int) -> None:
        """Set a register to exactly this, as far as its bits exist: also those of mip that no instruction can write.

        Without the side effects of an instruction that writes it. A register the model does not have is left out.
        """

    def read_memory(self, address: int, size: int) -> bytes | None:
        """Bytes of memory (RAM, ROM); None: not all of them are, there is nothing or a device."""

    def write_memory(self, address: int, data: bytes) -> bool:
        """Set bytes of memory, code too; False: not all of them are memory, and none was written."""

    def step(self) -> Step:
        """Attempt to execute the instruction at the pc, or take the interrupt that mip, mie and mstatus ask for.

        Interrupts come from mip as it was written last and from nowhere else: the model's timer and devices do not
        change it. wfi does not wait: the trace says when the hart went on.
        """

    def reset(self) -> None:
        """As after power-on, with the program loaded again."""

    def configuration(self) -> list[str]:
        """What it is, a line each, "name: value": name and version, ISA, privilege modes, PMP regions, memory."""

    def close(self) -> None:
        """It is not needed any more. Raises nothing; may be called twice."""


@runtime_checkable
class Running(Model, Protocol):
    """A model that may be told ahead what steps will do, so that many cost one round trip."""

    def run(self, expected: Sequence[Expected]) -> tuple[int, Step | None]:
        """Attempt one instruction after the other, up to the first that does anything else than is expected.

        How many did as expected, and what the one behind them did; None: nothing was attempted behind them. It is never
        ahead of that. Where there may be doubt, a step is another one. May be fewer than were given, without a step:
        the next operation says why. Does not raise ModelFailed, so that what was done is known.
        """
