"""Each hart has its trace encoder; all write to one buffer, and what is in it can be told apart by source."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode_streams as decode_etrace
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.ntrace.decoder import decode_streams as decode_ntrace
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.transport.simulated.devices.test_component import CONTROL, INST_FEATURES, Registers, start, stop
from tests.transport.simulated.encoder import etrace_traces, traces
from tests.transport.simulated.harts import compiled

# Trace Control Interface 1.0, trTeControl: trTeActive, trTeEnable, trTeInstTracing, trTeEmpty; values of trTeFormat.
ACTIVE, ENABLE, TRACING, EMPTY = 1, 2, 4, 8
N_TRACE, E_TRACE = 1, 0
OPTIONS = {N_TRACE: traces.HTM | traces.RARE_SYNC, E_TRACE: etrace_traces.RARE_SYNC}
SOURCE_BITS = 4
ENCODERS = [0x2000_0000, 0x2001_0000, 0x2002_0000]


def source(number: int) -> int:
    """trTeInstFeatures: trTeSrcBits and trTeSrcID."""
    return SOURCE_BITS << 28 | number << 16


def machine_of(elf: Path, harts: int, trace_format: int) -> tuple[Machine, list[list[int]]]:
    """And what each hart will say that it has retired while traced."""
    memory_map = MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18)
    machine = build(elf, extensions="IMAC", memory_map=memory_map, formats=(trace_format,), harts=harts)
    logs: list[list[int]] = [[] for _ in range(harts)]
    for encoder, log in zip(machine.encoders, logs, strict=True):
        encoder.watch = lambda retired, log=log: traces.told_to(log, retired)  # type: ignore[misc]
    return machine, logs


def begin(machine: Machine, harts: int, trace_format: int) -> tuple[list[Registers], Registers]:
    """All encoders and the sink."""
    others = [Registers(machine.bus, base) for base in ENCODERS[1:harts]]
    start_first = start if trace_format == N_TRACE else etrace_traces.start
    first, sink = start_first(machine, OPTIONS[trace_format], features=source(0))
    for number, registers in enumerate(others, 1):
        registers.activate()
        registers[INST_FEATURES] = source(number)
        registers[traces.TS_CONTROL] = 0
        for bits in (0, ENABLE, ENABLE | TRACING):
            registers[CONTROL] = ACTIVE | bits | OPTIONS[trace_format]
    return [first, *others], sink


def decoded(machine: Machine, elf: Path, trace_format: int, data: bytes) -> SourceHistories:
    if trace_format == N_TRACE:
        return decode_ntrace(data, Image.from_elf(elf), Options(src_bits=SOURCE_BITS))
    options = etrace_traces.options_of(machine, elf, ETraceBuild(), OPTIONS[E_TRACE], 0, 0)
    return decode_etrace(
        data, Image.from_elf(elf), options, Encapsulation(src_bits=SOURCE_BITS, type_bits=int(ETraceBuild().data_trace))
    )


@pytest.mark.parametrize("trace_format", [N_TRACE, E_TRACE], ids=["ntrace", "etrace"])
@pytest.mark.parametrize("harts", [2, 3])
def test_the_trace_of_several_harts(tmp_path: Path, harts: int, trace_format: int) -> None:
    elf = compiled(tmp_path)
    machine, logs = machine_of(elf, harts, trace_format)
    encoders, sink = begin(machine, harts, trace_format)
    machine.run_slice(12_000)
    for registers in encoders[1:]:
        registers[CONTROL] = registers[CONTROL] & ~ENABLE
        registers.poll(ENABLE | EMPTY, EMPTY)
    streams = decoded(machine, elf, trace_format, stop(encoders[0], sink))
    found = {number: list(history.pcs(0, len(history))) for number, history in streams.histories.items()}
    assert found == dict(enumerate(logs))
    assert all(len(log) > 3000 for log in logs)


def test_a_hart_that_is_not_traced_leaves_nothing(tmp_path: Path) -> None:
    elf = compiled(tmp_path)
    machine, logs = machine_of(elf, 2, N_TRACE)
    encoders, sink = begin(machine, 1, N_TRACE)
    machine.run_slice(6000)
    streams = decoded(machine, elf, N_TRACE, stop(encoders[0], sink))
    assert list(streams.histories) == [0]
    assert list(streams.histories[0].pcs(0, len(streams.histories[0]))) == logs[0]
    assert logs[0] and not logs[1] and machine.harts[1].instret > 2000
