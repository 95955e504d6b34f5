"""The interface of the model that a tandem verifier runs in step with a trace, and the verifier's results.

`Model` is the interface. Source: Trace Protocol Specification, version 2018-11-20, Appendix A (Tandem Verifier
Interface): "1. Read tandem verifier state, including registers and memory, 2. Write tandem verifier state, including
registers and memory, 3. Attempt to execute one instruction, and 4. Reset the tandem verifier." What that leaves open is
decided here.

`ModelState` is a cache of the model's registers: values read, written, and reported by steps. So comparing needs no
requests: each register is read from the model once. Registers that share bits with others (sstatus and mstatus, sie and
mie, sip and mip, fflags, frm and fcsr) are kept as the one that has all of them.

`Divergence` and `VerifyCounts` are the results of a verification, and how much was compared.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from rvtrace_gdb.decode.program.csrs import MIDELEG, MIP, PRIVILEGE, CsrPart, parts
from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR, Instr
from rvtrace_gdb.session.verify.masks import ALL, inputs
from rvtrace_gdb.support.errors import RvtraceError

PC = 0x1_0003
"""The pc's number, beyond those of the Debug Specification, like those of `decode.program.csrs` (PRIVILEGE, MTIME)."""


class ModelFailed(RvtraceError):
    """The model has ended, or cannot continue: its process died, or it lacks what it needs."""


class ModelStore(NamedTuple):
    """Bytes that an instruction stored. *address*: the effective one; *physical*: None if the model
    does not know it.
    """

    address: int
    data: bytes
    physical: int | None = None


class ModelTrap(NamedTuple):
    """A trap. *cause*: as in xcause, without the interrupt bit."""

    cause: int
    interrupt: bool = False


class ModelStep(NamedTuple):
    """The result of an attempt to execute one instruction: it retired, or a trap was taken instead.

    pc         where the hart was
    instr      the instruction there, 16 or 32 bits; None: it could not be fetched, or was not (an interrupt)
    next_pc    where the hart continues: after a trap, the handler, whose first instruction is not part of the step
    registers  by number, the new values: all x, f and CSR that it changed, also by a trap (xepc, xcause,
               xtval, xstatus), and PRIVILEGE if the mode changed. Registers that were written with their old value
               may be included. Without counters. Views (sstatus, sie, sip, fflags, frm) may be omitted if
               mstatus, mie, mip, fcsr are included
    stores     in order; an sc that failed has none
    """

    pc: int
    instr: int | None
    next_pc: int
    registers: Mapping[int, int]
    stores: tuple[ModelStore, ...] = ()
    trap: ModelTrap | None = None


class ExpectedStep(NamedTuple):
    """A step with no other effects than these: no trap, and no change of the privilege mode.

    instr      16 bits, or 32
    registers  x and f, by number: all it writes, even with their old values
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
    """A hart with registers and memory, into which a program is loaded. All values are unsigned, pcs XLEN bits wide.

    Registers have the numbers of the Debug Specification (x: 0x1000, f: 0x1020, FLEN bits, a CSR its own), PRIVILEGE (0
    U, 1 S, 3 M), PC, MTIME. Addresses of memory are physical. Each method may raise ModelFailed. A model may delay
    writes until the next step or read, so that they cost no round trip of their own.
    """

    def read_register(self, regno: int) -> int | None:
        """Return a register; None: the model does not have it."""

    def write_register(self, regno: int, value: int) -> None:
        """Set a register to exactly this, as far as its bits exist: also bits of mip that no instruction can write.

        There are no side effects as with an instruction. A register that the model does not have is ignored.
        """

    def read_memory(self, address: int, size: int) -> bytes | None:
        """Return bytes of memory (RAM, ROM); None: some of them are a device, or do not exist."""

    def write_memory(self, address: int, data: bytes) -> bool:
        """Set bytes of memory, also of code; False: some of them are not memory, and none was written."""

    def step(self) -> ModelStep:
        """Attempt to execute the instruction at the pc, or take the interrupt that mip, mie and mstatus demand.

        Interrupts come only from mip as it was written last: the model's timer and devices do not change it. wfi does
        not wait: the trace says when the hart continued.
        """

    def reset(self) -> None:
        """Reset as after power-on, with the program loaded again."""

    def configuration(self) -> list[str]:
        """Return a description, a line each, "name: value": name and version, ISA, privilege modes, PMP regions,
        memory.
        """

    def close(self) -> None:
        """End the model. Raises nothing; may be called twice."""


@runtime_checkable
class ManyRegisters(Model, Protocol):
    """A model of which many registers are read at the price of one."""

    def read_registers(self, numbers: Sequence[int]) -> list[int | None]:
        """Return registers, in the order of their numbers, as `read_register` does."""


@runtime_checkable
class PipelinedModel(Model, Protocol):
    """A model that accepts expected steps in advance, so that many steps cost one round trip."""

    def run(self, expected: Sequence[ExpectedStep]) -> tuple[int, ModelStep | None]:
        """Attempt one instruction after the other, up to the first that does anything other than expected.

        Returns how many did as expected, and the step after them; None: no other was attempted. The model has never
        executed more than that. In doubt, a step counts as different. There may be fewer than were given, without a
        step: the next operation raises the reason. This does not raise ModelFailed, so that it is known what was
        executed.
        """


@runtime_checkable
class QueuedModel(PipelinedModel, Protocol):
    """A model that executes expected steps while the next ones are made."""

    def queue(self, expected: Sequence[ExpectedStep]) -> None:
        """Let the model attempt steps as `run` does, after those that are queued. Does not raise ModelFailed.

        If those were not all as expected, none of these is attempted.
        """

    def executed(self) -> tuple[int, ModelStep | None]:
        """Wait for the first steps that are queued, and return what `run` does of them; they are queued no more."""


class DifferenceKind(Enum):
    """The kinds of differences; the value is the text."""

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
    """One difference.

    place  a register's number, or an address
    was    the value before the group, None: unknown
    trace  None: the trace does not report it (a register keeps its value), or has no such thing
    model  None: the model has or did no such thing
    bits   of a register: those that differ
    size   bytes, of a store
    note   additional text
    """

    kind: DifferenceKind
    place: int = 0
    was: int | None = None
    trace: int | None = None
    model: int | None = None
    bits: int = 0
    size: int = 0
    note: str = ""


class Divergence(NamedTuple):
    """A group after which the trace and the model have different states.

    number    of all divergences, counted from 1
    group, offset, position   counted from 0: group, byte of the trace, place in the history (None: nothing retired)
    pc        of the instruction; None: unknown
    instr     the trace's; *other*: what the model fetched there, if that differs
    trap, model_trap   that each of them took
    differences        the most important first
    registers          (number, trace, model) of all registers, if that was requested
    """

    number: int
    group: int
    offset: int
    position: int | None
    pc: int | None
    instr: Instr | None
    other: int | None
    trap: ModelTrap | None
    model_trap: ModelTrap | None
    differences: tuple[Difference, ...]
    registers: tuple[tuple[int, int | None, int | None], ...] = ()


@dataclass
class VerifyCounts:
    """How much was compared, copied, and found.

    groups        read; *instructions*, *traps*, *interrupts*, *resets*, *initializations*, *loose* are kinds of them
    executed      groups for which the model made a step
    registers, csrs, stores   compared
    masked        differences in bits the user does not compare
    unreported        changes that this trace never reports, taken from the model
    copied        non-deterministic state copied to the model, by kind
    unknown       writes of x and f registers whose values are unknown: those of the model stand for them
    uncomparable  groups whose result depends on unknown values since a loss, or since reset
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
    unreported: int = 0
    unknown: int = 0
    uncomparable: int = 0
    losses: int = 0
    holes: int = 0
    lost_bytes: int = 0
    divergences: int = 0
    full: int = 0
    copied: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[DifferenceKind] = field(default_factory=Counter)


class ModelState:
    """A cache of the model's registers. *pc*: the model's. *refused*: by register the bits of CSRs that kept another
    value than written.
    """

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
        csrs = tuple(csrs)
        self._fetch((PC, *range(GPR + 1, FPR_END), PRIVILEGE, *csrs))
        self.pc = self.values.pop(PC, None) or 0
        for regno in (*range(GPR + 1, FPR_END), PRIVILEGE, *csrs):
            self.get(regno)

    def _fetch(self, numbers: Iterable[int]) -> None:
        """Read registers whose values are not known, all at once if the model can; views as the registers that have
        all of their bits.
        """
        wholes = {self._parts[regno].register if regno in self._parts else regno for regno in numbers}
        missing = sorted(wholes - self.values.keys())
        if isinstance(self._model, ManyRegisters):
            self.values.update(zip(missing, self._model.read_registers(missing), strict=True))
        else:
            self.values.update((regno, self._model.read_register(regno)) for regno in missing)

    def settle(self) -> None:
        """Read back what was written, before the model continues: its values may differ."""
        if len(self._again) > 1:
            self._fetch(self._again)
        while self._again:
            regno, value = self._again.popitem()
            found = self.get(regno)
            bits = ALL if found is None else (found ^ value) & ~inputs(regno)
            if bits:
                self.refused[regno] = self.refused.get(regno, 0) | bits

    def get(self, regno: int) -> int | None:
        """Return a register; a view as bits of its whole. None: the model does not have it."""
        part = self._parts.get(regno)
        if part is not None and part.register != regno:
            whole = self.get(part.register)
            return None if whole is None else (whole & self.bits(part)) >> part.shift
        if regno not in self.values:
            self.values[regno] = self._model.read_register(regno)
        return self.values[regno]

    def set(self, regno: int, value: int) -> None:
        """Write a register of the model; a view as bits of its whole."""
        part = self._parts.get(regno)
        if part is not None and part.register != regno:
            whole, mask = self.get(part.register), self.bits(part)
            if whole is not None:
                self.set(part.register, whole & ~mask | value << part.shift & mask)
            return
        self._model.write_register(regno, value)
        if regno < GPR:  # the model may not implement all bits: the value is read back when it is needed
            self.values.pop(regno, None)
            self._again[regno] = value
        else:
            self.values[regno] = value

    def pend(self, value: int) -> None:
        """Write mip of the model, all bits unchanged."""
        self._model.write_register(MIP, value)
        self.values[MIP] = value

    def go(self, pc: int) -> None:
        """Set the pc of the model."""
        if pc != self.pc:
            self._model.write_register(PC, pc)
            self.pc = pc

    def bits(self, part: CsrPart) -> int:
        """Return the bits of the whole register that a view has."""
        if not part.delegated:
            return part.mask
        return self.get(MIDELEG) or 0

    def part(self, regno: int) -> CsrPart | None:
        """Return the register that contains a view; None: it is not a view."""
        found = self._parts.get(regno)
        return None if found is None or found.register == regno else found

    def is_shared(self, regno: int) -> bool:
        """Return whether a register shares bits with others."""
        return regno in self._parts

    def wholes(self, changed: Mapping[int, int]) -> dict[int, int]:
        """Return a step's changes without views: a view whose whole is not included is merged into it."""
        found: dict[int, int] = {}
        views: list[tuple[int, int]] = []
        for regno, value in changed.items():
            if regno in self._parts and self._parts[regno].register != regno:
                views.append((regno, value))
            else:
                found[regno] = value
        for regno, value in views:
            part = self._parts[regno]
            if part.register not in changed:
                mask, old = self.bits(part), found.get(part.register, self.get(part.register) or 0)
                found[part.register] = old & ~mask | value << part.shift & mask
        return found
