"""The hart's side of a simulated trace encoder: when it listens to the hart, and how filters select what is traced.

A `Qualifier` divides what a hart retired into what filters pass and what they do not. A trap is part of the trace if
the instructions before and after it are. `HartView` is the hart at the point up to which retired instructions have been
processed. A filtered trace is made from this view: a batch is filtered in pieces, and a protocol that begins between
two of them reads the situation and the time at that point, while the hart itself is further on.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace Encoder Filter Registers".
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from rvtrace_gdb.transport.simulated.devices.filters import Filters
from rvtrace_gdb.transport.simulated.devices.output import Outputs
from rvtrace_gdb.transport.simulated.devices.protocol import Begin, End, TracedHart, TracePath
from rvtrace_gdb.transport.simulated.hart.block import Accessed, BlockPart, HartBlock, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.reports import HartItem


def instructions(item: HartItem) -> int:
    """Return how many instructions have retired by *item*."""
    if isinstance(item, HartBlock):
        return item.n
    return item[1] if isinstance(item[0], HartBlock) else 0


class HartView:
    """A `TracedHart` for protocols; between `enter` and `leave` it shows the past of *hart*.

    *needs_situation*: filters need these events, whatever the protocol wants.
    """

    needs_situation = False

    def __init__(self, hart: TracedHart) -> None:
        self._hart = hart
        self._now: int | None = None  # instructions retired when that was so, None: the present
        self._idle = 0  # time slept until then
        self._situation = hart.situation
        self._reports_situation = self._reports_accesses = self._needs_accesses = False

    # -- what a protocol sees

    @property
    def retired(self) -> list[HartItem] | None:
        return self._hart.retired

    @retired.setter
    def retired(self, sink: list[HartItem] | None) -> None:
        self._hart.retired = sink

    @property
    def xlen(self) -> int:
        return self._hart.xlen

    @property
    def pc(self) -> int:
        return self._hart.pc if self._now is None else self._situation.pc

    @property
    def position(self) -> int:
        return self._hart.position if self._now is None else 0

    @position.setter
    def position(self, count: int) -> None:
        raise AttributeError("position is the hart's")

    @property
    def now(self) -> int:
        return self._hart.now if self._now is None else self._now

    @property
    def elapsed(self) -> int:
        return self._hart.elapsed if self._now is None else self._now + self._idle

    @property
    def situation(self) -> Situation:
        return self._hart.situation if self._now is None else self._situation

    @property
    def reports_situation(self) -> bool:
        return self._reports_situation

    @reports_situation.setter
    def reports_situation(self, enabled: bool) -> None:
        self._reports_situation = enabled
        self._hart.reports_situation = enabled or self.needs_situation

    @property
    def reports_accesses(self) -> bool:
        return self._reports_accesses

    @reports_accesses.setter
    def reports_accesses(self, enabled: bool) -> None:
        self._reports_accesses = enabled
        self._hart.reports_accesses = enabled or self._needs_accesses

    # -- what filters do with it

    def listen(self, needed: bool, accesses: bool) -> None:
        """Request the events that filters need."""
        self.needs_situation, self._needs_accesses = needed, needed and accesses
        self.reports_situation = self._reports_situation
        self.reports_accesses = self._reports_accesses

    def start(self) -> None:
        """Begin in the present situation."""
        self._situation = self._hart.situation
        self._idle = self._hart.elapsed - self._hart.now

    @property
    def latest(self) -> Situation:
        """Return the situation at that point."""
        return self._situation

    def enter(self, retired: Sequence[HartItem], end: int) -> None:
        """Begin to process *retired*, after which the hart had retired *end* instructions."""
        self._now = end - sum(map(instructions, retired))

    def passed(self, count: int) -> None:
        """Advance by *count* instructions."""
        if self._now is not None:
            self._now += count

    def changed(self, situation: Situation) -> None:
        """Set the situation from here on."""
        assert self._now is not None
        self._situation = situation
        self._idle = max(situation.elapsed - self._now, self._idle)

    def leave(self) -> None:
        """Return to the present."""
        self._now = None


_MRET = 0x3020_0073


class Port(Protocol):
    """The receiver of a filtered trace."""

    def begin(self, reason: Begin) -> None:
        """Trace what is retired next."""

    def tell(self, retired: Sequence[HartItem]) -> None:
        """Trace what was retired."""

    def end(self, reason: End, pc: int) -> None:
        """Trace no more, from *pc* on."""

    def notify(self) -> None:
        """Report the address of the next instruction."""


class Qualifier:
    """Passes what *filters* select to *port*, between `open` and `close`; the filters also follow the hart outside.

    `view` is the hart at the point of each event.
    """

    def __init__(self, view: HartView, port: Port, filters: Filters) -> None:
        self._view = view
        self._port = port
        self._filters = filters
        self._opened: Begin | None = None  # tracing is on, for this reason
        self._inside = False  # and filters let through what was last
        self._piece: list[HartItem] = []  # is let through
        self._between: list[TrapEntry | Situation] = []  # since the last instruction
        self._accesses: dict[int, Accessed] = {}  # of the block that is reported next
        self._done = 0  # instructions that were reported to the view as passed
        view.listen(not filters.idle, filters.sees_accesses)

    @property
    def idle(self) -> bool:
        return self._filters.idle

    def start(self) -> None:
        """Begin to listen to the hart."""
        self._view.start()
        self._between.clear()
        self._accesses.clear()

    def reset(self) -> None:
        """React to a reset of the hart."""
        self._filters.reset()

    def open(self, reason: Begin) -> None:
        """Switch tracing on."""
        self._opened = reason

    def close(self, reason: End, pc: int) -> None:
        """Switch tracing off, from *pc* on."""
        if self._inside:
            self._piece += self._reportable(self._between)
            self._flush()
            self._port.end(reason, pc)
        self._between.clear()
        self._opened, self._inside = None, False

    def tell(self, retired: Sequence[HartItem], end: int) -> None:
        """Process what the hart retired; it had retired *end* instructions after that."""
        self._view.enter(retired, end)
        for item in retired:
            if isinstance(item, Accessed):
                self._accesses[item.place] = item
            elif isinstance(item, TrapEntry):
                self._filters.trap(item, self._view.latest.scontext)
                self._between.append(item)
            elif isinstance(item, Situation):
                self._flush()
                self._view.changed(item)
                self._between.append(item)
            elif isinstance(item, HartBlock):
                self._filter_block(item, item.n)
            else:
                self._filter_block(*item)
        self._flush()
        self._view.leave()

    def _filter_block(self, block: HartBlock, count: int) -> None:
        """Filter the first *count* instructions of *block*."""
        begin = 0  # of what has not been dealt with
        accesses = dict(self._accesses)
        self._accesses.clear()
        where = self._view.latest
        for k in range(count):
            verdict = self._filters.judge(where.privilege, where.scontext, block.pcs[k], accesses.get(k))
            passes = self._opened is not None and verdict.instruction
            if passes != self._inside or (passes and verdict.notify):
                self._let_through(block, begin, k, accesses)
                begin = k
                self._turn(passes, block.pcs[k])
                if passes and verdict.notify:
                    self._port.notify()
            self._cross()
            if not verdict.data:
                accesses.pop(k, None)
            if block.words[k] == _MRET:
                self._filters.returned()
        self._let_through(block, begin, count, accesses)

    def _turn(self, passes: bool, pc: int) -> None:
        """Let instructions pass from here on, or stop them. The one at *pc* is the first."""
        if passes:
            self._cross()
        self._flush()
        if passes and not self._inside:
            assert self._opened is not None
            self._port.begin(self._opened)
            self._opened = Begin.ENABLED
        elif not passes:
            traps = (item.epc for item in self._between if isinstance(item, TrapEntry))
            self._port.end(End.FILTERED, next(traps, pc))
        self._inside = passes
        self._cross()

    def _cross(self) -> None:
        """Let what stands before the next instruction pass if that instruction passes."""
        if self._inside:
            self._piece += self._reportable(self._between)
        self._between.clear()

    def _let_through(self, block: HartBlock, begin: int, end: int, accesses: dict[int, Accessed]) -> None:
        """Let through *block* from its instruction *begin* to before *end*, if it is."""
        if begin == end:
            return
        if self._inside:
            if self._view.reports_accesses:
                places = range(begin, end)
                self._piece += [accesses[k]._replace(place=k - begin) for k in places if k in accesses]
            self._piece.append(_block_part(block, begin, end))
        self._done += end - begin

    def _reportable(self, items: Sequence[TrapEntry | Situation]) -> list[HartItem]:
        """Report a situation to the protocol only if it wants to have it."""
        return [item for item in items if isinstance(item, TrapEntry) or self._view.reports_situation]

    def _flush(self) -> None:
        """Send everything that was filtered, at the time when it had happened."""
        self._view.passed(self._done)
        self._done = 0
        if self._piece:
            self._port.tell(self._piece)
            self._piece = []


def _block_part(block: HartBlock, begin: int, end: int) -> HartItem:
    """Return the instructions *begin* to before *end* of *block*."""
    if begin:
        block = HartBlock(block.pcs[begin:], block.words[begin:], block.next, block.run)
    return block if end - begin == block.n else BlockPart(block, end - begin)


Underway = tuple[HartBlock, int]
"""A block that is being executed, and how many of its instructions have retired."""


class HartFollower:
    """Follows *hart* and sends what is traced to *path*. In Debug Mode nothing is retired.

    *underway* in the methods: the program itself accesses registers of the encoder. What the hart executes up to the
    end of that block is not traced after a change.
    """

    def __init__(self, hart: TracedHart, path: TracePath) -> None:
        self.watch: Callable[[Sequence[HartItem]], None] = lambda retired: None
        """Shown everything that is heard while tracing is on, before it is encoded."""
        self.tracing = False
        self._qualifier: Qualifier | None = None
        self._hart = hart
        self._path = path
        self._enabled = self._in_debug = False
        self._listening = False  # else the hart's list of what retired is somebody else's, if it has one

    def set_up(self, qualifier: Qualifier | None) -> None:
        """Configure it when the encoder is enabled. *qualifier*: the filters, None if they pass everything."""
        self._qualifier = qualifier

    def drain(self) -> None:
        """Encode what the hart has retired since the last call."""
        if self._listening:
            self._encode(self._hart.now - self._hart.position)

    def follow(self, enabled: bool, traced: bool, reason: Begin, underway: Underway | None = None) -> None:
        """Begin or end tracing here. *enabled*: the encoder is enabled."""
        self._enabled = enabled
        if not traced:
            self.stop(End.DISABLED, underway)
        elif not self.tracing and not self._in_debug:
            self._hear_out(underway)
            self.tracing = True
            if self._qualifier is not None:
                self._qualifier.open(reason)
            else:
                self._path.begin(reason)
        self._listen()

    def stop(self, reason: End, underway: Underway | None = None) -> None:
        """Switch tracing off."""
        if not self.tracing:
            return
        pc = self._hart.pc if underway is None else underway[0].pcs[underway[1]]
        self._hear_out(underway)
        self.tracing = False
        if self._qualifier is not None:
            self._qualifier.close(reason, pc)
        else:
            self._path.end(reason, pc)
        self._path.overrun = False

    def halted(self) -> None:
        """React to the hart entering Debug Mode."""
        self.stop(End.IN_DEBUG)
        self._hear_out(None)
        self._in_debug = True

    def resumed(self) -> None:
        """React to the hart leaving Debug Mode, or starting after a reset."""
        self._in_debug = False

    def hart_reset(self) -> None:
        """React to a reset of the running hart, which is about to happen."""
        self.stop(End.DISABLED)
        self._hear_out(None)
        if self._qualifier is not None:
            self._qualifier.reset()

    def lose(self) -> None:
        """Lose what the hart retired last."""
        if self.tracing and self._hart.retired:
            self._path.protocol.skip(self._hart.retired)
            self._hart.retired.clear()
        self._path.overrun = self.tracing

    def _hear_out(self, underway: Underway | None) -> None:
        """Encode everything there is, and listen no more for now."""
        if not self._listening:
            return
        retired, end = self._hart.retired, self._hart.now - self._hart.position
        if underway is not None:
            end = self._hart.now
            if underway[1] and retired is not None:
                retired.append(BlockPart(*underway))
        self._encode(end)
        self._hart.retired, self._listening = None, False

    def _encode(self, end: int) -> None:
        """Encode what the hart has retired. *end*: how many instructions it had retired then."""
        retired = self._hart.retired
        if not retired:
            return
        if self.tracing:
            self.watch(retired)
        if self._qualifier is not None:
            self._qualifier.tell(retired, end)
        elif self.tracing:
            self._path.tell(retired)
        retired.clear()

    def _listen(self) -> None:
        """Listen to the hart if necessary: filters follow it even while tracing is off."""
        needed = self.tracing or (self._enabled and self._qualifier is not None)
        if needed and not self._listening and not self._in_debug:
            self._hart.retired, self._listening = [], True
            if self._qualifier is not None:
                self._qualifier.start()
        elif not needed:
            self._hear_out(None)


class HartSide:
    """The hart's side of an encoder: what its registers look like does not matter here.

    *_follower* follows the hart, and sends what is traced by *_path* to *_outputs*.
    """

    _follower: HartFollower
    _path: TracePath
    _outputs: Outputs

    def _follow(self, reason: Begin, underway: Underway | None = None) -> None:
        """Start or stop as the registers and the hart's state demand. *underway*: see `HartFollower`."""
        raise NotImplementedError

    def _deliver(self) -> None:
        """Deliver what is encoded; nothing is delivered while a flush is under way."""
        raise NotImplementedError

    def _lose(self) -> None:
        """Note in the registers that trace was lost, and lose what the hart retired last."""
        raise NotImplementedError

    @property
    def watch(self) -> Callable[[Sequence[HartItem]], None]:
        """Shown everything the hart retires while it is traced, before it is filtered and encoded."""
        return self._follower.watch

    @watch.setter
    def watch(self, watch: Callable[[Sequence[HartItem]], None]) -> None:
        self._follower.watch = watch

    def drain(self) -> None:
        """Encode what the hart has retired since the last call, and pass it on."""
        self._follower.drain()
        self._deliver()

    def before_access(self) -> None:
        self.drain()

    def halted(self) -> None:
        """React to the hart entering Debug Mode. This does not flush."""
        self._follower.halted()
        self._deliver()

    def resumed(self) -> None:
        """React to the hart leaving Debug Mode."""
        self._follower.resumed()
        self._follow(Begin.LEFT_DEBUG)

    def hart_reset(self) -> None:
        """React to a reset of the running hart, which is about to happen. The encoder is not reset."""
        self._follower.hart_reset()
        self._deliver()

    def hart_started(self) -> None:
        """React to the start of the hart at its reset vector."""
        self._follower.resumed()
        self._follow(Begin.LEFT_RESET)

    def notify(self) -> None:
        """Mark the instruction that is retired next, if the hart is traced."""
        self.drain()
        if self._follower.tracing:
            self._path.notify()

    def overflow(self) -> None:
        """Lose on demand what the hart has retired and has not been delivered."""
        self._outputs.clear()
        self._lose()
