"""What decoders, `trace dump`, random cases and damaged inputs must know of each row of the table of encoder features.

`tests/controlregs/test_encoder_features.py` follows the rows to registers, options and captures.
"""

from dataclasses import fields
from typing import Any

import pytest

from rvtrace_gdb.controlregs.encoder_features import ETRACE, NTRACE, RAW_NTRACE, EncoderFeature
from rvtrace_gdb.decode.check.ntrace_comparison import NtraceScheme
from rvtrace_gdb.decode.etrace.encapsulation import NAMES
from rvtrace_gdb.decode.etrace.options import SupportLayout
from rvtrace_gdb.decode.etrace.packet import LAYOUTS
from rvtrace_gdb.decode.ntrace.items import Itemizer
from rvtrace_gdb.decode.ntrace.options import DIALECTS, EncoderOptions, ImplicitReturn, Options
from rvtrace_gdb.decode.ntrace.wording import Wording
from tests.decode.ntrace.encodings import FIELDS
from tests.decode.ntrace.messages import MESSAGES, message, started
from tests.fuzz.kinds import etrace as damaged_etrace
from tests.fuzz.kinds import ntrace as damaged_ntrace

EACH_OF_NTRACE = pytest.mark.parametrize("feature", NTRACE, ids=lambda feature: feature.field)

IN_DUMP: dict[str, set[str]] = {
    "sequential_jump": set(),
    "implicit_return": set(),
    "repeated_history": set(),
    "all_jumps": {"DirectBranch"},
    "extend_addr_msb": {name for name, (_, layout) in MESSAGES.items() if "addr" in layout},
}
"""By the field of a feature: the messages of which `trace dump` says something else where it is on.

Sections 9.1 to 9.4 of N-Trace 1.0: the first two omit messages, the third has an RCODE of its own, with all jumps a
direct branch may be a jump (where it has SYNC, that is said instead), and the last changes the addresses of which the
highest bit sent is 1.
"""

NOT_REPORTED = {
    SupportLayout.REFERENCE: {"sijump"},
    SupportLayout.STANDARD: set(),
    SupportLayout.PULP: set(),
    SupportLayout.ET20: set(),
    SupportLayout.PT10: {feature.etrace for feature in ETRACE},
}
"""The modes that a support packet does not report, by its layout. A draft before sijump is the reference model's."""


def lines(options: Options) -> dict[str, str]:
    """One line of `trace dump` for each message of the table, after a message with an address."""
    values = {"process": 0x3B2, "icnt": 9, "uaddr": 0x841, "faddr": 0x841, "hist": 0b1011, "bcnt": 7, "rdata": 0b101}
    values |= {"hrepeat": 150, "sync": 9, "b_type": 0, "etype": 0, "ecode": 4, "evcode": 4, "cdf": 1, "rcode": 2}
    shown = {}
    for name, (_, layout) in MESSAGES.items():
        sent = {field.partition(":")[0]: values[field.partition(":")[0]] for field in layout.split()}
        itemizer, wording = Itemizer(options, 64), Wording(options)
        *_, item = [*itemizer.feed(started() + message(name, (0, 0), None, **sent)), *itemizer.finish()]
        shown[name] = wording.text(item)
    return shown


@EACH_OF_NTRACE
def test_the_dump_says_what_depends_on_it(feature: EncoderFeature) -> None:
    on: dict[str, Any] = {feature.ntrace: ImplicitReturn.FULL_STACK if feature.words else True}
    off, other = lines(Options()), lines(Options() if feature.in_messages else Options(**on))
    assert {name for name in off if off[name] != other[name]} == IN_DUMP[feature.ntrace]


@pytest.mark.parametrize("layout", SupportLayout)
def test_support_packets_report_the_modes(layout: SupportLayout) -> None:
    reported = {entry.setting for entry in LAYOUTS[layout].entries}
    assert {feature.etrace for feature in ETRACE} - reported == NOT_REPORTED[layout]


def test_random_cases_draw_every_option() -> None:
    """But for the source and XLEN, which each case chooses. `tests/decode/etrace/test_properties.py`: of E-Trace."""
    assert {field.name for field in fields(EncoderOptions)} - FIELDS.keys() == {"src_bits", "src_id", "xlen"}


def test_damaged_inputs_have_every_feature() -> None:
    assert {feature.ntrace for feature in NTRACE} <= damaged_ntrace.FIELDS.keys()
    assert {feature.etrace for feature in ETRACE} <= damaged_etrace.FIELDS.keys()


def test_damaged_inputs_have_every_dialect_and_encapsulation() -> None:
    assert set(damaged_ntrace.FIELDS["dialect"]) == set(DIALECTS)
    assert {it.name for it in damaged_etrace.ENCAPSULATIONS.values()} == set(NAMES)


@pytest.mark.parametrize("feature", RAW_NTRACE, ids=lambda feature: feature.field)
def test_the_check_encodes_with_every_feature_that_a_decoder_is_told(feature: EncoderFeature) -> None:
    """But for these a sound trace would differ from what is encoded again."""
    for on in (False, True):
        told: dict[str, Any] = {feature.ntrace: on}
        options = NtraceScheme(Options(**told), 64).base([]).options
        assert getattr(options, feature.ntrace) is on
