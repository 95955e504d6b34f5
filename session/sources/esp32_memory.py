"""Traces of Espressif's chips as captures: from an ESP-IDF core dump, or from the memory of a live chip.

docs/esp32.md is the user's guide, `decode.etrace.esp32` describes the data. gdb reads the memory of a live chip for the
session: the method "snapshot" of the session protocol requests it.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import CompType, RamMode
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.esp32.readout import (
    SYMBOL,
    MemoryAnswer,
    ReadBatch,
    is_core_dump,
    read_core_dump,
    read_snapshot,
)
from rvtrace_gdb.decode.etrace.esp32.snapshot import (
    BadSnapshot,
    CaptureReason,
    CoreTraceState,
    MemoryMode,
    Snapshot,
    SnapshotCore,
    may_be_code,
    options_of,
    ring_of,
)
from rvtrace_gdb.decode.etrace.options import Dialect, Options
from rvtrace_gdb.decode.history.events import GAP_KINDS
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image, ReadMissing, read_elf
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import Capture, CapturedCode, CapturedEncoder, CapturedSink, ElfIdentity
from rvtrace_gdb.session.errors import NoElf
from rvtrace_gdb.session.formats import sinks
from rvtrace_gdb.session.formats.etrace import etrace_of_registers
from rvtrace_gdb.session.formats.imports.raw_import import etrace_encoder
from rvtrace_gdb.session.program import GIVE_IT, identity_of
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.support.inputs import read_input

if TYPE_CHECKING:
    pass

XLEN = 32
_LOSSES = 4  # so many correct instructions are not an accident
_ROUNDS = 32
_CHUNKS = 256  # of code, read in one round
_REASONS = {
    CaptureReason.EXPLICIT_STOP: "the firmware has stopped tracing",
    CaptureReason.PANIC: "tracing ended when the program panicked",
}
_NO_RESYNC = 1  # ESP_RISCV_TRACE_RESYNC_MODE_DISABLED


def capture_of_core_dump(content: bytes, name: str, image: Image, others: Iterable[str] = ()) -> Capture:
    """Return the trace in a core dump, the *content* of the file *name*. *image*: the program; *others*: further ELF
    files.

    Raises `BadSnapshot`, BadElf.
    """
    dump = read_core_dump(content)
    target = f"{dump.snapshot.chip}, imported from {PurePath(name).name}"
    return _fitting(_capture(dump.snapshot, target, image, map(read_elf, others), dump.notes))


def core_dump_at(path: str | Path, elf: str | None) -> Capture | None:
    """Return the capture in a core dump of ESP-IDF, None if the file is none. Raises NoElf, and as
    `capture_of_core_dump`.
    """
    try:
        content = read_input(path)
    except (OSError, ValueError):
        return None
    if not is_core_dump(content):
        return None
    if elf is None:
        raise NoElf(f"{path} is a core dump: {GIVE_IT}")
    return capture_of_core_dump(content, str(path), Image.from_elf(elf))


def live_capture(
    elf: str, others: Sequence[str] = (), address: int | None = None
) -> Generator[ReadBatch, MemoryAnswer, Capture]:
    """Return the trace of the chip that runs *elf*; yield requests for its memory, see `decode.etrace.esp32.readout`.

    *address*: of the snapshot, None: where *elf* says. Code that no ELF has is read from the chip. Raises
    `BadSnapshot`, BadElf.
    """
    image = Image.from_elf(elf)
    snapshot = yield from read_snapshot(_address_in(image) if address is None else address)
    capture = _fitting(_capture(snapshot, snapshot.chip, image, map(read_elf, others), ()))
    asked: set[tuple[int, int]] = set()
    for _ in range(_ROUNDS):
        chunks = (chunk for chunk in _missing(capture) if chunk not in asked)
        wanted = [chunk for chunk in chunks if may_be_code(snapshot.target_id, *chunk)][:_CHUNKS]
        if not wanted:
            break
        answer = yield wanted
        asked.update(wanted)
        code = tuple((place, data) for (place, _), data in zip(wanted, answer, strict=True) if data)
        capture = replace(capture, code=capture.code + code)
    return capture


def _address_in(image: Image) -> int:
    """Return where the firmware describes its trace."""
    symbols = (symbol for elf, _ in image.elves for section in elf.sections for symbol in section.symbols)
    found = next((symbol.address for symbol in symbols if symbol.name == SYMBOL), None)
    if found is None:
        raise BadSnapshot(
            f"{image.path} has no {SYMBOL}: it was built without CONFIG_ESP_RISCV_TRACE_ENABLE, or with an ESP-IDF that"
            " has no trace snapshots (the address of one can be given)"
        )
    return found


def _missing(capture: Capture) -> list[Extent]:
    """Return the memory of code to which this trace leads, and which no ELF has."""
    asked: list[Extent] = []

    def missing(address: int, size: int) -> None:
        asked.append(Extent(address, size))

    sinks.decode(capture.sinks, capture.encoders, _program(capture, missing))
    return list(dict.fromkeys(asked))


def _program(capture: Capture, read_missing: ReadMissing | None = None) -> Image:
    assert capture.elf is not None
    image = Image.from_elf(capture.elf.path, read_missing=read_missing)
    for address, data in capture.code:
        image.add_code(address, data)
    return image


def _fitting(capture: Capture) -> Capture:
    """Return *capture* with decoder options that fit its packets and the program.

    PT10 and ET20 packets are known only from Espressif's decoders. ESP-IDF says that encoders without a register for it
    send address differences, whereas its decoders read full addresses. So if the firmware's description does not lead
    through the program, other options are tried.
    """
    notes, encoders, program = list(capture.notes), list(capture.encoders), _program(capture)
    for i, (encoder, sink) in enumerate(zip(capture.encoders, capture.sinks, strict=True)):
        told = sinks.decode([sink], (encoder,), program).histories[encoder.hart]
        if _losses(told) < _LOSSES:
            continue
        trace_options = etrace_of_registers(encoder.in_force, encoder.unregistered.etrace)
        for options in _alternatives(trace_options.options):
            other = etrace_encoder(encoder.in_force.name, encoder.hart, replace(trace_options, options=options))
            found = sinks.decode([sink], (other,), program).histories[encoder.hart]
            if 2 * _losses(found) < _losses(told) and found.instructions > told.instructions:
                encoders[i] = other
                said, fit = _options_text(trace_options.options), _options_text(options)
                notes.append(f"core {encoder.hart}: the firmware says {said}, but only {fit} fit the program")
                break
    return replace(capture, encoders=tuple(encoders), notes=tuple(notes))


def _losses(history: History) -> int:
    """Return how often trace is missing, also if all of it is, so that the history has no instructions and no gap."""
    return sum(event.kind in GAP_KINDS for event in history.events)


def _alternatives(options: Options) -> Iterator[Options]:
    """Yield options that may apply to packets that are described by *options*."""
    turned = replace(options.modes, full_address=not options.modes.full_address)
    yield replace(options, modes=turned)
    yield replace(options, dialect=Dialect.STANDARD)
    yield replace(options, dialect=Dialect.STANDARD, modes=turned)


def _options_text(options: Options) -> str:
    kind = "standard" if options.dialect is Dialect.STANDARD else options.dialect.value.upper()
    return f"{kind} packets with {'full' if options.modes.full_address else 'differential'} addresses"


def _capture(snapshot: Snapshot, target: str, image: Image, others: Iterable[Elf], notes: tuple[str, ...]) -> Capture:
    parts: list[tuple[CapturedEncoder, CapturedSink]] = []
    problems = []
    for core in snapshot.cores:
        try:
            parts.append(_traced(snapshot, core))
        except BadSnapshot as error:
            problems += [] if core.state == CoreTraceState.UNAVAILABLE else [str(error)]
    if not parts:
        raise BadSnapshot(f"{target}: nothing was traced: {'; '.join(problems) or 'no encoder was set up'}")
    reason = (
        _REASONS.get(CaptureReason(snapshot.capture_reason))
        if snapshot.capture_reason in tuple(CaptureReason)
        else None
    )
    return Capture(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool=tool(),
        target=target,
        xlen=XLEN,
        elf=_identity(snapshot, image),
        encoders=tuple(encoder for encoder, _ in parts),
        sinks=tuple(sink for _, sink in parts),
        code=_code_of(others),
        notes=(*notes, *([reason] if reason else []), *problems, *_notes(snapshot, parts)),
    )


def _identity(snapshot: Snapshot, image: Image) -> ElfIdentity:
    """Return the program's identity from the chip: the SHA-256 of its ELF file."""
    told = snapshot.app_elf_sha256
    if not any(told) or told.hex() == image.sha256:
        return identity_of(image)
    return ElfIdentity(image.path, None, told.hex())


def _code_of(others: Iterable[Elf]) -> CapturedCode:
    """Return the code of further ELF files, such as the ROM's."""
    return tuple((part.vaddr, part.data) for elf in others for part in elf.segments if part.executable)


def _traced(snapshot: Snapshot, core: SnapshotCore) -> tuple[CapturedEncoder, CapturedSink]:
    """Return the encoder and the buffer of a core. Raises `BadSnapshot`."""
    ring = ring_of(core)
    trace_options = EtraceTraceOptions(options_of(snapshot, core), Encapsulation("esp32", block_start=ring.seam))
    encoder = etrace_encoder(f"core{core.core_id}", core.core_id, trace_options)
    name = encoder.in_force.name
    lost = (name,) if core.fifo_overflow else ()
    return encoder, CapturedSink(_sink(core), ring.data, ring.wrapped, 0, (name,), lost)


def _sink(core: SnapshotCore) -> SinkSettings:
    """Describe the buffer as a RAM sink."""
    control = component_registers.RAM_CONTROL.pack(
        trRamActive=1,
        trRamEnable=1,
        trRamMode=RamMode.SMEM,
        trRamStopOnWrap=core.memory_mode == MemoryMode.LINEAR,
    )
    impl = component_registers.RAM_IMPL.pack(trRamVerMajor=1, trRamCompType=CompType.RAM_SINK, trRamHasSMEM=1)
    end = core.buffer_addr + core.capacity
    return SinkSettings(f"buffer{core.core_id}", 0, control, impl, core.buffer_addr, max(end - 1, core.buffer_addr), 1)


def _notes(snapshot: Snapshot, parts: Sequence[tuple[CapturedEncoder, CapturedSink]]) -> list[str]:
    """Return notes for the user about the cores' traces."""
    cores = {core.core_id: core for core in snapshot.cores}
    notes = []
    for encoder, sink in parts:
        core = cores[encoder.hart]
        if core.state == CoreTraceState.CAPTURING or not core.fifo_empty:
            notes.append(f"core {encoder.hart}: the newest packets were still in the encoder and are not in this trace")
        if sink.wrapped and core.resync_mode == _NO_RESYNC:
            notes.append(
                f"core {encoder.hart}: older trace was overwritten, and its encoder did not resynchronize: what is left"
                " may be unreadable (CONFIG_ESP_RISCV_TRACE_RESYNC_MODE_PACKET prevents that)"
            )
    return notes


class ChipReading(NamedTuple):
    """A chip whose memory is being read. *reading* yields requests, and returns the capture.
    *extents*: its last request.
    """

    reading: Generator[ReadBatch, MemoryAnswer, Capture]
    extents: Sequence[tuple[int, int]] = ()
