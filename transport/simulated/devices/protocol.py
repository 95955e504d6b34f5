"""The interface between a trace protocol, N-Trace or E-Trace, and the registers and the hart of a simulated trace
encoder.

`TraceEncoder` follows the hart and the registers; a `TraceProtocol` knows which settings its document has and makes the
trace. `Ingress` turns what the simulated hart retires into the input of an encoder: it is the hart's side of the trace
ingress port. `TracePath` is the trace of one encoder on its way out: it informs the protocol whether messages are
taken.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.decode.executed.encoder_ingress import UNINFERABLE, Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import classify, sequential_target
from rvtrace_gdb.transport.simulated.devices.component import TimestampUnit
from rvtrace_gdb.transport.simulated.hart.block import Accessed, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem


class TracedHart(Protocol):
    """The part of its hart that a trace encoder uses."""

    retired: list[HartItem] | None
    reports_situation: bool
    reports_accesses: bool
    position: int

    @property
    def xlen(self) -> int: ...

    @property
    def pc(self) -> int: ...

    @property
    def now(self) -> int: ...

    @property
    def elapsed(self) -> int: ...

    @property
    def situation(self) -> Situation: ...


class ExecutingHart(TracedHart, Protocol):
    """The hart itself, of which an encoder also wants to know what it executes."""

    @property
    def in_progress(self) -> tuple[HartBlock, int] | None:
        """The block being executed and how much of it has retired, when the program itself accesses a device."""


class IngressEncoder(Protocol):
    """The part of an encoder that the hart's side uses."""

    def retire(self, items: Sequence[Any], next_pc: int | None = None) -> None:
        """Take blocks and traps, each block preceded by the accesses of its instructions."""

    def time(self, now: int) -> None: ...

    def context(self, context: ProgramContext) -> None: ...


AnyIngressEncoder = TypeVar("AnyIngressEncoder", bound=IngressEncoder)


class Ingress(Generic[AnyIngressEncoder]):
    """Follows one hart. `begin`, then `tell` with all that retires; `skip` what is lost, and `resume` after that.

    With *context* the encoder receives every change of privilege and context, with a *clock* the time. *pairs*: it
    leaves out jumps to addresses that the instruction before loads, also where the hart's blocks separate the two.
    """

    def __init__(
        self,
        hart: TracedHart,
        encoder: AnyIngressEncoder,
        *,
        context: bool,
        clock: TimestampUnit | None,
        pairs: bool = False,
    ) -> None:
        self._hart = hart
        self._encoder = encoder
        self._clock = clock
        self._context = context
        self._pairs = pairs
        self._before: tuple[int, int] | None = None  # address and word of what retired last, unless a trap came since
        self._since = 0  # what the clock read when the hart had retired all that was reported or skipped
        self._latest = hart.situation
        hart.reports_situation = context or clock is not None

    def begin(self) -> None:
        """Begin tracing with what retires next."""
        if self._clock is not None:
            self._since = self._clock.clock
        self._latest = self._hart.situation
        self._before = None
        self.resume()

    def resume(self) -> None:
        """Continue after a loss."""
        if self._clock is not None:
            self._encoder.time(self._clock.counter_at(self._since))
        self._report_context(self._latest)

    def tell(self, retired: Sequence[HartItem]) -> None:
        """Process what retired. A `Situation` takes effect at its position."""
        items = [item.ingress for item in retired]
        if all(items):  # whole blocks that are known, as almost always
            self._retire_known(retired, items)
            return
        if not self._hart.reports_situation:
            self._encoder.retire(self._items(retired))
            return
        if self._clock is not None:
            self._encoder.time(self._clock.counter_at(self._since))
        begin = 0
        for index, item in enumerate(retired):
            if isinstance(item, Situation):
                self._retire(retired[begin:index], item.pc)
                self._now(item)
                begin = index + 1
        self._retire(retired[begin:])
        self._keep_time()

    def _retire_known(self, retired: Sequence[HartItem], items: list[Any]) -> None:
        """Process blocks for which *items* were worked out before."""
        if self._pairs:
            self._join(retired, items)
        if not self._hart.reports_situation:
            self._encoder.retire(items)
            return
        if self._clock is not None:
            self._encoder.time(self._clock.counter_at(self._since))
        self._retire_items(items)
        self._keep_time()

    def skip(self, retired: Sequence[HartItem]) -> None:
        """Leave this out of the trace."""
        self._latest = next((item for item in reversed(retired) if isinstance(item, Situation)), self._latest)
        self._keep_time()

    def _retire(self, retired: Sequence[HartItem], next_pc: int | None = None) -> None:
        self._retire_items(self._items(retired), next_pc)

    def _retire_items(self, items: list[Any], next_pc: int | None = None) -> None:
        """Count blocks. The encoder's own clock counts instructions; a prescaled counter must be advanced for each
        block.
        """
        clock = self._clock
        if clock is not None and clock.shift:
            for item in items:
                self._encoder.retire([item])
                self._since += item.instructions if isinstance(item, Block) else 0
                self._encoder.time(clock.counter_at(self._since))
            items = []
        self._encoder.retire(items, next_pc)

    def _keep_time(self) -> None:
        """Advance the time to the present: the block that runs while a device asks has not been reported yet."""
        if self._clock is not None:
            self._since = self._clock.clock - self._hart.position

    def _now(self, situation: Situation) -> None:
        if self._clock is not None and self._clock.counts_idle_time:
            self._since = situation.elapsed
            self._encoder.time(self._clock.counter_at(self._since))
        if self._context_of(situation) != self._context_of(self._latest):
            self._report_context(situation)
        self._latest = situation

    def _report_context(self, situation: Situation) -> None:
        if self._context:
            self._encoder.context(self._context_of(situation))

    def _context_of(self, situation: Situation) -> ProgramContext:
        return ProgramContext(situation.privilege, scontext=situation.scontext, hcontext=situation.mcontext)

    def _items(self, retired: Sequence[HartItem]) -> list[Block | IngressTrap | Accessed]:
        convert = self._convert
        items: list[Block | IngressTrap | Accessed] = [item.ingress or convert(item) for item in retired]
        if self._pairs:
            self._join(retired, items)
        return items

    def _join(self, retired: Sequence[HartItem], items: list[Block | IngressTrap | Accessed]) -> None:
        """Put into blocks of one jump where it goes, if the instruction before them says so."""
        for n, (source, item) in enumerate(zip(retired, items, strict=True)):
            if isinstance(item, IngressTrap):
                self._before = None
            elif isinstance(item, Block):
                block = source if isinstance(source, HartBlock) else source[0]
                assert isinstance(block, HartBlock)
                if item.instructions == 1 and item.ending == UNINFERABLE and self._before is not None:
                    items[n] = self._joined(item, block.words[0], *self._before)
                self._before = block.pcs[item.instructions - 1], block.words[item.instructions - 1]

    def _joined(self, jump: Block, word: int, pc_before: int, word_before: int) -> Block:
        xlen = self._hart.xlen
        before = classify(word_before, xlen)
        if pc_before + before.length != jump.pc:
            return jump
        target = sequential_target(before, pc_before, classify(word, xlen), xlen)
        return jump if target is None else Block(jump.pc, jump.lengths, jump.itype, inferred=target)

    def _convert(self, item: HartItem) -> Block | IngressTrap | Accessed:
        if isinstance(item, TrapEntry):
            return IngressTrap(item.epc, item.interrupt, item.cause, item.tval, item.handler)
        if isinstance(item, Accessed):
            return item
        if isinstance(item, HartBlock):
            return self._whole_block(item)
        assert not isinstance(item, Situation)
        block, count = item
        return Block(block.pc, self._whole_block(block).lengths[:count])

    def _whole_block(self, block: HartBlock) -> Block:
        if not isinstance(block.ingress, Block):
            xlen = self._hart.xlen
            block.ingress = Block.from_instructions(block.pc, [classify(word, xlen) for word in block.words], xlen)
        return block.ingress


class Begin(Enum):
    """The reason why a trace begins."""

    ENABLED = "software, a trigger or a filter switched it on"
    LEFT_DEBUG = "the hart left Debug Mode"
    LEFT_RESET = "the hart was reset"


class End(Enum):
    """The reason why a trace ends."""

    DISABLED = "software or a trigger switched it off, or the hart is reset"
    IN_DEBUG = "the hart entered Debug Mode"
    FILTERED = "a filter leaves out what comes next"


class EncoderFields(Protocol):
    """The registers of the encoder, as a protocol reads them."""

    timestamps: TimestampUnit

    def field(self, name: str) -> int:
        """Return the value in force of a field."""

    @property
    def async_interval(self) -> int:
        """The number of bytes between synchronization sequences (trRamAsyncFreq), 0: there are none."""


class TraceProtocol(Protocol):
    """One protocol of an encoder. Trace is emitted as bytes, to be stored one after the other."""

    format: int
    """trTeFormat."""
    filling: bytes
    """A byte that may stand between messages."""
    has_data_trace: bool
    """trTeDataImplemented."""

    @property
    def version(self) -> tuple[int, int]:
        """The values of trTeProtocolMajor and trTeProtocolMinor."""

    def legalize(self, register: Register, value: int) -> int:
        """Return what a value written to trTeControl, trTeInstFeatures or trTeDataControl becomes."""

    def set_up(self, settings: EncoderFields) -> None:
        """Take the settings when trTeEnable has become 1; they hold until it becomes 1 again."""

    def trace_data(self, enabled: bool) -> None:
        """Follow trTeDataTracing, while the encoder is enabled."""

    def begin(self, reason: Begin) -> None:
        """Trace what the hart retires next."""

    def end(self, reason: End, pc: int) -> None:
        """Trace no more, from the instruction at *pc* on."""

    def tell(self, retired: Sequence[HartItem]) -> None:
        """Trace what the hart retired."""

    def skip(self, retired: Sequence[HartItem]) -> None:
        """Process what the hart retired while trace is lost."""

    def recover(self) -> None:
        """Continue after a loss; what `tell` gets from now on reaches the sink again."""

    def notify(self) -> None:
        """Mark the instruction that is retired next."""


class TracePath:
    """The path from a hart's *protocol* to the output. *ready*: whether what it sends is accepted.

    After an overrun nothing is sent until messages are taken again; a message then reports the loss.
    """

    def __init__(self, protocol: TraceProtocol, ready: Callable[[], bool]) -> None:
        self.protocol = protocol
        self.overrun = False
        self._ready = ready

    def begin(self, reason: Begin) -> None:
        """Trace what is retired next."""
        self.protocol.begin(reason)
        self._recover()

    def tell(self, retired: Sequence[HartItem]) -> None:
        """Trace what the hart retired."""
        self._recover()
        if self.overrun:
            self.protocol.skip(retired)
        else:
            self.protocol.tell(retired)

    def end(self, reason: End, pc: int) -> None:
        """Trace no more, from *pc* on."""
        if not self.overrun:
            self.protocol.end(reason, pc)

    def notify(self) -> None:
        """Report the address of the next instruction."""
        if not self.overrun:
            self.protocol.notify()

    def _recover(self) -> None:
        if self.overrun and self._ready():
            self.overrun = False
            self.protocol.recover()
