"""Support packets: what each layout says, bit by bit.

Sources: Efficient Trace for RISC-V 2.0, "Format 3 subformat 3 - Support"; the extension "Standard Support Packet"
v0.8; the first packets of the reference vectors and of rv_tracer's and Espressif's (layouts: `decode.etrace.packet`).
"""

from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import (
    QualStatus,
    Support,
    apply_support,
    build,
    parse,
    read_support,
    support_fields,
)
from tests.decode.etrace.encoder_vectors import vector
from tests.decode.etrace.packet.test_packet import bits, low_first, short

PLAIN = Modes()


def said(text: str, layout: SupportLayout, options: Options | None = None) -> Support:
    """What a support packet with these bits, first one first, says."""
    options = replace(options or Options(), support=layout)
    return read_support(parse(bits(text), options, PLAIN), options)


REFERENCE_MODES = ("implicit_return", "implicit_exception", "full_address", "jump_target_cache", "branch_prediction")
REFERENCE_DATA = ("data_no_address", "data_no_data", "data_full_address", "data_full_data")
STANDARD_MODES = (
    "sijump", "implicit_return", "branch_prediction", "jump_target_cache", "implicit_exception", "full_address",
    "resync_disabled",
)  # fmt: skip
PULP_MODES = (
    "jump_target_cache", "branch_prediction", "implicit_return", "sijump", "implicit_exception", "full_address",
)  # fmt: skip
ET20_MODES = (*REFERENCE_MODES, "sijump")

LAYOUTS = [
    (SupportLayout.REFERENCE, "1111" + "0" + "0" + "00", REFERENCE_MODES, "00" + "0000"),
    (SupportLayout.STANDARD, "1111" + "0" + "00" + "00", STANDARD_MODES, "0" + "0" * 18 + "0" * 7),
    (SupportLayout.PULP, "1111" + "0" + "0" + "00", PULP_MODES, "0"),
    (SupportLayout.ET20, "1111" + "0" + "0" + "00", ET20_MODES, ""),
]


@pytest.mark.parametrize(("layout", "head", "modes", "tail"), LAYOUTS, ids=lambda value: getattr(value, "value", ""))
def test_one_bit_for_each_mode(layout: SupportLayout, head: str, modes: tuple[str, ...], tail: str) -> None:
    """Each bit switches on one mode, and no other."""
    for number, name in enumerate(modes):
        text = head + "".join("1" if i == number else "0" for i in range(len(modes))) + tail + "0"
        assert said(text, layout).modes == replace(PLAIN, **{name: True})
    nothing = said(head + "0" * len(modes) + tail + "0", layout)
    f0s_width = 0 if layout is SupportLayout.STANDARD else None
    assert nothing == Support(False, 0, QualStatus.NO_CHANGE, False, False, Parameters(f0s_width=f0s_width), PLAIN)


@pytest.mark.parametrize("layout", SupportLayout)
@pytest.mark.parametrize("status", QualStatus)
@pytest.mark.parametrize("ienable", [0, 1])
def test_status(layout: SupportLayout, status: QualStatus, ienable: int) -> None:
    """ienable first; encoder_mode has 2 bits in the standard layout, none in PT10, 1 in the others."""
    mode = {SupportLayout.STANDARD: "00", SupportLayout.PT10: ""}.get(layout, "0")
    found = said("1111" + str(ienable) + mode + low_first(status, 2) + "0" * 40, layout)
    assert (found.ienable, found.qual_status, found.encoder_mode) == (bool(ienable), status, 0)


def test_meaning_of_qual_status() -> None:
    """The table of the document."""
    assert [status.name for status in QualStatus] == ["NO_CHANGE", "ENDED_REP", "TRACE_LOST", "ENDED_NTR"]


def test_data_options_of_the_reference() -> None:
    """denable, dloss, then four options of data trace."""
    for number, name in enumerate(REFERENCE_DATA):
        text = "1111" + "1000" + "00000" + "11" + "".join("1" if i == number else "0" for i in range(4)) + "0"
        found = said(text, SupportLayout.REFERENCE)
        assert (found.denable, found.dloss, found.modes) == (True, True, replace(PLAIN, **{name: True}))


def test_sizes_in_the_standard_packet() -> None:
    """Each has its own width; time_width counts 16 bits."""
    text = "1111" + "1" + "00" + "00" + "0000000" + "1"
    for value, width in ((3, 3), (2, 2), (5, 3), (9, 4), (7, 3), (6, 3)):
        text += low_first(value, width)
    text += "10" + "1" + "0101"
    found = said(text, SupportLayout.STANDARD)
    assert found.parameters == replace(
        Parameters(), time_width=48, f0s_width=2, return_stack_size=5, call_counter_size=9, bpred_size=7, cache_size=6,
        iret_ext=True, mmacas_ext=True,
    )  # fmt: skip
    assert found.modes == replace(PLAIN, data_no_data=True, data_full_data=True)
    assert (found.ienable, found.denable, found.dloss) == (True, True, False)


def test_more_in_the_standard_packet() -> None:
    """ "other: any other implementation specific information" is no fault."""
    text = "1111" + "1" + "0" * 41 + "10110011101"
    assert said(text, SupportLayout.STANDARD).ienable


@pytest.mark.parametrize("option", ["o01", "o02", "o06", "o09", "o10", "o11"])
def test_first_packets_of_the_vectors(option: str) -> None:
    """They say what the vectors' descriptions say, to who knows nothing of it; and are what we would send."""
    found = vector("towers", option)
    first = found.packets[0]
    known = replace(found.options, modes=PLAIN)
    if known.support is SupportLayout.STANDARD:
        sizes: dict[str, Any] = {"bpred_size": 0, "cache_size": 0, "return_stack_size": 0, "iret_ext": False}
        known = replace(known, parameters=replace(known.parameters, **sizes))
    told = read_support(parse(first, known, PLAIN), known)
    assert told.ienable
    assert told.parameters == found.options.parameters
    untold = {"sijump"} if known.support is SupportLayout.REFERENCE else set()
    assert told.modes == replace(found.options.modes, **dict.fromkeys(untold, False))
    fields = support_fields(known.support, found.options.parameters, found.options.modes)
    assert build(3, 3, fields, found.options, found.options.modes) == first


def test_last_packets_of_the_vectors() -> None:
    """They end tracing with the qual_status the descriptions give."""
    found = vector("towers", "o01")
    last = read_support(parse(found.packets[-1], found.options, PLAIN), found.options)
    assert last.qual_status == found.what["last_support_qual_status"]


def test_rv_tracer_support_packet() -> None:
    """The first packet of its captures, 0f 40: nothing on but differential addresses, the last of its seven bits."""
    options = Options(support=SupportLayout.PULP)
    packet = parse(bytes.fromhex("0f40"), options, PLAIN)
    assert {name for name, value in packet.fields.items() if value} == {"delta_address"}
    assert apply_support(packet, options) == (options.parameters, PLAIN)


def test_pt10_says_nothing_of_modes() -> None:
    """What was told otherwise holds: full addresses, always, on those chips."""
    options = Options(modes=Modes(full_address=True))
    assert said("1111" + "1" + "00" + "0", SupportLayout.PT10, options).modes == options.modes


def test_pinned() -> None:
    """Modes and sizes given by hand hold against what the packet says; that tracing is on or lost is heard."""
    text = "1111" + "1" + "00" + "01" + "1" * 8 + "1" * 18 + "1" * 7
    pinned = said(text, SupportLayout.STANDARD, Options(pinned=True))
    assert (pinned.parameters, pinned.modes) == (Parameters(), PLAIN)
    assert (pinned.ienable, pinned.qual_status, pinned.dloss) == (True, QualStatus.TRACE_LOST, True)
    assert apply_support(Packet(3, 3, parse(bits(text), Options(), PLAIN).fields), Options(pinned=True)) == (
        Parameters(),
        PLAIN,
    )


def test_what_is_sent_is_told() -> None:
    """fields_of, written and read, in a layout that has everything."""
    parameters = replace(
        Parameters(), time_width=32, f0s_width=1, return_stack_size=4, call_counter_size=3, bpred_size=6, cache_size=5,
        iret_ext=True, mmacas_ext=True,
    )  # fmt: skip
    modes = replace(PLAIN, sijump=True, resync_disabled=True, data_full_address=True)
    fields = support_fields(SupportLayout.STANDARD, parameters, modes, ienable=False, qual_status=QualStatus.ENDED_NTR,
                       denable=True, dloss=True)  # fmt: skip
    options = Options(support=SupportLayout.STANDARD)
    found = read_support(parse(build(3, 3, fields, options, PLAIN), options, PLAIN), options)
    assert found == Support(False, 0, QualStatus.ENDED_NTR, True, True, parameters, modes)


@pytest.mark.parametrize(
    ("name", "value", "bits"), [("time_width", 24, 3), ("bpred_size", 8, 3), ("return_stack_size", 9, 3)]
)
def test_what_cannot_be_said(name: str, value: int, bits: int) -> None:
    """A time of 24 bits, or a size of more bits than its field has."""
    with pytest.raises(ValueError, match=f"{name} {value} does not fit in {bits} bits"):
        support_fields(SupportLayout.STANDARD, Parameters(**{name: value}), PLAIN)  # type: ignore[arg-type]


def test_a_packet_that_is_all_zero_behind_ienable() -> None:
    """It is one byte: compression leaves out all but the first zero."""
    fields = support_fields(SupportLayout.STANDARD, Parameters(), PLAIN)
    assert build(3, 3, fields, Options(support=SupportLayout.STANDARD), PLAIN) == bits(short("1111" + "1" + "0" * 41))
    assert build(3, 3, fields, Options(support=SupportLayout.STANDARD), PLAIN) == b"\x1f"
