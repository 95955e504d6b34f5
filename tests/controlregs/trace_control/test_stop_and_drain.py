"""Disable, flush and read-out: nothing that reached an encoder is lost, and the bytes come oldest first."""

from dataclasses import replace

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentTimeout, DrainFailed, SettingRefused, SinkNotReadable
from rvtrace_gdb.controlregs.trace_control.buffer_readout import DrainedBuffer
from rvtrace_gdb.controlregs.trace_control.component_registers import RAM_SINK
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER
from rvtrace_gdb.controlregs.trace_control.funnels_and_sinks import access_bytes
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from tests.controlregs.trace_control.component_model import (
    EMPTY,
    ENABLE,
    BusFault,
    ModelEncoder,
    ModelTarget,
    Unplugged,
)
from tests.controlregs.trace_control.rig import BUFFER, LOW, SMEM, SRAM, Rig, TraceRequest, drain, rig, status, stop

REQUESTS = [pytest.param(SRAM, 256, id="SRAM"), pytest.param(SMEM, 0x400, id="SMEM")]
STREAM = bytes(n * 7 % 251 for n in range(5000))


def run(r: Rig, request: TraceRequest, trace: bytes) -> DrainedBuffer:
    """A whole run; what is drained with the set-up at hand equals what a later session without it drains."""
    got = r.start(request)
    r.sink_model.store(trace)
    stop(r.sink, [r.encoder])
    drained = drain(r.sink, got.sink)
    stranger = Component(r.target, r.sink.base, RAM_SINK)
    assert drain(stranger) == drained
    return drained


@pytest.mark.parametrize(("request_", "size"), REQUESTS)
@pytest.mark.parametrize("length", [0, 4, 100, 248])
@pytest.mark.parametrize("delay", [0, 3])
def test_all_trace_comes_out_with_the_encoders_tail(
    request_: TraceRequest, size: int, length: int, delay: int
) -> None:
    r = rig(encoder={"delay": delay}, sink={"delay": delay})
    for _ in range(2):
        assert run(r, request_, STREAM[:length]) == DrainedBuffer(STREAM[:length] + b"TAIL", False)


@pytest.mark.parametrize(("request_", "size"), REQUESTS)
def test_filled_to_the_last_word(request_: TraceRequest, size: int) -> None:
    assert run(rig(), request_, STREAM[: size - 4]) == DrainedBuffer(STREAM[: size - 4] + b"TAIL", True)


@pytest.mark.parametrize(("request_", "size"), REQUESTS)
@pytest.mark.parametrize("length", [252, 256, 260, 1024, 1500, 4096, 5000])
def test_wrapped_buffers_give_the_newest_bytes(request_: TraceRequest, size: int, length: int) -> None:
    expected = STREAM[:length] + b"TAIL"
    assert run(rig(), request_, STREAM[:length]) == DrainedBuffer(expected[-size:], len(expected) >= size)


@pytest.mark.parametrize("width", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("length", [60, 1020, 1024, 1990])
def test_wide_stores(width: int, length: int) -> None:
    """The last store is filled up with idle bytes, and the end of the buffer is Limit + width."""
    r = rig(sink={"width": width})
    whole = STREAM[:length] + b"TAIL"
    whole += b"\xff" * (-len(whole) % width)
    assert run(r, SMEM, STREAM[:length]) == DrainedBuffer(whole[-1024:], len(whole) >= 1024)
    assert not any(r.outside())


def test_a_stale_wrap_flag_does_not_survive_a_start() -> None:
    r = rig()
    assert run(r, SMEM, STREAM).wrapped
    assert run(r, SMEM, b"new!") == DrainedBuffer(b"new!TAIL", False)


@pytest.mark.parametrize(("request_", "size"), REQUESTS)
def test_stop_on_wrap_keeps_the_oldest(request_: TraceRequest, size: int) -> None:
    r = rig()
    r.start(replace(request_, stop_on_wrap=True))
    r.sink_model.store(STREAM)
    assert not status(r.sink, [r.encoder])[0].enabled
    stop(r.sink, [r.encoder])
    assert drain(r.sink) == DrainedBuffer(STREAM[:size], True)


def test_lost_trace_is_reported() -> None:
    r = rig()
    r.start(SMEM)
    assert stop(r.sink, [r.encoder]).lost == ()
    r.start(SMEM)
    r.encoder_model.overflow = True
    assert status(r.sink, [r.encoder])[1][0].lost
    assert stop(r.sink, [r.encoder]).lost == ("encoder 0",)


def test_status_changes_nothing() -> None:
    r = rig()
    r.start(SMEM)
    r.sink_model.store(STREAM[:40])
    for _ in range(3):
        sink, (encoder,) = status(r.sink, [r.encoder])
        assert (sink.active, sink.enabled, sink.wrapped, sink.pointer) == (True, True, False, BUFFER + 40)
        assert (encoder.active, encoder.enabled, encoder.tracing, encoder.lost) == (True, True, True, False)
    r.target.write32(r.sink.base, 0)
    for _ in range(3):
        sink = status(r.sink, [r.encoder])[0]
    assert (sink.active, sink.enabled, sink.pointer) == (False, False, 0)


@pytest.mark.parametrize(("never", "waited"), [(EMPTY, "trRamEnable=0 trRamEmpty=1"), (ENABLE, "trRamEnable=0")])
def test_a_sink_that_does_not_end(never: int, waited: str) -> None:
    r = rig(timeout=0.02)
    r.start(SMEM)
    r.sink_model.never = never
    with pytest.raises(ComponentTimeout, match=f"sink 0 at 0x20001000: trRamControl did not reach {waited}"):
        stop(r.sink, [r.encoder])


def test_bus_error_at_one_component_does_not_keep_others_running() -> None:
    r = rig()
    r.start(SMEM)
    second = Component(r.target, 0x2000_2000, ENCODER, "encoder 1")
    second_model = r.target.devices[0x2000_2000] = ModelEncoder(r.sink_model)
    del r.target.devices[0x2000_2000]
    with pytest.raises(Exception, match="encoder 1 at 0x20002000"):
        stop(r.sink, [second, r.encoder])
    assert not (r.encoder_model.shown | r.sink_model.shown | second_model.shown) & ENABLE


def test_a_restarted_session_can_stop() -> None:
    """Components without a shadow copy, as after the session process was started anew."""
    r = rig()
    r.start(SMEM)
    r.encoder_model.overflow = True
    before = r.encoder_model.control
    again = rig()
    again.target.devices = r.target.devices
    assert stop(again.sink, [again.encoder]).lost == ("encoder 0",)
    assert r.encoder_model.control == before & ~6


def test_a_pointer_outside_the_buffer_is_not_followed() -> None:
    r = rig()
    r.start(SMEM)
    stop(r.sink, [r.encoder])
    r.sink_model.registers[0x20] = LOW
    with pytest.raises(SinkNotReadable, match="pointer 0x80000000 is outside the buffer 0x80000400 to 0x80000800"):
        drain(r.sink)


def test_sram_that_cannot_be_read() -> None:
    """It is of no use: said before anything is traced."""
    r = rig(sink={"fixed": {0x28: 0x80}})
    with pytest.raises(SettingRefused) as caught:
        r.start(SRAM)
    assert str(caught.value) == (
        "sink 0 at 0x20001000: its SRAM cannot be read: trRamRP reads 0x80 after 0xfc was written; "
        "use another sink, or system memory"
    )


def test_sram_that_cannot_be_read_any_more() -> None:
    r = rig()
    r.start(SRAM)
    stop(r.sink, [r.encoder])
    r.sink_model.fixed = {0x28: 0x80}
    with pytest.raises(DrainFailed, match=r"0 of 4 bytes .* trRamRP reads 0x80 after 0x0 was written") as caught:
        drain(r.sink)
    assert caught.value.partial == b""


def test_access_width_probe_leaves_the_buffer_as_it_was() -> None:
    r = rig(sink={"width": 16})
    r.start(SMEM)
    stop(r.sink, [r.encoder])
    before = dict(r.sink_model.registers)
    assert access_bytes(Component(r.target, r.sink.base, RAM_SINK)) == 16
    assert r.sink_model.registers == before


def test_memory_that_cannot_be_read_keeps_the_first_piece() -> None:
    r = rig()
    got = r.start(SMEM)
    r.sink_model.store(STREAM[: 1024 + 400])
    stop(r.sink, [r.encoder])
    r.target.cut = 9  # registers and the older piece; then the cable is out
    with pytest.raises(DrainFailed) as caught:
        drain(r.sink, got.sink)
    assert (caught.value.partial, caught.value.expected, caught.value.wrapped) == (STREAM[404:1024], 1024, True)
    assert isinstance(caught.value.cause, Unplugged)
    assert str(caught.value) == (
        "sink 0 at 0x20001000: 620 of 1024 bytes of trace were read (and are kept), then: the cable is out"
    )
    r.target.cut = None
    assert len(drain(r.sink).data) == 1024


def test_a_refused_block_is_a_failed_drain() -> None:
    r = rig()
    r.start(SMEM)
    stop(r.sink, [r.encoder])
    r.target.memory = bytearray(4)
    with pytest.raises(DrainFailed, match=r"0 of 4 bytes of trace were read .* bus error at 0x80000400") as caught:
        drain(r.sink)
    assert isinstance(caught.value.cause, BusFault)


@pytest.mark.parametrize(("request_", "size"), REQUESTS)
def test_progress_counts_the_whole_and_can_cancel(request_: TraceRequest, size: int) -> None:
    r = rig()
    r.start(request_)
    r.sink_model.store(STREAM[:1500])
    stop(r.sink, [r.encoder])
    seen: list[tuple[str, int, int | None]] = []

    def watch(label: str, done: int, total: int | None = None) -> None:
        seen.append((label, done, total))

    expected = drain(r.sink, progress=watch).data
    assert seen and all(label == "reading trace" and done <= size == total for label, done, total in seen)

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        drain(r.sink, progress=interrupt)
    assert drain(r.sink).data == expected


def test_a_target_with_a_data_port_is_asked_once() -> None:
    class WithPort(ModelTarget):
        asked = 0

        def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
            self.asked += 1
            return b"".join(self.read32(address).to_bytes(4, "little") for _ in range(words))

    r = rig()
    r.target = WithPort(r.target.devices, r.target.memory, r.target.low)
    r.encoder.target = r.sink.target = r.target
    assert run(r, SRAM, STREAM[:1000]).data == (STREAM[:1000] + b"TAIL")[-256:]
    assert r.target.asked == 4, "once per piece: what was written before the wrap, and after"


@pytest.mark.parametrize(("answers", "reads_singly"), [("all", 0), ("nothing", 2), ("too few", 2)])
def test_bursts_that_fail_are_made_again_one_by_one(answers: str, reads_singly: int) -> None:
    """A burst that fails has advanced the read pointer, nobody knows how far; one may also have reached another bus."""

    class WithBursts(ModelTarget):
        asked = 0

        def read_port_burst(self, address: int, words: int, progress: Progress = silent) -> bytes | None:
            reads = words if answers == "all" else words // 2
            data = b"".join(self.read32(address).to_bytes(4, "little") for _ in range(reads))
            return None if answers == "nothing" else data.ljust(4 * words, b"?")

        def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
            self.asked += 1
            return b"".join(self.read32(address).to_bytes(4, "little") for _ in range(words))

    r = rig()
    r.target = WithBursts(r.target.devices, r.target.memory, r.target.low)
    r.encoder.target = r.sink.target = r.target
    assert run(r, SRAM, STREAM[:100]).data == STREAM[:100] + b"TAIL"
    assert r.target.asked == reads_singly
