"""The cycle counts of CTR records: the formula, the counter's sizes, when a count is valid, what RAS emulation does.

Expectations: CTR 1.0, "Cycle Counting" (its formula and "Cycle Counter Size Options") and "RAS Emulation Mode"; draft
0.1.4, 5.3 and 5.4. The formula is written out here once more.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.hart_side import CtrRegisters
from rvtrace_gdb.transport.simulated.ctr.recorder import Mode, Recorder
from tests.transport.simulated.ctr.recorders import (
    CALL,
    ENABLE,
    RASEMU,
    RETURN,
    SWAP,
    VERSIONS,
    jump,
    recorder,
    trap,
    trap_return,
)

both = pytest.mark.parametrize("version", VERSIONS)
MOST = {0: 4095, 1: 8191, 2: 32764, 3: 524224, 4: 134201344}  # "Cycle Counter Size Options"


def elapsed(data: int) -> int | None:
    """The documents' formula; None: CCV is 0."""
    cce, ccm = data >> 28 & 0xF, data >> 16 & 0xFFF
    if not data >> 15 & 1:
        assert not data >> 16
        return None
    return ccm if cce == 0 else (2**12 + ccm) << cce - 1


def counted(made: Recorder, entry: int = 0) -> int | None:
    return elapsed(made.buffer.read(entry).data)


def counting(version: str, *modes: Mode, control: int = 0, **built: Any) -> Recorder:
    """One that has a record at cycle 0, so that its next one has a count."""
    made = recorder(version, *modes, control=control, **built)
    made.transfer(jump(CALL))
    return made


@both
@pytest.mark.parametrize("bits", MOST)
@given(cycles=st.integers(0, 1 << 28))
def test_the_count_of_any_time(version: str, bits: int, cycles: int) -> None:
    """What is said is never more than what passed, short by less than one of the exponent's steps, and saturates."""
    made = counting(version, Mode.M, exponent_bits=bits)
    made.transfer(jump(now=cycles))
    said = counted(made)
    assert said is not None
    if cycles >= MOST[bits]:
        assert said == MOST[bits]
    else:
        step = 1 << max(0, cycles.bit_length() - 13)
        assert said == cycles // step * step


@pytest.mark.parametrize("bits", MOST)
def test_it_saturates_with_all_implemented_bits_1(bits: int) -> None:
    made = counting("1.0", Mode.M, exponent_bits=bits)
    made.transfer(jump(now=1 << 40))
    assert made.buffer.read(0).data >> 15 == 1 | (0xFFF | (1 << bits) - 1 << 12) << 1


@both
@pytest.mark.parametrize(
    ("cycles", "cce", "ccm"),
    [
        (0, 0, 0), (4095, 0, 4095), (4096, 1, 0), (8191, 1, 4095), (8192, 2, 0), (8193, 2, 0), (8194, 2, 1),
        (5 << 20, 11, 1024),
    ],
)
def test_mantissa_and_exponent(version: str, cycles: int, cce: int, ccm: int) -> None:
    made = counting(version, Mode.M)
    made.transfer(jump(now=cycles))
    assert made.buffer.read(0).data >> 15 == 1 | (cce << 12 | ccm) << 1


@both
def test_without_cycle_counting_the_fields_are_zero(version: str) -> None:
    made = counting(version, Mode.M, exponent_bits=None)
    made.transfer(jump(now=77))
    assert made.buffer.read(0).data == 11
    made.buffer.write(0, 2, -1)
    assert made.buffer.read(0).data == 0xF


@both
def test_each_record_counts_from_the_one_before(version: str) -> None:
    made = counting(version, Mode.M)
    for now in (3, 10, 110):
        made.transfer(jump(now=now))
    assert [counted(made, entry) for entry in range(4)] == [100, 7, 3, None]


@both
def test_inhibited_transfers_do_not_reset_the_count(version: str) -> None:
    made = counting(version, Mode.M)
    made.transfer(jump(TransferType.NOT_TAKEN_BRANCH, now=40))
    made.transfer(jump(now=100))
    assert counted(made) == 100


@both
def test_only_active_cycles_count(version: str) -> None:
    """Those in an enabled mode while not frozen."""
    made = counting(version, Mode.U)
    made.transfer(trap_return(Mode.M, Mode.U)._replace(now=5))  # not recorded; M mode does not count
    made.transfer(jump(mode=Mode.U, now=8))
    made.transfer(trap(Mode.U, Mode.M, now=10))
    made.transfer(trap_return(Mode.M, Mode.U)._replace(now=1000))
    made.transfer(jump(mode=Mode.U, now=1004))
    assert [counted(made, entry) for entry in range(2)] == [2 + 4, None]


@both
def test_frozen_cycles_do_not_count(version: str) -> None:
    made = counting(version, Mode.M)
    made.elapse(10)
    made.frozen = True
    made.transfer(jump(now=500))
    made.elapse(600)
    made.frozen = False
    made.transfer(jump(now=607))
    assert counted(made) == 17


@both
@pytest.mark.parametrize("virtual", [False, True], ids=["v0", "v1"])
def test_a_write_to_a_control_register_makes_the_next_count_invalid(version: str, virtual: bool) -> None:
    made = counting(version, Mode.M)
    number = {("1.0", False): 0x34E, ("1.0", True): 0x24E, ("0.1.4", False): 0x381, ("0.1.4", True): 0x281}
    csr = CtrRegisters(made, 64).by_number[number[version, virtual]]
    made.elapse(20)
    csr.write(csr.read() | ENABLE[version][Mode.M if not virtual else Mode.VS])
    made.transfer(jump(now=30))
    made.transfer(jump(now=34))
    assert [counted(made, entry) for entry in range(2)] == [4, None]


# -- RAS emulation: a count is of the time since the record before it that is still there


@both
def test_a_return_gives_the_count_of_its_call_to_the_next(version: str) -> None:
    made = counting(version, Mode.M, control=RASEMU[version])
    made.transfer(jump(CALL, now=10))
    made.transfer(jump(CALL, now=13))
    made.transfer(jump(RETURN, now=20))
    made.transfer(jump(RETURN, now=24))
    made.transfer(jump(CALL, now=31))
    assert [counted(made, entry) for entry in range(2)] == [31, None]


@both
def test_a_swap_counts_from_the_record_before_the_call_it_replaces(version: str) -> None:
    made = counting(version, Mode.M, control=RASEMU[version])
    made.transfer(jump(CALL, now=10))
    made.transfer(jump(SWAP, now=25))
    made.transfer(jump(CALL, now=27))
    assert [counted(made, entry) for entry in range(3)] == [2, 25, None]


@both
def test_after_a_record_without_a_count_went_there_is_none(version: str) -> None:
    made = counting(version, Mode.M, control=RASEMU[version])  # the call at 0 has no count
    made.transfer(jump(RETURN, now=5))
    made.transfer(jump(CALL, now=9))
    made.transfer(jump(CALL, now=11))
    assert [counted(made, entry) for entry in range(2)] == [2, None]


@both
def test_a_return_without_a_call_leaves_no_count(version: str) -> None:
    made = counting(version, Mode.M, control=RASEMU[version])
    made.transfer(jump(CALL, now=4))
    for now in (5, 6, 7):
        made.transfer(jump(RETURN, now=now))
    made.transfer(jump(CALL, now=9))
    assert counted(made) is None
