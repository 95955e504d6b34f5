"""The trace components of `rvtrace sim` and the target description they come from, or that is written of them."""

import argparse
from dataclasses import replace
from pathlib import Path

from rvtrace_gdb.console import sim_devices, sim_encoder, sim_etrace
from rvtrace_gdb.console.sim_streams import Streams, asked_for
from rvtrace_gdb.session import description as told
from rvtrace_gdb.session import description_file
from rvtrace_gdb.session.description import Description
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.debug_harts import MOST
from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.simulated.memory_map import MemoryMap
from rvtrace_gdb.transport.simulated.trace_encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.trace_etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.wiring import (
    RAM_MODES,
    AnyPart,
    AtbBridgePart,
    EncoderPart,
    FunnelPart,
    PibSinkPart,
    RamSinkPart,
    Wiring,
)
from rvtrace_gdb.transport.simulated.wiring_standard import EncoderHow, standard

_LEAST_SRAM, _MOST_SRAM = 8, 1 << 28  # bytes
_HIGH = 1 << 32
_V0_ADDRESS_BITS, _V0_WORD = 40, 8  # of memory, as the P550 has them


class BadTarget(RvtraceError):
    """A target description that does not go together with the command line."""


def loaded(args: argparse.Namespace) -> Description | None:
    """What --target describes, None without it. Raises DescriptionError, or BadTarget."""
    if args.target is None:
        return None
    if args.trace_size is not None:
        raise BadTarget("--trace-size: the sinks are those of --target, which says how large their buffers are")
    return description_file.load(Path(args.target))


def harts(args: argparse.Namespace, description: Description | None) -> int:
    """How many the target has. Raises BadTarget."""
    if args.harts is not None:
        return int(args.harts)
    if description is None:
        return 1
    last = max(description.encoders, key=lambda encoder: encoder.hart)
    if last.hart >= MOST:
        raise BadTarget(f"{last.name} traces hart {last.hart}, and the simulated target has {MOST} harts at most")
    return 1 + last.hart


def wiring(
    args: argparse.Namespace, description: Description | None, memory_map: MemoryMap, streams: Streams
) -> Wiring:
    """The components as the command line has them built. Raises RvtraceError."""
    made = _wiring(args, description, memory_map)
    if args.devices:
        made = sim_devices.built(made, Path(args.devices), streams.open)
    return asked_for(made, args.stream, streams)


def _wiring(args: argparse.Namespace, description: Description | None, memory_map: MemoryMap) -> Wiring:
    how: EncoderHow = {
        "formats": sim_encoder.formats(args),
        "built_with": sim_encoder.built_with(args),
        "etrace": sim_etrace.built(args),
        "absent": tuple(args.without),
        "filters": sim_encoder.filters(args),
    }
    if description is None:
        return standard(memory_map, harts(args, None), **how)
    return Wiring(tuple(_part(component, how) for component in description.components))


def _part(component: told.AnyComponent, how: EncoderHow) -> AnyPart:
    match component:
        case told.Encoder():
            how = how | {"etrace": sim_etrace.described(how["etrace"] or ETraceBuild(), component.etrace)}
            return EncoderPart(
                name=component.name, base=component.base, hart=component.hart, to=component.to,
                version=component.version, **how,
            )  # fmt: skip
        case told.Funnel():
            return FunnelPart(
                name=component.name, base=component.base, to=component.to, inputs=component.inputs,
                input_count=1 + max(component.inputs.values(), default=0), version=component.version,
            )  # fmt: skip
        case told.RamSink():
            return _ram_sink(component)
        case told.PibSink():
            return PibSinkPart(name=component.name, base=component.base, inside=component.inside)
        case told.AtbBridge():
            return AtbBridgePart(name=component.name, base=component.base, inside=component.inside)


def _ram_sink(sink: told.RamSink) -> RamSinkPart:
    """An SRAM that is as large as it has to be at least."""
    part = RamSinkPart(name=sink.name, base=sink.base, inside=sink.inside)
    start, size = sink.start or 0, sink.size or 0
    if sink.inside:
        part = replace(part, modes=(RAM_MODES[sink.mode],), address_bits=_V0_ADDRESS_BITS)
        if sink.mode == "SMEM":
            return replace(part, start=start, size=size, access_bytes=_V0_WORD)
    elif sink.mode == "SMEM":
        return replace(part, start=start, size=size, address_bits=64 if start + size > _HIGH else 32)
    if start + size > _MOST_SRAM:
        raise BadTarget(f"{sink.name}: an SRAM of the simulated target has {_MOST_SRAM:#x} bytes at most")
    return part if not size else replace(part, sram_size=1 << (max(start + size, _LEAST_SRAM) - 1).bit_length())


def description_of(machine: Machine, name: str, tcl_port: int, described: Description | None = None) -> Description:
    """What *machine* has. *described*: what it was made from, whose sinks are used as it says."""
    if described is None:
        described = Description(name, "", None, told.OpenOcd(), (), (_standard_sink(machine),))
    encoders = tuple(_encoder(machine, part) for part in machine.wiring.encoders)
    return replace(described, encoders=encoders, openocd=told.OpenOcd(tcl_port=tcl_port))


def _standard_sink(machine: Machine) -> told.RamSink:
    part = next(part for part in machine.wiring.parts if isinstance(part, RamSinkPart))
    return told.RamSink(part.name, part.base, "SMEM", part.start, part.size)


def _encoder(machine: Machine, part: EncoderPart) -> told.Encoder:
    device = machine.components[part.name]
    built = device.etrace if isinstance(device, TraceEncoder) else None
    etrace = {} if built is None else sim_etrace.settings(built.decoder)
    return told.Encoder(part.name, part.base, part.hart, part.to, etrace, part.version)
