"""The CTR recorder of one hart: what it records, its position in the buffer, and when it freezes.

It receives transfers (`transfer`) and all other changes of mode (`enter`); `hart_side` has its CSRs. All privilege
modes are implemented, although the simulated hart has M and U only. A `CtrBuild` holds the choices that the document
leaves to the implementation. The `CycleCounter` (CtrCycleCounter) counts the active cycles since the last record. The
`RecordBuffer` has as many entries as can be selected, the write pointer, and the registers of an entry.

Where the documents leave a choice: a change of depth keeps the content of the buffer, and WRPTR as far as it fits;
FROZEN is set by the traps that set it whether or not a mode is enabled (QEMU does the same); clearing zeroes the whole
buffer. The draft does not define which control register counts when V changes; it is the one of the mode that was left.

Sources: CTR 1.0, "Behavior", "External Traps" (which modes are more privileged), "Cycle Counting", "RAS Emulation
Mode", "Entry Registers", mctrctl, sctrdepth and sctrstatus; CTR 0.1.4, 2.1, 2.4 for WRPTR and WRAP, chapters 3, 5
(5.2.1, 5.3 and 5.4, which do not name the counter) and 6.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.ctr.entries import (
    DATA,
    EXPONENT_BITS,
    FILTER_LSB,
    MANTISSA_BITS,
    SOURCE,
    TARGET,
    CtrEntry,
    TransferType,
    decode_cycles,
    encode_cycles,
)
from rvtrace_gdb.controlregs.ctr.entries import DEPTHS as DEPTHS
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS as VERSIONS
from rvtrace_gdb.controlregs.ctr.versions import CtrVersion
from rvtrace_gdb.transport.simulated.hart.block import BREAKPOINT


class PrivilegeMode(IntEnum):
    """A privilege mode: its code in bits 1:0, the virtualization mode V in bit 2. S is HS with the H extension."""

    U = 0
    S = 1
    M = 3
    VU = 4
    VS = 5

    @property
    def virtual(self) -> bool:
        """Whether V is 1."""
        return bool(self & 4)


ABOVE = {
    PrivilegeMode.VU: (PrivilegeMode.VS, PrivilegeMode.S, PrivilegeMode.M),
    PrivilegeMode.VS: (PrivilegeMode.S, PrivilegeMode.M),
    PrivilegeMode.U: (PrivilegeMode.S, PrivilegeMode.M),
    PrivilegeMode.S: (PrivilegeMode.M,),
    PrivilegeMode.M: (),
}
"""The more privileged modes that a trap from a mode can lead to, the nearest first."""

TRAPS = (TransferType.EXCEPTION, TransferType.INTERRUPT)
CALLS = (TransferType.INDIRECT_CALL, TransferType.DIRECT_CALL)
UNWINDING = (TransferType.COROUTINE_SWAP, TransferType.FUNCTION_RETURN)
"""What takes the youngest call off a stack; a swap puts another there."""


class CtrTransfer(NamedTuple):
    """One transfer, at the moment it retires or the trap is taken.

    source, target  addresses; for a trap the epc and the handler
    now             cycles that have passed (the `mcycle` of a hart that nobody writes), the transfer's own included
    cause           for a trap: xcause without the interrupt bit
    """

    type: TransferType
    source: int
    target: int
    source_mode: PrivilegeMode
    target_mode: PrivilegeMode
    now: int
    cause: int | None = None
    mispredicted: bool = False


_REQUIRED = {"1.0": {"M", "S", "U", "BPFRZ"}, "0.1.4": {"M", "S", "U", "CLR", "DEPTH"}}
_NEVER = {"Custom"}
_WITH_S_MODE = {"1.0": set[str](), "0.1.4": {"S", "STE"}}  # 1.0 demands S mode; its CSRs are here without it
_ENTRY_FIELDS = {"TYPE", "MISP"}


class CtrNotBuildable(ValueError):
    """A contradiction in a CtrBuild; the text says what is impossible, and why."""


@dataclass(frozen=True)
class CtrBuild:
    """One implementation of CTR. Raises CtrNotBuildable.

    version        "1.0" or "0.1.4"
    depths         depths that can be selected, ascending
    absent         fields it lacks, by their names in the document: of the control registers, TYPE, MISP
    exponent_bits  number of implemented bits of CCE, 0 to 4; None: no cycle counts
    modes          the hart's privilege modes
    """

    version: str = "1.0"
    depths: tuple[int, ...] = DEPTHS
    absent: frozenset[str] = frozenset({"MISP"})
    exponent_bits: int | None = max(EXPONENT_BITS)
    modes: frozenset[PrivilegeMode] = frozenset({PrivilegeMode.M, PrivilegeMode.U})

    def __post_init__(self) -> None:
        """Check that the choices go together. Raises CtrNotBuildable."""
        if self.version not in VERSIONS:
            raise CtrNotBuildable(f"there is no version {self.version}: it is {' or '.join(VERSIONS)}")
        if self.exponent_bits not in (None, *EXPONENT_BITS):
            raise CtrNotBuildable(f"CCE has {EXPONENT_BITS[0]} to {EXPONENT_BITS[-1]} bits, not {self.exponent_bits}")
        self._check_depths()
        self._check_fields()

    @property
    def registers(self) -> CtrVersion:
        return VERSIONS[self.version]

    @property
    def virtual(self) -> bool:
        """Whether there is a vsctrctl, or vsctrcontrol."""
        return PrivilegeMode.VS in self.modes

    @property
    def fields(self) -> frozenset[str]:
        """The fields that the control register has."""
        return frozenset(self._known_fields - self.absent)

    @property
    def optional(self) -> frozenset[str]:
        """The fields that `absent` may name."""
        return frozenset(self._known_fields - _REQUIRED[self.version] | _ENTRY_FIELDS)

    @property
    def _known_fields(self) -> set[str]:
        known = set(self.registers.machine.control.csr.by_name) - _NEVER
        return known if PrivilegeMode.S in self.modes else known - _WITH_S_MODE[self.version]

    def _check_depths(self) -> None:
        if not self.depths or self.depths != tuple(depth for depth in DEPTHS if depth in self.depths):
            raise CtrNotBuildable(f"depths are some of {', '.join(map(str, DEPTHS))}, ascending")
        first = DEPTHS.index(self.depths[0])
        if self.registers.depth is None and self.depths != DEPTHS[first : first + len(self.depths)]:
            raise CtrNotBuildable(f"the depths of version {self.version} are consecutive")

    def _check_fields(self) -> None:
        if odd := sorted(self.absent - self.optional):
            raise CtrNotBuildable(f"{odd[0]} is not one of the fields it may lack: {', '.join(sorted(self.optional))}")
        version = self.registers
        external = {version.external_enable, *version.machine.control.external.values()} & self._known_fields
        if self.absent & external and not external <= self.absent:
            raise CtrNotBuildable(f"{', '.join(sorted(filter(None, external)))} are there together or not at all")


class CycleCounter:
    """The cycle counter. *exponent_bits*: implemented bits of CCE, None: no counts at all. `valid`: whether the next
    record gets CCV=1.

    `mask`: the implemented bits of ctrdata for the count.
    """

    def __init__(self, exponent_bits: int | None) -> None:
        self._exponent_bits = exponent_bits
        self.count = 0
        self.valid = False
        self.mask = 0
        if exponent_bits is not None:
            self.mask = DATA.mask("CCV", "CCM") | DATA.put(0, "CCE", (1 << exponent_bits) - 1)

    def advance(self, cycles: int) -> None:
        """Add cycles to the count. `data` handles the limit of a counter in hardware."""
        self.count += cycles

    def invalidate(self) -> None:
        """Mark the count as meaningless until the next record: after a write to xctrctl, SCTRCLR."""
        self.count, self.valid = 0, False

    def take(self, elapsed: int = 0) -> int | None:
        """Return the count for a record after *elapsed* more cycles, None if it has none, and restart counting."""
        count = self.count + elapsed if self.valid else None
        self.count, self.valid = 0, True
        return count

    def data(self, count: int | None) -> int:
        """Return CCV and CC for a count, at their positions in ctrdata."""
        if count is None or self._exponent_bits is None:
            return 0
        exponent, mantissa = divmod(encode_cycles(count, self._exponent_bits), 1 << MANTISSA_BITS)
        return DATA.pack(CCV=1, CCE=exponent, CCM=mantissa)

    def give_back(self, data: int) -> None:
        """Remove a record with this ctrdata (RAS emulation): the next record counts from the one before it."""
        if DATA.get(data, "CCV"):
            self.advance(decode_cycles(DATA.get(data, "CCE") << MANTISSA_BITS | DATA.get(data, "CCM")))
        else:
            self.valid = False


EMPTY = CtrEntry(0, 0, 0)
_PC = SOURCE.mask("PC")
_VALID = SOURCE.mask("V")
_RecordedTransfer = tuple[TransferType, int, int, int | None]
"""Type, source, target with MISP, cycles: an entry as it was recorded, which is made registers of when it is read."""


class RecordBuffer:
    """The entries of the recorder. `depth` of them are in use, `wrptr` is the physical entry to be written next, `wrap`
    whether it has wrapped.
    """

    def __init__(self, build: CtrBuild, cycles: CycleCounter) -> None:
        self._depths = build.depths
        self._cycles = cycles
        self._masks = CtrEntry(
            _VALID | _PC,
            _PC if "MISP" in build.absent else _PC | TARGET.mask("MISP"),
            cycles.mask if "TYPE" in build.absent else cycles.mask | DATA.mask("TYPE"),
        )
        self._entries: list[CtrEntry | _RecordedTransfer] = [EMPTY] * build.depths[-1]
        self.depth = build.depths[0]
        self.wrptr = 0
        self.wrap = False

    def select(self, depth: int) -> None:
        """Set the largest supported depth that is not above this one, else the smallest; WRPTR keeps the bits it has.
        """
        self.depth = max((d for d in self._depths if d <= depth), default=self._depths[0])
        self.wrptr &= self.depth - 1

    def clear(self) -> None:
        """Clear all entries, also those above the present depth."""
        self._entries = [EMPTY] * len(self._entries)

    # -- recording

    def push(self, type: TransferType, source: int, target: int, cycles: int | None) -> None:
        """Add an entry. Bit 0 of *target* is MISP."""
        self._entries[self.wrptr] = type, source, target, cycles
        if self.wrptr == self.depth - 1:
            self.wrptr, self.wrap = 0, True
        else:
            self.wrptr += 1

    def overwrite(self, type: TransferType, source: int, target: int, cycles: int | None) -> None:
        """Overwrite logical entry 0."""
        self._entries[self._physical(0)] = type, source, target, cycles

    def pop(self) -> None:
        """Invalidate logical entry 0, which becomes entry depth-1."""
        if self.wrptr == 0:
            self.wrap = False
        self.wrptr = self._physical(0)
        youngest = self._entry_at(self.wrptr)
        self._entries[self.wrptr] = youngest._replace(source=youngest.source & ~_VALID)

    def _entry_at(self, place: int) -> CtrEntry:
        """Return the registers of a physical entry."""
        entry = self._entries[place]
        if not isinstance(entry, CtrEntry):
            type, source, target, cycles = entry
            registers = CtrEntry(source | _VALID, target, type | self._cycles.data(cycles))
            entry = CtrEntry(*(value & mask for value, mask in zip(registers, self._masks, strict=True)))
        return entry

    def _physical(self, logical: int) -> int:
        return (self.wrptr - logical - 1) % self.depth

    # -- the registers of the logical entries; those not below `depth` are read-only 0

    def read(self, logical: int) -> CtrEntry:
        return self._entry_at(self._physical(logical)) if logical < self.depth else EMPTY

    def write(self, logical: int, word: int, value: int) -> None:
        """Write one of an entry's registers (0 ctrsource, 1 ctrtarget, 2 ctrdata), as far as its bits exist."""
        if logical < self.depth:
            place = self._physical(logical)
            words = list(self._entry_at(place))
            words[word] = value & self._masks[word]
            self._entries[place] = CtrEntry(*words)


LCOFI = 13
"""Number of the local counter overflow interrupt (Sscofpmf)."""
_FREEZING = {(TransferType.EXCEPTION, BREAKPOINT): "BPFRZ", (TransferType.INTERRUPT, LCOFI): "LCOFIFRZ"}


class Plan(IntEnum):
    """How the recorder handles a type of transfer inside the present mode."""

    NOTHING = 0
    INSERT = 1
    TRANSFER = 2
    """It takes all of `Recorder.transfer`."""


class Recorder:
    """The recorder. `control` and `vs_control` are mctrctl and vsctrctl, or mctrcontrol and vsctrcontrol without DEPTH
    and CLR.
    """

    def __init__(self, build: CtrBuild) -> None:
        self.build = build
        version = build.registers
        self._ratified = version.external_enable is None
        control, virtual = version.machine.control, version.virtual
        fields = [(control.csr, control.modes), (virtual.csr, virtual.modes)]
        self._enable = {PrivilegeMode[m.upper()]: csr.mask(name) for csr, modes in fields for m, name in modes.items()}
        fields = [(control.csr, control.external), (virtual.csr, virtual.external)]
        self._xte = {PrivilegeMode[m.upper()]: csr.mask(name) for csr, modes in fields for m, name in modes.items()}
        self._eten = control.csr.mask(version.external_enable) if version.external_enable else 0
        self._rasemu = control.csr.mask("RASEMU")
        self._freeze = {which: control.csr.mask(name) for which, name in _FREEZING.items()}
        self.reset()

    def reset(self, now: int = 0) -> None:
        """Set everything to 0 and the depth to the smallest, which the documents leave open."""
        self.control = self.vs_control = 0
        self.frozen = False
        self.cycles = CycleCounter(self.build.exponent_bits)
        self.buffer = RecordBuffer(self.build, self.cycles)
        self.mode = PrivilegeMode.M
        self._since = now

    # -- what the hart reports

    def transfer(self, t: CtrTransfer) -> None:
        """Process a transfer that has retired, or a trap that is taken; the hart is in its target mode afterwards."""
        self.elapse(t.now)
        if t.cause is not None and self._freezes(t, t.cause):
            self.frozen = True
        elif not self.frozen:
            self._record(t)
        self.mode = t.target_mode

    def enter(self, mode: PrivilegeMode, now: int) -> None:
        """Enter a mode by something that is not recorded: Debug Mode was left, or transfers were not reported."""
        self.elapse(now)
        self.mode = mode

    def elapse(self, now: int) -> None:
        """Let time pass until *now*, under the present control and status; to be called before these change."""
        if self.active:
            self.cycles.advance(now - self._since)
        self._since = now

    def within(self, type: TransferType, source: int, target: int, now: int) -> None:
        """Process a transfer that stays in the present mode and whose plan is `Plan.INSERT`; bit 0 of *target* is MISP.
        """
        elapsed, self._since = now - self._since, now
        self.buffer.push(type, source, target, self.cycles.take(elapsed))

    def plans(self) -> tuple["Plan", ...]:
        """Return the plan for each type of transfer, by its code, in the present mode and with the present registers.
        """
        return tuple(self._plan(TransferType(code)) for code in range(16))

    def _plan(self, type: TransferType) -> "Plan":
        if type is TransferType.NONE:
            return Plan.NOTHING
        if type is TransferType.TRAP_RETURN or type in TRAPS:
            return Plan.TRANSFER
        control = self._control_of(self.mode)
        if control & self._rasemu:
            return Plan.INSERT if type in CALLS else Plan.TRANSFER if type in UNWINDING else Plan.NOTHING
        return Plan.NOTHING if inhibited(control, type) else Plan.INSERT

    # -- what the registers say

    @property
    def active(self) -> bool:
        """Whether CTR is active: the current privilege mode is enabled for recording and CTR is not frozen."""
        return not self.frozen and self.enabled(self.mode)

    def enabled(self, mode: PrivilegeMode) -> bool:
        return bool(self._control_of(mode) & self._enable[mode])

    def _control_of(self, mode: PrivilegeMode) -> int:
        return self.vs_control if mode.virtual else self.control

    def _configuration(self, t: CtrTransfer) -> int:
        """Return the control register whose fields, except for enables and xTE, count ("Virtualization Mode
        Transitions").
        """
        if self._ratified and t.target_mode.virtual:
            return self.vs_control
        return self._control_of(t.source_mode)

    def _freezes(self, t: CtrTransfer, cause: int) -> bool:
        """Return whether a trap freezes the buffer ("Freeze"): in 1.0 the mode that it goes to decides, in the draft
        the active control register.
        """
        control = self._control_of(t.target_mode if self._ratified else t.source_mode)
        return bool(control & self._freeze.get((t.type, cause), 0))

    def _external(self, t: CtrTransfer) -> bool:
        """Return whether a trap into a mode that is not enabled is recorded ("External Traps", 5.2.1 of the draft)."""
        configuration = self._configuration(t)
        if configuration & self._rasemu or self._eten & ~configuration:
            return False
        modes = ABOVE[t.source_mode]
        modes = modes[: modes.index(t.target_mode) + 1] if self._ratified else (t.target_mode,)
        return all(self._control_of(mode) & self._xte[mode] for mode in modes)

    # -- what it does

    def _record(self, t: CtrTransfer) -> None:
        """Record what is visible of a transfer between two modes ("Privilege Mode Transitions")."""
        source, target = self.enabled(t.source_mode), self.enabled(t.target_mode)
        if source and target:
            self._record_enabled(t)
        elif source and t.type in TRAPS:  # EXCINH and INTRINH do not count
            if self._external(t):
                self._insert(t._replace(target=0))
        elif source:
            self._record_enabled(t._replace(target=0))
        elif target and t.type in TRAPS:
            self._record_enabled(t._replace(source=0))

    def _record_enabled(self, t: CtrTransfer) -> None:
        if self._configuration(t) & self._rasemu:
            self._emulate_stack(t)
        elif not inhibited(self._configuration(t), t.type):
            self._insert(t)

    def _emulate_stack(self, t: CtrTransfer) -> None:
        """Record a call, or undo one for a return ("RAS (Return Address Stack) Emulation Mode")."""
        if t.type in CALLS:
            self._insert(t)
        elif t.type is TransferType.FUNCTION_RETURN:
            self._give_cycles_back()
            self.buffer.pop()
        elif t.type is TransferType.COROUTINE_SWAP:
            self._give_cycles_back()
            self.buffer.overwrite(t.type, t.source, t.target | t.mispredicted, self.cycles.take())

    def _insert(self, t: CtrTransfer) -> None:
        self.buffer.push(t.type, t.source, t.target | t.mispredicted, self.cycles.take())

    def _give_cycles_back(self) -> None:
        """Give the youngest record's cycles back to the counter: the record is removed, and the next one counts from
        the record before it.
        """
        youngest = self.buffer.read(0)
        self.cycles.give_back(youngest.data if SOURCE.get(youngest.source, "V") else 0)


def inhibited(control: int, type: TransferType) -> bool:
    """Return whether the filters leave out this type ("Transfer Type Filtering"); one of the bits has the opposite
    meaning.
    """
    bit = bool(control >> FILTER_LSB + type & 1)
    return not bit if type is TransferType.NOT_TAKEN_BRANCH else bit
