"""Which frames gdb's own unwinder finds in a tandem trace's past, and what ours has to tell of the others.

gdb's unwinder goes by call frame information, registers, and the stack. Where these are known it is better than ours:
only its frames have local variables on the stack. Where they are not, or where there is no such information, it would
end, or invent callers. The trace says who called: so its way is gone here first, and is left to it as long as it leads
to the caller the trace has.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Kind
from rvtrace_gdb.decode.calls.frames import CallFrame
from rvtrace_gdb.decode.cfi import AT, IN, SAME, VALUE, CallFrames, Rule, Rules
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.decode.tandem.state import State
from rvtrace_gdb.session.shadow import Memory

Integers = dict[int, int]
"""Those of the integer registers that are known."""

_SP, _RA = 2, 1
_PRESERVED = (_SP, 3, 4, 8, 9, *range(18, 28))  # gp, tp, s0 to s11: a function gives them back as they were


class Unwound(NamedTuple):
    """*native*: gdb's own unwinder finds this frame's caller. *sp*: the canonical frame address, None: not known.
    *saved*: what the integer registers hold in the caller, for ours.
    """

    frame: CallFrame
    native: bool
    sp: int | None
    saved: Integers


class Unwinder:
    """Of one program. *memory*: what gdb can read."""

    def __init__(self, tandem: Tandem, memory: Memory, cfi: CallFrames) -> None:
        self._tandem, self._memory, self._cfi = tandem, memory, cfi
        self._bytes = tandem.trace.parameters.xlen // 8

    def frames(self, position: int, frames: Iterable[CallFrame]) -> Iterator[Unwound]:
        """*frames*: those under way at a position, innermost first.

        What gdb takes for a frame's identity must stay the same as long as the function runs: the stack pointer when it
        was called, which is also what frame information calls the canonical frame address.
        """
        known = _known(self._tandem.before(position))
        waiting = chain[CallFrame | None](frames, (None,))
        for number, (frame, caller) in enumerate(pairwise(waiting)):
            assert frame is not None
            left = {} if caller is None else self._when_left(caller)
            found = self._natively(frame, known, position, is_caller=number > 0)
            if found is not None and (caller is None or (found[0] == caller.pc and found[1].get(_SP) == left.get(_SP))):
                known = found[1]
                yield Unwound(frame, True, known.get(_SP), {})
            else:
                sp = left.get(_SP) if found is None else found[1][_SP]
                known = left
                yield Unwound(frame, False, sp, known)

    def _natively(
        self, frame: CallFrame, known: Integers, position: int, *, is_caller: bool
    ) -> tuple[int | None, Integers] | None:
        """Where gdb finds a frame to return to, and the registers there; None: it has no way to find out."""
        inside = frame.pc - (1 if is_caller else 0)  # gdb looks a caller up where it called
        rules = None if frame.pc == UNKNOWN else self._cfi.at(inside)
        cfa = None if rules is None else self._cfa(rules, known)
        if rules is None or cfa is None:
            return None
        callers = self._callers(rules, cfa, known, position)
        return _even(callers.get(rules.ra)), callers

    def _cfa(self, rules: Rules, known: Integers) -> int | None:
        register, offset = rules.cfa
        return self._address(known[register] + offset) if register in known else None

    def _callers(self, rules: Rules, cfa: int, known: Integers, position: int) -> Integers:
        """The caller's registers, as gdb finds them."""
        found = {_SP: cfa}
        for register in range(1, 32):
            rule = rules.registers.get(register, None if register == _SP else Rule(SAME))
            value = None if rule is None else self._value(register, rule, cfa, known, position)
            if value is not None:
                found[register] = value
        return found

    def _value(self, register: int, rule: Rule, cfa: int, known: Integers, position: int) -> int | None:
        if rule.kind in (SAME, IN):
            return known.get(register if rule.kind == SAME else rule.n)
        address = self._address(cfa + rule.n)
        if rule.kind == VALUE:
            return address
        if rule.kind == AT:
            data = self._memory.known(position, address, self._bytes)
            return int.from_bytes(data, "little") if len(data) == self._bytes else None
        return None

    def _when_left(self, caller: CallFrame) -> Integers:
        """The registers of a caller: those that a function it called gives back, all where there was a trap."""
        if caller.call is None:
            return {}
        if caller.kind is Kind.TRAP:
            return _known(self._tandem.after(self._tandem.group_of(caller.call)))
        before = _known(self._tandem.before(caller.call))
        found = {register: before[register] for register in _PRESERVED if register in before}
        return found if caller.pc == UNKNOWN else {**found, _RA: caller.pc}

    def _address(self, value: int) -> int:
        return value & (1 << 8 * self._bytes) - 1


def _even(address: int | None) -> int | None:
    """As jalr goes there."""
    return None if address is None else address & ~1


def _known(state: State) -> Integers:
    return {number: value for number, value in enumerate(state.xs()) if value is not None}
