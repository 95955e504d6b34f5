"""The callers that gdb's own unwinder would find in the past, and what rvtrace's unwinder must provide for the others.

gdb's unwinder uses call frame information, registers, and the stack. Where these are known it is better: only its
frames have local variables on the stack. Where they are unknown, it would stop, or invent callers. The trace contains
the true callers: so gdb's way is followed here first, and gdb's unwinder is used as long as it leads to the caller in
the trace.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.frames import CallFrame
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.program.debug_info import AT, IN, SAME, VALUE, CallFrameInformation, UnwindRule, UnwindRules
from rvtrace_gdb.session.past.past import Past, known_bytes

Integers = dict[int, int]
"""The integer registers that are known."""

_SP, _RA = 2, 1
_PRESERVED = (_SP, 3, 4, 8, 9, *range(18, 28))  # gp, tp, s0 to s11: a function preserves them


class UnwoundFrame(NamedTuple):
    """A frame. *native*: gdb's own unwinder finds its caller. *sp*: the canonical frame address, None: unknown.

    *saved*: the caller's integer registers, for rvtrace's unwinder.
    """

    frame: CallFrame
    native: bool
    sp: int | None
    saved: Integers


class Unwinder:
    """The unwinder of one program. *past*: what gdb can read."""

    def __init__(self, past: Past, cfi: CallFrameInformation, xlen: int) -> None:
        self._past, self._cfi = past, cfi
        self._bytes = xlen // 8

    def frames(self, position: int, frames: Iterable[CallFrame]) -> Iterator[UnwoundFrame]:
        """Yield the frames of *frames*, which is the call stack at a position, innermost first.

        gdb's identity of a frame must not change while the function runs: it is the stack pointer at its call, which
        call frame information calls the canonical frame address.
        """
        return in_order(self._unwound(position, frames))

    def _unwound(self, position: int, frames: Iterable[CallFrame]) -> Iterator[UnwoundFrame]:
        """Yield the frames, each by itself."""
        known = self._past.integers(position)
        waiting = chain[CallFrame | None](frames, (None,))
        for number, (frame, caller) in enumerate(pairwise(waiting)):
            assert frame is not None
            left = {} if caller is None else self._when_left(caller)
            found = self._natively(frame, known, position, is_caller=number > 0)
            if found is not None and _leads_to(found, caller, left):
                known = found[1]
                yield UnwoundFrame(frame, True, known.get(_SP), {})
            else:
                if (
                    number and frame.kind is StackOperationKind.TRAP
                ):  # not at a call: what holds there holds at the pc itself
                    exact = self._natively(frame, known, position, is_caller=False)
                    found = exact if exact is not None and _leads_to(exact, caller, left) else None
                sp = left.get(_SP) if found is None else found[1][_SP]
                known = left
                yield UnwoundFrame(frame, False, sp, known)

    def _natively(
        self, frame: CallFrame, registers: Integers, position: int, *, is_caller: bool
    ) -> tuple[int | None, Integers] | None:
        """Return the pc to which gdb's unwinder would return, and the registers there; None: it cannot find them."""
        inside = frame.pc - (1 if is_caller else 0)  # gdb looks up a caller at the address of the call
        rules = None if frame.pc == UNKNOWN else self._cfi.rules_at(inside)
        if rules is None or rules.cfa[0] not in registers:
            return None
        register, offset = rules.cfa
        callers = self._callers(rules, self._masked_address(registers[register] + offset), registers, position)
        ra = callers.get(rules.ra)
        return None if ra is None else ra & ~1, callers  # jalr clears bit 0

    def _callers(self, rules: UnwindRules, cfa: int, registers: Integers, position: int) -> Integers:
        """Return the caller's registers, as gdb's unwinder finds them."""
        found = {_SP: cfa}
        for register in range(1, 32):
            rule = rules.registers.get(register, None if register == _SP else UnwindRule(SAME))
            value = None if rule is None else self._caller_register(register, rule, cfa, registers, position)
            if value is not None:
                found[register] = value
        return found

    def _caller_register(
        self, register: int, rule: UnwindRule, cfa: int, registers: Integers, position: int
    ) -> int | None:
        if rule.kind in (SAME, IN):
            return registers.get(register if rule.kind == SAME else rule.n)
        address = self._masked_address(cfa + rule.n)
        if rule.kind == VALUE:
            return address
        if rule.kind == AT:
            data = known_bytes(self._past, position, address, self._bytes)
            return int.from_bytes(data, "little") if len(data) == self._bytes else None
        return None

    def _when_left(self, caller: CallFrame) -> Integers:
        """Return the known registers of a caller: those that a called function preserves, all before a trap."""
        if caller.call is None:
            return {}
        if caller.kind is StackOperationKind.TRAP:
            return self._past.integers(caller.call, trapped=True)
        before = self._past.integers(caller.call)
        found = {register: before[register] for register in _PRESERVED if register in before}
        return found if caller.pc == UNKNOWN else {**found, _RA: caller.pc}

    def _masked_address(self, value: int) -> int:
        return value & (1 << 8 * self._bytes) - 1


def _leads_to(found: tuple[int | None, Integers], caller: CallFrame | None, left: Integers) -> bool:
    """Return whether what was found of a frame's caller, its pc and registers, is the caller in the trace."""
    return caller is None or (found[0] == caller.pc and found[1].get(_SP) == left.get(_SP))


_LOOK_AHEAD = 16  # frames


def in_order(frames: Iterator[UnwoundFrame]) -> Iterator[UnwoundFrame]:
    """Yield the frames so that none is below the one that it called: there gdb would end the backtrace.

    A frame whose stack pointer is not known is put right below the next one that has one. On the stack of an interrupt,
    frames may be above those of what was interrupted: those are then not left to gdb's own unwinder.
    """
    last, unknown = 0, list[UnwoundFrame]()
    for frame in frames:
        if frame.sp is None:
            unknown.append(frame)
            if len(unknown) < _LOOK_AHEAD:
                continue
            yield from unknown
            yield from (it._replace(native=False, sp=None) for it in frames)
            return
        first = max(frame.sp - len(unknown), last + 1)
        yield from (it._replace(sp=sp) for sp, it in enumerate(unknown, first))
        last = first + len(unknown) - 1 if unknown else last
        unknown.clear()
        if frame.sp < last:
            frame = frame._replace(native=False, sp=last + 1)
        last = frame.sp or 0
        yield frame
    yield from unknown
