"""Registers in words, from kept values and from a live component."""

from collections.abc import Mapping

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.dump import describe, dump, read
from rvtrace_gdb.controlregs.fields import Compliance, Field, Register, RegisterBlock
from rvtrace_gdb.controlregs.graph import RATIFIED, block
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from tests.controlregs.trace_control.rig import SRAM, rig

BASE = 0x2000_0000


class Refused(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__("bus error")


class Unplugged(RvtraceError):
    pass


class Registers:
    """Registers at BASE that remember what was read. *broken*: offsets that are refused."""

    def __init__(self, values: Mapping[int, int], broken: tuple[int, ...] = (), gone: bool = False) -> None:
        self.values, self.broken, self.gone = values, broken, gone
        self.reads: list[int] = []

    def read32(self, address: int) -> int:
        offset = address - BASE
        self.reads.append(offset)
        if self.gone:
            raise Unplugged("the cable is out")
        if offset in self.broken:
            raise Refused(address)
        return self.values.get(offset, 0)

    def write32(self, address: int, value: int) -> None:
        raise AssertionError("a look writes nothing")

    def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
        raise AssertionError("registers are read one by one")


def component(target: Registers, kind: str) -> Component:
    return Component(target, BASE, block(kind), kind)


@pytest.mark.parametrize(
    ("kind", "offset", "value", "line"),
    [
        (
            "encoder",
            0x000,
            0x0131006F,
            "trTeControl 0x0131006f: trTeActive=1 trTeEnable=1 trTeInstTracing=1 trTeEmpty=1 trTeInstMode=6 (htm) "
            "trTeContext=0 trTeInstTrigEnable=0 trTeInstStallOrOverflow=0 trTeInstStallEna=0 (drop_and_resync) "
            "trTeInhibitSrc=0 trTeInstSyncMode=1 (messages) trTeInstSyncMax=3 (every 128) trTeFormat=1 (n_trace)",
        ),
        ("encoder", 0x00C, 0x8001, "trTeInstFilters 0x00008001: trTeInstFilters=0x8001 (filters 0, 15)"),
        ("encoder", 0x01C, 0, "trTeDataFilters 0x00000000: trTeDataFilters=0x0 (no filter: all is traced)"),
        (
            "encoder",
            0x424,
            0x109,
            "trTeFilter1MatchInst 0x00000109: trTeFilterMatchChoicePrivilege=9 (U, M) "
            "trTeFilterMatchValueInterrupt=1 (interrupt)",
        ),
        (
            "encoder",
            0x428,
            0x104,
            "trTeFilter1MatchEcauseLow 0x00000104: trTeFilterMatchChoiceEcauseLow=0x104 (causes 2, 8)",
        ),
        (
            "encoder",
            0x42C,
            1,
            "trTeFilter1MatchEcauseHigh 0x00000001: trTeFilterMatchChoiceEcauseHigh=0x1 (cause 32)",
        ),
        (
            "encoder",
            0x438,
            0x00050003,
            "trTeFilter1MatchData 0x00050003: trTeFilterMatchChoiceDtype=0x3 (types 0, 1) "
            "trTeFilterMatchChoiceDsize=5 (sizes 1, 4)",
        ),
        ("encoder", 0x630, 0x8000_1234, "trTeComp1PMatchLow 0x80001234"),
        (
            "encoder",
            0x600,
            0x3650,
            "trTeComp0Control 0x00003650: trTeCompPInput=0 (iaddr) trTeCompSInput=0 (iaddr) trTeCompPFunction=5 (ge) "
            "trTeCompSFunction=6 (smatch_is_a_mask) trTeCompMatchMode=3 (latched) trTeCompPNotify=0 trTeCompSNotify=0",
        ),
        (
            "ram_sink",
            0x020,
            0x8010_0455,
            "trRamWPLow 0x80100455: trRamWrap=1 trRamWPLow=0x80100454",
        ),
        ("ram_sink", 0x010, 0x8010_0000, "trRamStartLow 0x80100000"),
        ("ram_sink", 0x030, 5, "0x030 0x00000005: not a register of a RAM sink"),
        (
            "pib_sink",
            0x000,
            0x0003_01A3,
            "trPibControl 0x000301a3: trPibActive=1 trPibEnable=1 trPibEmpty=0 trPibMode=10 (parallel_4) "
            "trPibClkCenter=1 trPibCalibrate=0 trPibAsyncFreq=0 (off) trPibDivider=0x3 (clock / 4)",
        ),
        ("funnel", 0x008, 0x000A, "trFunnelDisInput 0x0000000a: trFunnelDisInput=0xa (inputs 1, 3)"),
        (
            "atb_bridge",
            0x000,
            0x7009,
            "trAtbBridgeControl 0x00007009: trAtbBridgeActive=1 trAtbBridgeEnable=0 trAtbBridgeEmpty=1 "
            "trAtbBridgeID=112 (reserved by ATB)",
        ),
    ],
    ids=lambda it: f"{it:x}" if isinstance(it, int) else it.split()[0],
)
def test_a_register_in_words(kind: str, offset: int, value: int, line: str) -> None:
    """Values and meanings as the document's tables give them."""
    assert describe(block(kind), offset, value) == line


def test_codes_and_bits_that_are_reserved() -> None:
    line = describe(block("encoder"), 0, 0x0500_0080)
    assert "trTeFormat=5 (reserved)" in line and line.endswith("reserved=0x80")


def test_what_is_0_is_left_out_unless_it_is_required() -> None:
    values = dict.fromkeys(block("ram_sink").by_offset, 0)
    assert [line.split()[0] for line in dump(block("ram_sink"), values)] == [
        r.name for r in block("ram_sink").registers if r.compliance is Compliance.REQUIRED
    ]
    assert len(dump(block("ram_sink"), values, everything=True)) == len(values)


def test_lines_are_in_the_order_of_offsets() -> None:
    lines = dump(block("encoder"), {0x410: 3, 0xE00: 1, 0x000: 1, 0x040: "cannot be read: bus error"})
    names = [line.split()[0] for line in lines]
    assert names == ["trTeControl", "trTsControl:", "trTeFilter0MatchValueImpdef", "0xe00"]
    assert lines[1] == "trTsControl: cannot be read: bus error"


@pytest.mark.parametrize("kind", RATIFIED)
def test_all_registers_are_read_once_but_no_port(kind: str) -> None:
    target = Registers({0: 1, 4: 0xFFFF})
    values = read(component(target, kind))
    expected = [r.offset for r in block(kind).registers if not r.port]
    assert sorted(target.reads) == sorted(expected) == sorted(values)
    assert 0x40 not in target.reads or kind != "ram_sink"
    assert (values[0], values[4]) == (1, 0xFFFF)


def test_of_a_component_in_reset_only_control_is_read() -> None:
    """The document: accesses to other registers are unspecified while Active is 0."""
    target = Registers({0: 0, 4: 0x101})
    assert read(component(target, "encoder")) == {0: 0}
    assert target.reads == [0]


def test_a_refused_register_does_not_hide_the_others() -> None:
    target = Registers({0: 1, 4: 0x901, 0x18: 0xFFC}, broken=(0x10, 0x14))
    values = read(component(target, "ram_sink"))
    assert (values[0x10], values[0x14], values[0x18]) == ("cannot be read: bus error",) * 2 + (0xFFC,)
    assert "trRamStartHigh: cannot be read: bus error" in dump(block("ram_sink"), values)


def test_a_refused_control_register_is_all_there_is() -> None:
    assert read(component(Registers({}, broken=(0,)), "funnel")) == {0: "cannot be read: bus error"}


def test_when_the_target_is_gone_that_is_the_error() -> None:
    with pytest.raises(Unplugged, match="the cable is out"):
        read(component(Registers({}, gone=True), "funnel"))


def test_reading_can_be_cancelled() -> None:
    def watch(label: str, done: int, total: int | None = None) -> None:
        assert (label, total) == ("reading registers of encoder (registers)", len(block("encoder").registers))
        if done == 3:
            raise Cancelled

    target = Registers({0: 1})
    with pytest.raises(Cancelled):
        read(component(target, "encoder"), watch)
    assert len(target.reads) < 5


def test_a_look_while_tracing() -> None:
    """It changes nothing, and says what was started."""
    r = rig()
    r.start(SRAM)
    r.sink_model.store(b"trace...")
    before = [(model.control, dict(model.registers)) for model in (r.encoder_model, r.sink_model)]
    lines = dump(r.encoder.block, read(r.encoder)) + dump(r.sink.block, read(r.sink))
    assert [(model.control, model.registers) for model in (r.encoder_model, r.sink_model)] == before
    text = "\n".join(lines)
    assert "trTeInstTracing=1" in text and "trTeInstMode=6 (htm)" in text and "trTeFormat=1 (n_trace)" in text
    assert "trRamMode=0 (sram)" in text and "trRamLimitLow 0x000000fc" in text
    assert "trRamWPLow 0x00000008: trRamWrap=0 trRamWPLow=0x8" in text
    assert "reserved" not in text


def test_of_version_0_as_well() -> None:
    target = Registers({0: 1, 4: 0x0204_0100})
    values = read(Component(target, BASE, block("encoder", 0), "encoder"))
    assert dump(block("encoder", 0), values)[1].startswith("teImpl 0x02040100: version=0 hasSRAMSink=0")
    assert 0x24 not in target.reads and not set(range(0x80, 0x100)) & set(target.reads)


def test_a_field_counts_in_its_unit() -> None:
    register = Register("r", 0, Compliance.REQUIRED, "", (Field("low", 2), Field("at", 30, unit=4)))
    control = RegisterBlock("thing", "r", 1, (register,))
    assert describe(control, 0, 0x1001) == "r 0x00001001: low=1 at=0x1000"
