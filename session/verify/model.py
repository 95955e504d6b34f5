"""What a tandem verifier asks of the model it runs in step with a trace, and what it finds and remembers of both.

`Model` is the interface. Source: Trace Protocol Specification, version 2018-11-20, Appendix A (Tandem Verifier
Interface): "1. Read tandem verifier state, including registers and memory, 2. Write tandem verifier state,
including registers and memory, 3. Attempt to execute one instruction, and 4. Reset the tandem verifier." What that
leaves open is decided here.

`Mirror` has the model's registers as the verifier knows them: what it read, wrote, and was told of every step. So
comparing costs no questions: the model is asked for a register once. Registers that share bits with others (sstatus
and mstatus, sie and mie, sip and mip, fflags, frm and fcsr) are kept as the one that has all of them.

`Divergence` and `Counts` are what a verification finds, and how much was compared.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from rvtrace_gdb.decode.program.csrs import MIDELEG, MIP, PRIVILEGE, Part, parts
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR, Instr
from rvtrace_gdb.session.verify.masks import ALL, inputs
from rvtrace_gdb.support.errors import RvtraceError

PC = 0x1_0003
"""The pc's number, beyond those of the Debug Specification, like those of `decode.program.csrs` (PRIVILEGE, MTIME)."""


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


class Kind(Enum):
    """What is not the same; the value says it in words."""

    ORDER = "groups missing, repeated or out of order"
    INSTRUCTION = "instruction"
    TRAP = "trap"
    PC = "next pc"
    REGISTER = "register"
    CSR = "CSR"
    PRIVILEGE = "privilege mode"
    STORE = "store"
    ADDRESS = "address"
    LATER = "found when everything was compared"


class Difference(NamedTuple):
    """One thing that is not the same.

    place  a register's number, or an address
    was    before the group, None: not known
    trace  None: the trace does not tell it (a register keeps what it was), or has no such thing
    model  None: the model has or did no such thing
    bits   of a register: which are not the same
    size   bytes, of a store
    note   what else there is to say
    """

    kind: Kind
    place: int = 0
    was: int | None = None
    trace: int | None = None
    model: int | None = None
    bits: int = 0
    size: int = 0
    note: str = ""


class Divergence(NamedTuple):
    """A group after which the trace and the model are not in the same state.

    number    of all divergences, counted from 1
    group, offset, position   counted from 0: group, byte of the trace, place in the history (None: nothing retired)
    pc        of the instruction; None: not known
    instr     the trace's; *other*: what the model fetched there, if that is not the same
    trap, model_trap   that each of them took
    differences        what is not the same, in the order of importance
    registers          (number, trace, model) of all registers, where that was asked for
    """

    number: int
    group: int
    offset: int
    position: int | None
    pc: int | None
    instr: Instr | None
    other: int | None
    trap: Trap | None
    model_trap: Trap | None
    differences: tuple[Difference, ...]
    registers: tuple[tuple[int, int | None, int | None], ...] = ()


@dataclass
class Counts:
    """How much was compared, copied, and found.

    groups        read; *instructions*, *traps*, *interrupts*, *resets*, *initializations*, *loose* are kinds of them
    executed      groups the model was stepped for
    registers, csrs, stores   compared
    masked        differences in bits the user does not compare
    untold        changes that this trace never tells, taken from the model
    copied        non-deterministic state copied to the model, by what it was
    uncomparable  groups whose result depends on what is not known since a loss, or since reset
    losses, lost_bytes   stretches of the trace that cannot be read; *holes*: those with groups on both sides
    by_kind       differences
    full          how often everything was compared
    """

    groups: int = 0
    instructions: int = 0
    traps: int = 0
    interrupts: int = 0
    resets: int = 0
    initializations: int = 0
    loose: int = 0
    executed: int = 0
    registers: int = 0
    csrs: int = 0
    stores: int = 0
    masked: int = 0
    untold: int = 0
    uncomparable: int = 0
    losses: int = 0
    holes: int = 0
    lost_bytes: int = 0
    divergences: int = 0
    full: int = 0
    copied: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[Kind] = field(default_factory=Counter)


class Mirror:
    """*pc*: the model's. *refused*: by register the bits of CSRs that it did not take as they were written."""

    def __init__(self, model: Model, xlen: int) -> None:
        self._model = model
        self._parts = parts(xlen)
        self._mask = (1 << xlen) - 1
        self.pc = 0
        self.values: dict[int, int | None] = {}
        self.refused: dict[int, int] = {}
        self._again: dict[int, int] = {}

    def refresh(self, csrs: Iterable[int] = ()) -> None:
        """Read everything again: the model was reset. *csrs*: those that will be compared."""
        self.values.clear()
        self.pc = self._model.read_register(PC) or 0
        for regno in (*range(GPR + 1, FPR_END), PRIVILEGE, *csrs):
            self.get(regno)

    def settle(self) -> None:
        """Read what was written, before the model goes on: it may have made something else of it."""
        while self._again:
            regno, value = self._again.popitem()
            found = self.get(regno)
            bits = ALL if found is None else (found ^ value) & ~inputs(regno)
            if bits:
                self.refused[regno] = self.refused.get(regno, 0) | bits

    def get(self, regno: int) -> int | None:
        """A register; of a view its whole's bits. None: the model does not have it."""
        part = self._parts.get(regno)
        if part is not None and part.whole != regno:
            whole = self.get(part.whole)
            return None if whole is None else (whole & self.bits(part)) >> part.shift
        if regno not in self.values:
            self.values[regno] = self._model.read_register(regno)
        return self.values[regno]

    def set(self, regno: int, value: int) -> None:
        """Write a register of the model; a view as its bits of the whole."""
        part = self._parts.get(regno)
        if part is not None and part.whole != regno:
            whole, mask = self.get(part.whole), self.bits(part)
            if whole is not None:
                self.set(part.whole, whole & ~mask | value << part.shift & mask)
            return
        self._model.write_register(regno, value)
        if regno < GPR:  # the model may have other bits than these: what it made of it is read when it is needed
            self.values.pop(regno, None)
            self._again[regno] = value
        else:
            self.values[regno] = value

    def pend(self, value: int) -> None:
        """Write mip of the model, all bits as they are."""
        self._model.write_register(MIP, value)
        self.values[MIP] = value

    def go(self, pc: int) -> None:
        """Set the pc of the model."""
        if pc != self.pc:
            self._model.write_register(PC, pc)
            self.pc = pc

    def bits(self, part: Part) -> int:
        """The bits of its whole a register has."""
        if not part.delegated:
            return part.mask
        return self.get(MIDELEG) or 0

    def part(self, regno: int) -> Part | None:
        """What a register is a part of, if it is not everything itself."""
        found = self._parts.get(regno)
        return None if found is None or found.whole == regno else found

    def is_shared(self, regno: int) -> bool:
        """Whether it shares bits with others."""
        return regno in self._parts

    def wholes(self, changed: Mapping[int, int]) -> dict[int, int]:
        """What a step changed, without views: a view whose whole is not there is put into it."""
        found: dict[int, int] = {}
        views: list[tuple[int, int]] = []
        for regno, value in changed.items():
            if regno in self._parts and self._parts[regno].whole != regno:
                views.append((regno, value))
            else:
                found[regno] = value
        for regno, value in views:
            part = self._parts[regno]
            if part.whole not in changed:
                mask, old = self.bits(part), found.get(part.whole, self.get(part.whole) or 0)
                found[part.whole] = old & ~mask | value << part.shift & mask
        return found
