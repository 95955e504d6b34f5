"""Trace components around a simulated hart, put together by hand, at addresses of their own.

Registers and bits are numbers here, taken from the Trace Control Interface 1.0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.devices.component import TraceComponent
from rvtrace_gdb.transport.simulated.devices.encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from rvtrace_gdb.transport.simulated.devices.output import TraceOutput
from rvtrace_gdb.transport.simulated.devices.sinks import RamSink
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    BUFFER,
    CONTROL,
    EMPTY,
    ENABLE,
    SMEM,
    TRACING,
    Registers,
)

FIRST, STEP = 0x2100_0000, 0x1000
HTM = 6 << 4
DATA_CONTROL, INST_FILTERS, DATA_FILTERS, TS_CONTROL = 0x10, 0x0C, 0x1C, 0x40
SIZE = 1 << 18
FILTER_UNITS = FilterUnits(16, 8)


class Step(NamedTuple):
    """One instruction that retired, or a trap that was taken before the next one."""

    pc: int
    word: int
    privilege: int
    context: int
    access: Accessed | None = None
    trap: TrapEntry | None = None


@dataclass
class Log:
    """What a hart retired, one step after the other: from what it tells the encoder, by nobody's rules but these."""

    privilege: int
    context: int
    steps: list[Step] = field(default_factory=list)

    def __call__(self, retired: Sequence[HartItem]) -> None:
        accesses: dict[int, Accessed] = {}
        for item in retired:
            if isinstance(item, Situation):
                self.privilege, self.context = item.privilege, item.scontext
            elif isinstance(item, TrapEntry):
                self.steps.append(Step(item.epc, 0, item.privilege, self.context, trap=item))
            elif isinstance(item, Accessed):
                accesses[item.place] = item
            else:
                block, count = (item, item.n) if isinstance(item, HartBlock) else item
                for k in range(count):
                    where = block.pcs[k], block.words[k], self.privilege, self.context
                    self.steps.append(Step(*where, accesses.get(k)))
                accesses.clear()


@lru_cache(maxsize=4)
def image_of(elf: Path) -> Image:
    """Read once for all rigs with the program."""
    return Image.from_elf(elf)


class Rig:
    """A machine whose own trace components stay inactive, and others beside it."""

    def __init__(self, elf: Path, base: int = 0x8000_0000) -> None:
        memory_map = MemoryMap(ram=base, ram_size=1 << 20, trace_ram_size=SIZE)
        self.image = image_of(elf)
        self.machine: Machine = build(elf, extensions="IMAC", memory_map=memory_map)
        self.hart, self.bus = self.machine.hart, self.machine.bus
        self.components: list[TraceComponent] = []
        self.encoders: list[TraceEncoder] = []

    def add(self, component: TraceComponent) -> Registers:
        base = FIRST + STEP * len(self.components)
        self.components.append(component)
        self.bus.add(base, STEP, component.read, component.write)
        return Registers(self.bus, base)

    def sink(self, **options: Any) -> tuple[RamSink, Registers]:
        sink = RamSink(self.bus, sram_size=SIZE, **options)
        return sink, self.add(sink)

    def encoder(self, output: TraceOutput, **options: Any) -> tuple[TraceEncoder, Registers]:
        encoder = TraceEncoder(self.hart, [output], **options)
        self.encoders.append(encoder)
        return encoder, self.add(encoder)

    def run(self, instructions: int, slice_length: int = 997) -> None:
        """About so many."""
        end = self.hart.instret + instructions
        while self.hart.instret < end:
            self.hart.run(min(slice_length, end - self.hart.instret))
            for encoder in self.encoders:
                encoder.drain()

    def pcs(self, data: bytes, options: Options | None = None) -> list[int]:
        """What N-Trace says that retired."""
        history = decode(data, self.image, options or Options())
        return [pc for pc in history.pcs(0, len(history)) if pc != GAP]


def start_sink(ram: Registers, size: int = SIZE, options: int = 0) -> None:
    """In SMEM mode."""
    ram.activate()
    ram[CONTROL] = ACTIVE | SMEM | options
    ram[0x10], ram[0x18], ram[0x20] = BUFFER, BUFFER + size - 4, BUFFER
    enable(ram)


def enable(component: Registers) -> None:
    component[CONTROL] = component[CONTROL] | ENABLE
    component.poll(ENABLE, ENABLE)


def disable(component: Registers) -> None:
    component[CONTROL] = component[CONTROL] & ~(ENABLE | EMPTY)
    component.poll(ENABLE | EMPTY, EMPTY)


def start_encoder(te: Registers, options: int = HTM, set_up: Callable[[], None] = lambda: None) -> None:
    """*set_up*: writes more registers before it is enabled."""
    te.activate()
    te[CONTROL] = ACTIVE | options
    for offset in (0x08, DATA_CONTROL, INST_FILTERS, DATA_FILTERS, TS_CONTROL):
        te[offset] = 0
    set_up()
    te[CONTROL] = ACTIVE | ENABLE | options
    te.poll(ENABLE, ENABLE)
    te[CONTROL] = ACTIVE | ENABLE | TRACING | options


def stored(ram: Registers) -> bytes:
    """All of a buffer that has not wrapped, after the sink was disabled."""
    disable(ram)
    assert not ram[0x20] & 1
    return ram.bus.read_bytes(BUFFER, ram[0x20] - BUFFER)
