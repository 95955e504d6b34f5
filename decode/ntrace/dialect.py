"""What differs between the published N-Trace and what was built before it: one named, complete description each.

Sources: RISC-V N-Trace 1.0 (ratified 2024-11-21, the default) and 1.0.0-rc7 of 2023-07-06, table 25; for the SiFive
encoders that came before the standard, their captures and the fields seen in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.decode.events import StartReason, StopReason, TrapKind
from rvtrace_gdb.decode.ntrace.layout import LAYOUTS, SIFIVE_LAYOUTS, BType, Evcode, Layout, Sync

_STARTS: Mapping[int, StartReason] = {
    Sync.EXTERNAL_TRIGGER: StartReason.EXTERNAL_TRIGGER,
    Sync.EXIT_FROM_RESET: StartReason.EXIT_FROM_RESET,
    Sync.PERIODIC: StartReason.PERIODIC,
    Sync.EXIT_FROM_DEBUG: StartReason.EXIT_FROM_DEBUG,
    Sync.SEQUENTIAL_INSTRUCTION_COUNTER: StartReason.COUNTER_FULL,
    Sync.TRACE_ENABLE: StartReason.TRACE_ENABLED,
    Sync.TRACE_EVENT: StartReason.TRACE_EVENT,
    Sync.RESTART_FROM_FIFO_OVERRUN: StartReason.FIFO_OVERRUN,
    Sync.EXIT_FROM_POWER_DOWN: StartReason.EXIT_FROM_POWER_DOWN,
}
_STOPS: Mapping[int, StopReason] = {
    Evcode.DEBUG_MODE: StopReason.DEBUG_MODE,
    Evcode.LOW_POWER: StopReason.LOW_POWER,
    Evcode.TRACE_DISABLED: StopReason.TRACE_DISABLED,
}
_TRAPS: Mapping[int, TrapKind] = {
    BType.TRAP: TrapKind.UNKNOWN,
    BType.EXCEPTION: TrapKind.EXCEPTION,
    BType.INTERRUPT: TrapKind.INTERRUPT,
}
_MARKERS = frozenset({Sync.EXTERNAL_TRIGGER, Sync.SEQUENTIAL_INSTRUCTION_COUNTER, Sync.TRACE_EVENT})


@dataclass(frozen=True)
class Dialect:
    """How one generation of encoders speaks.

    layouts           the messages by TCODE
    keeps_state       SYNC values that leave the encoder's state (its call stack, pending HIST) as it is
    xor_timestamps    TSTAMP of other messages is the XOR with the last time, not the difference (8.7)
    address_bits      addresses have this many bits, bit 0 included, and are sign-extended on RV64; 0: all of XLEN
    run_rcodes        ResourceFull with this RCODE counts branches with this outcome
    jump_ends_branch  DirectBranch may report a direct jump too
    scontext_first    the Ownership message with scontext comes before the one with hcontext
    omits_empty_hist  ProgTraceCorrelation has CDF=0 in HTM too, while HIST is empty
    recounts_branch   a sync right after a sync may count the branch before that one again, with the bit it lacked
    starts, stops, traps   what SYNC, EVCODE and B-TYPE stand for
    """

    name: str
    layouts: Mapping[int, Layout] = field(default_factory=lambda: LAYOUTS)
    keeps_state: frozenset[int] = frozenset()
    xor_timestamps: bool = False
    address_bits: int = 0
    run_rcodes: Mapping[int, int] = field(default_factory=dict)
    jump_ends_branch: bool = False
    scontext_first: bool = False
    omits_empty_hist: bool = False
    recounts_branch: bool = False
    starts: Mapping[int, StartReason] = field(default_factory=lambda: _STARTS)
    stops: Mapping[int, StopReason] = field(default_factory=lambda: _STOPS)
    traps: Mapping[int, TrapKind] = field(default_factory=lambda: _TRAPS)


RATIFIED = Dialect("1.0")
RC7 = Dialect("rc7", keeps_state=_MARKERS)
SIFIVE = Dialect(
    "sifive",
    layouts=SIFIVE_LAYOUTS,
    xor_timestamps=True,
    address_bits=49,
    run_rcodes={8: 0, 9: 1},
    jump_ends_branch=True,
    scontext_first=True,
    omits_empty_hist=True,
    recounts_branch=True,
    starts={**_STARTS, 11: StartReason.MESSAGE_CONTENTION, 15: StartReason.PC_SAMPLE},
    stops={**_STOPS, 8: StopReason.RESET},
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (RATIFIED, RC7, SIFIVE)}
"""By name, as users choose them."""
