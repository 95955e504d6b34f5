"""te_inst packets of encoders with any parameters, in any mode, of any dialect; and bytes that are none."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import build, parse
from tests.decode.etrace.packets import read

FORMATS = ((0, 0), (0, 1), (1, None), (2, None), (3, 0), (3, 1), (3, 2))
FLAGS = ("notify", "updiscon", "irreport")
LOOSE = {Dialect.PULP: "notify", Dialect.QEMU: "notify", Dialect.PT10: "irreport", Dialect.ET20: "irreport"}
"""Flags that encoders of these dialects cannot send."""


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    """Of any encoder."""
    width = draw(st.sampled_from([32, 39, 64]))
    return Parameters(
        iaddress_width=width,
        iaddress_lsb=draw(st.integers(0, 2)),
        privilege_width=draw(st.integers(1, 3)),
        ecause_width=draw(st.integers(4, 6)),
        context_width=draw(st.sampled_from([0, 1, 16, 32])),
        time_width=draw(st.sampled_from([0, 16, 64])),
        bpred_size=draw(st.integers(1, 4)),
        cache_size=draw(st.integers(1, 6)),
        return_stack_size=draw(st.integers(0, 4)),
        call_counter_size=draw(st.integers(0, 4)),
        f0s_width=draw(st.sampled_from([1, 2])),
        iret_ext=draw(st.booleans()),
    )


@st.composite
def modes(draw: st.DrawFn) -> Modes:
    """Those that matter for the packets."""
    return Modes(full_address=draw(st.booleans()), implicit_exception=draw(st.booleans()))


def number(draw: st.DrawFn, width: int) -> int:
    """A value of *width* bits, often one at an end."""
    top = (1 << width) - 1
    return draw(st.one_of(st.sampled_from([0, top, top >> 1]), st.integers(0, top)))


@st.composite
def fields_for(draw: st.DrawFn, key: tuple[int, int | None], made: Parameters, set_to: Modes) -> dict[str, int]:
    """Fields of a packet, from the document's tables."""
    names = {
        (0, 0): ["branch_count", "branch_fmt"], (0, 1): ["index", "branches"], (1, None): ["branches"], (2, None): [],
        (3, 0): ["branch", "privilege", "time", "context"], (3, 2): ["privilege", "time", "context"],
        (3, 1): ["branch", "privilege", "time", "context", "ecause", "interrupt", "thaddr"],
    }[key]  # fmt: skip
    widths = {
        "branch_count": 32, "index": made.cache_size, "branches": 5, "branch": 1, "privilege": made.privilege_width,
        "time": made.time_width, "context": made.context_width, "ecause": made.ecause_width, "interrupt": 1,
        "thaddr": 1, "branch_fmt": 0,
    }  # fmt: skip
    fields = {name: number(draw, widths[name]) for name in names if widths[name]}
    if "branch_fmt" in names:
        fields["branch_fmt"] = draw(st.sampled_from([0, 2, 3]))
    if "branches" in fields and (fields["branches"] or key == (1, None)):
        size = next(size for size in (1, 3, 7, 15, 31) if (fields["branches"] or 31) <= size)
        fields["branch_map"] = number(draw, size)
    reported = key == (2, None) or fields.get("branch_fmt", 0) > 0 or (key == (1, None) and fields["branches"] > 0)
    if reported or key == (3, 0) or (key == (3, 1) and not (set_to.implicit_exception and fields["thaddr"])):
        width = made.iaddress_width - made.iaddress_lsb
        sent = number(draw, width)
        if reported and not set_to.full_address and sent >> width - 1:
            sent -= 1 << width
        fields["address"] = sent << made.iaddress_lsb
    if reported or key == (0, 1):
        fields |= {flag: draw(st.integers(0, 1)) for flag in (FLAGS if reported else FLAGS[2:])}
        stack = made.return_stack_size
        depth = 8 if made.iret_ext else stack + (stack > 0) + made.call_counter_size
        if fields["irreport"] and depth:
            fields["irets" if made.iret_ext else "irdepth"] = number(draw, depth)
    if key == (3, 1) and not fields["interrupt"]:
        fields["tval"] = number(draw, made.iaddress_width)
    return fields


@given(st.data(), parameters(), modes(), st.sampled_from(FORMATS), st.booleans())
def test_what_is_written_is_read(
    data: st.DataObject, made: Parameters, set_to: Modes, key: tuple[int, int | None], compress: bool
) -> None:
    """As what it was, by this reader and by the tests' own; and without needless bytes."""
    fields = data.draw(fields_for(key, made, set_to))
    options = Options(made, set_to)
    payload = build(*key, fields, options, set_to, compress=compress)
    assert parse(payload, options, set_to) == Packet(*key, fields)
    found = read(payload, made, set_to)
    assert all(found[name] == value & (1 << 64) - 1 for name, value in fields.items() if value >= 0)
    if compress and len(payload) > 1:
        assert parse_or_none(payload[:-1], options, set_to) != Packet(*key, fields)


def parse_or_none(payload: bytes, options: Options, set_to: Modes) -> Packet | None:
    """The packet, if it is one."""
    try:
        return parse(payload, options, set_to)
    except MalformedPacket:
        return None


@given(
    st.binary(max_size=40),
    parameters(),
    modes(),
    st.sampled_from(Dialect),
    st.sampled_from(SupportLayout),
)
def test_bytes_that_may_be_no_packet(
    payload: bytes, made: Parameters, set_to: Modes, dialect: Dialect, layout: SupportLayout
) -> None:
    """They are a packet, or MalformedPacket says why not; a packet of theirs, written and read again, is the same."""
    options = Options(made, set_to, support=layout, dialect=dialect)
    try:
        packet = parse(payload, options, set_to)
    except MalformedPacket as error:
        assert str(error)
        return
    assert all(value >= 0 for name, value in packet.fields.items() if name != "address")
    assert parse(build(*packet, options, set_to), options, set_to) == packet


def meaningful(fields: Mapping[str, int], dialect: Dialect) -> dict[str, int]:
    """*fields* without what the dialect cannot say."""
    return {name: 0 if name == LOOSE.get(dialect) else value for name, value in fields.items()}


@given(st.data(), parameters(), modes(), st.sampled_from([*LOOSE]), st.sampled_from(FORMATS[2:]))
def test_dialects_say_the_same(
    data: st.DataObject, made: Parameters, set_to: Modes, dialect: Dialect, key: tuple[int, int | None]
) -> None:
    """What one dialect can say comes back from it."""
    if dialect is Dialect.QEMU:
        made = replace(made, iaddress_width=64, iaddress_lsb=0)
    fields = meaningful(data.draw(fields_for(key, made, set_to)), dialect)
    for name in ("irdepth", "irets"):
        fields.pop(name, None)
    if dialect in (Dialect.PULP, Dialect.PT10, Dialect.ET20) and key == (3, 1):
        fields.setdefault("address", 0)  # no implicit exceptions there
    if dialect in (Dialect.PULP, Dialect.PT10) and key == (3, 1):
        fields.setdefault("tval", 0)
    if dialect is Dialect.PT10 and key == (3, 1):
        fields["thaddr"] = 1
    if "irreport" in fields:
        fields["irreport"] = 0
    if dialect is Dialect.QEMU and key == (3, 0):
        fields["address"] &= (1 << 57) - 1  # of Sv57; others may look like a format 2 of theirs
    options = Options(made, set_to, dialect=dialect)
    assert parse(build(*key, fields, options, set_to), options, set_to) == Packet(*key, fields)


def test_every_format_is_drawn() -> None:
    """All packets of the document but support packets."""
    both = {(0, 0), (0, 1), (1, None), (2, None), *product([3], [0, 1, 2])}
    assert set(FORMATS) == both
