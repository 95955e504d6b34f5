"""What can happen between two instructions, as facts: typed, immutable, and without a position in the trace.

Decoders make the facts, and a history keeps them unchanged. Each reason and each cause has its wording beside it, of
which `decode.history.event_wording` makes the text that is shown; those of N-Trace are from 1.0.0-rc7, tables 9, 23
and 25. No decision depends on the wording. A decoder remembers its steps and the facts in them, so a fact has
no position and no offset: those belong to the `Event` it becomes (`decode.history.history`).

`Accounting` is the other result of every decoder: what became of the bytes of its trace.
"""

from enum import Enum, StrEnum
from typing import NamedTuple, Self

from rvtrace_gdb.decode.history.hart_events import HartEvent
from rvtrace_gdb.decode.program.csrs import ProgramContext

Detail = tuple[int | str, ...]
"""The details of a cause: numbers, names, addresses, in the order in which its text has them."""


class _Worded(Enum):
    """Members with a name for programs and a wording, in which {} stands for the details, in their order."""

    text: str

    def __new__(cls, value: str, text: str = "") -> Self:
        member = object.__new__(cls)
        member._value_ = value
        member.text = text
        return member


class EventKind(Enum):
    """The kinds of event between two instructions; each is documented with the type of its fact."""

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
    MISMATCHED_RETURN = "mismatched return"
    """A function returned to where no call came from: `MismatchedReturn`. Found in the history, not in the trace."""
    HART_EVENT = "hart event"
    """What the encoder says of the hart besides its flow: `HartEvent`; `last_pc` is where it happened, `next_pc` where
    a call led."""
    NOTE = "note"
    """A remark that does not affect the control flow: `Note`."""


LOSSES = frozenset({EventKind.LOSS, EventKind.OVERFLOW, EventKind.MISMATCH})
"""The kinds of what is missing although it was traced."""
GAP_KINDS = LOSSES | {EventKind.TRACE_OFF}
"""The kinds that can be the cause of a gap."""


class TrapKind(_Worded):
    """The kind of a trap."""

    EXCEPTION = "exception", "exception"
    INTERRUPT = "interrupt", "interrupt"
    UNKNOWN = "unknown", "exception or interrupt"
    """Either: the trace does not say which."""


class Trap(NamedTuple):
    """An exception or interrupt. *cause* is its code, *value* what xtval holds; None where the trace does not report
    it.

    *from_hidden*, *into_hidden*: it hit, or was taken, in a mode that is not recorded. *from_hart*: cause and value are
    not from the trace, but from the hart's registers when the trace was read out.
    """

    kind: TrapKind
    cause: int | None = None
    value: int | None = None
    from_hidden: bool = False
    into_hidden: bool = False
    from_hart: bool = False

    @classmethod
    def with_cause(cls, cause: int, value: int | None = None, *, interrupt: bool) -> "Trap":
        """Return a trap whose cause is known."""
        return cls(TrapKind.INTERRUPT if interrupt else TrapKind.EXCEPTION, cause, value)

    @property
    def may_be_exception(self) -> bool:
        """Whether the trap is an exception, as far as known."""
        return self.kind is not TrapKind.INTERRUPT

    @property
    def may_be_interrupt(self) -> bool:
        """Whether the trap is an interrupt, as far as known."""
        return self.kind is not TrapKind.EXCEPTION


class _StartRow(NamedTuple):
    """*value*: the name for programs. *text*: the wording; {} stands for the trace's own code.

    marks      a trigger asked for it: it means nothing more than that the place is marked
    resumes    it follows a halt by the debugger, during which nothing was missed
    says_kind  the text names the kind of event, so that the kind need not precede it
    """

    value: str
    text: str
    marks: bool = False
    resumes: bool = False
    says_kind: bool = False


class StartReason(Enum):
    """The reasons for which a trace reports where the hart is. `decode.ntrace.messages.Sync` has N-Trace's codes."""

    text: str
    marks: bool
    resumes: bool
    says_kind: bool

    def __new__(cls, value: str, text: str, marks: bool, resumes: bool, says_kind: bool) -> "StartReason":
        member = object.__new__(cls)
        member._value_ = value
        member.text, member.marks, member.resumes, member.says_kind = text, marks, resumes, says_kind
        return member

    EXTERNAL_TRIGGER = _StartRow("external-trigger", "external trigger", marks=True)
    EXIT_FROM_RESET = _StartRow("exit-from-reset", "exit from reset")
    PERIODIC = _StartRow("periodic", "periodic synchronization")
    EXIT_FROM_DEBUG = _StartRow("exit-from-debug-mode", "exit from debug mode", resumes=True)
    COUNTER_FULL = _StartRow("instruction-counter-full", "instruction counter full")
    TRACE_ENABLED = _StartRow("trace-enabled", "trace enabled", says_kind=True)
    TRACE_EVENT = _StartRow("trace-event", "trace event", marks=True, says_kind=True)
    FIFO_OVERRUN = _StartRow("fifo-overrun", "restart from FIFO overrun")
    EXIT_FROM_POWER_DOWN = _StartRow("exit-from-power-down", "exit from power-down")
    MESSAGE_CONTENTION = _StartRow("message-contention", "message contention")
    PC_SAMPLE = _StartRow("pc-sample", "PC sample")
    UNSPECIFIED = _StartRow("not-told", "synchronization")
    """E-Trace does not say why it synchronizes."""
    TRACING_STARTS = _StartRow("tracing-starts", "tracing starts", resumes=True, says_kind=True)
    """E-Trace does not say why tracing starts."""
    NOTIFICATION = _StartRow("notification", "trace event: notification by a trigger", marks=True, says_kind=True)
    KNOWN_CODE = _StartRow("known-code", "decoding continues at an address in known code")
    """There is code again after a stretch for which the decoder had none."""
    RESET = _StartRow("reset", "hart reset")
    BEGINNING = _StartRow("beginning", "the trace begins")
    """A tandem trace begins."""
    OLDEST_RECORD = _StartRow("oldest-record", "the oldest record")
    OTHER = _StartRow("other", "synchronization reason {}")
    """The reason has this code, which is not defined."""


class Start(NamedTuple):
    """Decoding starts here, or the place was marked. *code* is the trace's own code for the reason, if it has one."""

    reason: StartReason
    code: int | None = None


class StopReason(_Worded):
    """The reasons for which the trace does not contain what runs from here on."""

    DEBUG_MODE = "debug-mode", "entry into debug mode"
    LOW_POWER = "low-power", "entry into low-power mode"
    TRACE_DISABLED = "trace-disabled", "trace disabled"
    RESET = "reset", "entry into reset"
    UNSPECIFIED = "not-told", "tracing stops"
    """E-Trace does not say why tracing stops."""
    OTHER = "other", "trace stop reason {}"
    """The reason has this code, which is not defined."""
    MODE_NOT_RECORDED = "mode-not-recorded", "the hart was in a mode that is not recorded"
    END_NOT_RECORDED = "end-not-recorded", "what ran since is not recorded"
    """What ran after the newest record is unknown."""
    LEFT_FOR_HIDDEN_MODE = (
        "left-for-a-mode-not-recorded",
        "the place where the hart entered a mode that is not recorded is not known",
    )
    MAYBE_OFF = "recording-maybe-off", "recording may have been off before this record: it has no cycles (CCV)"
    OTHER_ROUTE = "not-recorded", "the code does not lead to 0x{:x}; the transfer that did was not recorded"
    """The transfer that led to this address is not recorded."""
    NO_ROUTE = "not-determined", "{}"
    """Program and records are ambiguous; the detail says where."""
    NO_CODE = "no-code", "{} at 0x{:x}"
    """There is no code; the details say why, and where."""
    UNTRACED = "untraced-addresses", "there is no trace below 0x{:x}, where the hart continued at 0x{:x}"
    """The encoder leaves out code below an address; the details are that address, and where the hart resumed."""
    GROUPS_MISSING = "groups-missing", "groups are missing: the pc was 0x{:x}, and what follows is {}"
    """The encoder leaves out code at some addresses; the details are the pc, and the address that follows."""


HALTS = frozenset({StopReason.DEBUG_MODE, StopReason.UNSPECIFIED})
"""The reasons of a trace that stops because a debugger halted the hart, as far as the format says."""
MAYBE_HALTS = HALTS | {StopReason.TRACE_DISABLED}
"""Those with which the hart may have been halted: a debugger that halts it may switch tracing off."""
ONLY_SAY_WHERE = frozenset(
    {StartReason.PERIODIC, StartReason.COUNTER_FULL, StartReason.PC_SAMPLE, StartReason.UNSPECIFIED}
)
"""The reasons to report where the hart is when nothing happened to it."""


class Open(_Worded):
    """What the trace does not report of the instruction at which tracing stops, so that the next address is unknown."""

    BRANCH = "branch", " at a branch whose outcome is not in the trace"
    TRAP = "trap", " at a trap whose handler is not in the trace"
    JUMP = "jump", " at a jump whose target is not in the trace"
    PLACE = "place", ", and after which instruction is not in the trace"


class Stop(NamedTuple):
    """Tracing stops. *code* is the trace's own code for the reason, where it has one; *detail* belongs to the reason.

    *open*: why the next address is unknown. *then*: how tracing resumed, if at another address than it stopped at.
    """

    reason: StopReason
    code: int | None = None
    open: Open | None = None
    detail: Detail = ()
    then: "Start | Trap | None" = None


class LossCause(_Worded):
    """Why a part of the trace, or of what ran, is lost. Each is documented with its details."""

    SKIPPED = "no-message"
    """The number of bytes, and why they cannot be used; 0 bytes: nothing is known except that something is missing."""
    MALFORMED = "malformed", "{}"
    """What is wrong with a message."""
    NO_PACKET = "no-packet", "no te_inst packet: {}"
    """What is wrong with a te_inst packet."""
    MISMATCH = "program-differs", "trace does not match {} at 0x{:x}: {} ({})"
    """The name of the code, the address, what contradicts the code, and the packet."""
    ABSENT_CODE = "code-not-supplied", "at 0x{:x}: there is no code, {} is there and was not supplied ({})"
    """The address, the name of what is there, and the packet."""
    NO_CODE = "no-code", "at 0x{:x}: there is no code in what was supplied ({})"
    """The address, and the packet."""
    COUNT_UNKNOWN = "count-of-branches-not-told", "{} does not say how many branches lead to 0x{:x}: {} are possible"
    """The packet, the address it reports, and the numbers of branches that lead there."""
    OTHER_INSTRUCTION = (
        "other-instruction",
        "trace does not match {} at 0x{:x}: the instruction 0x{} ran, and 0x{} is there",
    )
    """The name of the code, the address, the instruction that ran, and the one in the code, as hexadecimal digits."""
    MESSAGES_LOST = "messages-lost", "the encoder lost messages (ECODE 0x{:x})"
    """N-Trace's ECODE."""
    PACKETS_LOST = "packets-lost", "the encoder lost packets"
    MESSAGES_MISSING = (
        "messages-missing",
        "messages were lost: {} from one synchronization to the next instead of {} or more; what ran before is"
        " incomplete",
    )
    """The number of messages from one synchronization to the next, and the least number the encoder sends. Where in
    between some are lost is unknown, so there is no gap: the event comes after that stretch.
    """
    MESSAGES_TOO_MANY = (
        "messages-too-many",
        "{} messages from one synchronization to the next instead of {}: some came twice, or a synchronization was"
        " lost; what ran before is not certain",
    )
    """The number of messages from one synchronization to the next, and the number after which the encoder sends one.
    Which are too many is unknown, so there is no gap: the event comes after that stretch.
    """
    ENCODER_ERROR = "encoder-error", "the encoder reports error {} (ECODE 0x{:x})"
    """N-Trace's ETYPE and ECODE."""
    FIFO_OVERRUN = "fifo-overrun", StartReason.FIFO_OVERRUN.text
    ICNT_TOO_LARGE = "icnt-too-large", "{}: I-CNT has {} bits, more than {}, and is {} halfwords ahead of HIST"
    """The message, the bits of the count, the greatest number accepted, and how many halfwords it is ahead of HIST."""
    HIST_TOO_LARGE = "hist-too-large", "{}: HIST has {} bits, more than {}, and is taken for noise"
    """The message, the bits of the history, and the greatest number accepted."""
    REPETITION_TOO_LARGE = (
        "repetition-too-large",
        "{}: a repetition count of {} bits, more than {}, is taken for noise: raise repeat_bits if it is not",
    )
    """The message, the bits of the count, and the greatest number accepted."""
    BRANCH_COUNT_TOO_LARGE = (
        "branch-count-too-large",
        "{}: a branch_count of {} bits, more than {}, is taken for noise: raise branch_count_bits if it is not",
    )
    """The packet, the bits of its branch_count, and the greatest number accepted."""
    RESERVED = "reserved-value", "{}: {} {} is reserved"
    """The message, the field, and its value."""
    FIELD_TOO_MANY = "field-too-many", "{} has one more field, and this trace has no timestamps"
    """The message, which has a timestamp although no other has."""
    WHILE_OFF = "while-tracing-is-off", "{} while tracing is off"
    """The message."""
    NO_HANDLER = "no-handler-for-the-trap-before", "{} with no handler reported for the trap before"
    """The packet."""
    UNKNOWN_HANDLER = (
        "trap-handler-not-known",
        "the trap handler's address is not in the trace (implicit exception): give trap_vector",
    )
    NO_STOP = "stop-missing", ", and no message of the stop before it"
    """The `start` came, but no message of the stop before it."""
    NO_HIST = "hist-missing", ", and no HIST for the branches before it"
    """The `start` came, but no HIST for the branches before it."""
    NO_STOP_BIT = "no-stop-bit", "ResourceFull: HIST has no stop bit"
    UNDEFINED_RCODE = "undefined-rcode", "ResourceFull with RCODE {}, which is not defined"
    """The RCODE."""
    NO_BRANCH_BEFORE = "no-branch-to-repeat", "RepeatBranch with no branch message before it"
    ENDLESS_REPETITION = "endless-repetition", "RepeatBranch with B-CNT {}, which leads to a different place each time"
    """The B-CNT."""
    NO_GROUP = "no-group", "{} (at 0x{:x})"
    """Bytes of a tandem trace are not a group: why, and the byte at which that shows."""
    GROUPS_MISSING = "groups-missing", "groups are missing: the pc was 0x{:x}, and what follows is {}"
    """Groups of a tandem trace are missing: the pc, and the address that follows."""
    NO_ADDRESS = "address-not-told", "the trace does not give the address of an instruction"
    IMPOSSIBLE = "impossible", "{}: this is impossible; what was reported with it is ignored"
    """What a group of a tandem trace, or a record, reports although it is impossible."""
    NOT_BELIEVED = "not-believed", "an instruction at 0x{} is ignored: the trace next to it is damaged"
    """The address, as hexadecimal digits, of the instruction in a group of a tandem trace next to damage."""
    CONTRADICTED = "contradicted", "{} is ignored: what follows it in the trace cannot have run from there"
    """The packet; what comes after it in the trace cannot have run from its address."""
    ENCODED_OTHERWISE = "encoded-otherwise", "checked, and damaged before this place: {}"
    """A check has found it: what an encoder sends for what is listed ("": nothing), and what the trace has there ("":
    nothing), at which byte; 1 if only the length of the interval differs. Where in the interval something is wrong is
    unknown, so there is no gap: the event comes after it.
    """


class Loss(NamedTuple):
    """What was lost, or contradicts the program, and why. The event has the bytes of the trace it is about.

    *start*: what revealed it, for causes that report that.
    """

    cause: LossCause
    detail: Detail = ()
    start: Start | None = None

    @property
    def has_place(self) -> bool:
        """Whether the position in the history where something is missing is known."""
        return self.cause not in _WITHOUT_PLACE


_WITHOUT_PLACE = (LossCause.MESSAGES_MISSING, LossCause.MESSAGES_TOO_MANY, LossCause.ENCODED_OTHERWISE)


class BreakKind(StrEnum):
    """What is known of the bytes of a trace behind a place where some are missing."""

    ANYWHERE = "anywhere"
    """They may begin inside a message."""
    MESSAGE = "message"
    """They begin with a message."""
    RESTART = "restart"
    """They begin with a message, and the encoder was stopped before: nothing is missing where it says so itself."""


class ContextChange(NamedTuple):
    """Another program or privilege mode runs: *now*, and *before* that, as far as known."""

    before: ProgramContext
    now: ProgramContext

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the parts of the context that changed, as far as a hart has them."""
        both = zip(ProgramContext._fields, self.before, self.now, strict=True)
        return tuple(name for name, before, now in both if before != now and name != "epoch")


class NoteCause(_Worded):
    """The causes of remarks. Each is documented with its details."""

    CUT_OFF = "cut-off", "{}"
    """What is cut off at the end of the trace."""
    GROUP_CUT_OFF = "group-cut-off", "the trace ends in the middle of a group"
    NO_BEGIN = "no-beginning", "the trace does not begin with a group"
    """The first group of a tandem trace is not the one that begins a trace."""
    STOPPED_AT_LOSS = "stopped-at-loss", "decoding stopped here, at the first loss, as asked"
    TOO_LONG = "too-long", "decoding stopped after {} instructions"
    """Decoding stopped after this many instructions."""
    IGNORED = "ignored"
    """The message, followed by its fields: name, value."""
    ODD_IDLE = "odd-idle", "a byte 0x{:02x} between messages is treated as idle, which is 0xff"
    """The byte that is taken for idle."""
    BRANCH_AGAIN = "branch-again", "{} right after one: it counts the branch at 0x{:x} a second time"
    """The message, and the address of the branch that both it and the message before it count."""
    RESERVED_OWNERSHIP = "reserved-ownership", "Ownership with the reserved {} ignored"
    """The sub-fields of PROCESS whose values are reserved."""
    FIELD_TOO_MANY = "field-too-many", "{} has one more field, as with timestamps, which were not switched on"
    """The message."""
    LARGE_COUNT = (
        "large-count",
        "{} alone says that {} branches went as predicted: nothing else in the trace confirms it",
    )
    """The packet, and the number of branches that it alone reports."""
    TIME_BACK = (
        "time-goes-back",
        "the time goes back from {} to {}: times before and after this place cannot be compared",
    )
    """The time before, and the earlier one that follows it."""
    NOT_LISTED = "repetitions-not-listed", "{} of {} repetitions are not listed as events"
    """How many events are not listed, and how many there are in all."""
    BAD_DATA = "bad-data", "te_data: {}"
    """What is wrong with a te_data packet."""
    DATA_LOST = "data-lost", "the encoder lost data packets"
    FLAW = "flaw", "group {}: {}"
    """The number of a tandem group, and the rule it breaks."""
    INITIALIZED = "initialized"
    """The number of state initializations."""
    MORE_PLACES = "more-places", "{} more places where the trace and {} do not agree"
    """The number of places, and the name of the code that differs from the trace there."""
    CALLS_ALONE = (
        "calls-alone",
        "RAS emulation: only calls that have not returned are recorded; others are assumed to have returned to the"
        " instruction after them",
    )
    UNSEEN = (
        "unseen",
        "traps or modes are not recorded: the code that ran there is not shown, and is assumed to have returned to"
        " where it was entered from",
    )
    ROUNDED_TIMES = "rounded-times", "times are lower bounds: records round counts of {} or more cycles down"
    """The number of cycles from which on times are rounded."""


class Note(NamedTuple):
    """A remark about the trace or its decoding."""

    cause: NoteCause
    detail: Detail = ()


class MismatchedReturn(NamedTuple):
    """A return that went elsewhere than to *expected*, the address after the call of its function."""

    expected: int


NO_OFFSET = -1
"""The offset of an event that was found in the history: no byte of the trace reports it."""

Fact = Trap | Start | Stop | Loss | ContextChange | MismatchedReturn | HartEvent | Note


class Accounting(NamedTuple):
    """What became of the bytes of the trace: decoded + idle + skipped == total, always."""

    total: int
    decoded: int
    idle: int
    skipped: int
