"""The data of the E-Trace decoder: states, steps, walks, and the encoder's tables, which are not part of a state.

Separate from states are the implicit return stack, whose limited depth must be the encoder's, the branch predictor and
the jump target cache: if they were part of a state, a loop would rarely return to the same state. A walk over the
program is described by its `WalkGoal` and its progress (`WalkProgress`).

Sources: Efficient Trace for RISC-V 2.0, "Implicit return mode", `push_return_stack` of the decoder's pseudo-code,
"Branch prediction mode" and "Jump target cache mode"; entries with a count: the Implicit Return extension v0.8.
"""

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, final

from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Parameters, Setup
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import Path, PathPart
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.stepping.control_flow import (
    MAX_DEPTH,
    NOWHERE,
    CallEffect,
    Segment,
    Stack,
    WalkCalls,
    after,
    pushed,
)
from rvtrace_gdb.decode.stepping.hart import Fork
from rvtrace_gdb.decode.stepping.reports import Report

_UNLIMITED_PEAK = 1 << 30
"""A peak for which no stack has room."""


class StackLimits:
    """The size of an encoder's stack: the number of *entries*, and how often an entry *repeats* its address at most."""

    __slots__ = ("entries", "repeats")

    def __init__(self, parameters: Parameters) -> None:
        size = parameters.return_stack_size or parameters.call_counter_size
        # irdepth has one bit more for a stack, but not for a counter: it cannot represent 2**call_counter_size calls.
        narrow = not (parameters.return_stack_size or parameters.iret_ext)
        self.entries = min((1 << size) - narrow, MAX_DEPTH)
        counted = parameters.return_stack_size and parameters.call_counter_size and parameters.iret_ext
        self.repeats = (1 << parameters.call_counter_size) - 1 if counted else 0


class ReturnStack(WalkCalls):
    """The call stack during one walk, with the limits of the encoder's.

    depth       the current number of entries
    overflowed  whether the oldest entries were dropped: the walk's effect is then valid for no other stack
    peak        the greatest number of entries during the walk
    first       the number of entries at the start
    """

    __slots__ = ("_limits", "depth", "first", "overflowed", "peak")

    def __init__(self, stack: Stack, limits: StackLimits) -> None:
        super().__init__(stack)
        self._limits = limits
        self.depth = self.peak = self.first = _entries(stack, limits)
        self.overflowed = False

    @property
    def unused(self) -> bool:
        """Whether the walk has not used the stack yet."""
        return not (self.taken or self.left or self.overflowed) and self.peak == self.first

    def push(self, address: int) -> None:
        """Push the return address of a call."""
        if self._limits.repeats:
            self.peak = _UNLIMITED_PEAK  # whether an entry has room depends on the whole stack
            if self._shares(address):
                super().push(address)
                return
        if self.depth >= self._limits.entries:
            self.overflowed = True
        else:
            self.depth += 1
            self.peak = max(self.peak, self.depth)
        super().push(address)

    def pop(self) -> int | None:
        """Pop and return the address of a return, None if no call is known."""
        if self.depth == 0:
            self.taken.append(None)
            return None
        address = super().pop()
        if not (self._limits.repeats and address is not None and self._shares(address)):
            self.depth -= 1
        return address

    def effect(self, *, clears: bool = False, left: tuple[int, ...] | None = None) -> CallEffect | None:
        """Return the walk's effect on the stack, None for no effect.

        *clears*: the stack is cleared then, except for *left*.
        """
        if self.overflowed:
            return CallEffect((), _return_addresses(self.stack()) if left is None and not clears else left or (), True)
        kept = left if left is not None else () if clears else tuple(self.left)
        if not (clears or kept or self.taken or self.peak > self.first):
            return None
        return CallEffect(tuple(self.taken), kept, clears, self.peak - self.first)

    def stack(self) -> Stack:
        """Return the current stack."""
        whole = super().stack()
        if not self.overflowed:
            return whole
        kept: list[int] = []
        room, each = self.depth, self._limits.repeats + 1
        while whole is not None and room:
            address, whole, run = _top_run(whole)
            entries = min(-(-run // each), room)
            kept += [address] * min(run, (run - 1) % each + 1 + each * (entries - 1))
            room -= entries
        return pushed(None, kept[::-1])

    def follow(self, taken: tuple[int | None, ...], left: tuple[int, ...], peak: int) -> bool:
        """Apply the effect of another walk if it is valid for this stack, and return whether it is.

        *peak*: the greatest number of entries that it had, compared with its start.
        """
        if not taken and not left and not peak:
            return True
        if self.overflowed or self._limits.repeats or self.depth + peak > self._limits.entries:
            return False
        if None in taken or not self.redo(taken, left):
            return False
        self.peak = max(self.peak, self.depth + peak)
        self.depth += len(left) - len(taken)
        return True

    def _shares(self, address: int) -> bool:
        """Whether the entry on top returns to *address* and counts, or can count, one more call."""
        stack = super().stack()
        run = _top_run(stack)[2] if stack is not None and stack[0] == address else 0
        return run % (self._limits.repeats + 1) != 0


def _entries(stack: Stack, limits: StackLimits) -> int:
    """Return the number of entries that an encoder has for these return addresses."""
    if stack is None or not limits.repeats:
        return stack[2] if stack is not None else 0
    entries = 0
    while stack is not None:
        _, stack, run = _top_run(stack)
        entries += -(-run // (limits.repeats + 1))
    return entries


def _top_run(stack: tuple[int, Stack, int]) -> tuple[int, Stack, int]:
    """Return the address on top, the stack below all addresses equal to it, and the number of these addresses."""
    address, rest, run = stack[0], stack[1], 1
    while rest is not None and rest[0] == address:
        rest = rest[1]
        run += 1
    return address, rest, run


def replacement(stack: Stack) -> CallEffect:
    """Return the effect that replaces any stack by this one."""
    return CallEffect((), _return_addresses(stack), True)


def _return_addresses(stack: Stack) -> tuple[int, ...]:
    """Return all return addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None:
        addresses.append(stack[0])
        stack = stack[1]
    return tuple(addresses[::-1])


NOT_CACHED = -1
"""Stands for the address of an empty cache entry."""

INITIAL = 0b01
"""The state of each entry of the predictor after a reset."""

# "00: to 01 if prediction fails; 01: to 00 if it succeeds, else 11; 11: to 10 if it fails; 10: to 11 if it succeeds,
# else 00." The high bit is the prediction, the low one the last outcome.
_SUCCESSORS = (bytes((0b00, 0b00, 0b00, 0b10)), bytes((0b01, 0b11, 0b11, 0b11)))

Training = tuple[tuple[int, bytes], ...]
"""The effect of branches on the predictor: for each index, the new state for each of the four old states."""


CacheEntries = tuple[tuple[int, int], ...]
"""Jump targets to enter in the cache, as (index, target)."""


@dataclass(slots=True)
class TableEffect:
    """The effect of a packet on the tables: it trains the predictor, enters jump targets, or resets both.

    *resets* precedes *training*, which is then that of the instruction that the synchronization reports.
    """

    training: Training = ()
    targets: CacheEntries = ()
    resets: bool = False


class PredictionTables:
    """The branch predictor and the jump target cache of one hart."""

    def __init__(self, parameters: Parameters) -> None:
        self._lsb = parameters.iaddress_lsb
        self._branch_mask = (1 << parameters.bpred_size) - 1
        self._jump_mask = (1 << parameters.cache_size) - 1
        self.states = bytearray([INITIAL]) * (1 << parameters.bpred_size)
        """The states of the predictor by index."""
        self.targets: MutableMapping[int, int] = {}
        """The targets in the cache by index."""

    def reset(self) -> None:
        """Reset both tables, as at a synchronization packet."""
        self.states[:] = bytes([INITIAL]) * len(self.states)
        self.targets.clear()

    def apply(self, effect: TableEffect) -> None:
        """Apply the effect of a packet."""
        if effect.resets:
            self.reset()
        for index, successor in effect.training:
            self.states[index] = successor[self.states[index]]
        for index, target in effect.targets:
            self.targets[index] = target

    @property
    def predictor(self) -> tuple[int, int, bytes]:
        """How the index of a branch comes from its address: shift and mask; and what each state becomes if a branch is
        not taken, and if it is.
        """
        return self._lsb, self._branch_mask, b"".join(_SUCCESSORS)

    def branch_index(self, pc: int) -> int:
        """Return the index of the predictor entry for a branch."""
        return pc >> self._lsb & self._branch_mask

    def jump_index(self, target: int) -> int:
        """Return the index of the cache entry for a jump target."""
        return target >> self._lsb & self._jump_mask

    def entries(self, targets: Iterable[int]) -> CacheEntries:
        """Return these jump targets with their indices."""
        return tuple((self.jump_index(target), target) for target in targets)

    def predicts(self, pc: int) -> bool:
        """Whether a branch is predicted to be taken."""
        return self.states[self.branch_index(pc)] > 1

    def train(self, pc: int, taken: bool, before: dict[int, int]) -> bool:
        """Train the predictor with the outcome of a branch, and return whether its entry changed.

        *before* receives the first state of each entry used.
        """
        index = self.branch_index(pc)
        state = self.states[index]
        before.setdefault(index, state)
        self.states[index] = successor = _SUCCESSORS[taken][state]
        return state != successor

    def change(self, before: dict[int, int]) -> Training:
        """Return the change of the entries in *before*, and restore these entries."""
        change = tuple((index, bytes([self.states[index]]) * 4) for index in before)
        for index, state in before.items():
            self.states[index] = state
        return change

    def training(self, outcomes: Iterable[tuple[int, bool]]) -> Training:
        """Return the effect of these outcomes (address, taken), in order."""
        known: dict[int, bytes] = {}
        for pc, taken in outcomes:
            index = self.branch_index(pc)
            before = known.get(index)
            known[index] = _SUCCESSORS[taken] if before is None else before.translate(_TRANSLATE[taken])
        return tuple(known.items())


_TRANSLATE = tuple(successor + bytes(range(4, 256)) for successor in _SUCCESSORS)


class WalkArrival(Enum):
    """How a walk reached the address of a packet."""

    INFERRED = "inferred"
    """The code leads there, and may do so again."""
    JUMPED = "jumped"
    """By a jump whose target only the packet determines."""
    RETURNED = "returned"
    """By such a jump, which was a return to the address after its call."""
    FAULT = "fault"
    """The walk did not reach it."""


class WalkGoal(NamedTuple):
    """The instruction that a packet reports, up to which a walk goes.

    address    its address; None: the next branch
    inferable  whether the code may lead there; else it is the target of an uninferable jump
    returns    the reported number of implicit returns (irets, irdepth), None if not reported
    counted    whether the packet would report implicit returns if there were any (irets)
    """

    address: int | None
    inferable: bool = True
    returns: int | None = None
    counted: bool = False


class WalkProgress:
    """The progress of one walk.

    next_pc   the next instruction to retire, NOWHERE if that is not known
    last_pc   the last instruction that retired, if `next_pc` is not known
    parts     the instructions walked
    irets     implicit returns since the last branch
    outcomes  the branches passed as (address, taken), if they train a predictor
    fault     why the code contradicts the trace, "" if it does not
    missing   whether the fault is missing code
    pair      the jump at `next_pc` if the instruction before it determines its target
    """

    __slots__ = ("calls", "fault", "irets", "last_pc", "missing", "next_pc", "outcomes", "pair", "parts")

    def __init__(self, next_pc: int, last_pc: int, calls: ReturnStack) -> None:
        self.next_pc = next_pc
        self.last_pc = last_pc
        self.calls = calls
        self.parts: list[PathPart] = []
        self.irets = 0
        self.outcomes: list[tuple[int, bool]] = []
        self.fault = ""
        self.missing = False
        self.pair: Segment | None = None

    @property
    def place(self) -> int:
        """The address of a fault: the next instruction if it is known, else the last one."""
        return self.next_pc if self.next_pc != NOWHERE else self.last_pc

    @property
    def path(self) -> Path | None:
        """The instructions walked, None if there are none."""
        parts = [part for part in self.parts if len(part)]
        return Path(parts) if parts else None

    def before_last(self) -> Path | None:
        """Return the instructions walked without the last one, None if there are none."""
        parts = [part for part in self.parts if len(part)]
        if not parts:
            return None
        last = parts.pop()
        assert isinstance(last, tuple)  # a walk ends with the instructions that lead to an address
        parts += [last[:-1]] if len(last) > 1 else []
        return Path(parts) if parts else None


class Mode(Enum):
    """Whether the decoder knows the pc of the hart."""

    LOST = "lost"
    """The pc is unknown until the next synchronizing packet."""
    ADRIFT = "adrift"
    """The pc is unknown until the next address: code is missing, but no packet is."""
    ON = "on"
    TRAPPED = "trapped"
    """The hart took a trap whose handler has not been reported yet."""
    OFF = "off"
    """Tracing is stopped, and the hart may run untraced."""
    HALTED = "halted"
    """Tracing is stopped because the hart is halted: nothing runs meanwhile."""


class ReportedTrap(NamedTuple):
    """A trap that was reported without its handler.

    epc      the address of the trap, -1 if it is not known
    address  the address in the packet; if it is not the EPC, 2.0.5 uses it as the EPC of the next trap
    moved, maybe_moved  as in `Report`
    """

    trap: Trap
    epc: int
    address: int
    moved: bool = False
    maybe_moved: bool = False


class InferredAddress(NamedTuple):
    """Notes that the code led to the address of the last packet, which may still be the target of a later jump to it.

    *returns* is that of the packet's `WalkGoal`; *irets* is the number of implicit returns up to the address.
    """

    returns: int | None
    irets: int


class HartKnowledge(NamedTuple):
    """The decoder's knowledge of the hart, without the remembered steps.

    next_pc    the next instruction, NOWHERE if that is not known
    last_pc    the last instruction that retired
    reference  the last transmitted address, to which differences are relative
    inferred   set if the code led to the last address
    trap       the trap whose handler has not been reported yet
    """

    mode: Mode
    next_pc: int
    last_pc: int
    reference: int
    inferred: InferredAddress | None
    trap: ReportedTrap | None
    context: ProgramContext
    setup: Setup


class State(dict[bytes, "Remembered"]):
    """What is known of the hart, and the remembered steps from there, by payload.

    number  the kernel's number of this state, -1 if it has none
    """

    __slots__ = ("knowledge", "number")

    def __init__(self, knowledge: HartKnowledge) -> None:
        super().__init__()
        self.knowledge = knowledge
        self.number = -1


@dataclass(slots=True)
class Step:
    """The effect of a packet: the code that ran, the next state, the reports, and one more instruction that ran
    (*landing*).

    calls         the effect on the call stack; the step is valid only for a stack with `calls.taken` on top. None: no
                  effect
    tables        the effect on predictor and cache. None: no effect
    synchronizes  whether the packet synchronizes, so that data packets start anew

    Nothing changes a step. It has slots because the hot loop reads these faster than the fields of a NamedTuple.
    """

    path: Path | None
    state: State
    reports: tuple[Report, ...] = ()
    landing: Path | None = None
    calls: CallEffect | None = None
    tables: TableEffect | None = None
    synchronizes: bool = False

    def stack_after(self, stack: Stack) -> Stack:
        """Return the call stack after this step, given the one before it."""
        calls = self.calls
        if calls is None:
            return stack
        return pushed(None, calls.left) if calls.clears else after(stack, len(calls.taken), calls.left)


@final
class CacheFork(dict[int | None, "Remembered"]):
    """The remembered steps of a packet that depends on a jump target cache entry, by the address in the entry."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class NotCached(NamedTuple):
    """Stands for a step that is not remembered. It keeps the packet, so that the payload is parsed only once."""

    packet: Packet


@dataclass(slots=True)
class PredictorVariant:
    """A remembered step that is valid while some predictor entries are in these *states*. It is `variants[0]`."""

    entries: Callable[[bytearray], object]
    states: object
    variants: dict[int, "Remembered"]
    indices: tuple[int, ...]


@final
class PredictorFork(list[PredictorVariant]):
    """The remembered steps of a packet that depends on the predictor."""

    __slots__ = ("packet",)

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self.packet = packet


Remembered: TypeAlias = "Step | Fork[Remembered] | CacheFork | PredictorFork | NotCached"
"""What is remembered of a payload: its step, or what the step depends on."""
