"""What the CTR recorder keeps that no comparison with the independent model (test_model.py, test_modes.py) can show.

Expectations: CTR 1.0, "sctrdepth", "Cycle Counting"; draft 0.1.4, 2.1, 5.3. Bits are numbers of the documents.
"""

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, CtrTransfer, PrivilegeMode, Recorder

ALL_MODES = frozenset(PrivilegeMode)
VERSIONS = ("1.0", "0.1.4")
ENABLE_M = {"1.0": 1 << 2, "0.1.4": 1 << 0}
SOURCE, TARGET = 0x8000_0010, 0x8000_0200

both = pytest.mark.parametrize("version", VERSIONS)


def recorder(version: str, absent: frozenset[str] = frozenset()) -> Recorder:
    """One that records in M mode, and has a record of cycle 0."""
    made = Recorder(CtrBuild(version, modes=ALL_MODES, absent=absent))
    made.control = ENABLE_M[version]
    made.transfer(jump(0))
    return made


def jump(now: int, source: int = SOURCE) -> CtrTransfer:
    return CtrTransfer(TransferType.DIRECT_JUMP, source, TARGET, PrivilegeMode.M, PrivilegeMode.M, now)


@both
def test_entries_above_the_depth_are_read_only_zero(version: str) -> None:
    made = recorder(version)
    made.buffer.select(32)
    for number in range(1, 33):
        made.transfer(jump(number, 4 * number))
    made.buffer.select(16)
    for entry in range(16, 256):
        for word in range(3):
            made.buffer.write(entry, word, -1)
        assert made.buffer.read(entry) == (0, 0, 0)
    made.buffer.select(32)
    found = [made.buffer.read(entry).source // 4 for entry in range(32)]
    assert sorted(found) == list(range(1, 33))  # "unspecified but legal"


@both
def test_each_record_counts_from_the_one_before(version: str) -> None:
    """In bits 27:16 (CCM; CCE is 0 up to 4095), valid where bit 15 (CCV) is 1: not that of the first record."""
    made = recorder(version)
    for now in (3, 10, 110):
        made.transfer(jump(now))
    data = [made.buffer.read(entry).data for entry in range(4)]
    assert [word >> 16 for word in data] == [100, 7, 3, 0] and [word >> 15 & 1 for word in data] == [1, 1, 1, 0]


@both
def test_without_type_the_field_reads_zero(version: str) -> None:
    assert recorder(version, frozenset({"TYPE"})).buffer.read(0).data & 0xF == 0
    assert recorder(version).buffer.read(0).data & 0xF == 11
