"""The registers a capture has: as they were read back when its trace was begun."""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.controlregs import dump, sifive_v0
from rvtrace_gdb.controlregs.blocks import PRE_RATIFIED, block
from rvtrace_gdb.controlregs.encoder import CONTROL, DATA_CONTROL, IMPL, INST_FEATURES, INST_FILTERS
from rvtrace_gdb.controlregs.fields import Register, RegisterBlock
from rvtrace_gdb.controlregs.ram_sink import CONTROL as RAM_CONTROL
from rvtrace_gdb.controlregs.ram_sink import IMPL as RAM_IMPL
from rvtrace_gdb.controlregs.ram_sink import LIMIT_HIGH, LIMIT_LOW, RAM_SINK, START_HIGH, START_LOW
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0 import encoder as v0
from rvtrace_gdb.controlregs.sifive_v0 import sinks
from rvtrace_gdb.controlregs.sifive_v0.in_force import SinkInForce as V0Sink
from rvtrace_gdb.controlregs.sifive_v0.timestamp import CONTROL as V0_TS_CONTROL
from rvtrace_gdb.controlregs.timestamp import CONTROL as TS_CONTROL
from rvtrace_gdb.session import regs_ctr
from rvtrace_gdb.session.captured import Capture, CapturedEncoder

_LOW = 0xFFFF_FFFF
_NOT_READ = "not read from a target: this stands for what was said of the trace when it was imported"


def names(capture: Capture) -> tuple[str, ...]:
    """Of what the capture has registers of."""
    encoders = (encoder.in_force.name for encoder in capture.encoders)
    sinks = (sink.in_force.name for sink in capture.sinks)
    records = (records.in_force.name for records in capture.records)
    return *encoders, *sinks, *records, *(port.in_force.name for port in capture.tandem)


def lines(capture: Capture, name: str, *, everything: bool = False) -> list[str]:
    """The registers of the component called *name*, which there must be, below a title."""
    return [line for kind in (_encoders, _sinks, _records, _tandem) for line in kind(capture, name, everything)]


def _encoders(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for encoder in capture.encoders:
        if encoder.in_force.name == name:
            values = _of_encoder(encoder)
            base = encoder.in_force.base
            known = block("encoder", encoder.in_force.version)
            yield from _component(name, known, base, f", hart {encoder.hart}", values, everything)


def _of_encoder(encoder: CapturedEncoder) -> Mapping[Register, int]:
    found = encoder.in_force
    if not found.version:
        return {v0.CONTROL: found.control, v0.IMPL: found.impl, V0_TS_CONTROL: found.ts_control}
    return {
        CONTROL: found.control,
        IMPL: found.impl,
        INST_FEATURES: found.features,
        DATA_CONTROL: found.data_control,
        TS_CONTROL: found.ts_control,
        **({} if found.inst_filters is None else {INST_FILTERS: found.inst_filters}),
    }


def _sinks(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for sink in capture.sinks:
        if sink.in_force.name == name:
            found = sink.in_force
            known = sifive_v0.inside(found.host, "ram_sink") if isinstance(found, V0Sink) else RAM_SINK
            yield from _component(name, known, found.base, "", _of_sink(found), everything)


def _of_sink(found: SinkInForce) -> Mapping[Register, int]:
    if isinstance(found, V0Sink):
        host = PRE_RATIFIED[found.host]
        places = {sinks.BASE: found.start & _LOW, sinks.BASE_HIGH: found.start >> 32, sinks.LIMIT: found.limit & _LOW}
        return {host.control: found.control, host.impl: found.impl, **places}
    return {
        RAM_CONTROL: found.control,
        RAM_IMPL: found.impl,
        START_LOW: found.start & _LOW,
        START_HIGH: found.start >> 32,
        LIMIT_LOW: found.limit & _LOW & ~3,
        LIMIT_HIGH: found.limit >> 32,
    }


def _component(
    name: str, found: RegisterBlock, base: int, more: str, values: Mapping[Register, int], everything: bool
) -> Iterator[str]:
    """*base* 0: nobody read these registers."""
    yield f"{name}{f' at {base:#x}' if base else ''}: {found.name}{more}, in the capture"
    by_offset = {register.offset: value for register, value in values.items() if register.offset in found.by_offset}
    yield from (f"  {line}" for line in dump.dump(found, by_offset, everything))
    if not base:
        yield f"  note: {_NOT_READ}"


def _records(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for records in capture.records:
        if records.in_force.name == name:
            yield from regs_ctr.lines(records.in_force, records.hart, ", in the capture", everything=everything)


def _tandem(capture: Capture, name: str, everything: bool) -> Iterator[str]:
    for port in capture.tandem:
        if port.in_force.name == name:
            yield f"{name}: tandem trace port, hart {port.hart}, in the capture"
            yield "  note: it has no registers that say how it traces; those of the hart are at any place of its past"
