"""Filters by address and privilege: what the registers then let through, and what is refused where they cannot."""

from collections.abc import Iterable

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import (
    Filter,
    configure_filters,
    describe_filter,
    merge_ranges,
)
from tests.controlregs.trace_control.filter_model import (
    COMPARATOR,
    DATA_FILTERS,
    FILTER,
    INST_FILTERS,
    STRIDE,
    FilterModel,
    Legal,
    document,
)

U, S, M, VU, VS = 0, 1, 3, 5, 6
MODES = (U, S, M, VU, VS)
TOP = 1 << 64
A, B, C = (0x8000_0000, 0x8000_0040), (0x8000_1002, 0x8000_1004), (0xFFFF_FFFF_8000_0000, 0xFFFF_FFFF_8000_0100)


def configured(model: FilterModel, wanted: Filter, *, data: bool = False) -> list[str]:
    return configure_filters(Component(model, 0, ENCODER, "encoder0"), wanted, data=data)


def places(ranges: Iterable[tuple[int, int]]) -> set[int]:
    """Addresses of instructions around the ends of ranges, and at the ends of memory."""
    ends = {end + delta for pair in ranges for end in pair for delta in (-4, -2, 0, 2, 4)}
    return {pc & ~1 for pc in ends | {0, 2, 0x7FFF_FFFE, 0xFFFF_FFFE, 1 << 32, TOP - 2} if 0 <= pc < TOP}


def check(model: FilterModel, wanted: Filter, selection: int = INST_FILTERS) -> None:
    """The model lets through exactly what is wanted."""
    for pc in places(wanted.ranges):
        for priv in MODES:
            inside = not wanted.ranges or any(start <= pc < end for start, end in wanted.ranges)
            asked = inside and (not wanted.privileges or priv in wanted.privileges)
            assert model.traces(pc, priv, selection) == asked, f"{pc:#x} in {priv}"


@pytest.mark.parametrize("junk", [0, 0xFFFF_FFFF, 0x5555_5555])
@pytest.mark.parametrize("privileges", [(), (U,), (S, M), (VU, VS)])
@pytest.mark.parametrize(
    "ranges",
    [(), (A,), (A, B), (A, B, C), ((0, 2),), ((TOP - 4, TOP),), ((0, TOP),), ((0x1000, 1 << 32),)],
)
def test_what_is_let_through(ranges: tuple[tuple[int, int], ...], privileges: tuple[int, ...], junk: int) -> None:
    wanted = Filter(ranges, privileges)
    if not ranges and not privileges:
        return
    model = FilterModel(document(16, 8), junk=junk)
    configured(model, wanted)
    check(model, wanted)


def test_nothing_is_written_for_no_filter() -> None:
    model = FilterModel(document(16, 8))
    assert configure_filters(Component(model, 0, ENCODER, "encoder0"), None) == []
    assert not model.registers


def test_the_user_is_told() -> None:
    wanted = Filter((B, A), (S, M))
    assert configured(FilterModel(document(16, 8)), wanted) == [
        "encoder0 traces only 0x80000000 to 0x8000003f, 0x80001002 to 0x80001003 in mode S, M"
    ]
    assert describe_filter((), (U,)) == "mode U" and describe_filter((A,), ()) == "0x80000000 to 0x8000003f"


def test_ranges_that_touch_need_one_filter() -> None:
    assert merge_ranges([(8, 12), (2, 4), (4, 6), (9, 16), (20, 24)]) == [(2, 6), (8, 16), (20, 24)]
    even = merge_ranges([(0x11, 0x13), (0x21, 0x30)])
    assert even == [(0x12, 0x14), (0x22, 0x30)], "instructions are at even addresses"
    model = FilterModel(document(1, 1))
    wanted = Filter(((0x100, 0x180), (0x180, 0x200), (0x140, 0x300)))
    configured(model, wanted)
    check(model, wanted)


def test_encoders_of_32_bits() -> None:
    wanted = Filter((A, (0xFFFF_F000, 1 << 32)), (M,))
    model = FilterModel(document(2, 2, bits=32), bits=32)
    configured(model, wanted)
    for pc, inside in ((0xFFFF_EFFE, False), (0xFFFF_F000, True), (0xFFFF_FFFE, True), (0x8000_0000, True), (0, False)):
        assert model.traces(pc, M) == inside and not model.traces(pc, U)


def test_addresses_may_have_fewer_bits_if_nothing_is_lost() -> None:
    """As of Sv39: upper bits are all like bit 38."""
    model = FilterModel(document(2, 2, bits=39), bits=39)
    configured(model, Filter((A, C)))
    assert model.traces(0x8000_0000, M) and not model.traces(0x8000_0040, M)
    assert model.traces(0xFFFF_FFFF_8000_0000, M) and not model.traces(0xFFFF_FFFF_8000_0100, M)
    with pytest.raises(SettingRefused, match="no comparators that select a range"):
        configured(FilterModel(document(2, 2, bits=39), bits=39), Filter(((0x12_8000_0000_0000, 0x12_8000_0000_0010),)))
    with pytest.raises(SettingRefused, match="no comparators that select a range"):
        configured(FilterModel(document(2, 2, bits=32)), Filter((C,)))


# Encoders with less than there could be


def without(legal: Legal, clear: dict[int, int], first: int = COMPARATOR, count: int = 8) -> Legal:
    """*clear*: bits that cannot be set, by offset in each unit."""

    def less(offset: int, value: int) -> int:
        number, register = divmod(offset - first, STRIDE)
        return legal(offset, value) & ~(clear.get(register, 0) if 0 <= number < count else 0)

    return less


def only(legal: Legal, functions: set[int]) -> Legal:
    """Comparisons that are not among these become 0, equal."""

    def less(offset: int, value: int) -> int:
        value = legal(offset, value)
        if offset >= COMPARATOR and (offset - COMPARATOR) % STRIDE == 0:
            for shift in (4, 8):
                value &= ~0 if value >> shift & 7 in functions else ~(7 << shift)
        return value

    return less


SECONDARY = {0: 0x370C, 0x18: 0xFFFF_FFFF, 0x1C: 0xFFFF_FFFF}


@pytest.mark.parametrize("functions", [{2, 4}, {3, 5}, {2, 5}, {3, 4}])
def test_any_pair_of_comparisons_does(functions: set[int]) -> None:
    model = FilterModel(only(document(3, 3), functions))
    wanted = Filter((A, B, C), (S,))
    configured(model, wanted)
    check(model, wanted)


def test_two_units_where_there_are_no_secondary_comparators() -> None:
    model = FilterModel(without(document(2, 4), SECONDARY))
    wanted = Filter((A, C), (M,))
    configured(model, wanted)
    check(model, wanted)
    with pytest.raises(SettingRefused) as caught:
        configured(FilterModel(without(document(2, 3), SECONDARY)), wanted)
    assert str(caught.value) == (
        "encoder0 at 0x0: has comparators for 1 of 2 separate ranges of addresses: trace fewer ranges"
    )


def test_a_unit_that_cannot_is_passed_over() -> None:
    model = FilterModel(without(document(3, 3), {0: 0xFFFF_FFFF}, count=1))
    model.legal = without(model.legal, {0: 1}, FILTER, count=1)
    wanted = Filter((A, C), (U, M))
    configured(model, wanted)
    check(model, wanted)
    assert model.registers[INST_FILTERS] == 0b110


@pytest.mark.parametrize(
    ("legal", "wanted", "line"),
    [
        (document(0, 0), Filter((A,)), "has no filters (trTeInstFilters stays 0): trace everything"),
        (document(1, 8), Filter((A, B, C)), "has 1 filter, 3 separate ranges need one each: trace fewer ranges"),
        (document(2, 8), Filter((A, B, C)), "has 2 filters, 3 separate ranges need one each: trace fewer ranges"),
        (document(2, 0), Filter((A,)), "has no comparators that select a range of addresses, for a function or a range"
         " (trTeComp0Control reads 0x0)"),
        (document(2, 1), Filter((A, B)), "has comparators for 1 of 2 separate ranges of addresses: trace fewer"
         " ranges"),
        (document(2, 2, privileges=0x09), Filter((), (S, M, VS)), "cannot select privilege mode S, VS"
         " (trTeFilter0MatchInst reads 0x8)"),
        (without(document(2, 2), {0: 0x2}, FILTER), Filter((), (M,)), "has no filter with these conditions"
         " (its trTeFilterControl registers do not keep them)"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(legal: Legal, wanted: Filter, line: str) -> None:
    with pytest.raises(SettingRefused) as caught:
        configured(FilterModel(legal), wanted)
    assert str(caught.value) == f"encoder0 at 0x0: {line}"


def test_a_condition_that_is_always_there_is_no_filter_for_us() -> None:
    """trTeFilterMatchEcause hard-wired to 1: it would trace handlers only."""
    legal = document(1, 1)
    model = FilterModel(lambda offset, value: legal(offset, value) | (4 if offset == FILTER else 0))
    with pytest.raises(SettingRefused, match="no filter with these conditions"):
        configured(model, Filter((A,)))


def test_a_mode_that_is_always_selected_is_refused() -> None:
    """Machine mode hard-wired to 1; what else the register has does not matter."""
    legal = document(1, 1)
    model = FilterModel(lambda offset, value: legal(offset, value) | (1 << 8 | 1 << M if offset == FILTER + 4 else 0))
    with pytest.raises(SettingRefused, match="no filter with these conditions"):
        configured(model, Filter((), (U,)))
    model = FilterModel(model.legal)
    configured(model, Filter((), (U, M)))
    check(model, Filter((), (U, M)))


def test_a_filter_that_is_always_selected_is_refused() -> None:
    legal = document(2, 2)
    model = FilterModel(lambda offset, value: legal(offset, value) | (2 if offset == INST_FILTERS else 0))
    with pytest.raises(SettingRefused) as caught:
        configured(model, Filter((A,)))
    line = "does not take the selection of filters (trTeInstFilters reads 0x3, not 0x1)"
    assert str(caught.value) == f"encoder0 at 0x0: {line}"


# Data


def test_loads_and_stores_are_filtered_like_instructions() -> None:
    model = FilterModel(document(3, 3), data=1)
    wanted = Filter((A, C), (U,))
    configured(model, wanted, data=True)
    check(model, wanted)
    check(model, wanted, DATA_FILTERS)


def test_loads_and_stores_that_cannot_be_filtered() -> None:
    legal = document(3, 3)
    model = FilterModel(lambda offset, value: 0 if offset == DATA_FILTERS else legal(offset, value), data=1)
    with pytest.raises(SettingRefused) as caught:
        configured(model, Filter((A,)), data=True)
    line = "has no filters for loads and stores: trace no data, or everything (trTeDataFilters reads 0x0, not 0x1)"
    assert str(caught.value) == f"encoder0 at 0x0: {line}"
    without_data = FilterModel(model.legal)
    configured(without_data, Filter((A,)), data=True)  # it has no data trace at all, which is said elsewhere
