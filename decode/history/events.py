"""What can happen between two instructions, as facts: typed, immutable, and without a place in the trace.

Decoders make the facts, a history keeps them as they are, and `decode.history.event_wording` has the words where they
are shown. Nothing decides by those words. A decoder remembers its steps and the facts in them, so a fact holds no
position and no offset: those are in the `Event` it becomes (`decode.history.history`).

`Accounting` is the other thing every decoder tells: what became of the bytes of its trace.
"""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.program.csrs import Context

if TYPE_CHECKING:
    pass

Detail = tuple[int | str, ...]
"""What belongs to a cause: numbers, names, addresses, in the order its words have them."""


class EventKind(Enum):
    """What happened between two instructions. After each: the fact that goes with it."""

    SYNC = "sync"
    """Decoding starts here, or the encoder marked the place (a trigger, a reset): `Start`."""
    TRAP = "trap"
    """An exception or interrupt: `Trap`; the event's `last_pc` is where it hit, `next_pc` the handler."""
    TRACE_ON = "trace on"
    """`Start`."""
    TRACE_OFF = "trace off"
    """`Stop`."""
    LOSS = "loss"
    """Trace bytes that could not be used: `Loss`."""
    OVERFLOW = "overflow"
    """The encoder itself lost messages: `Loss`."""
    MISMATCH = "mismatch"
    """Trace and program contradict each other: `Loss`."""
    CONTEXT = "context"
    """Another program or privilege mode runs from here on: `ContextChange`."""
    NOTE = "note"
    """Worth knowing, and no change of the flow: `Note`."""


GAP_KINDS = frozenset({EventKind.TRACE_OFF, EventKind.LOSS, EventKind.OVERFLOW, EventKind.MISMATCH})
"""The kinds that can be the cause of a gap."""


class TrapKind(Enum):
    """Which sort of trap."""

    EXCEPTION = "exception"
    INTERRUPT = "interrupt"
    UNKNOWN = "unknown"
    """One of both: the trace does not say which."""


class Trap(NamedTuple):
    """An exception or interrupt. *cause*: its code, *value*: as in xtval; None where the trace does not say.

    *from_hidden*, *into_hidden*: it hit, or was taken, in a mode that is not recorded.
    """

    kind: TrapKind
    cause: int | None = None
    value: int | None = None
    from_hidden: bool = False
    into_hidden: bool = False

    @classmethod
    def of(cls, cause: int, value: int | None = None, *, interrupt: bool) -> "Trap":
        """One whose cause is told."""
        return cls(TrapKind.INTERRUPT if interrupt else TrapKind.EXCEPTION, cause, value)

    @property
    def may_be_exception(self) -> bool:
        """Whether it was one, as far as is known."""
        return self.kind is not TrapKind.INTERRUPT

    @property
    def may_be_interrupt(self) -> bool:
        """Whether it was one, as far as is known."""
        return self.kind is not TrapKind.EXCEPTION


class StartReason(Enum):
    """Why the trace says where the hart is."""

    EXTERNAL_TRIGGER = "external-trigger"
    EXIT_FROM_RESET = "exit-from-reset"
    PERIODIC = "periodic"
    EXIT_FROM_DEBUG = "exit-from-debug-mode"
    COUNTER_FULL = "instruction-counter-full"
    TRACE_ENABLED = "trace-enabled"
    TRACE_EVENT = "trace-event"
    FIFO_OVERRUN = "fifo-overrun"
    EXIT_FROM_POWER_DOWN = "exit-from-power-down"
    MESSAGE_CONTENTION = "message-contention"
    PC_SAMPLE = "pc-sample"
    UNTOLD = "not-told"
    """E-Trace does not say why it synchronizes."""
    TRACING_STARTS = "tracing-starts"
    """E-Trace does not say why tracing starts."""
    NOTIFICATION = "notification"
    """By a trigger."""
    KNOWN_CODE = "known-code"
    """There is code again, where the decoder had none to follow."""
    RESET = "reset"
    BEGINNING = "beginning"
    """Of a tandem trace."""
    OLDEST_RECORD = "oldest-record"
    OTHER = "other"
    """With this code, which is not defined."""


MARKS = frozenset({StartReason.EXTERNAL_TRIGGER, StartReason.TRACE_EVENT, StartReason.NOTIFICATION})
"""Reasons that are a trigger's: the place itself is what there is to know."""


class Start(NamedTuple):
    """Decoding starts here, or the place was marked. *code*: the trace's own for the reason, where it has one."""

    reason: StartReason
    code: int | None = None


class StopReason(Enum):
    """Why what runs from here on is not in the trace."""

    DEBUG_MODE = "debug-mode"
    LOW_POWER = "low-power"
    TRACE_DISABLED = "trace-disabled"
    RESET = "reset"
    UNTOLD = "not-told"
    """E-Trace does not say why tracing stops."""
    OTHER = "other"
    """With this code, which is not defined."""
    MODE_NOT_RECORDED = "mode-not-recorded"
    END_NOT_RECORDED = "end-not-recorded"
    """What ran since the newest record."""
    LEFT_FOR_HIDDEN_MODE = "left-for-a-mode-not-recorded"
    MAYBE_OFF = "recording-maybe-off"
    OTHER_WAY = "not-recorded"
    """What led to this address."""
    NO_WAY = "not-determined"
    """Program and records leave a choice: which."""
    NO_CODE = "no-code"
    """Why there is none, and where."""
    UNTRACED = "untraced-addresses"
    """The encoder leaves out what runs below an address: that, and where the hart went on."""
    GROUPS_MISSING = "groups-missing"
    """Of an encoder that leaves out what runs at some addresses: the pc, and what follows."""


class Open(Enum):
    """What is not in the trace of an instruction tracing stops at: nobody knows what came next."""

    BRANCH = "branch"
    TRAP = "trap"
    JUMP = "jump"
    PLACE = "place"


class Stop(NamedTuple):
    """Tracing stops. *code*: the trace's own for the reason, where it has one; *detail*: what belongs to the reason.

    *open*: why nobody knows what came next. *then*: how tracing went on at another place than it stopped at.
    """

    reason: StopReason
    code: int | None = None
    open: Open | None = None
    detail: Detail = ()
    then: "Start | Trap | None" = None


class LossCause(Enum):
    """Why a part of the trace, or of what ran, is lost. After each: its details."""

    SKIPPED = "no-message"
    """How many bytes, and why they are none; 0 bytes: that something is missing is all there is to say."""
    MALFORMED = "malformed"
    """What is wrong with a message."""
    NO_PACKET = "no-packet"
    """What is wrong with a te_inst packet."""
    MISMATCH = "program-differs"
    """Name of the code, address, what contradicts it, packet."""
    ABSENT_CODE = "code-not-supplied"
    """Address, name of what is there, packet."""
    NO_CODE = "no-code"
    """Address, packet."""
    COUNT_UNTOLD = "count-of-branches-not-told"
    """Packet, address it reports, and the numbers of branches that lead there."""
    OTHER_INSTRUCTION = "other-instruction"
    """Name of the code, address, the instruction that ran, and the one there: as hexadecimal digits."""
    MESSAGES_LOST = "messages-lost"
    """N-Trace's ECODE."""
    PACKETS_LOST = "packets-lost"
    MESSAGES_MISSING = "messages-missing"
    """How many messages there are from one synchronization to the next, and how many the encoder sends at least. Where
    in between some are lost nobody knows, so there is no gap: the event stands behind that stretch.
    """
    ENCODER_ERROR = "encoder-error"
    """N-Trace's ETYPE and ECODE."""
    FIFO_OVERRUN = "fifo-overrun"
    TOO_MANY_BITS = "too-many-bits"
    """Message, field, its bits, and how many there may be."""
    ICNT_TOO_LARGE = "icnt-too-large"
    """Message, bits of the count, how many are believed, and how many halfwords it is ahead of HIST."""
    REPETITION_TOO_LARGE = "repetition-too-large"
    """Bits of the count, and how many there may be."""
    RESERVED = "reserved-value"
    """Message, field, value."""
    FIELD_TOO_MANY = "field-too-many"
    """Message: no other has a timestamp."""
    WHILE_OFF = "while-tracing-is-off"
    """Message."""
    NO_HANDLER = "no-handler-for-the-trap-before"
    """Packet."""
    UNKNOWN_HANDLER = "trap-handler-not-known"
    NO_STOP = "stop-missing"
    """Its `start` came, and no message of the stop before it."""
    NO_HIST = "hist-missing"
    """Its `start` came, and no HIST for the branches before it."""
    NO_STOP_BIT = "no-stop-bit"
    UNDEFINED_RCODE = "undefined-rcode"
    """RCODE."""
    NO_BRANCH_BEFORE = "no-branch-to-repeat"
    ENDLESS_REPETITION = "endless-repetition"
    """B-CNT."""
    NO_GROUP = "no-group"
    """Bytes of a tandem trace that are none: why, and at which byte."""
    GROUPS_MISSING = "groups-missing"
    """Of a tandem trace: the pc, and what follows."""
    NO_ADDRESS = "address-not-told"
    IMPOSSIBLE = "impossible"
    """What a group of a tandem trace, or a record, tells that cannot be."""
    NOT_BELIEVED = "not-believed"
    """The address at which a group of a tandem trace beside damage has an instruction: as hexadecimal digits."""
    CONTRADICTED = "contradicted"
    """Packet: what comes after it in the trace cannot have run from there."""


class Loss(NamedTuple):
    """What was lost, or contradicts the program, and why. Which bytes of the trace it is about the event says.

    *start*: what showed it, for causes that say so.
    """

    cause: LossCause
    detail: Detail = ()
    start: Start | None = None

    @property
    def has_place(self) -> bool:
        """Whether it is known where in the history something is missing."""
        return self.cause is not LossCause.MESSAGES_MISSING


class ContextChange(NamedTuple):
    """Another program or privilege mode runs: *now*, and *before* that, as far as it was known."""

    before: Context
    now: Context

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of what is not as it was."""
        both = zip(Context._fields, self.before, self.now, strict=True)
        return tuple(name for name, before, now in both if before != now)


class NoteCause(Enum):
    """What is worth knowing. After each: its details."""

    CUT_OFF = "cut-off"
    """What is, at the end of the trace."""
    GROUP_CUT_OFF = "group-cut-off"
    NO_BEGIN = "no-beginning"
    """A tandem trace does not begin with a group."""
    STOPPED_AT_LOSS = "stopped-at-loss"
    TOO_LONG = "too-long"
    """Decoding stopped: instructions."""
    IGNORED = "ignored"
    """Message, and then its fields: name, value."""
    ODD_IDLE = "odd-idle"
    """The byte that is taken for idle."""
    BRANCH_AGAIN = "branch-again"
    """Message, and the address of the branch that it and the one before it count."""
    RESERVED_OWNERSHIP = "reserved-ownership"
    FIELD_TOO_MANY = "field-too-many"
    """Message."""
    NOT_LISTED = "repetitions-not-listed"
    """How many, and of how many."""
    BAD_DATA = "bad-data"
    """What is wrong with a te_data packet."""
    DATA_LOST = "data-lost"
    FLAW = "flaw"
    """The number of a tandem group, and the rule it breaks."""
    INITIALIZED = "initialized"
    """How many state initializations."""
    MORE_PLACES = "more-places"
    """How many, and the name of the code that differs from the trace there."""
    CALLS_ALONE = "calls-alone"
    UNSEEN = "unseen"
    ROUNDED_TIMES = "rounded-times"
    """From so many cycles on."""


class Note(NamedTuple):
    """Something worth knowing."""

    cause: NoteCause
    detail: Detail = ()


Fact = Trap | Start | Stop | Loss | ContextChange | Note


class Accounting(NamedTuple):
    """Bytes of the trace: decoded + idle + skipped == total, always."""

    total: int
    decoded: int
    idle: int
    skipped: int
