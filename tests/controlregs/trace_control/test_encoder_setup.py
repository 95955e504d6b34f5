"""Configure and enable: the order, what is initialised, and what the user is told of what was not granted."""

from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import BufferRefused, ComponentTimeout, SettingRefused, UnsupportedProtocol
from rvtrace_gdb.controlregs.fields import FieldRange
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    ENCODER,
    ENCODER_CONTROL,
    InstMode,
    SyncMode,
    TeFormat,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import default_sync_max
from tests.controlregs.trace_control.component_model import ACTIVE, EMPTY, ENABLE, TRACING, ModelEncoder
from tests.controlregs.trace_control.rig import BUFFER, LOW, SMEM, SRAM, TraceRequest, rig, start


@pytest.mark.parametrize("delay", [0, 1, 4])
@pytest.mark.parametrize("junk", range(5))
def test_start_initialises_everything_in_order(delay: int, junk: int) -> None:
    """The models fail on a wrong order; registers hold junk after reset."""
    r = rig(encoder={"delay": delay, "junk": junk}, sink={"delay": delay, "junk": junk})
    for _ in range(2):
        got = r.start(SMEM)
        assert got.notes == ()
    assert r.encoder_model.control & 0x77 == ACTIVE | ENABLE | TRACING | 6 << 4
    assert r.encoder_model.control & 0x0F0_AA00 == 0
    assert r.encoder_model.registers[8] == 0 and r.encoder_model.registers[0x40] == 0
    sink = r.sink_model.registers
    assert (sink[0x10], sink[0x18], sink[0x20]) == (BUFFER, BUFFER + 0x3FC, BUFFER)


def test_what_is_in_force_is_what_was_read_back() -> None:
    r = rig(encoder={"impl": 0x7741_0101})
    request = replace(
        SMEM,
        src_id=5,
        src_bits=4,
        sync_mode=SyncMode.HALFWORDS,
        sync_max=3,
        stall=True,
        context=True,
        features=("trTeInstEnRepeatedHistory", "trTeInstEnAllJumps"),
        timestamps=True,
        stop_on_wrap=True,
    )
    got = r.start(request)
    (encoder,) = got.encoders
    assert got.notes == ()
    assert (encoder.name, encoder.base) == ("encoder 0", 0x2000_0000)
    assert (encoder.format, encoder.protocol_version, encoder.inst_mode) == (TeFormat.N_TRACE, (1, 4), InstMode.HTM)
    assert (encoder.src_id, encoder.src_bits, encoder.sync) == (5, 4, (SyncMode.HALFWORDS, 3))
    assert (encoder.stall, encoder.timestamps) == (True, True)
    assert encoder.features == 0x4005_0300 and encoder.feature("trTeInstEnAllJumps") == 1
    assert encoder.control == 0x0133_0000 | 1 << 13 | 1 << 9 | 6 << 4 | 0xF
    assert r.encoder_model.registers[0x40] & 0x8073 == 1 << 15 | 2 << 4 | 3
    assert (got.sink.start, got.sink.end, got.sink.size) == (BUFFER, BUFFER + 0x400, 0x400)
    assert (got.sink.mode, got.sink.stop_on_wrap, got.sink.access_bytes) == (RamMode.SMEM, True, 4)


@pytest.mark.parametrize(
    ("encoder", "request_", "notes"),
    [
        ({"modes": (3,)}, {}, ["encoder 0 has no HTM; using BTM"]),
        ({"modes": (6,)}, {"inst_mode": InstMode.BTM}, ["encoder 0 has no BTM; using HTM"]),
        (
            {"fixed_zeros": 6 << 24 | 1 << 13 | 1 << 9},
            {"stall": True, "context": True},
            [
                "encoder 0 does not report context and privilege",
                "encoder 0 cannot stall its hart; trace may be lost when the path is full",
            ],
        ),
        (
            {"fixed_ones": 1 << 24 | 1 << 13},
            {},
            ["encoder 0 always stalls its hart when the path is full"],
        ),
        (
            {"features_mask": 0},
            {"features": ("trTeInstEnImplicitReturn",), "src_bits": 2, "src_id": 1},
            [
                "encoder 0 has no implicit return (trTeInstEnImplicitReturn stays 0)",
                "encoder 0: source IDs in messages have 0 bits, not 2",
                "encoder 0: its source ID is 0, not 1",
            ],
        ),
        (
            {"features_mask": 0xFFFF_0000},
            {"implicit_return": 3},
            ["encoder 0 has no implicit return (trTeInstEnImplicitReturn stays 0)"],
        ),
        (
            {"features_mask": 0xFFFF_0008, "features_fixed": 1 << 6},
            {"implicit_return": 3},
            ["encoder 0 tracks calls with a counter, not with a stack of full addresses"],
        ),
        (
            {"features_mask": 0xFFFF_0008},
            {"implicit_return": 2},
            ["encoder 0 does not report how it tracks calls for implicit return (trTeInstImplicitReturnMode stays 0)"],
        ),
        (
            {"features_fixed": 1 << 3 | 3 << 6},
            {},
            ["encoder 0 always uses implicit return (trTeInstEnImplicitReturn stays 1)"],
        ),
        (
            {"features_fixed": 1 << 9},
            {},
            ["encoder 0 always uses messages for all jumps (trTeInstEnAllJumps stays 1)"],
        ),
        (
            {"fixed_ones": 1 << 24 | 1 << 15},
            {"src_bits": 2, "src_id": 1},
            ["encoder 0 puts no source ID into messages"],
        ),
        ({}, {"format": 0}, ["encoder 0 cannot produce E-Trace; it produces N-Trace"]),
        ({"timestamps": 0}, {"timestamps": True}, ["encoder 0 has no timestamps"]),
        (
            {"timestamps": 0x8011},
            {"timestamps": True},
            ["encoder 0: time comes from none, not internal_system"],
        ),
        (
            {"sync_modes": (0,)},
            {},
            ["encoder 0 has no periodic synchronisation; a buffer that wraps cannot be decoded"],
        ),
        ({"sync_modes": (0,)}, {"sync_mode": 2}, ["encoder 0: periodic synchronisation is off"]),
        (
            {"sync_modes": (3,), "sync_max": (6,)},
            {"sync_mode": 1, "sync_max": 0},
            ["encoder 0: periodic synchronisation is every 1024 halfwords"],
        ),
        ({"sync_max": (9,)}, {"sync_max": 2}, ["encoder 0: synchronises every 8192 messages, not every 64"]),
        (
            {"sync_max": (9,)},
            {},
            ["encoder 0: synchronises every 8192 messages, which may be too rare for the buffer: use a larger one"],
        ),
        ({"sync_modes": (0, 2)}, {"sync_mode": 0}, []),
    ],
)
def test_what_was_not_granted_is_said(encoder: dict[str, Any], request_: dict[str, Any], notes: list[str]) -> None:
    assert list(rig(encoder=encoder).start(replace(SMEM, **request_)).notes) == notes


@pytest.mark.parametrize(
    ("features", "mode"), [(0, None), (3 << 6, None), (1 << 3, 0), (1 << 3 | 1 << 6, 1), (1 << 3 | 3 << 6, 3)]
)
def test_how_calls_are_followed(features: int, mode: int | None) -> None:
    """Only if trTeInstEnImplicitReturn is set."""
    got = rig(encoder={"features_mask": 0xFFFF_0000, "features_fixed": features}).start(SMEM)
    assert got.encoders[0].implicit_return == mode


def test_an_implicit_return_mode_is_asked_for_with_its_enable_bit() -> None:
    for mode in range(4):
        got = rig().start(replace(SMEM, implicit_return=mode))
        assert (got.encoders[0].features, got.notes) == ((mode << 6 | 1 << 3) if mode else 0, ())


@pytest.mark.parametrize("modes", [(1,), (2,), (3,), (0, 2), (0, 3), (1, 2, 3)])
def test_periodic_sync_is_found_in_whatever_unit_there_is(modes: tuple[int, ...]) -> None:
    got = rig(encoder={"sync_modes": modes}).start(SMEM)
    assert got.encoders[0].sync[0] == (modes[0] or modes[1])
    assert got.notes == ()


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1024, 0), (8192, 0), (65536, 3), (1 << 20, 7), (1 << 30, 8)])
def test_default_sync_period(size: int, expected: int) -> None:
    assert default_sync_max(size) == expected
    if size >= 8192:  # the longest N-Trace message is under 40 bytes
        assert size // (40 << expected + 4) >= 8


@pytest.mark.parametrize("mode", [6, 7])
def test_etrace_has_one_mode_that_reads_7(mode: int) -> None:
    """"Hardcode to 7" in E-Trace 2.0, "Hardcode to 6" in 2.0.5."""
    encoder = {"impl": 0x0000_0101, "modes": (mode,), "fixed_ones": 0, "fixed_zeros": 7 << 24}
    got = rig(encoder=encoder, sink={"asyncs": 7}).start(SMEM)
    assert (got.encoders[0].format, got.encoders[0].inst_mode, got.notes) == (TeFormat.E_TRACE, mode, ())


def test_inhibited_source_field_has_no_bits() -> None:
    got = rig(encoder={"fixed_ones": 1 << 24 | 1 << 15}).start(replace(SMEM, src_bits=2))
    assert got.encoders[0].src_bits == 0


@pytest.mark.parametrize(
    ("encoder", "protocol"),
    [
        ({"impl": 0x0002_0101}, "N-Trace 2.0"),
        ({"impl": 0x0001_0101, "fixed_ones": 0, "fixed_zeros": 7 << 24, "modes": (7,)}, "E-Trace 1.0"),
        ({"impl": 0x0011_0101, "fixed_ones": 7 << 24, "fixed_zeros": 0}, "format 7 1.1"),
    ],
)
def test_unknown_protocols_are_refused(encoder: dict[str, Any], protocol: str) -> None:
    with pytest.raises(UnsupportedProtocol, match=f"^encoder 0 at 0x20000000: produces {protocol}, which"):
        rig(encoder=encoder).start(SMEM)


def test_no_instruction_trace() -> None:
    with pytest.raises(SettingRefused, match="encoder 0 at 0x20000000: has no instruction trace"):
        rig(encoder={"modes": (0,)}).start(SMEM)


def test_a_source_id_that_does_not_fit_is_refused_before_tracing() -> None:
    r = rig()
    with pytest.raises(FieldRange, match="4096 does not fit trTeSrcID, which has 12 bits"):
        r.start(replace(SMEM, src_id=4096))
    assert not r.encoder_model.control & ENABLE


@pytest.mark.parametrize("who", ["encoder", "sink"])
def test_enable_that_never_comes(who: str) -> None:
    r = rig(timeout=0.02, **{who: {"never": ENABLE}})  # type: ignore[arg-type]
    name = {"encoder": "encoder 0 at 0x20000000: trTeControl", "sink": "sink 0 at 0x20001000: trRamControl"}[who]
    with pytest.raises(ComponentTimeout, match=f"^{name} did not reach tr(Te|Ram)Enable=1"):
        r.start(SMEM)


def test_several_encoders_have_ids_that_count_up() -> None:
    r = rig()
    second = ModelEncoder(r.sink_model)
    r.target.devices[0x2000_2000] = second
    encoders = [r.encoder, Component(r.target, 0x2000_2000, ENCODER, "encoder 1")]
    got = start(r.sink, encoders, replace(SMEM, src_id=2, src_bits=3))
    assert [(e.name, e.src_id, e.src_bits) for e in got.encoders] == [("encoder 0", 2, 3), ("encoder 1", 3, 3)]
    assert second.control & TRACING and r.encoder_model.control & TRACING


def test_a_trigger_that_ends_tracing_at_once_is_noted() -> None:
    r = rig(encoder={"fixed_zeros": 6 << 24 | TRACING})
    assert r.start(SMEM).notes == ("encoder 0: tracing is not on yet (trTeInstTracing reads 0)",)


def test_sticky_flags_are_not_cleared_by_writing_back() -> None:
    r = rig()
    r.start(SMEM)
    r.encoder_model.overflow = True
    r.encoder.set(ENCODER_CONTROL, trTeInstTracing=0)
    assert r.encoder_model.overflow
    r.encoder.set(ENCODER_CONTROL, trTeInstStallOrOverflow=1)
    assert not r.encoder_model.overflow


def test_settings_are_written_from_the_shadow() -> None:
    """Between a read and a write a trigger may act: no write depends on a read made just before."""
    r = rig()
    r.start(SMEM)
    r.encoder_model.control &= ~TRACING  # a trigger
    value = r.encoder.set(ENCODER_CONTROL, trTeInstStallEna=1)
    assert ENCODER_CONTROL.get(value, "trTeInstMode") == 6
    assert r.encoder_model.control & (ENABLE | 1 << 13) == ENABLE | 1 << 13


class TestBuffer:
    """Start, Limit and WP: inclusive Limit, unknown access width, never outside of what the user gave."""

    @pytest.mark.parametrize("width", [4, 8, 16, 64])
    @pytest.mark.parametrize(("start", "size"), [(0, 0x400), (4, 0x3FC), (0x10, 0x100), (0x34, 0x2A8)])
    def test_access_width_is_found_and_kept_to(self, width: int, start: int, size: int) -> None:
        r = rig(sink={"width": width})
        got = r.start(replace(SMEM, buffer_start=BUFFER + start, buffer_size=size)).sink
        assert got.access_bytes == width
        assert BUFFER + start <= got.start and got.end <= BUFFER + start + size
        assert got.size > size - 2 * width and got.start % width == got.end % width == 0
        r.sink_model.store(bytes(range(256)) * 8)
        assert not any(r.outside())

    def test_a_size_that_is_not_whole_stores_is_said(self) -> None:
        got = rig(sink={"width": 16}).start(replace(SMEM, buffer_size=0x3F8))
        assert got.notes == ("sink 0: the buffer has 1008 bytes, not 1016",)

    def test_above_4_gib(self) -> None:
        low = 0x12_FFFF_F000
        r = rig(sink={"high": 0xFF}, low=low)
        got = r.start(TraceRequest(buffer_start=low + 0x400, buffer_size=0x800)).sink
        assert (got.start, got.end) == (low + 0x400, low + 0xC00)
        assert r.sink_model.registers[0x24] == 0x12

    def test_no_high_registers_for_a_high_buffer(self) -> None:
        with pytest.raises(BufferRefused, match="asked for the buffer 0x1280000400 to 0x1280000800, it would use"):
            rig().start(replace(SMEM, buffer_start=0x12_8000_0400))

    @pytest.mark.parametrize("fixed", [{0x10: LOW}, {0x18: LOW + 0xBFC}, {0x10: LOW, 0x18: LOW + 0xBFC}])
    def test_hard_wired_elsewhere_is_refused(self, fixed: dict[int, int]) -> None:
        r = rig(sink={"fixed": fixed})
        with pytest.raises(BufferRefused, match="give a buffer \\(start, size\\) the sink can address and align"):
            r.start(SMEM)
        assert not r.sink_model.control & ENABLE

    def test_hard_wired_where_asked(self) -> None:
        r = rig(sink={"fixed": {0x10: BUFFER, 0x18: BUFFER + 0x3F8}, "width": 8})
        assert r.start(SMEM).sink.size == 0x400

    def test_smem_only_needs_a_buffer(self) -> None:
        with pytest.raises(SettingRefused, match="sink 0 at 0x20001000: stores trace in system memory: give a buffer"):
            rig(sink={"modes": (1,)}).start(SRAM)

    def test_sram_only_uses_its_own(self) -> None:
        got = rig(sink={"modes": (0,), "sram": 512}).start(SMEM)
        assert (got.sink.mode, got.sink.start, got.sink.size) == (RamMode.SRAM, 0, 512)
        assert got.notes == ("sink 0 cannot use system memory; using its own SRAM of 512 bytes",)

    @pytest.mark.parametrize(("asked", "size"), [(None, 256), (256, 256), (64, 64), (1000, 256), (4, 4)])
    def test_sram_is_trimmed(self, asked: int | None, size: int) -> None:
        got = rig().start(TraceRequest(buffer_size=asked))
        assert (got.sink.start, got.sink.size, got.sink.access_bytes) == (0, size, 4)
        assert len(got.notes) == (asked == 1000)

    def test_sram_with_hard_wired_limit(self) -> None:
        got = rig(sink={"fixed": {0x18: 0xFC}}).start(TraceRequest(buffer_size=64))
        assert (got.sink.size, got.notes) == (256, ("sink 0: the buffer has 256 bytes, not 64",))

    @pytest.mark.parametrize(
        ("stops", "wanted", "note"),
        [
            ((0,), True, "sink 0 has no stop-on-wrap; the oldest trace will be overwritten"),
            ((1,), False, "sink 0 always stops when the buffer is full"),
        ],
    )
    def test_stop_on_wrap_not_granted(self, stops: tuple[int, ...], wanted: bool, note: str) -> None:
        assert rig(sink={"stops": stops}).start(replace(SMEM, stop_on_wrap=wanted)).notes == (note,)

    def test_a_wrap_flag_that_cannot_be_cleared(self) -> None:
        with pytest.raises(SettingRefused, match="cannot be emptied: trRamWPLow reads 0x80000401, not 0x80000400"):
            rig(sink={"fixed": {0x20: BUFFER | 1}}).start(SMEM)

    def test_never_empty_does_not_stop_a_start(self) -> None:
        assert rig(encoder={"never": EMPTY}).start(SMEM).notes == ()
