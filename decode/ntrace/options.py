"""The options of N-Trace: the dialect, what a decoder must know to read a trace, and how an encoder is built.

A `Dialect` describes one generation of encoders completely: the published N-Trace, or one that was built before it.
`EncoderOptions` contains the features that registers enable, the sizes of the encoder's counters, and one named option
for each choice that the specification leaves to the encoder.

Sources: RISC-V N-Trace 1.0 (ratified 2024-11-21, the default) and 1.0.0-rc7 of 2023-07-06, table 25; for the SiFive
encoders that came before the standard, their captures and the fields seen in them. Chapters are cited by their titles
because the two documents number them differently.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from typing import ClassVar

from rvtrace_gdb.decode.history.events import StartReason, StopReason, TrapKind
from rvtrace_gdb.decode.ntrace.messages import (
    MAX_REPEAT_BITS,
    MAX_SRC_BITS,
    NEXUS_LAYOUTS,
    SIFIVE_LAYOUTS,
    BType,
    Evcode,
    Message,
    MessageLayout,
    Sync,
    Tcode,
    parse,
)

_STARTS: Mapping[int, StartReason] = {sync: sync.reason for sync in Sync}
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
_RC7_MARKERS = frozenset({Sync.EXTERNAL_TRIGGER, Sync.SEQUENTIAL_INSTRUCTION_COUNTER, Sync.TRACE_EVENT})
"""The values of SYNC that do not reset the encoder: rc7, table 25, column "Encoder Reset"."""
_FIRST_SYNCS = range(10)
"""The values of SYNC that the first published version defines, and SiFive's encoders have."""


@dataclass(frozen=True)
class Dialect:
    """The messages of one generation of encoders.

    layouts           the messages by TCODE
    keeps_state       SYNC values that leave the encoder's state (its call stack, the pending HIST) as it is
    xor_timestamps    relative TSTAMPs are the XOR with the last time, not the difference (8.7)
    address_bits      addresses have this many bits, bit 0 included, and are sign-extended on RV64; 0: all of XLEN
    run_rcodes        the RCODEs of ResourceFull that count a run of branches, with the outcome of these branches
    jump_ends_branch  DirectBranch may also report a direct jump
    scontext_first    the Ownership message with scontext comes before the one with hcontext
    omits_empty_hist  ProgTraceCorrelation has CDF=0 while HIST is empty, also in HTM
    recounts_branch   a synchronizing message right after another one may count the branch before that one again, with
                      the HIST bit that the first message lacked
    stimulus_ports    the tag of DataAcquisition is the byte address of an ITC stimulus register, not a channel
    starts, stops, traps   the meaning of the values of SYNC, EVCODE and B-TYPE
    """

    name: str
    layouts: Mapping[int, MessageLayout] = field(default_factory=lambda: NEXUS_LAYOUTS)
    keeps_state: frozenset[int] = frozenset()
    xor_timestamps: bool = False
    address_bits: int = 0
    run_rcodes: Mapping[int, int] = field(default_factory=dict)
    jump_ends_branch: bool = False
    scontext_first: bool = False
    omits_empty_hist: bool = False
    recounts_branch: bool = False
    stimulus_ports: bool = False
    starts: Mapping[int, StartReason] = field(default_factory=lambda: _STARTS)
    stops: Mapping[int, StopReason] = field(default_factory=lambda: _STOPS)
    traps: Mapping[int, TrapKind] = field(default_factory=lambda: _TRAPS)


RATIFIED = Dialect("1.0")
RC7 = Dialect("rc7", keeps_state=_RC7_MARKERS)
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
    stimulus_ports=True,
    starts={
        **{sync: sync.reason for sync in Sync if sync in _FIRST_SYNCS},
        11: StartReason.MESSAGE_CONTENTION,
        15: StartReason.PC_SAMPLE,
    },
    stops={**_STOPS, 8: StopReason.RESET},
)

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (RATIFIED, RC7, SIFIVE)}
"""The dialects by the names under which users select them."""


class ImplicitReturn(IntEnum):
    """The value of trTeInstImplicitReturnMode while trTeInstEnImplicitReturn is set, else OFF.

    The decoder treats all modes but OFF alike: it keeps all return addresses, and I-CNT shows which returns were not
    reported.
    """

    OFF = 0
    COUNTER = 1
    PARTIAL_STACK = 2
    FULL_STACK = 3


@dataclass(frozen=True)
class Options:
    """The encoder settings that a decoder needs, as read from its registers. By default all is off; the dialect is 1.0.

    src_bits         width of SRC (trTeSrcBits), 0 when trTeInhibitSrc is set
    src_id           SRC of the messages to decode; None: all messages
    timestamps       whether messages may end with TSTAMP (trTsEnable)
    timestamp_bits   width of the timestamp counter (trTsWidth), for its wrap-around; 0: it does not wrap
    btm              whether the mode is Branch Trace Messaging (trTeInstMode 3) instead of HTM (6)
    implicit_return  trTeInstImplicitReturnMode
    sequential_jump  trTeInstEnSequentialJump
    all_jumps        trTeInstEnAllJumps
    extend_addr_msb  trTeInstExtendAddrMSB
    address_bits     significant bits of an address if the encoder sends fewer than XLEN; None: the dialect's default
    sync_period      number of messages after which the encoder synchronizes (trTeInstSyncMode 1, trTeInstSyncMax);
                     None: not known
    repeat_bits      a HREPEAT or B-CNT of more bits is taken for noise
    dialect          the generation of encoders
    stop_at_error    whether to stop at the first loss instead of resuming at the next synchronizing message
    """

    format: ClassVar = "ntrace"

    src_bits: int = 0
    src_id: int | None = None
    timestamps: bool = False
    timestamp_bits: int = 0
    btm: bool = False
    implicit_return: ImplicitReturn = ImplicitReturn.OFF
    sequential_jump: bool = False
    all_jumps: bool = False
    extend_addr_msb: bool = False
    address_bits: int | None = None
    sync_period: int | None = None
    repeat_bits: int = MAX_REPEAT_BITS
    dialect: Dialect = RATIFIED
    stop_at_error: bool = False

    @property
    def sent_address_bits(self) -> int:
        """The significant bits of a transmitted address; 0 for full addresses."""
        return self.dialect.address_bits if self.address_bits is None else self.address_bits

    def message(self, frame: bytes) -> Message:
        """Return the message in *frame*, whose fields have the meaning that these options give them.

        Raises MalformedMessage.
        """
        return parse(frame, self.src_bits, self.dialect.layouts, extend_addr_msb=self.extend_addr_msb)


REPEAT_BITS = range(1, 33)
"""The limits of HREPEAT and B-CNT that a user can say."""
MIN_HIST_LIMIT = 2
"""The smallest HIST register: the stop bit and one branch ("ResourceFull Message": HIST of at least 2 bits)."""


class InstSyncMode(IntEnum):
    """The values of trTeInstSyncMode: the unit in which the period of synchronizing messages is counted."""

    OFF = 0
    MESSAGES = 1
    CYCLES = 2
    HALFWORDS = 3


class SyncPlacement(Enum):
    """Where the encoder sends a synchronizing message that is due.

    Source: "Examples of Synchronizing Messages", case 6 and notes 1 to 3.

    AT_ONCE      at the next block boundary; a branch message sent there anyway takes its ...Sync form
    SEPARATE     at the next block boundary, always as a separate message
    NEXT_BRANCH  with the next branch message, in its ...Sync form
    """

    AT_ONCE = "at once"
    SEPARATE = "separate"
    NEXT_BRANCH = "next branch"


_LINEAR_SYNCS = (
    Tcode.PROG_TRACE_SYNC,
    Tcode.DIRECT_BRANCH_SYNC,
    Tcode.INDIRECT_BRANCH_SYNC,
    Tcode.INDIRECT_BRANCH_HIST_SYNC,
)


@dataclass(frozen=True)
class EncoderOptions:
    """How the encoder is built and configured. Raises ValueError for a combination that no encoder can have.

    Register settings
    src_bits, src_id          width and value of SRC (trTeSrcBits, trTeSrcID); width 0: no SRC
    btm                       whether the mode is Branch Trace Messaging (trTeInstMode 3) instead of HTM (6)
    sync_mode, sync_max       synchronize after every 2**(sync_max + 4) units (trTeInstSyncMode, trTeInstSyncMax)
    implicit_return           trTeInstImplicitReturnMode, while trTeInstEnImplicitReturn is set
    sequential_jump           trTeInstEnSequentialJump
    repeated_history          trTeInstEnRepeatedHistory: send ResourceFull with RCODE 2 (SIFIVE: 8 and 9)
    all_jumps                 trTeInstEnAllJumps: report direct jumps and calls like taken branches
    extend_addr_msb           trTeInstExtendAddrMSB
    context                   trTeContext: send Ownership messages
    timestamps                trTsEnable: end messages with TSTAMP

    Construction
    dialect                   the generation of encoders
    xlen                      XLEN of the hart, 32 or 64
    icnt_limit                I-CNT at which the counter is full, in halfwords
    hist_limit                bits of the HIST register, including the stop bit ("Maximum Field Sizes": at most 32)
    return_depth              entries of the return stack; for COUNTER, the highest count
    partial_bits              low bits of a return address that PARTIAL_STACK keeps
    repeat_branch             send RepeatBranch instead of identical branch messages
    hrepeat_limit             highest HREPEAT ("Maximum Field Sizes": 18 bits)
    bcnt_limit                highest B-CNT, likewise
    timestamp_bits            width of the timestamp counter (trTsWidth); 0: it does not wrap

    Choices that the specification leaves to the encoder
    full_at_once              report a register as soon as it is full ("HIST Field Full"); else when the next
                              instruction does not fit
    icnt_full_sync            report a full I-CNT by SYNC=4 instead of ResourceFull ("I-CNT Details": BTM only; in rc7,
                              8.4.4: in HTM while HIST is not empty)
    icnt_by_block             detect a full I-CNT only at the end of a block, so that the reported count may exceed the
                              limit ("I-CNT Details"); else after every instruction
    hist_full_first           if I-CNT becomes full with a branch or jump, send the message for that instruction first:
                              a full HIST precedes I-CNT, and a branch message contains I-CNT; else send I-CNT at once
    hist_chunks               report HIST after these numbers of branches, in turn; the last number is used from then
                              on. (): report only a full register ("ResourceFull Message": any quantity of bits)
    repeat_trims              if a full HIST differs from the one before, look for patterns that are shorter by these
                              numbers of bits, in this order; (3, 1) are the patterns of 28 and 30 bits of 31 that the
                              reference encoder looks for
    repeat_shortest           count the shortest pattern that a full HIST consists of instead of the whole HIST
                              ("Repeated History Optimization", last example)
    repeat_broken_by_icnt     send the count of a repeated HIST before a full I-CNT; else continue counting
    run_minimum               SIFIVE: the shortest run of branches with the same outcome that is counted instead of
                              being sent as HIST
    b_type_extended           distinguish exceptions (2) from interrupts (3); else both are 1
    indirect_without_hist     send IndirectBranch(Sync) instead of IndirectBranchHist(Sync) while HIST is empty ("Rules
                              of Generating Messages", rule 4)
    correlation_without_hist  send CDF=0 instead of an empty HIST in ProgTraceCorrelation, as the reference encoder and
                              SIFIVE do, contrary to "ProgTraceCorrelation Message"
    sync_placement            where to send a synchronizing message that is due
    linear_sync               the synchronizing message to send where no branch message is due; None: ProgTraceSync in
                              BTM, IndirectBranchHistSync in HTM. A message without HIST is sent after a ResourceFull
                              with HIST
    marks_keep_hist           rc7: a synchronizing message that keeps the state and has no HIST field leaves HIST in its
                              register; else HIST is sent first
    trap_return_sync          for a trap right after a trap return, report both addresses in synchronizing messages with
                              SYNC=2 ("Corner Cases", last row)
    ownership_full            report a change of only the privilege mode with scontext and hcontext (FORMAT 2, 3), as
                              after a synchronizing message; an scontext that does not exist is sent as 0
    exact_context             report I-CNT and HIST before an Ownership message that does not follow a message with an
                              address, so that a decoder knows the exact instruction of the change
    context_by_sync           report a context after synchronizing messages alone, as the SpacemiT K3 does
    timestamp_sparse          one of this many messages has a TSTAMP; synchronizing messages always have one
    empty_fields              a variable-length field that is 0 and ends in the byte of the fields before it has 0 bits;
                              else at least 1 ("Fields in Messages")
    field_padding             bytes of 0 (VAO: of the address's high bit) added to each variable-length field
    idle_bytes                idle bytes after each message
    idle_before_sync          idle bytes before a synchronizing message ("PIB Idle Cycles Explained")
    """

    src_bits: int = 0
    src_id: int = 0
    btm: bool = False
    sync_mode: InstSyncMode = InstSyncMode.OFF
    sync_max: int = 0
    implicit_return: ImplicitReturn = ImplicitReturn.OFF
    sequential_jump: bool = False
    repeated_history: bool = False
    all_jumps: bool = False
    extend_addr_msb: bool = False
    context: bool = False
    timestamps: bool = False
    dialect: Dialect = RATIFIED
    xlen: int = 64
    icnt_limit: int = 1 << 16
    hist_limit: int = 32
    return_depth: int = 32
    partial_bits: int = 12
    repeat_branch: bool = False
    hrepeat_limit: int = (1 << 18) - 1
    bcnt_limit: int = (1 << 18) - 1
    timestamp_bits: int = 0
    full_at_once: bool = True
    icnt_full_sync: bool = False
    icnt_by_block: bool = False
    hist_full_first: bool = False
    hist_chunks: tuple[int, ...] = ()
    repeat_trims: tuple[int, ...] = (3, 1)
    repeat_shortest: bool = False
    repeat_broken_by_icnt: bool = False
    run_minimum: int = 16
    b_type_extended: bool = True
    indirect_without_hist: bool = False
    correlation_without_hist: bool = False
    sync_placement: SyncPlacement = SyncPlacement.AT_ONCE
    linear_sync: Tcode | None = None
    marks_keep_hist: bool = False
    trap_return_sync: bool = False
    ownership_full: bool = False
    exact_context: bool = False
    context_by_sync: bool = False
    timestamp_sparse: int = 1
    empty_fields: bool = False
    field_padding: int = 0
    idle_bytes: int = 0
    idle_before_sync: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.src_bits <= MAX_SRC_BITS:
            raise ValueError(f"SRC cannot have {self.src_bits} bits, the maximum is {MAX_SRC_BITS}")
        if not 0 <= self.src_id < 1 << self.src_bits:
            raise ValueError(f"src_id {self.src_id} does not fit in {self.src_bits} bits")
        if self.xlen not in (32, 64):
            raise ValueError(f"xlen is 32 or 64, not {self.xlen}")
        for name, lowest in _LOWEST.items():
            if getattr(self, name) < lowest:
                raise ValueError(f"{name} must be at least {lowest}, not {getattr(self, name)}")
        if self.linear_sync is not None and self.linear_sync not in _LINEAR_SYNCS:
            raise ValueError(f"linear_sync cannot be {self.linear_sync!r}: not a message with SYNC")
        self._check_mode()
        self._check_hist()

    def _check_mode(self) -> None:
        if self.icnt_full_sync and not self.btm and Sync.SEQUENTIAL_INSTRUCTION_COUNTER not in self.dialect.keeps_state:
            raise ValueError("icnt_full_sync: SYNC=4 for a full I-CNT is for btm only; in HTM only dialect rc7 has it")
        if self.btm and self.linear_sync is Tcode.INDIRECT_BRANCH_HIST_SYNC:
            raise ValueError("linear_sync cannot be INDIRECT_BRANCH_HIST_SYNC in BTM, which has no HIST")

    def _check_hist(self) -> None:
        full = self.hist_limit - 1
        if any(not 0 < chunk <= full for chunk in self.hist_chunks):
            raise ValueError(f"hist_chunks must be 1 to {full} branches (hist_limit less the stop bit) each")
        if any(trim < 1 for trim in self.repeat_trims):
            raise ValueError("repeat_trims must be at least 1 bit each")
        if self.hist_chunks and self.repeated_history:
            raise ValueError("hist_chunks and repeated_history exclude each other: repetition is counted in full HISTs")

    @classmethod
    def of_features(cls, options: Options) -> "EncoderOptions":
        """Return the options of an encoder with what a decoder is told of it; SRC, which need not be told, is 0."""
        return cls(**{name: getattr(options, name) for name in _shared() - {"src_id", "timestamps", "timestamp_bits"}})

    @property
    def of_decoder(self) -> Options:
        """The options of a decoder for the trace of this encoder: those that both have, and SRC only if it is sent."""
        known = {name: getattr(self, name) for name in _shared()}
        most = max(MAX_REPEAT_BITS, self.hrepeat_limit.bit_length(), self.bcnt_limit.bit_length())
        most = min(most, REPEAT_BITS.stop - 1)
        period = self.sync_period if self.sync_mode is InstSyncMode.MESSAGES else None
        told = {"src_id": self.src_id if self.src_bits else None, "repeat_bits": most, "sync_period": period}
        return Options(**known | told)

    @property
    def sync_period(self) -> int:
        """The number of units between synchronizations."""
        return 1 << self.sync_max + 4

    @property
    def branch_runs(self) -> bool:
        """Whether runs of branches with the same outcome are counted: the dialect's form of repeated history."""
        return self.repeated_history and bool(self.dialect.run_rcodes)

    @property
    def address_mask(self) -> int:
        """The mask of the transmitted bits of an address without its bit 0."""
        bits = self.xlen - 1
        if self.dialect.address_bits:
            bits = min(bits, self.dialect.address_bits - 1)
        return (1 << bits) - 1


def _shared() -> set[str]:
    """Return the names of the fields that an encoder and a decoder both have."""
    return {field.name for field in fields(EncoderOptions)} & {field.name for field in fields(Options)}


_LOWEST = {
    "icnt_limit": 1,
    "hist_limit": MIN_HIST_LIMIT,
    "sync_max": 0,
    "return_depth": 1,
    "partial_bits": 1,
    "hrepeat_limit": 2,
    "bcnt_limit": 1,
    "timestamp_bits": 0,
    "timestamp_sparse": 1,
    "run_minimum": 1,
    "field_padding": 0,
    "idle_bytes": 0,
    "idle_before_sync": 0,
}
