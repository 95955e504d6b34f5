"""A captured trace: the contents of a capture file, and the input of the decoder."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.program.csrs import UNKNOWN_THREAD as UNKNOWN_THREAD
from rvtrace_gdb.support.extents import Extent

if TYPE_CHECKING:
    from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
    from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, SinkSettings
    from rvtrace_gdb.decode.coresight.frames import FrameForm
    from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
    from rvtrace_gdb.decode.tandem.protocol import TandemParameters
    from rvtrace_gdb.decode.trap_cause import TrapRegisters
    from rvtrace_gdb.session.capture.etrace_settings import SettingValue

CapturedCode = tuple[tuple[int, bytes], ...]
"""(address, bytes) of stretches of code."""

PACK_SUFFIX = ".rvtz"
"""With it the name of a pack ends, see `session.packs`."""


@dataclass(frozen=True)
class ElfIdentity:
    """A program: its *path* (for messages), GNU build-id in hexadecimal if it has one, SHA-256 of the file.

    *loaded*: SHA-256 of what a loader takes of it, which a stripped copy also has; None: not known. *bias*: it was in
    memory so many bytes above its own addresses, modulo 2**64.
    """

    path: str
    build_id: str | None
    sha256: str
    loaded: str | None = None
    bias: int = 0


@dataclass(frozen=True)
class Unregistered:
    """What a decoder must know of an encoder, and its registers do not contain, or wrongly. None: they do.

    dialect         name of a generation of N-Trace encoders, see `decode.ntrace.options`
    address_bits    significant bits of an address if fewer than XLEN are sent
    timestamp_bits  width of the timestamp counter, 0 if it does not wrap
    repeat_bits     bits of the greatest HREPEAT and B-CNT that are believed
    etrace          settings of an E-Trace encoder, see `session.capture.etrace_settings`
    """

    dialect: str | None = None
    address_bits: int | None = None
    timestamp_bits: int | None = None
    repeat_bits: int | None = None
    etrace: "Mapping[str, SettingValue]" = field(default_factory=dict)


@dataclass(frozen=True)
class CapturedEncoder:
    """An encoder, its registers as read back while tracing, and the hart it traced."""

    hart: int
    in_force: "EncoderSettings"
    unregistered: Unregistered = Unregistered()


class TraceBreak(NamedTuple):
    """Trace is missing before a byte of a sink, at *offset*. *why*: for the user. *kind*: how the trace goes on."""

    offset: int
    why: str
    kind: BreakKind = BreakKind.ANYWHERE


class SystemMark(NamedTuple):
    """What the operating system of the target noted about the bytes of a sink from *offset* on.

    thread  which thread runs, as `scontext` would have it; UNKNOWN_THREAD: one of several; None: the trace says it
    epoch   which code is in memory, see `ProgramContext`
    time    when that was recorded, in nanoseconds: its beginning, or else its end; None: the trace has times of its own
    """

    offset: int
    thread: int | None = None
    epoch: int = 0
    time: int | None = None


@dataclass(frozen=True)
class CapturedSink:
    """The contents of a sink, oldest byte first.

    *wrapped*: older bytes were overwritten, so *data* may begin inside a message. *missing*: bytes at the end that
    could not be read. *encoders*: names of those that feed it. *lost*: names of those that dropped messages or stalled
    their hart. *breaks*: where more is missing, in rising order. *marks*: of an operating system, in rising order.

    *frames*: *data* is CoreSight frames, see `decode.coresight.frames`; None: it is what encoders sent. *atb_ids*: the
    ATB ID of each encoder, by name; several may share one, and are told apart by SRC then.
    """

    in_force: "SinkSettings"
    data: bytes
    wrapped: bool
    missing: int
    encoders: tuple[str, ...]
    lost: tuple[str, ...]
    frames: "FrameForm | None" = None
    atb_ids: Mapping[str, int] = field(default_factory=dict)
    breaks: tuple[TraceBreak, ...] = ()
    marks: tuple[SystemMark, ...] = ()

    @property
    def seams(self) -> tuple[TraceBreak | SystemMark, ...]:
        """The breaks and the marks, in rising order; of one place the break comes first."""
        return tuple(sorted((*self.breaks, *self.marks), key=lambda one: one.offset))


@dataclass(frozen=True)
class CapturedRecords:
    """A hart's Control Transfer Records. *data*: the entries, oldest first, as `controlregs.ctr.entries` packs them.

    *samples*: they were read so many times while the hart ran, each time with what led to it; 0: once, at the end.
    """

    hart: int
    in_force: "CtrRegisterValues"
    data: bytes
    samples: int = 0


@dataclass(frozen=True)
class CapturedTrap:
    """What the registers of a hart said of its last trap when its trace was read out."""

    hart: int
    registers: "TrapRegisters"


class SavedAt(StrEnum):
    """When something was saved: where the trace begins, or where it ends."""

    START = "start"
    STOP = "stop"


@dataclass(frozen=True)
class SavedRegisters:
    """The registers of a halted hart, by the numbers of the Debug Specification (3.7). One that is missing could not be
    read.

    *privilege*: the mode, plus 4 if V is 1; None: not known.

    *at_entry*: at the start, the hart stood at the entry of the program, which was in memory as the ELF has it.
    """

    hart: int
    at: SavedAt
    pc: int
    registers: Mapping[int, int]
    at_entry: bool = False
    privilege: int | None = None


@dataclass(frozen=True)
class SavedMemory:
    """The content of memory from *address* on, while all harts were halted."""

    at: SavedAt
    address: int
    data: bytes


@dataclass(frozen=True)
class DebuggerWrites:
    """What a debugger wrote while a hart was halted, before it resumed at *pc*, None: not known. Every halt since the
    trace was started has one, in order; that in which it was started is the first, of a hart that ran another one with
    *unknown*.

    registers    as they were read back, by the numbers of the Debug Specification (3.7)
    unknown      it may have written more than this
    breakpoints  the memory of the instructions that software breakpoints had replaced in memory when it resumed
    halts        nothing was written at so many halts in a row, of which *pc* is the last one's; 0: nobody counted them
    """

    hart: int
    pc: int | None
    registers: Mapping[int, int] = field(default_factory=dict)
    memory: CapturedCode = ()
    unknown: bool = False
    breakpoints: tuple[Extent, ...] = ()
    halts: int = 1


def not_shown(written: tuple[DebuggerWrites, ...], unwatched: Collection[int] = ()) -> tuple[DebuggerWrites, ...]:
    """Return what was written as a trace that does not show halts has it: of a hart that was written to in the middle,
    or that was *unwatched*, the last entry says that nobody knows when.
    """
    found: list[DebuggerWrites] = []
    for hart in sorted({*(it.hart for it in written), *unwatched}):
        own = [it for it in written if it.hart == hart]
        wrote = hart in unwatched or any(it.unknown or it.registers or it.memory for it in own[1:])
        found += [*own, DebuggerWrites(hart, None, unknown=True, halts=0)] if wrote else own
    return tuple(found)


@dataclass(frozen=True)
class CapturedPort:
    """The port of a hart's tandem-verification trace, and the parameters that the trace does not contain."""

    format: ClassVar = "tandem"

    name: str
    parameters: "TandemParameters"


@dataclass(frozen=True)
class CapturedTandem:
    """A hart's tandem-verification trace. *wrapped*: older bytes were overwritten: *data* may begin inside a group."""

    hart: int
    in_force: CapturedPort
    data: bytes
    wrapped: bool = False


@dataclass(frozen=True)
class BranchPort:
    """What sends a trace of transfers. *kind*: a name of `decode.branches.READERS`. *registers*: as read back while
    tracing, by name; none of imported bytes.
    """

    format: ClassVar = "branches"

    name: str
    kind: str
    registers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class CapturedBranches:
    """A hart's trace of transfers of control. *wrapped*: older ones were dropped."""

    hart: int
    in_force: BranchPort
    data: bytes
    wrapped: bool = False


Captured = CapturedSink | CapturedRecords | CapturedTandem | CapturedBranches
"""The sources of a history."""


def is_overwritten(captured: Captured) -> bool:
    """Return whether older trace was overwritten. Records that are all in use, and samples, are assumed to be."""
    if isinstance(captured, CapturedRecords):
        return captured.samples > 0 or len(captured.data) >= captured.in_force.depth * ENTRY_BYTES
    return captured.wrapped


def is_framed(captured: Captured) -> bool:
    """Return whether the bytes are CoreSight frames."""
    return isinstance(captured, CapturedSink) and captured.frames is not None


@dataclass(frozen=True)
class PlacedElf:
    """An ELF file that is in memory *bias* bytes above its own addresses, modulo 2**64."""

    identity: ElfIdentity
    bias: int


@dataclass(frozen=True)
class CapturedImage:
    """Code that is in memory in some contexts only: a process, a guest. None stands for any value.

    *code* is all of it, including that of *elfs*, which have its symbols. *absent*: (address, size, what) of code that
    was in memory and that could not be found. *epochs*: of `SystemMark`, in which it is in memory; none: in all.
    """

    name: str
    scontext: int | None
    hcontext: int | None
    virtual: bool | None
    code: CapturedCode
    elfs: tuple[PlacedElf, ...] = ()
    absent: tuple[tuple[int, int, str], ...] = ()
    epochs: tuple[int, ...] = ()


@dataclass(frozen=True)
class CapturedThread:
    """A thread of an operating system: its *id*, which `scontext` has, that of its *process*, and its name."""

    id: int
    process: int
    name: str


@dataclass(frozen=True)
class PlaceNote:
    """What somebody noted at a place of the past. *id*: by which it is called, from 1 on, and never another one's.

    *number*: of the instruction that runs next there, in the history of *hart*; None: not known any more, as older
    trace was overwritten since. *pc*: the address of that instruction; None: a gap.
    """

    id: int
    hart: int
    number: int | None
    pc: int | None
    text: str


@dataclass(frozen=True)
class Unpacked:
    """Where the files of a pack are on this machine, by the paths that they had.

    *substitutes*: (folder, where its sources are), as debuggers take them. *folder*: that of sources whose paths begin
    nowhere; None: there are none. *target*: the target description, as its name was and where it is.
    """

    elfs: Mapping[str, str]
    sources: Mapping[str, str]
    substitutes: tuple[tuple[str, str], ...] = ()
    folder: str | None = None
    target: tuple[str, str] | None = None


@dataclass(frozen=True)
class Capture:
    """A trace as it is saved. *created*: ISO 8601, UTC. *tool*: name and version. *notes*: lines for the user.

    *traps*: the causes of last traps that the trace does not have.

    *registers*, *memory*, *written*: what was saved of the target, to reconstruct values. *ranges*: what the target
    description says of the memory. *place_notes*: what users noted at places of the past.
    *unpacked*: the files that came with it, if it is a pack.

    *threads*: of the operating system, as far as they are known.

    *elf* and *code*: what is in memory in all contexts; *code* is what is not in the ELF. *patched*: what memory had
    where the ELF has other code, of programs that change themselves. *elfs*: other files that ran,
    whose code is in *code*, for their symbols. *images*: see `CapturedImage`.
    """

    created: str
    tool: str
    target: str
    xlen: int
    elf: ElfIdentity | None
    encoders: tuple[CapturedEncoder, ...]
    sinks: tuple[CapturedSink, ...]
    code: CapturedCode
    notes: tuple[str, ...] = ()
    images: tuple[CapturedImage, ...] = ()
    records: tuple[CapturedRecords, ...] = ()
    tandem: tuple[CapturedTandem, ...] = ()
    elfs: tuple[PlacedElf, ...] = ()
    traps: tuple[CapturedTrap, ...] = ()
    registers: tuple[SavedRegisters, ...] = ()
    memory: tuple[SavedMemory, ...] = ()
    written: tuple[DebuggerWrites, ...] = ()
    ranges: "tuple[MemoryRange, ...]" = ()
    place_notes: tuple[PlaceNote, ...] = ()
    unpacked: Unpacked | None = field(default=None, compare=False)
    branches: tuple[CapturedBranches, ...] = ()
    threads: tuple[CapturedThread, ...] = ()
    patched: CapturedCode = ()

    @property
    def captured(self) -> tuple[Captured, ...]:
        """Everything from which histories are decoded."""
        return *self.sinks, *self.records, *self.tandem, *self.branches

    @property
    def needs_elf(self) -> bool:
        """Whether code in an ELF is missing here. Captures of Linux and tandem traces contain it."""
        return self.elf is not None or not (self.code or self.images or self.tandem)

    @property
    def takes_elf(self) -> bool:
        """Whether another ELF than the capture's may be the program. Captures of Linux contain theirs."""
        return self.elf is not None or not (self.code or self.images)
