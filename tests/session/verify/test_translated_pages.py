"""Translations that are remembered are those of a walk of the page tables at each group."""

from rvtrace_gdb.session.verify.translated_pages import TranslatedPages
from tests.decode.tandem.corpus import decoded

NAME = "flute_rv64ui-v-add"
PAGE, LOWEST = 0x1000, 0


def test_each_page_is_translated_as_by_a_walk_of_its_own() -> None:
    """At groups throughout the trace, while the program fills its page tables, switches them on, and changes them."""
    tandem = decoded(NAME)
    pages = TranslatedPages(tandem)
    kinds = (*tandem.index.memory.values(), *tandem.index.loads.values())
    used = sorted({address & -PAGE for writes in kinds for address in writes.addresses})
    some = [used[0], *used[1 :: len(used) // 6 + 1], used[-1], LOWEST]
    seen: dict[int, set[int | None]] = {address: set() for address in some}
    for group in (*range(1, len(tandem.trace), 9), len(tandem.trace) // 2, 1):
        for address in some:
            physical = pages.physical(group, address + 8)
            assert physical == tandem.after(group - 1).physical_address(address + 8), (group, hex(address))
            seen[address].add(physical)
    assert max(map(len, seen.values())) > 2
