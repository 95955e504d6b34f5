"""The "Pseudo-code of Simple N-Trace Encoder" of N-Trace 1.0, chapter 10.2, statement by statement, as a test's oracle.

It has no ProgTraceCorrelation and no traps, and knows of an instruction only what the pseudo-code's `info` says.
"""

from typing import NamedTuple

from tests.decode.ntrace.messages import groups

PROG_TRACE_SYNC, RESOURCE_FULL = 9, 27
DIRECT_BRANCH, INDIRECT_BRANCH, INDIRECT_BRANCH_HIST = 3, 4, 28


class Info(NamedTuple):
    """The `info` of one retired instruction."""

    size32: bool
    branch: bool = False
    taken: bool = False
    indirect: bool = False


class PseudoEncoder:
    """NTraceEncoderInit and NTraceEncoderHandleRetired. *lim_icnt*, *lim_hist*: the configuration constants."""

    def __init__(self, *, branch_history: bool, lim_icnt: int = 0x10000, lim_hist: int = 0x4000_0000) -> None:
        self.branch_history, self.lim_icnt, self.lim_hist = branch_history, lim_icnt, lim_hist
        self.messages: list[bytes] = []
        self.addr = self.icnt = 0
        self.hist = 1
        self.next_emit = PROG_TRACE_SYNC

    def handle_retired(self, addr: int, info: Info) -> None:
        """One retired instruction."""
        if self.next_emit:
            self._emit_determined(addr)
        previous = self.icnt
        size = 2 if info.size32 else 1
        self.icnt += size
        if info.branch:
            if self.branch_history:
                self.hist = self.hist << 1 | info.taken
            elif info.taken:
                self.next_emit = DIRECT_BRANCH
        elif info.indirect:
            self.next_emit = INDIRECT_BRANCH_HIST if self.branch_history else INDIRECT_BRANCH
        if self.icnt > self.lim_icnt:
            self.messages.append(groups((RESOURCE_FULL, 6), (0, 4), (previous, 0)))
            self.icnt = size
        if self.hist & self.lim_hist:
            self.messages.append(groups((RESOURCE_FULL, 6), (1, 4), (self.hist >> 1, 0)))
            self.hist = 0b10 | self.hist & 1

    def _emit_determined(self, addr: int) -> None:
        fields: list[tuple[int, int]] = [(self.next_emit, 6)]
        if self.next_emit == PROG_TRACE_SYNC:
            fields += [(1, 4), (self.icnt, 0), (addr >> 1, 0)]
        elif self.next_emit == DIRECT_BRANCH:
            fields += [(self.icnt, 0)]
        else:
            fields += [(0, 2), (self.icnt, 0), ((self.addr ^ addr) >> 1, 0)]
            if self.next_emit == INDIRECT_BRANCH_HIST:
                fields += [(self.hist, 0)]
        self.messages.append(groups(*fields))
        if self.next_emit != DIRECT_BRANCH:
            self.addr = addr
        self.next_emit, self.icnt, self.hist = 0, 0, 1
