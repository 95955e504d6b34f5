"""The real openocd against the simulated target: memory, and a whole trace run through the control registers.

The program makes the same 4096 rounds each time and ends in ebreak, so every run leaves the same trace. That is the
check: what a small or wrapped or other kind of buffer holds must be the matching part of what a large one held.
"""

import struct
import time
from collections.abc import Iterator

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentAccess, DrainFailed
from rvtrace_gdb.controlregs.trace_control.buffer_readout import DrainedBuffer
from rvtrace_gdb.controlregs.trace_control.component_registers import RAM_SINK
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER, SyncMode
from rvtrace_gdb.support.errors import Cancelled
from rvtrace_gdb.transport.openocd.errors import NoSuchTarget, NotOpenOcd, OpenOcdError, OpenOcdRefused
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.controlregs.trace_control.rig import TraceRequest, TraceSettings, drain, start, status, stop
from tests.helpers.amounts import thorough
from tests.helpers.openocd_crash import kill_openocd
from tests.transport.openocd.live_target import CODE, EBREAK, ENTRY, LOOP_FOREVER, Live

ENCODER_BASE, SINK_BASE, TRACE_RAM = 0x2000_0000, 0x2000_1000, 0x3000_0000
LARGE = TraceRequest(sync_mode=SyncMode.MESSAGES, sync_max=4, buffer_start=TRACE_RAM, buffer_size=0x1_0000)
PROG_TRACE_SYNC, PROG_TRACE_CORRELATION = 9, 33  # TCODEs, N-Trace 1.0 table of messages


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("live")) as rig:
        yield rig


@pytest.fixture(scope="module")
def spinning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The hart never stops by itself."""
    with Live(tmp_path_factory.mktemp("spinning"), LOOP_FOREVER) as rig:
        yield rig


@pytest.fixture
def openocd(live: Live) -> Iterator[OpenOcd]:
    with live.connect() as connection:
        connection.command("halt")
        yield connection


def components(openocd: OpenOcd) -> tuple[Component, Component]:
    return (
        Component(openocd, SINK_BASE, RAM_SINK, "sink 0"),
        Component(openocd, ENCODER_BASE, ENCODER, "encoder 0"),
    )


def traced_run(openocd: OpenOcd, request: TraceRequest) -> tuple[DrainedBuffer, TraceSettings]:
    """The whole program under trace, from its entry to the ebreak."""
    sink, encoder = components(openocd)
    openocd.command(f"reg pc {ENTRY:#x}")
    in_force = start(sink, [encoder], request)
    openocd.command("resume")
    deadline = time.monotonic() + 60
    while not openocd.halted():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert f"{EBREAK:x}" in openocd.command("reg pc")
    stop(sink, [encoder])
    return drain(sink, in_force.sink), in_force


@pytest.fixture(scope="module")
def whole(live: Live) -> bytes:
    """The trace of one run, in a buffer it does not fill."""
    with live.connect() as connection:
        connection.command("halt")
        drained, in_force = traced_run(connection, LARGE)
    assert not drained.wrapped and in_force.notes == ()
    return drained.data


def test_what_openocd_says_of_the_hart(openocd: OpenOcd) -> None:
    assert openocd.xlen() == 64
    assert (openocd.state(), openocd.halted()) == ("halted", True)
    assert openocd.targets == ("sim.cpu",)
    assert openocd.version.endswith("0.12.0")


def test_memory(openocd: OpenOcd) -> None:
    assert openocd.read_block(ENTRY, 4 * len(CODE)) == struct.pack(f"<{len(CODE)}I", *CODE)
    for n in range(20):
        openocd.write32(ENTRY + 0x1000 + 4 * n, 0xFFFF_FFFF - n)
    assert openocd.read_block(ENTRY + 0x1000, 80) == struct.pack("<20I", *(0xFFFF_FFFF - n for n in range(20)))
    assert openocd.read32(ENTRY + 0x1004) == 0xFFFF_FFFE


def test_a_burst_reads_one_address_again_and_again(openocd: OpenOcd) -> None:
    openocd.write32(ENTRY + 0x1000, 0x1234_5678)
    assert openocd.read_port_burst(ENTRY + 0x1000, 100) == struct.pack("<I", 0x1234_5678) * 100
    assert openocd.read_port_burst(ENTRY + 0x1000, 1) == struct.pack("<I", 0x1234_5678)
    assert openocd.read_port_burst(0x10, 100) is None, "nothing answers there"
    assert openocd.read32(ENTRY) == CODE[0], "the error is cleared"


def test_bus_errors(openocd: OpenOcd) -> None:
    with pytest.raises(OpenOcdRefused, match="cannot access address 0x10: read_memory: failed to read") as caught:
        openocd.read32(0x10)
    assert caught.value.address == 0x10
    with pytest.raises(OpenOcdRefused, match="cannot access address 0x14: write_memory: failed to write memory"):
        openocd.write32(0x14, 1)
    with pytest.raises(ComponentAccess, match=r"encoder 1 at 0x40000000: trTeControl \(0x40000000\) cannot be read"):
        start(components(openocd)[0], [Component(openocd, 0x4000_0000, ENCODER, "encoder 1")], LARGE)
    assert openocd.read32(ENTRY) == CODE[0]


def test_tcl_errors(openocd: OpenOcd) -> None:
    with pytest.raises(OpenOcdRefused, match="OpenOCD refuses 'nonsense': invalid command name \"nonsense\""):
        openocd.command("nonsense")
    with pytest.raises(OpenOcdRefused):
        openocd.command("unbalanced {")
    assert openocd.command("expr 6 * 7") == "42"


def test_other_ports_and_targets(live: Live) -> None:
    for port in (live.telnet_port, live.gdb_port):
        with pytest.raises(NotOpenOcd, match=f"127.0.0.1:{port} is not OpenOCD's Tcl server"):
            live.connect(port).read32(ENTRY)
    with pytest.raises(NoSuchTarget, match=r"no target 'riscv\.cpu', it has sim\.cpu"):
        OpenOcd(port=live.tcl_port, target="riscv.cpu").read32(ENTRY)
    with OpenOcd(port=live.tcl_port, target="sim.cpu") as openocd:
        assert openocd.read32(ENTRY) == CODE[0]
        assert openocd.xlen() == 64


def test_trace_data_does_not_fill_openocds_log(live: Live, openocd: OpenOcd) -> None:
    log = live.folder / "openocd.log"
    before = log.stat().st_size
    openocd.read_block(ENTRY, 16384)
    assert log.stat().st_size - before < 2000, "as text it would be 32 KB; on a slow machine there may be a warning"


def test_a_run_is_traced(whole: bytes) -> None:
    """4096 indirect jumps (ret) each make a message of at least 3 bytes; first and last are as the protocol demands."""
    messages = [m for m in split_messages(whole) if m != b"\xff"]
    assert len(messages) > 4096 and len(whole) % 4 == 0
    assert messages[0][0] >> 2 == PROG_TRACE_SYNC
    assert messages[-1][0] >> 2 == PROG_TRACE_CORRELATION


def split_messages(stream: bytes) -> list[bytes]:
    """At bytes whose MSEO (bits 1:0) is 3."""
    ends = [n + 1 for n, byte in enumerate(stream) if byte & 3 == 3]
    return [stream[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def test_runs_repeat(openocd: OpenOcd, whole: bytes) -> None:
    assert traced_run(openocd, LARGE)[0].data == whole


def test_smem_that_wraps(openocd: OpenOcd, whole: bytes) -> None:
    request = TraceRequest(sync_mode=1, sync_max=4, buffer_start=TRACE_RAM + 0x800, buffer_size=0x1000)
    openocd.write32(TRACE_RAM + 0x7FC, 0x1234_5678)
    openocd.write32(TRACE_RAM + 0x1800, 0x8765_4321)
    drained, in_force = traced_run(openocd, request)
    assert drained == DrainedBuffer(whole[-0x1000:], True)
    assert (in_force.sink.size, in_force.notes) == (0x1000, ())
    assert (openocd.read32(TRACE_RAM + 0x7FC), openocd.read32(TRACE_RAM + 0x1800)) == (0x1234_5678, 0x8765_4321)


def test_sram_that_wraps(openocd: OpenOcd, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenOcd, "read_data_port", None)  # bursts are enough
    drained, in_force = traced_run(openocd, TraceRequest(sync_mode=1, sync_max=4, buffer_size=0x400))
    assert drained == DrainedBuffer(whole[-0x400:], True)
    assert drain(components(openocd)[0]) == drained  # the read pointer starts anew; a later session finds the same
    assert in_force.notes == ()


def test_stop_on_wrap(openocd: OpenOcd, whole: bytes) -> None:
    request = TraceRequest(sync_mode=1, sync_max=4, buffer_start=TRACE_RAM, buffer_size=0x1000, stop_on_wrap=True)
    drained, _ = traced_run(openocd, request)
    assert drained == DrainedBuffer(whole[:0x1000], True)


def test_long_reads_can_be_cancelled(openocd: OpenOcd) -> None:
    calls: list[int] = []

    def watch(label: str, done: int, total: int | None = None) -> None:
        calls.append(done)
        if len(calls) == 5:
            raise Cancelled

    with pytest.raises(Cancelled):
        openocd.read_block(TRACE_RAM, 0x1_0000, watch)
    assert calls == sorted(set(calls)) and calls[-1] < 0x1_0000
    assert openocd.read32(ENTRY) == CODE[0]


# A hart that runs: it takes a processor, so these come last.


def test_memory_while_the_hart_runs(spinning: Live) -> None:
    with spinning.connect() as openocd:
        assert openocd.state() == "running"
        expected = [n * 0x9E37_79B1 & 0xFFFF_FFFF for n in range(64)]
        for n, word in enumerate(expected):
            openocd.write32(ENTRY + 0x1000 + 4 * n, word)
        assert openocd.read_block(ENTRY + 0x1000, 256) == struct.pack("<64I", *expected)
        assert openocd.state() == "running"


def test_status_and_stop_while_the_hart_runs(spinning: Live) -> None:
    with spinning.connect() as openocd:
        sink, encoder = components(openocd)
        in_force = start(sink, [encoder], LARGE)
        now, (watched,) = status(sink, [encoder])
        assert now.enabled and watched.tracing and not watched.lost
        stop(sink, [encoder])
        assert openocd.state() == "running"
        messages = [m for m in split_messages(drain(sink, in_force.sink).data) if m != b"\xff"]
        assert [messages[0][0] >> 2, messages[-1][0] >> 2] == [PROG_TRACE_SYNC, PROG_TRACE_CORRELATION]


@thorough("endtoend/trace/test_failures.py::test_openocd_is_started_anew")
def test_openocd_dies_half_way_and_comes_back(spinning: Live) -> None:
    with spinning.connect() as openocd:
        sink, encoder = components(openocd)
        request = TraceRequest(buffer_start=TRACE_RAM, buffer_size=0x1_0000)
        in_force = start(sink, [encoder], request)
        stop(sink, [encoder])
        openocd.write32(SINK_BASE + 0x20, TRACE_RAM + 0x4000)  # as if there were that much trace
        expected = openocd.read_block(TRACE_RAM, 0x4000)
        killed = False

        def kill_at_half(label: str, done: int, total: int | None = None) -> None:
            nonlocal killed
            if done >= 0x1000 and not killed:
                kill_openocd(spinning)
                killed = True

        with pytest.raises(DrainFailed) as caught:
            drain(sink, in_force.sink, kill_at_half)
        assert isinstance(caught.value.cause, OpenOcdError)
        assert 0x1000 <= len(caught.value.partial) < 0x4000
        assert caught.value.partial == expected[: len(caught.value.partial)]
        with pytest.raises(OpenOcdError, match=r"start OpenOCD|start it again"):
            openocd.read32(ENTRY)
        spinning.start_openocd()
        assert drain(sink, in_force.sink) == DrainedBuffer(expected, False)
