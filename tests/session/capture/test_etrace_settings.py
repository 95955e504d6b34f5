"""What can be said of an E-Trace stream: one table for the command line, captures and target descriptions."""

import re
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.console.options import etrace
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout, TrapHandlers
from rvtrace_gdb.session.capture.etrace_settings import (
    SETTINGS,
    BadSetting,
    EtraceTraceOptions,
    Owner,
    SettingKind,
    check_settings,
    default,
    etrace_of,
    values_of,
)
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import CapturedEncoder, Unregistered
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.etrace import etrace_of_registers
from rvtrace_gdb.session.formats.imports.raw_import import etrace_encoder
from rvtrace_gdb.session.formats.registry import options_of_encoder
from rvtrace_gdb.session.formats.sinks import options_of
from tests.session.captures import SMALL
from tests.session.etraces import etraces

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_every_field_a_decoder_is_told_is_a_setting() -> None:
    """Those of the inner dataclasses are fields of their own; two settings are in `trap_handlers`."""
    of_settings = {(setting.owner, key) for key, setting in SETTINGS.items() if setting.owner is not Owner.NOTHING}
    inner = {"parameters", "modes", "trap_handlers", "stop_at_error"}
    of_fields = {
        (owner, "encapsulation" if one.name == "name" else one.name)
        for owner in Owner if owner is not Owner.NOTHING
        for one in fields(owner.value) if one.name not in inner
    }  # fmt: skip
    assert of_settings == of_fields | {(Owner.OPTIONS, "trap_vector"), (Owner.OPTIONS, "trap_handlers")}


@given(etraces)
@settings(deadline=None)
def test_settings_say_all_of_it(trace_options: EtraceTraceOptions) -> None:
    assert etrace_of(check_settings(values_of(trace_options))) == trace_options


@given(etraces, st.integers(0, (1 << 16) - 1))
@settings(deadline=None)
def test_what_was_said_of_the_bytes_is_what_the_decoder_is_told(trace_options: EtraceTraceOptions, source: int) -> None:
    """By way of registers, and through the file."""
    encoder = etrace_encoder("e", 3, trace_options, source)
    capture = replace(SMALL, encoders=(encoder,), sinks=(replace(SMALL.sinks[0], encoders=("e",), lost=()),))
    with TemporaryDirectory() as folder:
        save(capture, Path(folder, "x.rvt"))
        read = load(Path(folder, "x.rvt"))
    assert read == capture
    assert options_of(list(read.encoders)) == trace_options


# Registers: bit numbers as in the Trace Control Interface 1.0, trTeInstFeatures, trTeDataControl, trTsControl.

LIVE = EncoderSettings("encoder0", 0x20000000, 0x00010067, 0x0000_0101, 0, 0)  # trTeInstSyncMode 1
PLAIN = Options(Parameters(), Modes(), sync_packets=16)


@pytest.mark.parametrize(
    ("registers", "modes", "encapsulation"),
    [
        (LIVE, Modes(), Encapsulation()),
        (replace(LIVE, features=1 << 0), Modes(full_address=True), Encapsulation()),
        (replace(LIVE, features=1 << 1), Modes(implicit_exception=True), Encapsulation()),
        (replace(LIVE, features=1 << 2), Modes(sijump=True), Encapsulation()),
        (replace(LIVE, features=1 << 3), Modes(implicit_return=True), Encapsulation()),
        (replace(LIVE, features=1 << 4), Modes(branch_prediction=True), Encapsulation()),
        (replace(LIVE, features=1 << 5), Modes(jump_target_cache=True), Encapsulation()),
        (replace(LIVE, features=5 << 28 | 0x11 << 16), Modes(), Encapsulation(src_bits=5)),
        (replace(LIVE, features=5 << 28, control=LIVE.control | 1 << 15), Modes(), Encapsulation()),
        (replace(LIVE, ts_control=1 << 15 | 40 << 24 | 3), Modes(), Encapsulation(timestamp_bytes=5)),
        (replace(LIVE, ts_control=40 << 24 | 3), Modes(), Encapsulation()),
        (replace(LIVE, control=LIVE.control & ~(3 << 16)), Modes(resync_disabled=True), Encapsulation()),
        (replace(LIVE, data_control=1 | 2 << 18), Modes(), Encapsulation(type_bits=1)),
        (replace(LIVE, data_control=1 | 1 << 16 | 2 << 18), Modes(data_no_data=True), Encapsulation(type_bits=1)),
        (replace(LIVE, data_control=1 | 1 << 17 | 2 << 18), Modes(data_no_address=True), Encapsulation(type_bits=1)),
        (replace(LIVE, data_control=1), Modes(data_full_address=True), Encapsulation(type_bits=1)),
    ],
)
def test_every_register_a_decoder_must_know(
    registers: EncoderSettings, modes: Modes, encapsulation: Encapsulation
) -> None:
    wanted = replace(PLAIN, modes=modes, sync_packets=0 if modes.resync_disabled else PLAIN.sync_packets)
    assert etrace_of_registers(registers, {}) == EtraceTraceOptions(wanted, encapsulation)


@pytest.mark.parametrize(
    ("mode", "exponent", "packets"), [(0, 3, 0), (1, 3, 128), (1, 15, 1 << 19), (2, 3, 0), (3, 3, 0)]
)
def test_packets_after_which_it_synchronizes(mode: int, exponent: int, packets: int) -> None:
    """2^(trTeInstSyncMax+4) of what trTeInstSyncMode counts: 1 packets, 2 cycles, 3 halfwords."""
    registers = replace(LIVE, control=LIVE.control & ~(0xF3 << 16) | mode << 16 | exponent << 20)
    assert etrace_of_registers(registers, {}).options.sync_packets == packets
    assert not etrace_of_registers(replace(registers, base=0), {}).options.sync_packets, (
        "what somebody said, not registers"
    )


@pytest.mark.parametrize(
    ("mode", "exponent", "bits"), [(0, 3, 28), (1, 3, 28), (2, 3, 10), (3, 3, 10), (2, 15, 22), (3, 0, 7)]
)
def test_a_period_of_cycles_or_halfwords_bounds_branch_count(mode: int, exponent: int, bits: int) -> None:
    """2^(trTeInstSyncMax+4) of them, with room for four branches in a cycle and a late synchronization."""
    registers = replace(LIVE, control=LIVE.control & ~(0xF3 << 16) | mode << 16 | exponent << 20)
    assert etrace_of_registers(registers, {}).options.branch_count_bits == bits
    assert etrace_of_registers(registers, {"branch_count_bits": 32}).options.branch_count_bits == 32


def test_encoders_with_different_periods_can_feed_one_sink() -> None:
    """The packets of all are read alike; how many there have to be is not known then."""
    plain, other = (CapturedEncoder(0, replace(LIVE, control=LIVE.control | n << 20)) for n in (3, 4))
    for encoders, packets in (([plain, plain], 128), ([plain, other], 0)):
        trace_options = options_of(encoders)
        assert isinstance(trace_options, EtraceTraceOptions)
        assert trace_options.options.sync_packets == packets


@pytest.mark.parametrize(
    ("filters", "control", "unfiltered"),
    [(0, 0, True), (1, 0, False), (1 << 15, 0, False), (0, 1 << 11, False), (None, 0, False)],
)
def test_whether_something_may_be_left_out(filters: int | None, control: int, unfiltered: bool) -> None:
    """trTeInstFilters selects filters, trTeInstTrigEnable lets triggers switch tracing; what is not known may be."""
    registers = replace(LIVE, inst_filters=filters, control=LIVE.control | control)
    assert etrace_of_registers(registers, {}).options.unfiltered is unfiltered
    assert not etrace_of_registers(replace(registers, base=0), {}).options.unfiltered, (
        "what somebody said, not registers"
    )


def test_what_is_said_counts_more_than_registers() -> None:
    registers = replace(LIVE, features=0b111111 | 5 << 28)
    found = etrace_of_registers(
        registers, {"sijump": False, "src_bits": 8, "iaddress_width": 39, "trap_vector": "0x80000101"}
    )
    assert not found.options.modes.sijump and found.options.modes.full_address
    assert found.encapsulation.src_bits == 8
    assert found.options.parameters.iaddress_width == 39
    assert found.options.trap_handlers == TrapHandlers(0x80000101)


def test_another_version_of_the_protocol_is_refused() -> None:
    """E-Trace 2.0, "Basic Control": trTeProtocolMajor "must be 0 to indicate this version"."""
    encoder = replace(etrace_encoder("e", 0, EtraceTraceOptions()), in_force=replace(LIVE, impl=0x0001_0101))
    with pytest.raises(Unsupported, match=r"^encoder0 produces E-Trace 1\.0, which cannot be decoded yet"):
        options_of_encoder(encoder)


# Files


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("iaddress_width", 65, "is 65, must be a number from 2 to 64"),
        ("iaddress_width", True, "is True, must be a number from 2 to 64"),
        ("sijump", 1, "is 1, must be true or false"),
        ("support", "mine", "is 'mine', must be one of reference, standard, pulp, et20, pt10"),
        ("encapsulation", "usb", "is 'usb', must be one of encap, smi, atb, esp32, pulp, qemu"),
        ("trap_vector", "80000000", "is '80000000', must be an address, as in \"0x80000100\""),
        ("trap_handlers", {"x": "0x0"}, "has 'x', which is not a cause: 2 is an exception, i7 an interrupt"),
        ("colour", 1, "is unknown; known settings: iaddress_width, "),
    ],
)
def test_a_wrong_setting_is_one_line(key: str, value: Any, problem: str) -> None:
    with pytest.raises(BadSetting) as caught:
        check_settings({key: value})
    assert str(caught.value).startswith(f"{key} {problem}")


def test_a_capture_ignores_settings_it_does_not_know_and_refuses_wrong_ones() -> None:
    assert check_settings({"colour": 1, "sijump": True, "f0s_width": None}, known_only=False) == {"sijump": True}
    encoder = replace(SMALL.encoders[0], unregistered=Unregistered(etrace={"iaddress_width": 65}))
    with TemporaryDirectory() as folder:
        save(replace(SMALL, encoders=(encoder,)), Path(folder, "x.rvt"))
        with pytest.raises(Exception, match=r"has no usable encoders\[0\]\.unregistered\.etrace\.iaddress_width$"):
            load(Path(folder, "x.rvt"))


DESCRIPTION = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
{}

[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SRAM"
"""


def test_a_target_description_says_how_the_encoder_was_built() -> None:
    text = 'etrace = {iaddress_width = 39, support = "standard", trap_vector = 0x8000_0100, trap_handlers = {i7 = 64}}'
    [encoder] = parse(DESCRIPTION.format(text), "b.toml").encoders
    assert encoder.etrace == {
        "iaddress_width": 39, "support": "standard", "trap_vector": "0x80000100", "trap_handlers": {"i7": "0x40"},
    }  # fmt: skip
    found = etrace_of_registers(LIVE, encoder.etrace).options
    assert (found.parameters.iaddress_width, found.support) == (39, SupportLayout.STANDARD)
    assert found.trap_handlers == TrapHandlers(0x80000100, {(7, True): 0x40})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("etrace = 1", "etrace: must be a table, as in etrace = {iaddress_width = 39}"),
        ("etrace = {cache_size = 99}", "etrace.cache_size: is 99, must be a number from 0 to 16"),
        ("etrace = {encapsulation = 'qemu', src_bits = 1}",
         "etrace.encapsulation: does not fit the other settings: encapsulation qemu has no src_bits"),
    ],
)  # fmt: skip
def test_a_wrong_description_is_one_line(text: str, line: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        parse(DESCRIPTION.format(text), "b.toml")
    assert str(caught.value) == f'b.toml: [[component]] "encoder0": {line}'


# The reference page


def rows() -> dict[str, list[str]]:
    """The rows of the tables of settings in docs/etrace.md: the other cells by the first, without quotes."""
    found = {}
    for line in (DOCS / "etrace.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            found[cells[0].strip("`")] = cells[1:]
    return found


def test_the_page_lists_every_setting_with_its_option_values_and_default() -> None:
    documented = rows()
    assert set(documented) == set(SETTINGS)
    for key, (said_by, values, meaning) in documented.items():
        setting = SETTINGS[key]
        if setting.owner is not Owner.NOTHING:
            assert f"`{etrace.option(key)}" in said_by, key
        assert all(word in meaning + said_by for word in re.findall(r"\w+_p|tr\w+", setting.source)), key
        if setting.kind is SettingKind.NUMBER:
            assert isinstance(setting.allowed, range)
            assert values.startswith(f"{setting.allowed[0]}-{setting.allowed[-1]}"), key
        if setting.kind is SettingKind.CHOICE:
            assert all(str(value) in meaning for value in setting.allowed), key
        told = default(key)
        if setting.kind in (SettingKind.NUMBER, SettingKind.CHOICE) and told is not None and key != "iaddress_width":
            assert f"**{told}**" in values, key


def test_dialects_are_those_of_the_decoder() -> None:
    assert SETTINGS["dialect"].allowed == tuple(dialect.value for dialect in Dialect)
