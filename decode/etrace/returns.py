"""The implicit return stack as an encoder keeps it: of a limited depth, which both sides must agree on.

Sources: Efficient Trace for RISC-V 2.0, "Implicit return mode", and `push_return_stack` of the decoder's pseudo-code;
entries with a count: the Implicit Return extension v0.8.
"""

from rvtrace_gdb.decode.callstack import MAX_DEPTH, CallEffect, Calls, Stack, pushed
from rvtrace_gdb.decode.etrace.options import Parameters

_ANY = 1 << 30
"""A peak no stack has room for."""


class Depth:
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

    def __init__(self, stack: Stack, limits: Depth) -> None:
        super().__init__(stack)
        self._limits = limits
        self.depth = self.peak = self.first = _entries(stack, limits)
        self.overflowed = False

    def push(self, address: int) -> None:
        """A call."""
        if self._limits.repeats:
            self.peak = _ANY  # whether an entry has room depends on the whole stack
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


def _entries(stack: Stack, limits: Depth) -> int:
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


def exactly(stack: Stack) -> CallEffect:
    """What makes any stack this one."""
    return CallEffect((), _addresses(stack), True)


def _addresses(stack: Stack) -> tuple[int, ...]:
    """All return addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None:
        addresses.append(stack[0])
        stack = stack[1]
    return tuple(addresses[::-1])
