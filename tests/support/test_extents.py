"""Extents of memory, against sets of addresses."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.support.extents import Extent, common, cut, disjoint, each_once, joined, up_to, without

_extents = st.lists(st.builds(Extent, st.integers(0, 40), st.integers(1, 12)), max_size=6)


def addresses(extents: Iterable[Extent]) -> list[int]:
    return [address for start, size in extents for address in range(start, start + size)]


@given(_extents, _extents, st.integers(1, 30))
def test_the_bytes_are_those_of_sets(some: list[Extent], others: list[Extent], most: int) -> None:
    all_of, ordered = set(addresses(some)), list(dict.fromkeys(addresses(some)))
    assert addresses(disjoint(some)) == sorted(all_of)
    assert addresses(each_once(some)) == ordered
    assert addresses(up_to(most, some)) == ordered[:most]
    assert set(addresses(common(some, others))) == all_of & set(addresses(others))
    assert addresses(cut(some, most)) == addresses(some) and all(size <= most for _, size in cut(some, most))
    for whole in some:
        assert addresses(without(whole, others)) == [it for it in addresses([whole]) if it not in addresses(others)]


def test_what_touches_is_one() -> None:
    assert joined([(4, b"e"), (1, b"bc"), (9, b""), (3, b"d"), (7, b"h")]) == [(1, b"bcde"), (7, b"h")]
