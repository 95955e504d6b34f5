"""A captured trace: what a capture file holds, and what the decoder is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.ctr.settings import CtrInForce
from rvtrace_gdb.controlregs.trace_control.request import EncoderInForce, SinkInForce
from rvtrace_gdb.decode.tandem.protocol import Parameters
from rvtrace_gdb.session.capture.etrace_settings import Value

Code = tuple[tuple[int, bytes], ...]
"""(address, bytes) of stretches of code."""


@dataclass(frozen=True)
class ElfIdentity:
    """Which program ran: *path* where it was (for messages), GNU build-id in hex if it has one, SHA-256 of the file."""

    path: str
    build_id: str | None
    sha256: str


@dataclass(frozen=True)
class Unregistered:
    """What a decoder must know of an encoder and its registers do not tell, or tell wrongly. None: they do.

    dialect         name of a generation of N-Trace encoders, see `decode.ntrace.options`
    address_bits    significant bits of an address where fewer than XLEN are sent
    timestamp_bits  width of the timestamp counter, 0 when it does not wrap
    etrace          settings of an E-Trace encoder, see `session.capture.etrace_settings`
    """

    dialect: str | None = None
    address_bits: int | None = None
    timestamp_bits: int | None = None
    etrace: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class CapturedEncoder:
    """An encoder, its registers as read back while tracing, and the hart it traced."""

    hart: int
    in_force: EncoderInForce
    unregistered: Unregistered = Unregistered()


@dataclass(frozen=True)
class CapturedSink:
    """What a sink held, oldest byte first.

    *wrapped*: older bytes were overwritten, so *data* may begin inside a message. *missing*: bytes at the end that
    could not be read. *encoders*: names of those that feed it. *lost*: names of those that dropped messages or stalled
    their hart.
    """

    in_force: SinkInForce
    data: bytes
    wrapped: bool
    missing: int
    encoders: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class CapturedRecords:
    """A hart's Control Transfer Records. *data*: the entries, oldest first, as `controlregs.ctr.entries` packs them."""

    hart: int
    in_force: CtrInForce
    data: bytes


@dataclass(frozen=True)
class TandemPort:
    """Where a hart's tandem-verification trace comes out, and what it does not tell of itself: its parameters."""

    format: ClassVar = "tandem"

    name: str
    parameters: Parameters


@dataclass(frozen=True)
class CapturedTandem:
    """A hart's tandem-verification trace. *wrapped*: older bytes were overwritten: *data* may begin inside a group."""

    hart: int
    in_force: TandemPort
    data: bytes
    wrapped: bool = False


Captured = CapturedSink | CapturedRecords | CapturedTandem
"""Where a history comes from."""


def is_overwritten(captured: Captured) -> bool:
    """Whether there was older trace, of which nothing is left. Of records that are all in use it is assumed."""
    if isinstance(captured, CapturedRecords):
        return len(captured.data) >= captured.in_force.depth * ENTRY_BYTES
    return captured.wrapped


@dataclass(frozen=True)
class PlacedElf:
    """An ELF file that is in memory *bias* bytes above the addresses in it, modulo 2**64."""

    identity: ElfIdentity
    bias: int


@dataclass(frozen=True)
class CapturedImage:
    """Code that is there in some contexts only: a process, a guest. What is None may be any.

    *code* is all of it, that of *elfs* too: these give it names. *absent*: (address, size, what) of code that was there
    and that nobody had.
    """

    name: str
    scontext: int | None
    hcontext: int | None
    virtual: bool | None
    code: Code
    elfs: tuple[PlacedElf, ...] = ()
    absent: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True)
class Capture:
    """A trace as it is saved. *created*: ISO 8601, UTC. *tool*: name and version. *notes*: lines for the user.

    *elf* and *code*: what is in memory in all contexts; *code* is what is not in the ELF. *images*: see there.
    """

    created: str
    tool: str
    target: str
    xlen: int
    elf: ElfIdentity | None
    encoders: tuple[CapturedEncoder, ...]
    sinks: tuple[CapturedSink, ...]
    code: Code
    notes: tuple[str, ...] = ()
    images: tuple[CapturedImage, ...] = ()
    records: tuple[CapturedRecords, ...] = ()
    tandem: tuple[CapturedTandem, ...] = ()

    @property
    def captured(self) -> tuple[Captured, ...]:
        """All that histories come from."""
        return *self.sinks, *self.records, *self.tandem

    @property
    def needs_elf(self) -> bool:
        """Whether there is code in an ELF that is not in here. Linux captures need none, and tandem traces have it."""
        return self.elf is not None or not (self.code or self.images or self.tandem)

    @property
    def takes_elf(self) -> bool:
        """Whether another ELF than the capture's may be the program. Linux captures know theirs."""
        return self.elf is not None or not (self.code or self.images)
