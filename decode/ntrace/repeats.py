"""The same branch outcomes again and again: a HIST repeated HREPEAT times, a run of branches with one outcome."""

from typing import NamedTuple

from rvtrace_gdb.decode.callstack import Calls, Mark, Stack, after
from rvtrace_gdb.decode.history import Path, RepeatPath
from rvtrace_gdb.decode.ntrace.walk import Part, Walk, Walker

_OUTCOMES = 1 << 16  # looked at one by one; a program that did not come back to a place after so many has none like it


class _Place(NamedTuple):
    """Where repetition *done* began: after how many parts and halfwords, and with which calls under way."""

    pc: int
    done: int
    parts: int
    halfwords: int
    calls: Mark


def walk_repeated(walker: Walker, pc: int, hist: int, times: int, stack: Stack) -> Walk:
    """From *pc* on, *times* times the outcomes in *hist*.

    The same place comes again sooner or later, and then all goes round, so any number takes few steps. (Places are
    compared with one that is replaced after 1, 2, 4, 8, ... repetitions: Brent's algorithm.)
    """
    parts: list[Part] = []
    calls = Calls(stack)
    halfwords = done = steps = 0
    outcomes = hist.bit_length()
    while done < times:
        if steps & steps - 1 == 0:
            since = _Place(pc, done, len(parts), halfwords, calls.mark())
        steps += 1
        walk = walker.walk(pc, hist, None, stack)
        taken, left = tuple(walk.calls.taken), tuple(walk.calls.left)
        calls.redo(taken, left)
        stack = after(stack, len(taken), left)
        parts += walk.parts
        pc, halfwords, done = walk.pc, halfwords + walk.halfwords, done + 1
        fault = walk.fault or ("HIST is repeated at ever other places" if steps * outcomes > _OUTCOMES else "")
        if fault:
            return Walk(parts, pc, halfwords, calls, walk.last, fault)
        if pc == since.pc:
            rounds = calls.rounds(since.calls, (times - done) // (done - since.done))
            if rounds:
                if parts[since.parts :]:
                    parts.append(RepeatPath(Path(parts[since.parts :]), rounds))
                calls.repeat(since.calls, rounds)
                stack = calls.stack()
                halfwords += rounds * (halfwords - since.halfwords)
                done += rounds * (done - since.done)
    return Walk(parts, pc, halfwords, calls)
