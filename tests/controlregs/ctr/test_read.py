"""Reading entries and the status changes nothing, and tells what the array holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.entries import CtrEntry
from rvtrace_gdb.controlregs.ctr.procedures import read, status
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import RegisterRefused, ReservedDepth
from rvtrace_gdb.support.errors import Cancelled
from tests.controlregs.ctr.hart_model import CtrHart, Lies

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
XLEN = pytest.mark.parametrize("xlen", [32, 64])
HIGH = 0xFFFF_FFC0_0000_0000  # where a kernel is


def filled(
    version: str, count: int, depth: int = 64, xlen: int = 64, hypervisor: bool = False
) -> tuple[CtrHart, list[CtrEntry]]:
    """A hart that recorded so many transfers, and the entries it should have, youngest first."""
    hart = CtrHart(version, xlen, hypervisor=hypervisor)
    hart.code, hart.control = int(VERSIONS[version].depth_codes[depth]), 7
    base = HIGH if xlen == 64 else 0xC000_0000
    recorded = [(base + 8 * n | 1, base + 8 * n + 4 | n % 2, 0x8000 | n % 16 | n << 16) for n in range(count)]
    for words in recorded:
        hart.record(*words)
    return hart, [CtrEntry(*words) for words in reversed(recorded[-depth:])]


@VERSION
@XLEN
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 40, 63, 64, 65, 200])
def test_read(version: str, xlen: int, count: int) -> None:
    hart, expected = filled(version, count, xlen=xlen)
    before = (hart.control, hart.code, hart.wrptr, hart.counter_resets, hart.user_state())
    in_force, entries = read(hart, VERSIONS[version], "ctr0")
    assert entries == expected
    assert (in_force.depth, in_force.control & 7, in_force.xlen) == (64, 7, xlen)
    assert (hart.control, hart.code, hart.wrptr, hart.counter_resets, hart.user_state()) == before


@VERSION
def test_only_selects_are_written(version: str) -> None:
    hart, _ = filled(version, 100)
    read(hart, VERSIONS[version], "ctr0")
    status(hart, VERSIONS[version], "ctr0")
    assert {register for register, value in hart.log if value is not None} == {0x150 if version == "1.0" else 0x350}


@VERSION
def test_popped_entries_are_not_valid(version: str) -> None:
    """RAS emulation: V=0, but the addresses are still there."""
    hart, expected = filled(version, 20)
    for _ in range(5):
        hart.pop()
    assert read(hart, VERSIONS[version], "ctr0")[1] == expected[5:]
    assert status(hart, VERSIONS[version], "ctr0").recorded == 15


@VERSION
@pytest.mark.parametrize("depth", [16, 256])
@pytest.mark.parametrize("count", [0, 1, 7, 16, 300])
def test_status(version: str, depth: int, count: int) -> None:
    hart, expected = filled(version, count, depth)
    before = hart.counter_resets, hart.user_state(), [list(entry) for entry in hart.array]
    found = status(hart, VERSIONS[version], "ctr3")
    assert (found.recorded, found.in_force.name) == (len(expected), "ctr3")
    frozen = 0
    if version == "1.0":
        assert found.in_force.status == hart.wrptr | frozen << 31
    else:
        assert found.in_force.status == hart.wrptr | hart.wrap << 14 | frozen << 15
    assert (hart.counter_resets, hart.user_state(), hart.array) == before


@VERSION
def test_256_entries_in_few_round_trips(version: str) -> None:
    hart, expected = filled(version, 256, 256)
    assert read(hart, VERSIONS[version], "ctr0")[1] == expected
    assert hart.batches < 32


@VERSION
def test_reading_stops_behind_the_last_record(version: str) -> None:
    hart, _ = filled(version, 3, 256)
    read(hart, VERSIONS[version], "ctr0")
    assert max(value for register, value in hart.log if value is not None and register in (0x150, 0x350)) < 0x210


@VERSION
def test_interrupted(version: str) -> None:
    """The select is put back."""
    hart, _ = filled(version, 64)
    seen: list[tuple[int, int | None]] = []

    def impatient(label: str, done: int, total: int | None = None) -> None:
        seen.append((done, total))
        if done:
            raise Cancelled()

    with pytest.raises(Cancelled):
        read(hart, VERSIONS[version], "ctr0", impatient)
    assert seen == [(0, 64), (16, 64)]
    assert hart.user_state() == CtrHart(version).user_state()


@VERSION
@XLEN
def test_guest(version: str, xlen: int) -> None:
    hart, _ = filled(version, 4, xlen=xlen, hypervisor=True)
    hart.vs_control = 2 | 1 << 33
    in_force, _ = read(hart, VERSIONS[version], "ctr0")
    reached = 32 if xlen == 32 and version == "1.0" else 64
    assert in_force.vs_control & ~(15 << 16) == (2 | 1 << 33) & (1 << reached) - 1


def test_a_reserved_depth() -> None:
    hart = CtrHart(lies=Lies(stale=frozenset({0x15F}), first={0x15F: 6}))
    with pytest.raises(ReservedDepth, match=r"sctrdepth\.DEPTH reads 6, which is reserved"):
        read(hart, VERSIONS["1.0"], "ctr0")


def test_a_record_that_cannot_be_read() -> None:
    hart, _ = filled("1.0", 4)
    hart.lies.refused = frozenset({0x153})
    with pytest.raises(RegisterRefused, match=r"sireg3 \(0x153\) cannot be read \(test hart\): refused"):
        read(hart, VERSIONS["1.0"], "ctr0")
    assert hart.user_state() == CtrHart().user_state()


@given(st.integers(0, 600), st.sampled_from([16, 32, 64, 128, 256]), st.sampled_from(["1.0", "0.1.4"]))
def test_any_number_of_records(count: int, depth: int, version: str) -> None:
    hart, expected = filled(version, count, depth)
    assert read(hart, VERSIONS[version], "ctr0")[1] == expected
    assert status(hart, VERSIONS[version], "ctr0").recorded == len(expected)
