"""The trace components that the simulated target has unless others are described: encoders before one RAM sink."""

from collections.abc import Collection, Sequence
from typing import TypedDict, Unpack

from rvtrace_gdb.decode.ntrace.encoder import EncoderOptions
from rvtrace_gdb.transport.simulated.memory_map import MemoryMap
from rvtrace_gdb.transport.simulated.trace_etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.trace_filter_registers import FilterUnits
from rvtrace_gdb.transport.simulated.wiring import EncoderPart, RamSinkPart, Wiring

SINK = "ram0"


class EncoderHow(TypedDict, total=False):
    """How an encoder is built: see `EncoderPart`."""

    formats: Sequence[int]
    built_with: EncoderOptions | None
    etrace: ETraceBuild | None
    absent: Collection[str]
    filters: FilterUnits
    polls: int


def standard(memory_map: MemoryMap, harts: int = 1, **how: Unpack[EncoderHow]) -> Wiring:
    """An encoder for each hart, all built alike."""
    encoders = (
        EncoderPart(name=f"encoder{hart}", base=memory_map.encoder_of(hart), hart=hart, to=(SINK,), **how)
        for hart in range(harts)
    )
    start, size, polls = memory_map.trace_ram, memory_map.trace_ram_size, how.get("polls", 1)
    sink = RamSinkPart(name=SINK, base=memory_map.ram_sink, start=start, size=size, sram_size=size, polls=polls)
    return Wiring((*encoders, sink))
