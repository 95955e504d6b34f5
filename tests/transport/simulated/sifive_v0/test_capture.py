"""Captures of version-0 components: what is read back is what is kept, and what a decoder asks of it."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest

from rvtrace_gdb.controlregs.sifive_v0.settings import V0EncoderSettings, V0SinkSettings
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ImplicitReturnMode, InstMode, SyncMode, TeFormat
from rvtrace_gdb.decode.ntrace.options import RATIFIED, SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.session.capture.container import CaptureError
from rvtrace_gdb.session.capture.file import dump, parse
from rvtrace_gdb.session.capture.model import Capture, CapturedEncoder, CapturedSink, Unregistered
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.queries.hardware import registers

# Values that the board prints (sifive-trace-decoder, the README of its p550 scripts).
BOARD = V0EncoderSettings("encoder1", 0x10_1000, 0x81A3_107F, 0x1214_0100, 0, 0x280F_8041)
SYSTEM = V0SinkSettings("ram0", 0x1_8000, 0x7000_0003, 0x0001_0080, 0x1_0000_0000, 0x1_00FF_FFF8, 8, host="funnel")
OWN = V0SinkSettings("ram1", 0x10_0000, 0x4000_4003, 0x0000_0010, 0, 0x3FFC, 4, host="encoder")


def capture(*encoders: V0EncoderSettings) -> Capture:
    made = tuple(CapturedEncoder(hart, it) for hart, it in enumerate(encoders or (BOARD,)))
    names = tuple(it.in_force.name for it in made)
    sinks = tuple(CapturedSink(sink, b"\xff" * 8, False, 0, names, ()) for sink in (SYSTEM, OWN))
    return Capture("2026-01-01T00:00:00Z", "rvtrace 1", "P550", 64, None, made, sinks, ())


def edited(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The file with its description changed."""
    result = BytesIO()
    with zipfile.ZipFile(BytesIO(dump(capture()))) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "capture.json":
                document = json.loads(data)
                change(document)
                data = json.dumps(document).encode()
            new.writestr(name, data)
    return result.getvalue()


def test_what_the_board_says() -> None:
    """HTM with full optimisation, no overflow handling by stalls, messages with 2 bits of SRC, time of 40 bits."""
    assert (BOARD.version, BOARD.format, BOARD.inst_mode) == (0, TeFormat.N_TRACE, InstMode.HTM)
    assert (BOARD.src_id, BOARD.src_bits, BOARD.stall, BOARD.context) == (1, 2, False, False)
    assert BOARD.sync == (SyncMode.MESSAGES, 4)  # teSyncMaxBTM 3: every 256 messages
    assert BOARD.implicit_return is ImplicitReturnMode.DEPTH_COUNTER
    assert (BOARD.timestamps, BOARD.timestamp_bits, BOARD.ts_mode) == (True, 40, 4)
    assert (SYSTEM.mode, SYSTEM.stop_on_wrap, SYSTEM.size) == (RamMode.SMEM, False, 0x100_0000)
    assert (OWN.mode, OWN.stop_on_wrap, OWN.size) == (RamMode.SRAM, True, 0x4000)


@pytest.mark.parametrize(
    ("control", "inst_mode", "returns", "sync", "src_bits"),
    [
        (0x81A3_006F, InstMode.HTM, None, (SyncMode.MESSAGES, 4), 2),
        (0x81AF_803F, InstMode.BTM, None, (SyncMode.HALFWORDS, 10), 0),
        (0x81FF_006F, InstMode.HTM, None, (SyncMode.OFF, 0), 2),
    ],
)
def test_other_settings(control: int, inst_mode: int, returns: Any, sync: Any, src_bits: int) -> None:
    found = V0EncoderSettings("e", 0x10_0000, control, BOARD.impl, 0, 0)
    assert (found.inst_mode, found.implicit_return, found.sync, found.src_bits) == (inst_mode, returns, sync, src_bits)
    assert not found.timestamps


@pytest.mark.parametrize(("control", "impl", "mode"), [(0x3, 0x90, RamMode.SRAM), (0x3, 0x80, RamMode.SMEM)])
def test_the_one_sink_may_be_called_0(control: int, impl: int, mode: RamMode) -> None:
    assert V0SinkSettings("s", 0, control, impl, 0, 0, 4).mode is mode


def test_how_it_is_decoded() -> None:
    expected = Options(
        src_bits=2, timestamps=True, timestamp_bits=40, implicit_return=ImplicitReturn.COUNTER, dialect=SIFIVE
    )
    assert registry.options_of_encoder(CapturedEncoder(1, BOARD)) == expected
    known = Unregistered(dialect="1.0", address_bits=39)  # what a user knows better counts more
    assert registry.options_of_encoder(CapturedEncoder(1, BOARD, known)) == replace(
        expected, dialect=RATIFIED, address_bits=39
    )


def test_what_cannot_be_decoded() -> None:
    vendor = V0EncoderSettings("e", 0x10_0000, 0x8700_0073, BOARD.impl, 0, 0)
    with pytest.raises(Unsupported, match="e produces trTeFormat 7"):
        registry.options_of_encoder(CapturedEncoder(0, vendor))


def test_written_and_read() -> None:
    content = dump(capture())
    assert parse(content, "x.rvt") == capture()
    with zipfile.ZipFile(BytesIO(content)) as container:
        description = json.loads(container.read("capture.json"))
    assert description["version"] == 4
    (encoder,), sinks = description["encoders"], description["sinks"]
    assert encoder["registers"] == {"teControl": "0x81a3107f", "teImpl": "0x12140100", "tsControl": "0x280f8041"}
    assert [sink["registers"] for sink in sinks] == [
        {"tfControl": "0x70000003", "tfImpl": "0x00010080"},
        {"teControl": "0x40004003", "teImpl": "0x00000010"},
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: d["encoders"][0]["registers"].pop("teImpl"), "has no encoders[0].registers.teImpl"),
        (lambda d: d["encoders"][0]["registers"].pop("tsControl"), "has no encoders[0].registers.tsControl"),
        (lambda d: d["encoders"][0]["registers"].pop("teControl"), "has no encoders[0].registers.trTeControl"),
        (lambda d: d["sinks"][0]["registers"].pop("tfImpl"), "has no sinks[0].registers.tfImpl"),
        (lambda d: d["sinks"][1]["registers"].update(teControl=5), "has no usable sinks[1].registers.teControl"),
        (
            lambda d: d["sinks"][1]["registers"].update(teImpl="0x100000000"),
            "has no usable sinks[1].registers.teImpl",
        ),
        (lambda d: d["sinks"][1].update(registers=3), "has no usable sinks[1].registers"),
    ],
)
def test_damage_is_named(change: Callable[[dict[str, Any]], Any], what: str) -> None:
    with pytest.raises(CaptureError) as caught:
        parse(edited(change), "x.rvt")
    assert str(caught.value) == f"x.rvt: is damaged: capture.json {what}"


def test_its_registers_in_words() -> None:
    lines = registers.captured_lines(capture(), "encoder1")
    assert lines[0] == "encoder1 at 0x101000: pre-ratified trace encoder, hart 0, in the capture"
    assert any(line.startswith("  teControl 0x81a3107f: ") and "teInstruction=7" in line for line in lines)
    assert any(line.startswith("  tsControl 0x280f8041: ") and "tsType=4 (slave)" in line for line in lines)
    lines = registers.captured_lines(capture(), "ram0")
    assert lines[0] == "ram0 at 0x18000: RAM sink in a pre-ratified trace funnel, in the capture"
    assert any(line.startswith("  teSinkLimit 0x00fffff8") for line in lines)
    assert any(line.startswith("  teSinkBaseHigh 0x00000001") for line in lines)
