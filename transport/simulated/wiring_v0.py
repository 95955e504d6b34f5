"""The devices of version 0 of a `Wiring`: encoders and funnels with their sinks inside.

Sources: see `controlregs.sifive_v0`.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypedDict

from rvtrace_gdb.controlregs.common import VERSION
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild
from rvtrace_gdb.transport.simulated.trace_output import TraceOutput
from rvtrace_gdb.transport.simulated.trace_pib_sink import Probe
from rvtrace_gdb.transport.simulated.v0_build import V0Build
from rvtrace_gdb.transport.simulated.v0_component import Transfer
from rvtrace_gdb.transport.simulated.v0_memory import V0Memory
from rvtrace_gdb.transport.simulated.wiring import (
    AtbBridgePart,
    FunnelPart,
    PibSinkPart,
    RamSinkPart,
    Sink,
    Source,
    Wiring,
    WiringError,
)

_SOURCES = 16  # that srcID can tell apart


class Ways(TypedDict, total=False):
    """Where trace goes from a component: see `V0Component`."""

    to: TraceOutput
    memory: V0Memory
    pins: Probe
    atb: Transfer


def ways(part: Source, fed: Sequence[FunnelPart | Sink], bus: Bus, above: Sequence[TraceOutput]) -> Ways:
    """*fed*: what *part* feeds; *above*: the inputs of funnels among it. Raises WiringError."""
    found = Ways()
    if above:
        found["to"] = above[0]
    kinds = [other.kind for other in fed]
    for other in fed:
        if kinds.count(other.kind) > 1:
            raise WiringError(part.name, f"version 0 feeds one of type {other.kind} at most, not {', '.join(part.to)}")
        if not isinstance(other, FunnelPart) and other.inside != part.name:
            raise WiringError(part.name, f"is of version 0 and cannot feed {other.name}, which is not inside of it")
        match other:
            case RamSinkPart():
                found["memory"] = _memory(other, bus)
            case PibSinkPart():
                found["pins"] = other.probe
            case AtbBridgePart():
                found["atb"] = other.transfer
    return found


def source_of(wiring: Wiring, name: str) -> tuple[int, int]:
    """The hard-wired srcID and nSrcBits of an encoder: as many bits as there have to be. Raises WiringError."""
    names = [part.name for part in wiring.encoders]
    if len(names) > _SOURCES:
        raise WiringError(name, f"version 0 has room for {_SOURCES} source IDs, and there are {len(names)} encoders")
    return names.index(name), (len(names) - 1).bit_length()


def build_of(build: ComponentBuild) -> V0Build:
    """The same choices; the version is 0 unless it was chosen."""
    values = {each.name: getattr(build, each.name) for each in fields(ComponentBuild)}
    return V0Build(**values | {"version": (0, 0) if build.version == VERSION else build.version})


def _memory(part: RamSinkPart, bus: Bus) -> V0Memory:
    return V0Memory(
        bus,
        sram_size=part.sram_size if RamMode.SRAM in part.modes else 0,
        system=RamMode.SMEM in part.modes,
        access_bytes=part.access_bytes,
        address_bits=part.address_bits,
    )
