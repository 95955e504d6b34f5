"""What version-0 components are set to, and what the user is told of what they cannot do.

Expected register values are numbers, from the proposal's and the P550's tables named in `controlregs.sifive_v0`.
"""

from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import BufferRefused, SettingRefused
from rvtrace_gdb.controlregs.generations import capabilities, procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, TsMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    ImplicitReturnMode,
    InstMode,
    SyncMode,
    TeFormat,
    TrigAction,
)
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Filter, Triggers
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, SinkBuffer, TraceRequest
from rvtrace_gdb.transport.simulated.sifive_v0.component import V0Build
from tests.controlregs.sifive_v0.test_procedures import asked
from tests.transport.simulated.encoder.traces import compiled
from tests.transport.simulated.sifive_v0.chip import APART, ENCODERS, FUNNELS, MEMORY, SIZE, SRAM, Chip, p550

CONTROL, IMPL, BASE, HIGH, LIMIT, WP, TS_CONTROL = 0x00, 0x04, 0x10, 0x14, 0x18, 0x1C, 0x40


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("v0"), "rv64imac")


def start(chip: Chip, request: GraphRequest) -> GraphSettings:
    graph = chip.graph()
    return procedures(graph).start(graph, request)


def notes(elf: Path, build: V0Build | None = None, funnel: V0Build | None = None, **trace: Any) -> tuple[str, ...]:
    """Of a start of one encoder like the P550's."""
    return start(p550(elf, 1, funnel=funnel, enc0=build or V0Build()), asked(**trace)).notes


def alone(elf: Path, build: V0Build | None = None, **options: Any) -> Chip:
    """An encoder with a sink in system memory."""
    chip = Chip(elf, 1)
    memory = {name: options.pop(name) for name in ("access_bytes", "address_bits", "settable_bytes") if name in options}
    chip.encoder(0, sink="ram0", memory=chip.memory(**memory), build=build, **options)
    return chip


class TestAsOnTheBoard:
    """Values that a HiFive Premier P550 shows (sifive-trace-decoder, the README of its p550 scripts)."""

    def test_registers(self, elf: Path) -> None:
        chip = p550(elf)
        start(chip, asked(timestamps=True, features=("trTeInstEnRepeatedHistory", "trTeInstEnImplicitReturn")))
        read = chip.target.read32
        assert [read(ENCODERS + APART * n + IMPL) & ~0xC_0000 for n in range(2)] == [0x0200_0100, 0x1210_0100]
        assert read(FUNNELS + IMPL) == 0x0001_0080
        encoder = read(ENCODERS + CONTROL)
        assert encoder & 0xFF00_0077 == 0x8100_0077  # funnel sink, Nexus, HTM with optimisations, tracing
        assert encoder >> 20 & 0xF == 10
        assert read(FUNNELS + CONTROL) & ~8 == 0x7000_0003
        assert read(ENCODERS + TS_CONTROL) & ~0xC_0002 == 0x2803_8041
        assert read(FUNNELS + TS_CONTROL) == 0x2800_0023

    def test_the_buffer(self, elf: Path) -> None:
        chip = p550(elf, 1)
        got = start(chip, asked())
        registers = [chip.target.read32(FUNNELS + offset) for offset in (BASE, HIGH, LIMIT, WP)]
        assert registers == [0, 1, SIZE - 8, 0]
        (sink,) = got.ram_sinks
        assert (sink.start, sink.limit, sink.access_bytes, sink.end) == (MEMORY, MEMORY + SIZE - 8, 8, MEMORY + SIZE)
        assert [chip.target.read32(ENCODERS + offset) for offset in (BASE, HIGH, LIMIT, WP)] == [0, 0, 0, 0]


class TestModes:
    def test_htm_without_optimisations_is_usual(self, elf: Path) -> None:
        got = start(p550(elf, 1), asked())
        assert got.notes == () and got.encoders[0].control >> 4 & 7 == 6
        assert got.encoders[0].inst_mode == InstMode.HTM and got.encoders[0].implicit_return is None

    def test_optimisations(self, elf: Path) -> None:
        got = start(p550(elf, 1), asked(features=("trTeInstEnRepeatedHistory",)))
        assert got.encoders[0].control >> 4 & 7 == 7
        assert got.encoders[0].implicit_return is ImplicitReturnMode.DEPTH_COUNTER
        (note,) = got.notes
        assert "which it has only together" in note

    def test_a_stack(self, elf: Path) -> None:
        features = ("trTeInstEnRepeatedHistory",)
        found = notes(elf, features=features, implicit_return=ImplicitReturnMode.FULL_ADDRESS_STACK)
        assert found == ("enc0 tracks calls with a counter, not with a stack of full addresses",)

    def test_no_optimisations(self, elf: Path) -> None:
        build = V0Build(allowed={"teInstruction": (0, 6)})
        found = notes(elf, build, implicit_return=1, features=("trTeInstEnAllJumps",))
        assert found == (
            "enc0 has no implicit return (teInstruction reads 6)",
            "enc0 has no messages for all jumps: its interface is older than 1.0",
        )

    def test_optimisations_always(self, elf: Path) -> None:
        found = notes(elf, V0Build(fixed={"teInstruction": 7}))
        assert found == ("enc0 always uses repeated history and implicit return (teInstruction stays 7)",)

    def test_btm(self, elf: Path) -> None:
        assert notes(elf, inst_mode=InstMode.BTM) == ("enc0 has no BTM; using HTM",)
        got = start(alone(elf, modes=(0, 3)), asked(inst_mode=InstMode.BTM))
        assert got.notes == () and got.encoders[0].inst_mode == InstMode.BTM
        assert start(alone(elf, modes=(0, 3)), asked()).notes == ("enc0 has no HTM; using BTM",)

    def test_none(self, elf: Path) -> None:
        with pytest.raises(SettingRefused, match=r"^enc0 at 0x100000: has no instruction trace .*is it a funnel"):
            notes(elf, V0Build(fixed={"teInstruction": 0}))

    @pytest.mark.parametrize(("code", "name"), [(0, "e-trace"), (7, "vendor"), (2, "2")])
    def test_other_formats(self, elf: Path, code: int, name: str) -> None:
        with pytest.raises(SettingRefused, match=rf"^enc0 at 0x100000: produces no N-Trace but format {name} "):
            notes(elf, V0Build(fixed={"teSliceFormat": code}))


class TestWhatThereIsNot:
    def test_filters(self, elf: Path) -> None:
        """What would be traced besides is no use to who asked for a part."""
        with pytest.raises(SettingRefused, match=r"^enc0 at 0x100000: has no filters \(its interface is older than"):
            notes(elf, filter=Filter(ranges=((0x8000_0000, 0x8000_0100),)))

    def test_others(self, elf: Path) -> None:
        found = notes(elf, format=TeFormat.E_TRACE, context=True, data=True, async_freq=2)
        assert found == (
            "sinks of version 0 insert no alignment sequences, which only E-Trace needs",
            "enc0 cannot produce E-Trace that rvtrace can decode; it produces N-Trace",
            "enc0 does not report context and privilege by itself: only what software writes to itcStimulus could",
            "enc0 has no data trace",
        )

    def test_stall(self, elf: Path) -> None:
        assert notes(elf, stall=True) == ()
        never, always = (V0Build(fixed={"teStallEnable": value}) for value in (0, 1))
        assert "enc0 cannot stall its hart; trace may be lost when the path is full" in notes(elf, never, stall=True)
        assert "enc0 always stalls its hart when the path is full" in notes(elf, always)

    def test_stop_on_wrap(self, elf: Path) -> None:
        never, always = (V0Build(fixed={"tfStopOnWrap": value}) for value in (0, 1))
        lost = "ram0 has no stop-on-wrap; the oldest trace will be overwritten"
        assert notes(elf, funnel=never, stop_on_wrap=True) == (lost,)
        assert notes(elf, funnel=always) == ("ram0 always stops when the buffer is full",)


class TestSynchronisation:
    @pytest.mark.parametrize(
        ("asked_for", "fields", "sync"),
        [
            ({"sync_max": 4}, (3, 10), (SyncMode.MESSAGES, 4)),  # every 2**8 messages, as after a reset
            ({"sync_max": 12}, (11, 10), (SyncMode.MESSAGES, 12)),
            ({"sync_mode": SyncMode.HALFWORDS, "sync_max": 5}, (15, 5), (SyncMode.HALFWORDS, 5)),
            ({"sync_mode": SyncMode.OFF}, (15, 15), (SyncMode.OFF, 0)),
        ],
    )
    def test_periods(self, elf: Path, asked_for: Any, fields: Any, sync: Any) -> None:
        got = start(p550(elf, 1), asked(**asked_for))
        control = got.encoders[0].control
        assert (control >> 16 & 15, control >> 20 & 15) == fields
        assert got.encoders[0].sync == sync and got.notes == ()

    def test_by_the_size_of_the_buffer(self, elf: Path) -> None:
        rare, often = (start(p550(elf, 1), asked(buffer_size=size)).encoders[0].sync[1] for size in (SIZE, 0x2000))
        assert rare > often

    @pytest.mark.parametrize(
        ("asked_for", "note"),
        [
            ({"sync_max": 0}, "synchronises every 32 messages, not every 16"),
            ({"sync_max": 15}, "synchronises every 65536 messages, not every 524288"),
            ({"sync_mode": SyncMode.HALFWORDS, "sync_max": 15}, "synchronises every 16384 halfwords, not every 524288"),
        ],
    )
    def test_other_periods(self, elf: Path, asked_for: Any, note: str) -> None:
        assert notes(elf, **asked_for) == (f"enc0: {note}",)

    def test_clock_cycles(self, elf: Path) -> None:
        (note,) = notes(elf, sync_mode=SyncMode.CLOCK_CYCLES)
        assert note.startswith("enc0 cannot count clock cycles between synchronisations; it synchronises every ")

    def test_never(self, elf: Path) -> None:
        (note,) = notes(elf, V0Build(fixed={"teSyncMaxBTM": 15, "teSyncMaxInst": 15}))
        assert note == "enc0 has no periodic synchronisation; a buffer that wraps cannot be decoded"


class TestSources:
    def test_those_that_can_be_chosen(self, elf: Path) -> None:
        chip = Chip(elf)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        for number in range(2):
            chip.encoder(number, to="funnel0", fixed=False, src_id=0, src_bits=0)
        got = start(chip, asked(src_id=5))
        assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(5, 3), (6, 3)]

    def test_beside_one_that_is_fixed(self, elf: Path) -> None:
        chip = Chip(elf)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0", fixed=False)
        chip.encoder(1, to="funnel0", src_id=0, src_bits=1)
        got = start(chip, asked())
        assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(1, 1), (0, 1)]

    def test_as_wide_as_a_fixed_one(self, elf: Path) -> None:
        """The fields of all have the width that the highest ID needs."""
        chip = Chip(elf)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0", src_bits=4, build=V0Build(fixed={"srcID": 9}), fixed=False)
        chip.encoder(1, to="funnel0", fixed=False)
        got = start(chip, asked())
        assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(9, 4), (1, 4)]

    def test_alone_without(self, elf: Path) -> None:
        """Nobody has to be told apart: messages are shorter without."""
        got = start(p550(elf, 1), asked())
        assert got.encoders[0].src_bits == 0 and got.encoders[0].control >> 15 & 1
        got = start(p550(elf, 1), asked(src_bits=2))
        assert got.encoders[0].src_bits == 2 and got.notes == ()
        got = start(p550(elf, 1), asked(src_bits=3))
        assert got.notes == ("enc0: source IDs in messages have 2 bits, not 3",)

    @pytest.mark.parametrize(
        ("second", "why"),
        [
            ({"src_id": 0}, "its source ID is 0 like that of enc0"),
            ({"src_id": 1, "src_bits": 1}, "its source IDs have 1 bits, those of enc0 2"),
            ({"src_id": 1, "src_bits": 0}, "it puts no source ID into its messages"),
            ({"src_id": 5}, "its source ID 5 does not fit the 2 bits of nSrcBits"),
            ({"build": V0Build(fixed={"teInhibitSrc": 1})}, "it puts no source ID into its messages"),
        ],
    )
    def test_those_that_cannot_be_told_apart(self, elf: Path, second: dict[str, Any], why: str) -> None:
        chip = Chip(elf)
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0")
        chip.encoder(1, to="funnel0", **second)
        with pytest.raises(SettingRefused, match=rf"^enc1 at 0x101000: {why}.* mixed in ram0: trace one of them"):
            start(chip, asked())


class TestTime:
    def test_an_encoder_alone_counts(self, elf: Path) -> None:
        got = start(alone(elf), asked(timestamps=True))
        assert got.notes == () and got.clocks == {}
        assert (got.encoders[0].ts_mode, got.encoders[0].timestamp_bits) == (TsMode.INTERNAL_SYSTEM, 40)

    def test_prescaled(self, elf: Path) -> None:
        got = start(p550(elf, 1), asked(timestamps=True, ts_prescale=2))
        assert got.notes == () and got.funnels[0].ts_control >> 8 & 3 == 2
        fixed = V0Build(fixed={"tsPrescale": 0})
        assert notes(elf, funnel=fixed, timestamps=True, ts_prescale=2) == (
            "funnel0: its clock for timestamps is divided by 1, not by 16",
        )

    def test_messages_without(self, elf: Path) -> None:
        (note,) = notes(elf, V0Build(fixed={"tsBranch": 0}), timestamps=True)
        assert note == "enc0 has timestamps in messages of synchronisation only (tsBranch reads 0)"

    def test_none(self, elf: Path) -> None:
        assert notes(elf, V0Build(fixed={"tsActive": 0}), timestamps=True) == (
            "enc0 has no timestamps (tsActive stays 0)",
        )

    def test_a_funnel_without(self, elf: Path) -> None:
        chip = p550(elf, funnel=V0Build(fixed={"tsActive": 0}))
        found = start(chip, asked(timestamps=True))
        assert "funnel0 has no time to share: that of different harts below it may not be comparable" in found.notes
        assert found.clocks == {}


class TestTriggers:
    @pytest.mark.parametrize(
        ("triggers", "why"),
        [
            (Triggers(inputs=((0, TrigAction.TRACE_ON),)), r"trigger input 0 for this \(xtiAction0 reads 0, not 2\)"),
            (Triggers(outputs=((3, 1),)), r"trigger output 3 for this \(xtoEvent3 reads 0, not 1\)"),
            (Triggers(on=(4,), control=1), r"does not keep 0x1 in wpControl"),
        ],
    )
    def test_those_there_are_not(self, elf: Path, triggers: Triggers, why: str) -> None:
        with pytest.raises(SettingRefused, match=rf"^enc0 at 0x100000: .*{why}"):
            notes(elf, triggers=triggers)


class TestBuffers:
    @pytest.mark.parametrize("width", [4, 8, 16, 32])
    def test_words(self, elf: Path, width: int) -> None:
        """Found out by the bits of Limit; a buffer that does not fit them becomes smaller, never larger."""
        got = start(alone(elf, access_bytes=width), asked(buffer_start=MEMORY + 4, buffer_size=0x1000))
        (sink,) = got.ram_sinks
        first, end = -(-(MEMORY + 4) // width) * width, (MEMORY + 0x1004) // width * width
        assert (sink.start, sink.end, sink.access_bytes) == (first, end, width)
        expected = () if sink.size == 0x1000 else (f"ram0: the buffer has {sink.size} bytes, not 4096",)
        assert got.notes == expected

    def test_coarse_limits(self, elf: Path) -> None:
        """Base and Limit can be set in steps that are larger than a word."""
        steps = V0Build(allowed={"teSinkLimit": [n * 0x400 + 0x3FE for n in range(0x100)]})
        (sink,) = start(alone(elf, steps), asked(buffer_start=MEMORY, buffer_size=0x2800)).ram_sinks
        assert (sink.start, sink.end, sink.access_bytes) == (MEMORY, MEMORY + 0x2000, 8)

    def test_words_that_only_sink_bytes_tells(self, elf: Path) -> None:
        """Addresses can be set in smaller steps than the sink stores."""
        got = start(alone(elf, access_bytes=16, settable_bytes=4), asked(buffer_start=MEMORY + 4, buffer_size=0x100))
        (sink,) = got.ram_sinks
        assert (sink.start, sink.end, sink.access_bytes) == (MEMORY + 16, MEMORY + 0x100, 16)

    def test_across_4_gib(self, elf: Path) -> None:
        chip = alone(elf)
        with pytest.raises(SettingRefused, match=r"^ram0 at 0x100000: its buffer .* crosses a multiple of 4 GiB"):
            start(chip, asked(buffer_start=0xFFFF_F000, buffer_size=0x2000))
        with pytest.raises(SettingRefused, match="crosses"):
            start(chip, asked(buffer_start=0xFFFF_F000, buffer_size=0x1001))

    def test_up_to_4_gib(self, elf: Path) -> None:
        (sink,) = start(alone(elf), asked(buffer_start=0xFFFF_F000, buffer_size=0x1000)).ram_sinks
        assert (sink.start, sink.end) == (0xFFFF_F000, 0x1_0000_0000)
        (sink,) = start(alone(elf), asked(buffer_start=MEMORY, buffer_size=0x1_0000_0000)).ram_sinks
        assert (sink.start, sink.end) == (MEMORY, 2 * MEMORY)

    def test_too_far_up(self, elf: Path) -> None:
        with pytest.raises(BufferRefused, match="asked for the buffer 0x100000000 to"):
            start(alone(elf, address_bits=32), asked())

    @pytest.mark.parametrize("fixed", [{"teSinkBase": 0x40}, {"teSinkLimit": 0x3FFE}])
    def test_fixed_elsewhere(self, elf: Path, fixed: dict[str, int]) -> None:
        with pytest.raises(BufferRefused, match=r"^ram0 at 0x100000: asked for the buffer"):
            start(alone(elf, V0Build(fixed=fixed)), asked(buffer_start=MEMORY + 0x8000, buffer_size=0x1000))

    def test_a_pointer_that_does_not_move(self, elf: Path) -> None:
        with pytest.raises(SettingRefused, match=r"cannot be emptied: teSinkWP reads 0x00000001, not 0x00000000"):
            start(alone(elf, V0Build(fixed={"teSinkWrapped": 1})), asked())

    def test_no_size(self, elf: Path) -> None:
        with pytest.raises(SettingRefused, match=r"give a buffer \(start, size\) in the target description"):
            start(alone(elf), asked(buffer_size=None))

    def test_sram_for_want_of_more(self, elf: Path) -> None:
        chip = Chip(elf, 1)
        chip.encoder(0, sink="ram0", memory=chip.memory(sram_size=SRAM, system=False))
        assert start(chip, asked()).notes == (
            "ram0 cannot use system memory; using its own SRAM",
            f"ram0: the buffer has {SRAM} bytes, not {SIZE}",
        )

    def test_two_in_one_place(self, elf: Path) -> None:
        chip = Chip(elf)
        for number in range(2):
            chip.encoder(number, sink=f"ram{number}", memory=chip.memory())
        with pytest.raises(SettingRefused, match=r"^ram1 at 0x101000: its buffer .* overlaps that of ram0"):
            start(chip, GraphRequest(TraceRequest(), {f"ram{n}": SinkBuffer(MEMORY + 64 * n, 128) for n in range(2)}))

    def test_one_sink_called_0(self, elf: Path) -> None:
        """Where there is one only, teSink may read 0."""
        only = V0Build(fixed={"tfSink": 0})
        got = start(p550(elf, 1, funnel=only, enc0=V0Build(fixed={"teSink": 0})), asked())
        assert got.notes == () and got.ram_sinks[0].start == MEMORY

    def test_a_sink_that_is_not_there(self, elf: Path) -> None:
        chip = Chip(elf, 1)
        chip.encoder(0, sink="pins", memory=chip.memory())
        request = GraphRequest(TraceRequest(), pins={"pins": PibPins(PibMode.PARALLEL_4)})
        with pytest.raises(SettingRefused, match=r"^enc0 at 0x100000: cannot send trace to pins \(.* it has sba\)"):
            start(chip, request)


class TestOutside:
    @pytest.mark.parametrize(
        ("pins", "fixed", "why"),
        [
            (PibPins(), {}, "its pins are off; give the mode your probe receives, it has swt_manchester, "),
            (PibPins(PibMode.PARALLEL_16), {}, "it cannot send parallel_16"),
            (PibPins(PibMode.PARALLEL_8), {"pibMode": 5}, "it cannot send parallel_8; .* it has swt_uart"),
            (PibPins(PibMode.PARALLEL_8), {"pibCalibrate": 1}, "always sends its calibration pattern"),
        ],
    )
    def test_pins_that_cannot(self, elf: Path, pins: PibPins, fixed: dict[str, int], why: str) -> None:
        chip = Chip(elf, 1)
        chip.encoder(0, sink="pins", pins=_Nobody(), build=V0Build(fixed=fixed))
        with pytest.raises(SettingRefused, match=f"^pins at 0x100000: {why}"):
            start(chip, GraphRequest(TraceRequest(), pins={"pins": pins}))

    def test_pins_that_differ(self, elf: Path) -> None:
        chip = Chip(elf, 1)
        chip.encoder(0, sink="pins", pins=_Nobody(), build=V0Build(fixed={"pibDivider": 1, "pibRefCenter": 0}))
        pins = PibPins(PibMode.PARALLEL_8, divider=4, clk_center=True)
        assert start(chip, GraphRequest(TraceRequest(), pins={"pins": pins})).notes == (
            "pins divides its clock by 2, not by 4",
            "pins cannot have the edge of its clock in the middle of a bit",
        )

    def test_an_id_of_atb(self, elf: Path) -> None:
        chip = Chip(elf, 1)
        chip.encoder(0, sink="atb", atb=lambda atid, data: None)
        with pytest.raises(SettingRefused, match=r"^atb at .* ID on ATB would be 0x00, which is reserved there"):
            start(chip, GraphRequest(TraceRequest()))


class _Nobody:
    def write(self, data: bytes) -> None:
        """It is gone."""


class TestCapabilities:
    def test_of_an_encoder(self, elf: Path) -> None:
        chip = p550(elf)
        found = capabilities(chip.component("enc1"))
        assert found.identity.version == (0, 0)
        assert found.has == (
            "N-Trace older than 1.0",
            "HTM",
            "HTM with repeated history and implicit return",
            "stalling the hart instead of losing trace",
            "synchronisation every 32 to 65536 messages",
            "synchronisation every 16 to 16384 halfwords",
            "source IDs of 2 bits, always 1",
            "timestamps of 40 bits, time: slave",
            "a funnel",
        )
        assert found.lacks == ("filters", "data trace", "trigger inputs", "trigger outputs", "stop-on-wrap")
        assert chip.target.read32(ENCODERS + APART) & 1 == 0  # in reset, as it was

    def test_of_a_funnel(self, elf: Path) -> None:
        chip = p550(elf)
        found = capabilities(chip.component("funnel0"))
        assert found.has == (
            "stop-on-wrap",
            "timestamps of 40 bits, time: internal",
            "buffers in system memory with addresses of 40 bits, aligned to 8 bytes",
        )
        assert found.lacks == ()

    def test_it_leaves_the_trace_alone(self, elf: Path) -> None:
        """What was stopped can be read afterwards, and whether trace was lost is still to be seen."""
        chip = p550(elf, 1)
        graph = chip.graph()
        got = procedures(graph).start(graph, asked(timestamps=True))
        with pytest.raises(SettingRefused, match="is in use"):
            capabilities(chip.component("enc0"))
        chip.run(2)
        procedures(graph).stop(graph)
        before = [chip.target.read32(base + n) for base in (ENCODERS, FUNNELS) for n in (0, 4, 16, 20, 24, 28, 64)]
        for component in graph.order:
            if component.name != "ram0":
                capabilities(component)
        after = [chip.target.read32(base + n) for base in (ENCODERS, FUNNELS) for n in (0, 4, 16, 20, 24, 28, 64)]
        assert after == before
        assert procedures(graph).changed_encoder(graph, got) is None
