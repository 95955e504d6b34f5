"""The branch stacks of samples (`perf record -b`) as Control Transfer Records: what ran around each sample.

A kernel that records them has read the hart's entries when a counter overflowed. So behind the newest branch of a
sample the hart ran up to the sampled instruction, where it took that interrupt: this is the last record of a sample. It
leads to a mode that is not recorded, and what ran until the oldest branch of the next sample is not known.

Source: Linux, include/uapi/linux/perf_event.h, `perf_branch_entry`, PERF_BR_* and PERF_BR_NEW_*; RISC-V Control
Transfer Records 1.0, "Entry Registers" and "Cycle Counting".
"""

import struct
from collections import defaultdict

from rvtrace_gdb.controlregs.ctr.entries import ENTRIES_MAX, TransferType
from rvtrace_gdb.controlregs.ctr.registers_1_0 import MCTRCTL
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.session.capture.model import CapturedRecords
from rvtrace_gdb.session.perf_data.records import BranchEntry, BranchSample

_TYPES = {
    2: TransferType.DIRECT_JUMP,
    3: TransferType.INDIRECT_JUMP,
    5: TransferType.INDIRECT_CALL,
    6: TransferType.FUNCTION_RETURN,
    7: TransferType.EXCEPTION,
    8: TransferType.TRAP_RETURN,
    11: TransferType.TRAP_RETURN,
    12: TransferType.INTERRUPT,
    1: TransferType.TAKEN_BRANCH,
    4: TransferType.DIRECT_CALL,
}
"""By PERF_BR_*. What is not here has no kind, and is known by its instruction."""
_TYPE, _ALL_TYPES = 20, 15  # of the flags
_VALID = 1
_CYCLES_VALID, _MANTISSA, _EXPONENT = 1 << 15, 16, 28
_MANTISSA_BITS = 12
_FROZEN_BY_INTERRUPT = MCTRCTL.pack(U=1, LCOFIFRZ=1)
_KERNEL_TOO = MCTRCTL.pack(U=1, S=1, LCOFIFRZ=1)
PERF_SAMPLE_BRANCH_KERNEL = 1 << 1
"""Of `branch_sample_type`: branches in the kernel are recorded, too."""


class BranchRecords:
    """The samples of a file as records, by process and CPU."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], list[tuple[int, bytes]]] = defaultdict(list)
        self.kernel = False
        """Whether branches in the kernel were recorded."""

    def add(self, sample: BranchSample, branch_sample_type: int) -> None:
        """Add a sample, and what its event recorded. One without branches says nothing."""
        if not sample.branches:
            return
        self.kernel = self.kernel or bool(branch_sample_type & PERF_SAMPLE_BRANCH_KERNEL)
        origin = sample.origin
        entries = b"".join(_packed_branch(branch) for branch in reversed(sample.branches))
        interrupt = struct.pack("<3Q", sample.ip | _VALID, 0, TransferType.INTERRUPT)
        self._found[origin.pid or 0, origin.cpu or 0].append((origin.time or 0, entries + interrupt))

    def samples(self) -> dict[int, int]:
        """Return how many samples each process has."""
        counts: dict[int, int] = defaultdict(int)
        for (pid, _), samples in self._found.items():
            counts[pid] += len(samples)
        return dict(sorted(counts.items()))

    def captured(self, pid: int, xlen: int) -> tuple[CapturedRecords, ...]:
        """Return the records of a process, of each CPU that it ran on, which is a hart, in the order of their times."""
        found = {cpu: samples for (owner, cpu), samples in self._found.items() if owner == pid}
        control = _KERNEL_TOO if self.kernel else _FROZEN_BY_INTERRUPT
        return tuple(
            CapturedRecords(
                cpu,
                CtrRegisterValues(f"cpu{cpu}", "1.0", xlen, ENTRIES_MAX, control, 0, 0),
                b"".join(entries for _, entries in sorted(samples)),
                len(samples),
            )
            for cpu, samples in sorted(found.items())
        )


def _packed_branch(branch: BranchEntry) -> bytes:
    """Return a branch as an entry. A branch from, or to, a mode that is not recorded has 0 there in both."""
    kind = _TYPES.get(branch.flags >> _TYPE & _ALL_TYPES, TransferType.NONE)
    target = branch.target | branch.mispredicted if branch.target else 0
    return struct.pack("<3Q", branch.source | _VALID, target, kind | _cycle_count(branch.cycles))


def _cycle_count(cycles: int) -> int:
    """Return CCV, CCM and CCE for a number of cycles; 0: not known. Above 12 bits the lowest bits are cut off."""
    if not cycles:
        return 0
    exponent = max(cycles.bit_length() - _MANTISSA_BITS, 0)
    mantissa = cycles if not exponent else (cycles >> exponent - 1) & (1 << _MANTISSA_BITS) - 1
    return _CYCLES_VALID | mantissa << _MANTISSA | exponent << _EXPONENT
