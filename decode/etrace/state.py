"""What the decoder keeps of a hart: the automaton's states and steps, walks, and what is kept apart from both.

Kept apart from states are the implicit return stack, of a limited depth which encoder and decoder must agree on, the
branch predictor and the jump target cache, as an encoder keeps them: with them as a part of it, a loop would seldom
come back to the same state. A walk over the program is described by what it is for (`Goal`) and what it has come to
(`Walk`).

Sources: Efficient Trace for RISC-V 2.0, "Implicit return mode", `push_return_stack` of the decoder's pseudo-code,
"Branch prediction mode" and "Jump target cache mode"; entries with a count: the Implicit Return extension v0.8.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.layout import Packet
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.history.builder import Report
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.history.history import Path, RepeatPath
from rvtrace_gdb.decode.program.csrs import Context
from rvtrace_gdb.decode.stepping.control_flow import (
    MAX_DEPTH,
    NOWHERE,
    CallEffect,
    Calls,
    Segment,
    Stack,
    after,
    pushed,
)

_UNLIMITED_PEAK = 1 << 30
"""A peak no stack has room for."""


class StackLimits:
    """How deep the stack of an encoder is. *entries*: return addresses; *repeats*: of equal ones, in one entry."""

    __slots__ = ("entries", "repeats")

    def __init__(self, parameters: Parameters) -> None:
        size = parameters.return_stack_size or parameters.call_counter_size
        # irdepth has one bit more for a stack, but not for a counter: it cannot tell of 2**call_counter_size calls.
        narrow = not (parameters.return_stack_size or parameters.iret_ext)
        self.entries = min((1 << size) - narrow, MAX_DEPTH)
        counted = parameters.return_stack_size and parameters.call_counter_size and parameters.iret_ext
        self.repeats = (1 << parameters.call_counter_size) - 1 if counted else 0


class ReturnStack(Calls):
    """A stack in use during one walk, as deep as the encoder's.

    depth       entries on it now
    overflowed  the oldest entries were dropped: what the walk does to the stack holds for no other one
    peak        how many entries it ever had; *first*: at the start
    """

    __slots__ = ("_limits", "depth", "first", "overflowed", "peak")

    def __init__(self, stack: Stack, limits: StackLimits) -> None:
        super().__init__(stack)
        self._limits = limits
        self.depth = self.peak = self.first = _entries(stack, limits)
        self.overflowed = False

    def push(self, address: int) -> None:
        """A call."""
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
        """A return: where to, None when no call is known."""
        if self.depth == 0:
            self.taken.append(None)
            return None
        address = super().pop()
        if not (self._limits.repeats and address is not None and self._shares(address)):
            self.depth -= 1
        return address

    def effect(self, *, clears: bool = False, left: tuple[int, ...] | None = None) -> CallEffect | None:
        """What has become of the stack, None for nothing. *clears*: it is forgotten then; *left*: but for these."""
        if self.overflowed:
            return CallEffect((), _addresses(self.stack()) if left is None and not clears else left or (), True)
        kept = left if left is not None else () if clears else tuple(self.left)
        if not (clears or kept or self.taken or self.peak > self.first):
            return None
        return CallEffect(tuple(self.taken), kept, clears, self.peak - self.first)

    def stack(self) -> Stack:
        """The stack as it is now."""
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
        """Do what another walk did, which had *peak* entries more than at its start, if all is the same here."""
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
        """Whether the entry on top has room for one more call that returns to *address*, or has had one."""
        stack = super().stack()
        run = _top_run(stack)[2] if stack is not None and stack[0] == address else 0
        return run % (self._limits.repeats + 1) != 0


def _entries(stack: Stack, limits: StackLimits) -> int:
    """How many entries an encoder has for these return addresses."""
    if stack is None or not limits.repeats:
        return stack[2] if stack is not None else 0
    entries = 0
    while stack is not None:
        _, stack, run = _top_run(stack)
        entries += -(-run // (limits.repeats + 1))
    return entries


def _top_run(stack: tuple[int, Stack, int]) -> tuple[int, Stack, int]:
    """The return address on top, what is below all that are equal to it, and how many these are."""
    address, rest, run = stack[0], stack[1], 1
    while rest is not None and rest[0] == address:
        rest = rest[1]
        run += 1
    return address, rest, run


def replacement(stack: Stack) -> CallEffect:
    """What makes any stack this one."""
    return CallEffect((), _addresses(stack), True)


def _addresses(stack: Stack) -> tuple[int, ...]:
    """All return addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None:
        addresses.append(stack[0])
        stack = stack[1]
    return tuple(addresses[::-1])


NOT_CACHED = -1
"""In place of an address where the cache has none."""

_INITIAL = 0b01
# "00: to 01 if prediction fails; 01: to 00 if it succeeds, else 11; 11: to 10 if it fails; 10: to 11 if it succeeds,
# else 00." The high bit is the prediction, the low one the last outcome.
_SUCCESSORS = (bytes((0b00, 0b00, 0b00, 0b10)), bytes((0b01, 0b11, 0b11, 0b11)))

Training = tuple[tuple[int, bytes], ...]
"""What branches do to the predictor: for each index, the state after each of the four states before."""


CacheEntries = tuple[tuple[int, int], ...]
"""Jump targets for the cache, each with its index."""


class TableEffect(NamedTuple):
    """What a packet does to the tables: trains branches, enters jump targets, or resets both.

    *resets*: before *training*, which is then that of the instruction the synchronization reports.
    """

    training: Training = ()
    targets: CacheEntries = ()
    resets: bool = False


class Tables:
    """One hart's predictor and cache."""

    def __init__(self, parameters: Parameters) -> None:
        self._lsb = parameters.iaddress_lsb
        self._branch_mask = (1 << parameters.bpred_size) - 1
        self._jump_mask = (1 << parameters.cache_size) - 1
        self.states = bytearray([_INITIAL]) * (1 << parameters.bpred_size)
        """Of the predictor, by index."""
        self.targets: dict[int, int] = {}
        """Of the cache, by index."""

    def reset(self) -> None:
        """As when a synchronization packet is sent."""
        self.states[:] = bytes([_INITIAL]) * len(self.states)
        self.targets.clear()

    def apply(self, effect: TableEffect) -> None:
        """What a packet does."""
        if effect.resets:
            self.reset()
        for index, successor in effect.training:
            self.states[index] = successor[self.states[index]]
        for index, target in effect.targets:
            self.targets[index] = target

    def branch_index(self, pc: int) -> int:
        """The entry of the predictor for a branch."""
        return pc >> self._lsb & self._branch_mask

    def jump_index(self, target: int) -> int:
        """The entry of the cache for a jump target."""
        return target >> self._lsb & self._jump_mask

    def entries(self, targets: Iterable[int]) -> CacheEntries:
        """These jump targets with their indices."""
        return tuple((self.jump_index(target), target) for target in targets)

    def predicts(self, pc: int) -> bool:
        """Whether a branch is predicted to be taken."""
        return self.states[self.branch_index(pc)] > 1

    def train(self, pc: int, taken: bool, before: dict[int, int]) -> bool:
        """A branch had this outcome. True: its entry has changed. *before*: the first state of each entry used."""
        index = self.branch_index(pc)
        state = self.states[index]
        before.setdefault(index, state)
        self.states[index] = successor = _SUCCESSORS[taken][state]
        return state != successor

    def change(self, before: dict[int, int]) -> Training:
        """What has become of the entries in *before*, which is put back."""
        change = tuple((index, bytes([self.states[index]]) * 4) for index in before)
        for index, state in before.items():
            self.states[index] = state
        return change

    def training(self, outcomes: Iterable[tuple[int, bool]]) -> Training:
        """What these (address, taken) do, one after the other."""
        known: dict[int, bytes] = {}
        for pc, taken in outcomes:
            index = self.branch_index(pc)
            before = known.get(index)
            known[index] = _SUCCESSORS[taken] if before is None else before.translate(_TRANSLATE[taken])
        return tuple(known.items())


_TRANSLATE = tuple(successor + bytes(range(4, 256)) for successor in _SUCCESSORS)


Part = tuple[int, ...] | Path | RepeatPath


class Arrival(Enum):
    """How a walk came to the address of a packet."""

    INFERRED = "inferred"
    """The code leads there; it may do so again."""
    JUMPED = "jumped"
    """By a jump only the packet tells the target of."""
    RETURNED = "returned"
    """The same, and the jump was a return to where its call came from."""
    FAULT = "fault"
    """Not at all."""


class Goal(NamedTuple):
    """What a packet reports: the address of an instruction that retired; None: the next branch.

    inferable  it may be one the code leads to; else only the target of an uninferable jump
    returns    implicit returns reported (irets, irdepth), None for none
    counted    the packet would say if there were any (irets)
    """

    address: int | None
    inferable: bool = True
    returns: int | None = None
    counted: bool = False


class Walk:
    """One walk so far.

    at        the instruction that retires next, NOWHERE when that is not known
    behind    then: the last one that retired
    irets     implicit returns since the last branch
    outcomes  (address, taken) of the branches that were passed, where a predictor has to know them
    fault     why the code contradicts the trace, "" while it does not; *missing*: because it is not there
    pair      the jump at `next_pc`, whose target the instruction behind it determines
    """

    __slots__ = ("calls", "fault", "irets", "last_pc", "missing", "next_pc", "outcomes", "pair", "parts")

    def __init__(self, next_pc: int, last_pc: int, calls: ReturnStack) -> None:
        self.next_pc = next_pc
        self.last_pc = last_pc
        self.calls = calls
        self.parts: list[Part] = []
        self.irets = 0
        self.outcomes: list[tuple[int, bool]] = []
        self.fault = ""
        self.missing = False
        self.pair: Segment | None = None

    @property
    def place(self) -> int:
        """Where a fault is: the next instruction if it is known, else the last one."""
        return self.next_pc if self.next_pc != NOWHERE else self.last_pc

    @property
    def path(self) -> Path | None:
        """The instructions walked, None for none."""
        parts = [part for part in self.parts if len(part)]
        return Path(parts) if parts else None

    def before_last(self) -> Path | None:
        """The instructions walked but for the last one, None for none."""
        parts = [part for part in self.parts if len(part)]
        if not parts:
            return None
        last = parts.pop()
        assert isinstance(last, tuple)  # a walk ends with the instructions that lead to an address
        parts += [last[:-1]] if len(last) > 1 else []
        return Path(parts) if parts else None


class Mode(Enum):
    """Whether the decoder knows where the hart is."""

    LOST = "lost"
    """Not until the next synchronizing packet."""
    ADRIFT = "adrift"
    """Not until the next address: there was no code to follow, but no packet is missing."""
    ON = "on"
    TRAPPED = "trapped"
    """In a trap whose handler has not been reported yet."""
    OFF = "off"
    """Tracing was stopped: what runs now is missing in the trace."""
    HALTED = "halted"
    """Tracing was stopped because the hart was: nothing runs meanwhile."""


class Setup(NamedTuple):
    """How the encoder is built and set up, as far as was told."""

    parameters: Parameters
    modes: Modes


class PendingTrap(NamedTuple):
    """A trap that was reported without its handler. *epc*: -1 when it is not known.

    *address*: what the packet had for one; where it is not the EPC, 2.0.5 takes it for that of the next trap.
    *elsewhere*, *untold*: as in `Report`.
    """

    trap: Trap
    epc: int
    address: int
    elsewhere: bool = False
    untold: bool = False


class InferredAddress(NamedTuple):
    """The address of the last packet was found where the code leads anyway: it may have been meant for a jump there.

    *returns*: as in `Goal` of that packet; *irets*: implicit returns by then.
    """

    returns: int | None
    irets: int


class Place(NamedTuple):
    """Where decoding stands.

    next_pc    the next instruction, NOWHERE when that is not known: what retired before it is `last_pc`
    reference  the last address transmitted, which differences are relative to
    """

    mode: Mode
    next_pc: int
    last_pc: int
    reference: int
    inferred: InferredAddress | None
    trap: PendingTrap | None
    context: Context
    setup: Setup


class State(dict[object, "CachedStep"]):
    """A place, and the steps already known from there, by payload."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class Step(NamedTuple):
    """What a packet does: the code that ran, the next state, what to report, and then one more instruction that ran.

    calls         what it does to the call stack; it holds only for a stack with `calls.taken` on top. None: nothing
    tables        what it does to predictor and cache. None: nothing
    synchronizes  the packet is a synchronizing one: what data packets say starts anew
    """

    path: Path | None
    state: State
    reports: tuple[Report, ...] = ()
    landing: Path | None = None
    calls: CallEffect | None = None
    tables: TableEffect | None = None
    synchronizes: bool = False

    def stack_after(self, stack: Stack) -> Stack:
        """The call stack after this step, from the one before it."""
        calls = self.calls
        if calls is None:
            return stack
        return pushed(None, calls.left) if calls.clears else after(stack, len(calls.taken), calls.left)


class Fork(dict[int | None, "CachedStep"]):
    """In place of a step that depends on the call stack: what there is for each return address on top of it."""


class CacheFork(dict[int | None, "CachedStep"]):
    """In place of a step that depends on an entry of the jump target cache: what there is for each address in it."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class NotCached(NamedTuple):
    """In place of a step that is not remembered: the packet, so that it is read once."""

    packet: Packet


class PredictorVariant(NamedTuple):
    """What holds while some entries of the predictor are in these states. *known*: under 0."""

    entries: Callable[[bytearray], object]
    states: object
    known: dict[object, "CachedStep"]
    indices: tuple[int, ...]


class PredictorFork(list[PredictorVariant]):
    """In place of a step that depends on the predictor."""

    __slots__ = ("packet",)

    def __init__(self, packet: Packet) -> None:
        super().__init__()
        self.packet = packet


CachedStep = Step | Fork | CacheFork | NotCached | PredictorFork
