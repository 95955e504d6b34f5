"""Which functions ran at which level: instruction by instruction, the slow way.

The rules of `trace functions` in plain words, as the oracle for `decode.calls`. It shares no code with that: only what
an instruction is comes from the project (and is tested against objdump, Spike and QEMU elsewhere).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType, classify

GAP = -1
SEARCHED = 256


class Ran(NamedTuple):
    """A function began to run at position *begin*, because of *why*."""

    begin: int
    level: int
    why: str


class Frame(NamedTuple):
    """A call under way: "call", "tail" or "trap". It was made in the function *caller*, at *level*, and goes on at
    *back*. *position*: of the instruction it was made behind."""

    what: str
    back: int | None
    caller: int | None
    level: int
    position: int


class Waiting(NamedTuple):
    """A function under way, as gdb shows it: nothing of what tail calls took the place of. *left*: where, and how."""

    pc: int
    function: int | None
    level: int
    left: tuple[int, str] | None


class NaiveCalls:
    """*starts*: of the functions, in rising order. *traps*: (epc, handler) of those before a position, in order."""

    def __init__(
        self, image: Image, starts: Sequence[int], traps: dict[int, list[tuple[int | None, int]]] | None = None
    ) -> None:
        self.image, self.starts, self.traps = image, sorted(starts), traps or {}
        self.mask = (1 << image.xlen) - 1
        self.stack: list[Frame] = []
        self.level, self.stretch = 0, 0
        self.lowest = [0]
        self.why = ""
        self.position = 0
        self.trapped: list[int | None] = []
        """Functions that were called when a trap came before their first instruction."""

    def functions(self, pcs: Sequence[int]) -> list[Ran]:
        """What ran, with levels from 0 in each stretch between places where the calls under way were forgotten."""
        found: list[tuple[int, int, int, str]] = []
        for position, pc in enumerate(pcs):
            if self.begins(pcs, position, pc):
                found.append((position, self.level, self.stretch, self.why))
        return [
            Ran(position, 0 if pcs[position] == GAP else level - self.lowest[stretch], why)
            for position, level, stretch, why in found
        ]

    def frames(self, pcs: Sequence[int]) -> Iterator[list[Waiting]]:
        """What is under way before each of these instructions runs, innermost first."""
        for position, pc in enumerate(pcs):
            self.begins(pcs, position, pc)
            yield [] if pc == GAP else self.under_way(pc)

    def under_way(self, pc: int) -> list[Waiting]:
        """With the instruction at *pc* running next."""
        calls = [frame for frame in self.stack if frame.what != "tail"]
        level = (self.stack[0].level if self.stack else self.level) + len(calls)
        found = [Waiting(pc, self.function(pc), level, None)]
        for frame in reversed(calls):
            if frame.back is None:
                break
            level -= 1
            found.append(Waiting(frame.back, frame.caller, level, (frame.position, frame.what)))
        return found

    def begins(self, pcs: Sequence[int], position: int, pc: int) -> bool:
        """Whether another function runs from here on."""
        self.position = position - 1
        if pc == GAP:
            self.forget("gap")
            return True
        before = GAP if position == 0 else pcs[position - 1]
        if before == GAP:
            self.why = "begin"
            return True
        traps = self.traps.get(position)
        if not traps:
            return self.step(before, pc)
        first = traps[0][0]
        self.before_trap(before, first)
        for number, (epc, _) in enumerate(traps):
            where = self.function(before) if epc is None and number == 0 else self.function(epc)
            self.push("trap", epc, where)
        return True

    def before_trap(self, before: int, epc: int | None) -> None:
        """What the instruction before a trap did."""
        if epc == before:
            return
        if epc is not None:
            if self.possible(before, epc):
                self.step_to_trap(before, epc)
            return
        itype, after, _ = self.decoded(before)
        if itype is IType.UNINFERABLE_CALL:
            self.push("call", after, self.function(before))
        elif itype is IType.RETURN:
            self.come_back(None)

    def function(self, pc: int | None) -> int | None:
        """The start of the function an address is in."""
        if pc is None or not self.starts or pc < self.starts[0]:
            return None
        return self.starts[bisect_right(self.starts, pc) - 1]

    def decoded(self, pc: int) -> tuple[IType, int, int | None]:
        """(what it is, the address behind it, where it goes if it goes somewhere)."""
        word = int.from_bytes(self.image.read(pc, 2), "little")
        if word & 3 == 3:
            word |= int.from_bytes(self.image.read(pc + 2, 2), "little") << 16
        it = classify(word, self.image.xlen)
        return it.itype, pc + it.length & self.mask, None if it.offset is None else pc + it.offset & self.mask

    def possible(self, pc: int, to: int) -> bool:
        """Whether the code can lead from one to the other without a trap."""
        itype, after, target = self.decoded(pc)
        if itype in (IType.INFERABLE_CALL, IType.OTHER_INFERABLE):
            return to == target
        if itype in (IType.NOT_TAKEN, IType.TAKEN):
            return to in (after, target)
        if itype in (IType.NONE, IType.EXCEPTION):
            return to == after or self.image.instruction(pc).custom
        return True

    def step(self, pc: int, to: int) -> bool:
        """From one instruction to the next."""
        itype, after, target = self.decoded(pc)
        here, there = self.function(pc), self.function(to)
        if not self.possible(pc, to):
            return self.unreported(pc, itype, after, target)
        if itype in (IType.UNINFERABLE_CALL, IType.INFERABLE_CALL) and to != after:
            self.push("call", after, here)
            return True
        if itype is IType.RETURN:
            self.come_back(to)
            return True
        if itype is IType.COROUTINE_SWAP:
            waiting = self.without_tails()
            if waiting and waiting[-1].what == "call" and waiting[-1].back == to:
                self.come_back(to)
            else:
                self.push("call", after, here)
            return True
        if itype is IType.TRAP_RETURN:
            self.back_from_trap(to)
            return True
        if here == there:
            return False
        waiting = self.without_tails()
        if itype is IType.OTHER_UNINFERABLE and waiting and waiting[-1].what == "call" and waiting[-1].back == to:
            self.cut(len(waiting) - 1, "return")
        elif itype in (IType.OTHER_UNINFERABLE, IType.OTHER_INFERABLE) and to == there:
            self.push("tail", None, here)
        elif self.stack and self.stack[-1].what == "tail" and self.stack[-1].caller == there:
            self.cut(len(self.stack) - 1, "switch")
        else:
            self.why = "switch"
        return True

    def step_to_trap(self, pc: int, epc: int) -> None:
        """To an instruction that a trap comes before."""
        count = len(self.stack)
        self.step(pc, epc)
        if len(self.stack) > count:
            self.trapped.append(self.function(epc))

    def unreported(self, pc: int, itype: IType, after: int, target: int | None) -> bool:
        """A trap that only shows in that the code does not lead there."""
        if itype is IType.EXCEPTION:
            self.push("trap", after, self.function(pc))
            return True
        epc = None if itype in (IType.NOT_TAKEN, IType.TAKEN) else after if target is None else target
        if epc is not None:
            self.step_to_trap(pc, epc)
        self.push("trap", epc, self.function(pc if epc is None else epc))
        return True

    def push(self, what: str, back: int | None, caller: int | None) -> None:
        self.stack.append(Frame(what, back, caller, self.level, self.position))
        self.level += 1
        self.why = what

    def without_tails(self) -> list[Frame]:
        """The stack up to the newest call or trap that is not a tail call."""
        count = len(self.stack)
        while count and self.stack[count - 1].what == "tail":
            count -= 1
        return self.stack[:count]

    def cut(self, count: int, why: str) -> None:
        """Back to where the call number *count* was made."""
        self.level = self.stack[count].level
        del self.stack[count:]
        self.lower(why)

    def lower(self, why: str) -> None:
        self.lowest[self.stretch] = min(self.lowest[self.stretch], self.level)
        self.why = why

    def forget(self, why: str) -> None:
        self.stack, self.level = [], 0
        self.stretch += 1
        self.lowest.append(0)
        self.why = why

    def come_back(self, to: int | None) -> None:
        """A return."""
        waiting = self.without_tails()
        if not waiting:
            self.come_out("return")
            return
        if waiting[-1].what == "call" and to in (None, waiting[-1].back):
            self.cut(len(waiting) - 1, "return")
            return
        newest = range(len(self.stack) - 1, max(len(self.stack) - 1 - SEARCHED, -1), -1)
        for number in newest:
            if self.stack[number].what == "call" and self.stack[number].back == to:
                self.cut(number, "return")
                return
        there = self.function(to)
        for number in newest:
            if there is None or self.stack[number].what == "trap":
                break
            if self.stack[number].caller == there:
                self.cut(number, "return")
                return
        if waiting[-1].what == "trap":
            self.stack, self.level = waiting, waiting[-1].level + 1
            self.why = "return"
        else:
            self.forget("return")

    def come_out(self, why: str) -> None:
        """Into a caller that was not seen before."""
        if self.stack:
            self.level = self.stack[0].level
        self.stack = []
        self.level -= 1
        self.lower(why)

    def back_from_trap(self, to: int) -> None:
        there = self.function(to)
        for number in range(len(self.stack) - 1, -1, -1):
            frame = self.stack[number]
            if frame.what == "trap" and (frame.back == to or frame.caller == there):
                self.cut(number, "trap return")
                return
        if any(frame.what != "tail" for frame in self.stack) or to == there:
            self.forget("trap return")
        else:
            self.come_out("trap return")
