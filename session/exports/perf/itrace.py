"""What is made of a trace for perf, as `perf script --itrace=OPTIONS` says it.

    i1000igl32    a sample every 1000 instructions, with its call chain and its last 32 branches
    b             every transfer of control
    ce            the calls, and what is missing: what perf script shows by default

What no RISC-V trace has (transactions, power events) is refused, and so are nanoseconds: its times are ticks.

Source: Linux, tools/perf/Documentation/itrace.txt.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum

from rvtrace_gdb.session.exports.perf.transfers import TransferKind
from rvtrace_gdb.support.errors import RvtraceError

LETTERS = {
    "i": "instructions: i for each one, i1000i for a sample every 1000, i50t for one every 50 ticks",
    "y": "time: y50t for a sample every 50 ticks, whose period is ticks",
    "b": "all transfers of control: jumps, taken branches, calls, returns, traps",
    "c": "calls and traps",
    "r": "returns",
    "e": "what is missing",
    "g": "with each sample its call chain, at most 16 frames; g64: at most 64",
    "l": "with each sample the last 64 transfers; l32: the last 32",
}
"""The letters of OPTIONS."""
DEFAULT = "ce"
_CHAIN, _LAST_BRANCHES, _MOST = 16, 64, 1024
_PIECE = re.compile(r"[, ]*(?:(?P<sample>[iy])[, ]*(?P<period>\d*)[, ]*(?P<unit>[it]|[mun]s)?"
                    r"|(?P<sized>[gl])[, ]*(?P<size>\d*)|(?P<event>[bcre]))")  # fmt: skip


class PerfEventKind(Enum):
    """The kind of an event, with perf's name for it."""

    INSTRUCTIONS = "instructions"
    TICKS = "ticks"
    BRANCHES = "branches"
    ERROR = "error"


class BadItrace(RvtraceError):
    """OPTIONS that say nothing, or what a trace does not have. *why*: what is wrong."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"--itrace={text}: {why}")


@dataclass(frozen=True)
class Itrace:
    """What is made of a trace.

    *instructions*, *ticks*: samples of instructions, of time. *period*: from one sample to the next; *by_time*: in
    ticks, else in instructions. *calls*, *returns*, *others*: which transfers of control are events. *errors*: what is
    missing is one. *chain*: how many frames the call chain of a sample has at most; *last_branches*: how many of the
    transfers before it a sample has; 0: none.
    """

    instructions: bool = False
    ticks: bool = False
    period: int = 1
    by_time: bool = False
    calls: bool = False
    returns: bool = False
    others: bool = False
    errors: bool = False
    chain: int = 0
    last_branches: int = 0

    @property
    def event_kinds(self) -> tuple[PerfEventKind, ...]:
        """Return the kinds of events that perf has a name for, without errors."""
        kinds = {
            PerfEventKind.INSTRUCTIONS: self.instructions,
            PerfEventKind.TICKS: self.ticks,
            PerfEventKind.BRANCHES: self.transfers,
        }
        return tuple(kind for kind, wanted in kinds.items() if wanted)

    def has(self, kind: TransferKind) -> bool:
        """Return whether transfers of a kind are events."""
        return self.others or (self.calls and kind.calls) or (self.returns and kind.returns)

    @property
    def has_samples(self) -> bool:
        """Whether there are samples."""
        return self.instructions or self.ticks

    @property
    def transfers(self) -> bool:
        """Whether transfers of control are events."""
        return self.calls or self.returns or self.others


def itrace_of(text: str) -> Itrace:
    """Return what OPTIONS say. Raises BadItrace."""
    itrace, at = Itrace(), 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise BadItrace(text, f"{text[at:]}: give letters of {', '.join(LETTERS)}, as in i1000igl32")
        itrace = _with_piece(itrace, piece, text)
        at = piece.end()
    if not (itrace.has_samples or itrace.transfers or itrace.errors):
        raise BadItrace(text, "no event: give at least one of i, y, b, c, r, e")
    if (itrace.chain or itrace.last_branches) and not itrace.has_samples:
        raise BadItrace(text, "g and l belong to samples: give i or y, too")
    if itrace.ticks and not itrace.by_time:
        raise BadItrace(text, "y: give the ticks from one sample to the next, as in y100t")
    return itrace


def _with_piece(itrace: Itrace, piece: "re.Match[str]", text: str) -> Itrace:
    """Return *itrace* with one letter more. Raises BadItrace."""
    if piece["event"]:
        kinds = {"b": ("calls", "returns", "others"), "c": ("calls",), "r": ("returns",), "e": ("errors",)}
        return replace(itrace, **dict.fromkeys(kinds[piece["event"]], True))
    if piece["sized"]:
        is_chain = piece["sized"] == "g"
        size = int(piece["size"] or (_CHAIN if is_chain else _LAST_BRANCHES)) if len(piece["size"]) < 9 else 0
        if not 1 <= size <= _MOST:
            raise BadItrace(text, f"{piece[0]}: give 1 to {_MOST}")
        return replace(itrace, chain=size) if is_chain else replace(itrace, last_branches=size)
    itrace = replace(itrace, instructions=True) if piece["sample"] == "i" else replace(itrace, ticks=True)
    return itrace if not piece["period"] else _with_period(itrace, piece, text)


def _with_period(itrace: Itrace, piece: "re.Match[str]", text: str) -> Itrace:
    period, unit = int(piece["period"][:20]), piece["unit"] or "ns"
    if unit.endswith("s") and period:
        of_time = "a trace has ticks, not seconds" if piece["unit"] else f"{period} of what"
        raise BadItrace(text, f"{piece[0]}: {of_time}: give instructions, {period}i, or ticks, {period}t")
    if period >> 63:
        raise BadItrace(text, f"{piece[0]}: too large")
    return replace(itrace, period=max(period, 1), by_time=unit == "t")
