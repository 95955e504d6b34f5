"""The programs of tests/programs/everything on the simulated target, traced with E-Trace without a debugger in between.

Registers and bits are numbers here, from the Trace Control Interface 1.0. What the packets say is read by decoders that
share no code with the encoder's rules: `tests.decode.etrace.naive_decoder` and ours.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation, SourcePackets
from rvtrace_gdb.decode.etrace.options import Modes, Options, TrapHandlers
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.hart.block import Accessed
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.decode.etrace.naive_decoder import NaiveDecoder
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    BUFFER,
    CONTROL,
    ENABLE,
    RAM,
    SMEM,
    TE,
    TRACING,
    Registers,
    stop,
)
from tests.transport.simulated.encoder.traces import INSTRUCTIONS, LOW, told_to

DATA_CONTROL, TS_CONTROL = 0x10, 0x40
NO_ADDR_DIFF, NO_TRAP_ADDR, SEQUENTIAL, IMPLICIT_RETURN, PREDICTION, CACHE = (1 << n for n in range(6))
EVERYTHING = NO_TRAP_ADDR | SEQUENTIAL | IMPLICIT_RETURN | PREDICTION | CACHE
PACKETS, CYCLES, HALFWORDS = (n << 16 for n in (1, 2, 3))  # trTeInstSyncMode, every 16 with trTeInstSyncMax 0
RARE_SYNC = PACKETS | 8 << 20
DATA_TRACING, DATA_NO_VALUE, DATA_NO_ADDR, DATA_DIFFERENCES = 1 << 1, 1 << 16, 1 << 17, 2 << 18
TIME = 1 << 15 | 2 << 4 | 3  # enabled, internal system clock, counting, active
E_TRACE, N_TRACE = 0, 1
SUPPORT, SYNC_START, SYNC_TRAP, CONTEXT_CHANGE = 0b1111, 0b0011, 0b0111, 0b1011  # low four bits: format 3, subformat


class Traced(NamedTuple):
    """*retired*: what the hart says it retired while traced. *accessed*: what that read and wrote, *places*: by which
    of *retired*. *data*: the trace.

    *options*, *encapsulation*: how it is to be read, as the registers and `ETraceBuild` say.
    """

    elf: Path
    retired: list[int]
    accessed: list[Accessed]
    places: list[int]
    data: bytes
    options: Options
    encapsulation: Encapsulation

    def packets(self) -> list[tuple[ContentKind, bytes, int | None]]:
        """All of them in the order of the trace: kind, payload, timestamp."""
        found: list[tuple[int, ContentKind, bytes, int | None]] = []
        deframer = self.encapsulation.deframer()
        for item in (*deframer.feed(self.data), *deframer.finish()):
            if isinstance(item, SourcePackets):
                times = item.times or [None] * len(item.payloads)
                kinds = [item.kind] * len(item.payloads)
                found += zip(item.offsets, kinds, item.payloads, times, strict=True)
        return [packet for _, *packet in sorted(found, key=lambda one: one[0])]  # type: ignore[misc]

    def payloads(self) -> list[bytes]:
        """The te_inst packets."""
        return [payload for kind, payload, _ in self.packets() if kind is ContentKind.INSTRUCTION]

    def kinds(self) -> list[int]:
        """The low four bits of each te_inst packet: of format 3, format and subformat."""
        return [payload[0] & 15 for payload in self.payloads()]

    def history(self) -> History:
        """As our decoder has it."""
        return decode(self.data, Image.from_elf(self.elf), self.options, self.encapsulation)

    def check(self) -> None:
        """The trace says what the hart says, to both decoders."""
        assert len(self.retired) > 3000
        assert NaiveDecoder(Image.from_elf(self.elf), self.options).decode(self.payloads()) == self.retired
        history = self.history()
        assert list(history.pcs(0, len(history))) == self.retired


def machine_with(
    elf: Path,
    etrace: ETraceBuild | None = None,
    *,
    base: int = LOW,
    trace_size: int = 1 << 18,
    formats: Sequence[int] = (E_TRACE,),
    absent: Collection[str] = (),
) -> Machine:
    memory_map = MemoryMap(ram=base, ram_size=1 << 20, trace_ram_size=trace_size)
    return build(elf, extensions="IMAC", memory_map=memory_map, formats=formats, etrace=etrace, absent=absent)


def start(
    machine: Machine,
    control: int = RARE_SYNC,
    features: int = 0,
    timestamps: int = 0,
    data: int = 0,
    *,
    sink: int = 0,
    size: int | None = None,
) -> tuple[Registers, Registers]:
    """As the document has it, with trTeDataControl before trTeEnable. *sink*: more bits of trRamControl.

    *size*: of the buffer; None: all there is.
    """
    te, ram = Registers(machine.bus, TE), Registers(machine.bus, RAM)
    for component in (ram, te):
        component.activate()
    te[CONTROL] = ACTIVE | control
    ram[CONTROL] = ACTIVE | SMEM | sink
    size = size or machine.memory_map.trace_ram_size
    ram[0x10], ram[0x18], ram[0x20] = BUFFER, BUFFER + size - 4, BUFFER
    ram[CONTROL] = ACTIVE | ENABLE | SMEM | sink
    ram.poll(ENABLE, ENABLE)
    te[8], te[DATA_CONTROL] = features, data
    for value in (0, ACTIVE, timestamps):
        te[TS_CONTROL] = value
    te[CONTROL] = ACTIVE | ENABLE | control
    te.poll(ENABLE, ENABLE)
    te[CONTROL] = ACTIVE | ENABLE | TRACING | control
    return te, ram


def trace(
    machine: Machine,
    elf: Path,
    control: int = RARE_SYNC,
    features: int = 0,
    timestamps: int = 0,
    data: int = 0,
    *,
    built: ETraceBuild | None = None,
    instructions: int = INSTRUCTIONS,
    slice_length: int = 1111,
) -> Traced:
    """Run the program, all of it under trace. *built*: how the machine's encoder is."""
    log: list[int] = []
    accessed: list[Accessed] = []
    places: list[int] = []

    def watch(retired: Sequence[HartItem]) -> None:
        for item in retired:
            if isinstance(item, Accessed):  # by the block that comes next
                accessed.append(item)
                places.append(len(log) + item.place)
            else:
                told_to(log, [item])

    machine.encoder.watch = watch
    te, ram = start(machine, control, features, timestamps, data)
    while machine.hart.instret < instructions:
        machine.run_slice(slice_length)
    built = built or ETraceBuild()
    options = options_of(machine, elf, built, control, features, data)
    encapsulation = Encapsulation(
        src_bits=0 if control & 1 << 15 else features >> 28,
        timestamp_bytes=5 if timestamps else 0,
        type_bits=int(built.data_trace),
    )
    return Traced(elf, log, accessed, places, stop(te, ram), options, encapsulation)


def options_of(machine: Machine, elf: Path, built: ETraceBuild, control: int, features: int, data: int) -> Options:
    """What a decoder has to be told of an encoder with these registers; trap handlers are where mtvec points."""
    modes = Modes(
        full_address=bool(features & NO_ADDR_DIFF),
        implicit_exception=bool(features & NO_TRAP_ADDR),
        sijump=bool(features & SEQUENTIAL),
        implicit_return=bool(features & IMPLICIT_RETURN),
        branch_prediction=bool(features & PREDICTION),
        jump_target_cache=bool(features & CACHE),
        resync_disabled=not control >> 16 & 3,
        data_no_address=bool(data & DATA_NO_ADDR),
        data_no_data=bool(data & DATA_NO_VALUE),
        data_full_address=built.data_trace and not data >> 18 & 3,
    )
    known = machine.encoder.etrace
    assert known is not None
    handlers = TrapHandlers(ElfFile(elf).symbol("trap"))
    return Options(known.parameters, modes, support=known.support, trap_handlers=handlers)
