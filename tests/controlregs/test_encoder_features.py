"""The table of encoder features: each row reaches everything that has to know it.

The bits and which format has them are from the Trace Control Interface 1.0, N-Trace 1.0 and E-Trace 2.0.
"""

import argparse
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.options import encoder as encode_ntrace
from rvtrace_gdb.console.options import etrace as options_etrace
from rvtrace_gdb.console.options import hints, raw
from rvtrace_gdb.console.options.inputs import RawError
from rvtrace_gdb.console.options.request import EncoderBytes
from rvtrace_gdb.controlregs.encoder_features import FEATURES, SWITCHES, EncoderFeature
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, TraceRequest
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.guesses import detect_options
from rvtrace_gdb.session.formats.imports.raw_import import EncoderTraceOptions, RawImport, capture_of
from rvtrace_gdb.session.sources.options import trace_request
from rvtrace_gdb.session.sources.qemu.encoder import NTraceOptions, encoder_options
from rvtrace_gdb.transport.simulated.devices.ntrace import SET_BY_REGISTERS
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.cross_compiler import demo
from tests.session.board import SMALL_RAM
from tests.transport.simulated.devices.test_component import INST_FEATURES, TE, Registers

N, E = 1, 2
DOCUMENT = {
    "trTeInstNoAddrDiff": (0, E), "trTeInstNoTrapAddr": (1, E), "trTeInstEnSequentialJump": (2, N | E),
    "trTeInstEnImplicitReturn": (3, N | E), "trTeInstEnBranchPrediction": (4, E), "trTeInstEnJumpTargetCache": (5, E),
    "trTeInstEnRepeatedHistory": (8, N), "trTeInstEnAllJumps": (9, N), "trTeInstExtendAddrMSB": (10, N),
}  # fmt: skip
"""Field -> its bit in trTeInstFeatures and the formats whose documents have it."""

CODES = {"ntrace": int(TeFormat.N_TRACE), "etrace": int(TeFormat.E_TRACE)}
N_TRACE, N_TRACE_1_0, HTM = 1 << 24, 0x0001_0101, 6 << 4
EACH = pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.field)
EACH_SWITCH = pytest.mark.parametrize("feature", SWITCHES, ids=lambda feature: feature.field)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("demo"))


def formats(feature: EncoderFeature) -> list[str]:
    return ["ntrace"] * bool(feature.ntrace) + ["etrace"] * bool(feature.etrace)


def in_force(format: str, features: int, base: int = 0x2000_0000) -> EncoderSettings:
    """An encoder with this trTeInstFeatures."""
    if format == "ntrace":
        return EncoderSettings("encoder0", base, N_TRACE | HTM, N_TRACE_1_0, features, 0)
    return EncoderSettings("encoder0", base, 7 << 4, 0x0101, features, 0)


def is_on(trace_options: Any, feature: EncoderFeature) -> bool:
    """Whether the decoder's options say that the feature is on."""
    return bool(
        getattr(trace_options.options.modes, feature.etrace)
        if isinstance(trace_options, EtraceTraceOptions)
        else getattr(trace_options, feature.ntrace)
    )


def raw_arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--elf", action="append", default=[])
    raw.add_arguments(parser, capture=True, program=True)
    return parser.parse_args(words)


def test_the_table_has_what_the_documents_have() -> None:
    assert {it.field: (it.bit, N * bool(it.ntrace) | E * bool(it.etrace)) for it in FEATURES} == DOCUMENT
    assert [it.bit for it in FEATURES] == sorted(it.bit for it in FEATURES)


@EACH
def test_trace_start_asks_for_the_bit(feature: EncoderFeature) -> None:
    words = [feature.option, "on"] if feature.words else [feature.option]
    assert trace_request(start_options.parse(words)).features == (feature.field,)
    assert trace_request({feature.request: "off" if feature.words else False}).features == ()


@EACH
def test_decoders_know_what_the_register_says(feature: EncoderFeature) -> None:
    for format in formats(feature):
        if format == "ntrace" and feature.in_messages:
            continue
        on, off = (
            registry.options_of_encoder(CapturedEncoder(0, in_force(format, bits))) for bits in (1 << feature.bit, 0)
        )
        assert is_on(on, feature) and not is_on(off, feature)


def trace_options_of(args: argparse.Namespace) -> EncoderTraceOptions:
    request = raw.raw_bytes(args)
    assert isinstance(request, EncoderBytes)
    return request.trace_options(64)


@EACH
def test_raw_bytes_have_an_option_that_the_capture_keeps(feature: EncoderFeature) -> None:
    for format in formats(feature):
        if format == "ntrace" and feature.in_messages:
            continue
        name = f"--{(feature.ntrace or feature.etrace).replace('_', '-')}"
        args = raw_arguments(f"--{format}", name, *["full"] * bool(feature.words))
        (encoder,) = capture_of(RawImport("x", b"", trace_options_of(args), Image())).encoders
        assert encoder.in_force.features >> feature.bit & 1
        assert is_on(registry.options_of_encoder(encoder), feature)
        other = {"ntrace": "etrace", "etrace": "ntrace"}[format]
        if other not in formats(feature):
            with pytest.raises(RawError, match=name):
                raw.raw_bytes(raw_arguments(f"--{other}", name, *["full"] * bool(feature.words)))
        with pytest.raises(RawError, match=name):
            raw.is_raw(raw_arguments(name, *["full"] * bool(feature.words)))


@EACH
def test_it_is_tried_where_bytes_do_not_fit_and_named_in_the_hint(feature: EncoderFeature) -> None:
    plain: dict[str, Any] = {"ntrace": Options(), "etrace": EtraceTraceOptions()}
    option = f"--{(feature.ntrace or feature.etrace).replace('_', '-')}"
    for format in formats(feature):
        if format == "ntrace" and feature.in_messages:
            continue
        tried = [
            trace_options for trace_options in detect_options._changed(plain[format]) if is_on(trace_options, feature)
        ]
        assert any(option in hints._changes(plain[format], trace_options) for trace_options in tried)
        assert not all(is_on(trace_options, feature) for trace_options in detect_options._changed(tried[-1]))


@EACH
def test_encode_has_an_option_for_it(feature: EncoderFeature) -> None:
    if feature.ntrace:
        parser = argparse.ArgumentParser()
        encode_ntrace.add_arguments(parser)
        words = [f"--{feature.ntrace.replace('_', '-')}", *["full"] * bool(feature.words)]
        built = encode_ntrace.options(encode_ntrace.given_options(parser.parse_args(words)), 64)
        assert getattr(built, feature.ntrace) and (feature.in_messages or is_on(built.of_decoder, feature))
    if feature.etrace:
        parser = argparse.ArgumentParser()
        options_etrace.add_arguments(parser, raw=False)
        options_etrace.add_shared(parser)
        args = parser.parse_args([f"--{(feature.ntrace or feature.etrace).replace('_', '-')}"])
        settings = options_etrace.GivenSettings.from_arguments(args).settings()
        assert is_on(options_etrace.trace_options(settings, 64), feature)


@EACH
def test_the_encoder_for_qemu_does_it(feature: EncoderFeature) -> None:
    for format, code in CODES.items():
        built, notes = encoder_options(TraceRequest(format=code, features=(feature.field,)), 64, {})
        if format not in formats(feature):
            assert notes == [f"{'N' if format == 'ntrace' else 'E'}-Trace has no {feature.field}"]
        elif notes:
            assert feature.field == "trTeInstNoTrapAddr"  # nobody could tell the addresses afterwards
        elif isinstance(built, NTraceOptions):
            assert getattr(built.options, feature.ntrace)
        else:
            assert is_on(built.trace_options, feature)


@EACH_SWITCH
def test_status_lines_name_it(feature: EncoderFeature) -> None:
    for format in formats(feature):
        assert f", {feature.name}, " in report.protocol(in_force(format, 1 << feature.bit))
        assert feature.name not in report.protocol(in_force(format, 0))


@EACH
def test_the_simulated_encoder_has_the_bit_and_can_be_built_without(feature: EncoderFeature, elf: Path) -> None:
    for format in formats(feature):
        for absent in ((), (feature.field,)):
            machine = build(elf, formats=(CODES[format],), absent=absent, memory_map=SMALL_RAM)
            registers = Registers(machine.bus, TE)
            registers.activate()
            registers[INST_FEATURES] = 1 << feature.bit
            assert registers[INST_FEATURES] >> feature.bit & 1 == (not absent)
    if feature.ntrace:
        assert feature.ntrace in SET_BY_REGISTERS  # no option of `rvtrace sim`, which is for what no register sets
