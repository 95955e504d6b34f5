"""What differs between the published N-Trace and what was built before it: one named, complete description each.

Sources: RISC-V N-Trace 1.0 (ratified 2024-11-21, the default) and 1.0.0-rc7 of 2023-07-06, table 25; for the SiFive
encoders that came before the standard, their captures and the fields seen in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from decode.ntrace.layout import LAYOUTS, SIFIVE_LAYOUTS, BType, Evcode, Layout, Sync

_SYNC_TEXTS: Mapping[int, str] = {
    Sync.EXTERNAL_TRIGGER: "external trigger",
    Sync.EXIT_FROM_RESET: "exit from reset",
    Sync.PERIODIC: "periodic synchronization",
    Sync.EXIT_FROM_DEBUG: "exit from debug mode",
    Sync.SEQUENTIAL_INSTRUCTION_COUNTER: "instruction counter full",
    Sync.TRACE_ENABLE: "trace enabled",
    Sync.TRACE_EVENT: "trace event",
    Sync.RESTART_FROM_FIFO_OVERRUN: "restart from FIFO overrun",
    Sync.EXIT_FROM_POWER_DOWN: "exit from power-down",
}
_EVCODE_TEXTS: Mapping[int, str] = {
    Evcode.DEBUG_MODE: "entry into debug mode",
    Evcode.LOW_POWER: "entry into low-power mode",
    Evcode.TRACE_DISABLED: "trace disabled",
}
_TRAP_TEXTS: Mapping[int, str] = {
    BType.TRAP: "exception or interrupt",
    BType.EXCEPTION: "exception",
    BType.INTERRUPT: "interrupt",
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
    sync_texts: Mapping[int, str] = field(default_factory=lambda: _SYNC_TEXTS)
    evcode_texts: Mapping[int, str] = field(default_factory=lambda: _EVCODE_TEXTS)
    trap_texts: Mapping[int, str] = field(default_factory=lambda: _TRAP_TEXTS)


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
    sync_texts={**_SYNC_TEXTS, 11: "message contention", 15: "PC sample"},
    evcode_texts={**_EVCODE_TEXTS, 8: "entry into reset"},
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (RATIFIED, RC7, SIFIVE)}
"""By name, as users choose them."""
