"""Components as no document has them in mind, and as chips have them: what can be used is, what cannot is named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import (
    DrainFailed,
    SettingRefused,
    SinkNotReadable,
    UnsupportedVersion,
    WrongComponent,
)
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.controlregs.trace_control.lifecycle import reset
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, SinkBuffer
from tests.controlregs.graph.graph_model import BLOCKS, LOW, GraphEncoder, GraphFunnel, GraphPib, ram, world
from tests.controlregs.trace_control.component_model import ACTIVE, ENABLE, Model, ModelEncoder, ModelSink
from tests.controlregs.trace_control.rig import BUFFER, SMEM, SRAM, Rig, TraceRequest, drain, rig, status, stop

BASE = 0x2000_0000
HIGH = 0x12_0000_0000
TRACE = bytes(range(1, 201))


def with_sink(kind: type[ModelSink], **options: Any) -> Rig:
    """A rig whose sink is of another *kind*."""
    r = rig(low=options.pop("low", LOW))
    sink = kind(r.target.memory, r.target.low, **options)
    r.sink_model = r.encoder_model.sink = r.target.devices[r.sink.base] = sink
    return r


def with_encoder(kind: type[ModelEncoder], **options: Any) -> Rig:
    r = rig()
    r.encoder_model = r.target.devices[r.encoder.base] = kind(r.sink_model, **options)
    return r


class TestEncoder:
    @pytest.mark.parametrize(
        ("modes", "used", "note"),
        [
            ((3, 7), 3, "encoder 0 has no HTM; using BTM"),  # 6 becomes 7
            ((1, 3), 3, "encoder 0 has no HTM; using BTM"),
            ((3, 6, 7), 6, None),
            ((1, 2, 6), 6, None),
        ],
    )
    def test_a_mode_that_can_be_decoded_is_found(self, modes: tuple[int, ...], used: int, note: str | None) -> None:
        got = rig(encoder={"modes": modes}).start(SMEM)
        assert (got.encoders[0].inst_mode, got.notes) == (used, (note,) if note else ())


    @pytest.mark.parametrize("modes", [(7,), (1,), (2, 5), (0, 4)])
    def test_modes_of_its_own_are_refused(self, modes: tuple[int, ...]) -> None:
        r = rig(encoder={"modes": modes})
        with pytest.raises(SettingRefused) as caught:
            r.start(SMEM)
        reads = r.encoder_model.control & 0x77 | 8
        assert str(caught.value).startswith(f"encoder 0 at {BASE:#x}: traces in mode {reads >> 4} only, which")
        assert "(trTeControl reads 0x" in str(caught.value) and "BTM (3) and HTM (6)" in str(caught.value)
        assert not r.encoder_model.control & ENABLE


    @pytest.mark.parametrize("formats", [(0, 1, 7), (1, 7), (0, 7)])
    def test_a_protocol_after_reset_that_is_none(self, formats: tuple[int, ...]) -> None:
        """trTeFormat is undefined after reset: what it holds need not be what is wanted, or exist."""

        class Formats(ModelEncoder):
            def legal(self, offset: int, value: int) -> int:
                if offset == 0:
                    wanted = value >> 24 & 7
                    self.impl = 0x0001_0101 if wanted == 1 else 0x0000_0101
                    of_format = wanted if wanted in formats else 7
                    return super().legal(0, value & ~(7 << 24)) | of_format << 24
                return super().legal(offset, value)

            def _write_control(self, value: int) -> None:
                super()._write_control(value)
                if value == ACTIVE:
                    self.control |= 7 << 24

        r = with_encoder(Formats, modes=(6,), fixed_ones=0, fixed_zeros=0)
        got = r.start(replace(SMEM, stop_on_wrap=True))
        assert got.encoders[0].format == (TeFormat.N_TRACE if 1 in formats else TeFormat.E_TRACE)
        assert got.notes == ()

    @pytest.mark.parametrize(
        ("offset", "ones", "note"),
        [
            (0x0C, 0x0005, "encoder 0 always filters (trTeInstFilters reads 0x5): some code may not be traced"),
            (0x10, 0x0003, "encoder 0 always traces data (trTeDataTracing stays 1)"),
            (0x00, 1 << 11, "encoder 0 always follows triggers with trace actions (trTeInstTrigEnable stays 1)"),
        ],
    )
    def test_what_is_always_on_is_said(self, offset: int, ones: int, note: str) -> None:
        class Tied(ModelEncoder):
            def legal(self, at: int, value: int) -> int:
                return super().legal(at, value) | (ones if at == offset else 0)

            def configured(self) -> bool:
                return True

        got = with_encoder(Tied).start(SMEM)
        assert got.notes == (note,)

    @pytest.mark.parametrize("flag", [1 << 3, 1 << 5])
    def test_data_trace_that_was_lost(self, flag: int) -> None:
        """trTeDataStallOrOverflow and trTeDataDrop, of an encoder that has data trace."""
        for implemented in (0, 1):
            r = rig()
            r.start(SMEM)
            r.encoder_model.registers[0x10] = implemented | flag
            assert status(r.sink, [r.encoder])[1][0].lost == bool(implemented)
            assert stop(r.sink, [r.encoder]).lost == ("encoder 0",) * implemented


class TestSink:
    def test_an_sram_limit_of_nothing(self) -> None:
        with pytest.raises(SettingRefused) as caught:
            rig(sink={"modes": (0,), "fixed": {0x18: 0}}).start(SRAM)
        assert str(caught.value) == (
            "sink 0 at 0x20001000: its SRAM has no room: trRamStart reads 0x0 and trRamLimit 0x0; "
            "use another sink, or system memory"
        )


    def test_a_read_pointer_that_is_not_there(self) -> None:
        with pytest.raises(SettingRefused, match="its SRAM cannot be read: trRamRP reads 0x0 after 0xfc was written"):
            rig(sink={"fixed": {0x28: 0}}).start(SRAM)

    @pytest.mark.parametrize("length", [40, 252, 300])
    def test_a_read_pointer_that_does_not_go_on(self, length: int) -> None:
        """It would give the same word over and over."""

        class Stays(ModelSink):
            def _next_word(self) -> int:
                pointer = self.registers[0x28]
                return int.from_bytes(self.sram[pointer : pointer + 4], "little")

        r = with_sink(Stays)
        got = r.start(SRAM)
        r.sink_model.store((TRACE * 2)[:length])
        stop(r.sink, [r.encoder])
        said = r"sink 0 at 0x20001000: 0 of .*: trRamRP reads .*, or does not advance"
        with pytest.raises(DrainFailed, match=said) as caught:
            drain(r.sink, got.sink)
        assert caught.value.partial == b""


    @pytest.mark.parametrize("request_", [SRAM, SMEM])
    @pytest.mark.parametrize("held", [0x80, 0x8000_0401])
    def test_a_write_pointer_that_cannot_be_set(self, request_: TraceRequest, held: int) -> None:
        r = rig(sink={"fixed": {0x20: held}})
        with pytest.raises(SettingRefused, match=f"sink 0 at .*cannot be emptied: trRamWPLow reads {held:#010x}, not"):
            r.start(request_)
        assert not r.sink_model.control & ENABLE


    @pytest.mark.parametrize("missing", [(0x14,), (0x1C,), (0x24,), (0x14, 0x1C, 0x24)])
    def test_high_words_that_are_missing(self, missing: tuple[int, ...]) -> None:
        """Before it is switched on: trace would go to another place in memory."""
        r = with_sink(ModelSink, fixed=dict.fromkeys(missing, 0), high=0xFF, low=HIGH)
        with pytest.raises(SettingRefused) as caught:
            r.start(TraceRequest(buffer_start=HIGH + 0x400, buffer_size=0x400))
        if missing == (0x24,):
            assert "cannot be emptied: trRamWPHigh reads 0x00000000, not 0x00000012" in str(caught.value)
        else:
            assert "asked for the buffer 0x1200000400 to 0x1200000800, it would use" in str(caught.value)
        assert not r.sink_model.control & ENABLE


    def test_a_custom_format_of_memory(self) -> None:
        class Custom(ModelSink):
            def legal(self, offset: int, value: int) -> int:
                return super().legal(offset, value) | (3 << 9 if offset == 0 else 0)

        with pytest.raises(SettingRefused, match=r"custom memory format, .* \(trRamControl reads 0x0000061\w\)"):
            with_sink(Custom).start(SMEM)

    def test_one_that_was_set_up_by_somebody_else_meanwhile(self) -> None:
        r = rig()
        got = r.start(SMEM)
        r.sink_model.store(TRACE[:40])
        stop(r.sink, [r.encoder])
        r.sink_model.registers[0x18] = BUFFER + 0x1FC
        with pytest.raises(SinkNotReadable, match="its buffer is 0x80000400 to 0x80000600 of SMEM, it was set"):
            drain(r.sink, got.sink)


def models(kind: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Two of a *kind* in one graph."""
    if kind is ram:
        return {"ram0": ram(**options), "ram1": ram(**options), "enc0": GraphEncoder(), "enc1": GraphEncoder()}
    if kind is GraphPib:
        made = {f"pib{n}": GraphPib(modes=(), fixed_ones=10 << 4) for n in range(2)}
        return {**made, "enc0": GraphEncoder(), "enc1": GraphEncoder()}
    both = {"enc0": GraphEncoder(), "enc1": GraphEncoder()}
    return {"ram0": ram(), "ram1": ram(), "f0": GraphFunnel(), "f1": GraphFunnel(), **both}


EDGES = {
    ram: [("enc0", "ram0"), ("enc1", "ram1")],
    GraphPib: [("enc0", "pib0"), ("enc1", "pib1")],
    GraphFunnel: [("f0", "ram0"), ("f1", "ram1"), ("enc0", "f0"), ("enc1", "f1")],
}


@pytest.mark.parametrize(
    ("kind", "second", "first"),
    [(ram, "ram1", "ram0"), (GraphPib, "pib1", "pib0"), (GraphFunnel, "f1", "f0"), (GraphFunnel, "enc1", "enc0")],
)
def test_one_that_answers_at_two_addresses(kind: Any, second: str, first: str) -> None:
    """As when upper bits of addresses are not decoded: what is set of one is the other's as well."""
    w = world(models(kind), EDGES[kind])
    w.target.devices[w.bases[second]] = w.models[first]
    w.models[first].lenient = True
    request = GraphRequest(buffers={"ram0": SinkBuffer(LOW, 0x400), "ram1": SinkBuffer(LOW + 0x400, 0x400)})
    with pytest.raises(SettingRefused) as caught:
        procedures.start(w.graph, request)
    said = str(caught.value)
    assert said.startswith((f"{second} at {w.bases[second]:#x}: ", f"{first} at {w.bases[first]:#x}: "))
    assert " reads 0x" in said and "does it answer at the address of" in said
    assert not any(model.control & ENABLE for model in w.models.values())


class Plain:
    """Memory, or a device that has a word for everything."""

    def __init__(self, *words: int) -> None:
        self.words = [*words] + [0] * 16
        self.before = list(self.words)

    def read32(self, address: int) -> int:
        return self.words[(address & 0xFFF) // 4]

    def write32(self, address: int, value: int) -> None:
        self.words[(address & 0xFFF) // 4] = value

    def read_block(self, address: int, nbytes: int, progress: object = None) -> bytes:
        raise AssertionError("read")


@pytest.mark.parametrize("kind", list(BLOCKS), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("words", [(0x0000_0010,), (0x1234_5678, 0x0000_0502), (0x13, 0x97), (0, 0), (0xFFFF_FFF0, 7)])
def test_memory_at_the_base_address_is_as_it_was(kind: type[Model], words: tuple[int, ...]) -> None:
    """Whether its first word looks like a component in reset, or like one that is awake."""
    memory = Plain(*words)
    with pytest.raises((WrongComponent, UnsupportedVersion), match=r"^it at 0x20000000: .* reads 0x[0-9a-f]{8}\)"):
        reset(Component(memory, BASE, BLOCKS[kind], "it", 0.02))
    kept = memory.before
    kept[0] &= ~1 if words[0] & 1 == 0 else ~0
    assert memory.words == kept
