"""Which functions ran at which level: instruction by instruction, the slow way.

The rules of `trace functions` in plain words, as the oracle for `decode.calls`. It shares no code with that: only what
an instruction is comes from the project (and is tested against objdump, Spike and QEMU elsewhere), and which ones write
sp (`tests/decode/calls/test_returns.py`).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.returns import sets_stack
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType, classify

GAP = -1
SEARCHED, WAITING = 256, 32


class Ran(NamedTuple):
    """A function began to run at position *begin*, because of *why*."""

    begin: int
    level: int
    why: str


class Frame(NamedTuple):
    """A call under way: "call", "tail" or "trap". It was made in the function *caller*, at *level*, and goes on at
    *back*. *position*: of the instruction it was made behind. *asked*: a trap that an instruction asked for. *maybe*:
    of "doubt", the tasks of which one goes on: as they waited, and how many frames are left."""

    what: str
    back: int | None
    caller: int | None
    level: int
    position: int
    asked: bool = False
    maybe: "tuple[tuple[Task, int], ...]" = ()


class Task:
    """A stack, and the number of what is known about it."""

    def __init__(self, frames: list[Frame], level: int, stretch: int) -> None:
        self.frames, self.level, self.stretch = frames, level, stretch

    def same(self, other: "Task") -> bool:
        """Nothing but the number tells them apart."""
        return [frame._replace(position=0) for frame in self.frames] == [
            frame._replace(position=0) for frame in other.frames
        ]


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
        self.waiting: list[Task] = []
        self.doubtful = 1 << 60
        """The first position at which one of several tasks goes on: what follows is not modelled."""
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
            yield [] if pc == GAP else self.under_way(pc, self.stack, self.level)

    def under_way(self, pc: int, stack: list[Frame], level: int) -> list[Waiting]:
        """With the instruction at *pc* running next. Below a doubt, which is no call, nothing is known."""
        calls = [frame for frame in stack if frame.what not in ("tail", "doubt")]
        level = (stack[0].level if stack else level) + len(calls)
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
            self.waiting = []
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
            asked = epc is not None and self.decoded(epc)[0] is IType.EXCEPTION
            self.push("trap", epc, where, asked=asked)
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
            self.come_back(to, self.takes_stack(pc))
            return True
        if itype is IType.COROUTINE_SWAP:
            waiting = self.without_tails()
            if waiting and waiting[-1].what == "call" and waiting[-1].back == to:
                self.come_back(to)
            else:
                self.push("call", after, here)
            return True
        if itype is IType.TRAP_RETURN:
            self.back_from_trap(to, self.takes_stack(pc))
            return True
        if here == there:
            return False
        waiting = self.without_tails()
        indirect = itype is IType.OTHER_UNINFERABLE
        if indirect and self.takes_stack(pc) and self.to_other_task(to):
            self.why = "return"
        elif indirect and waiting and waiting[-1].what == "call" and waiting[-1].back == to:
            self.cut(len(waiting) - 1, "return")
        elif indirect and waiting and waiting[-1].what == "doubt" and self.fitting(waiting[-1], to):
            self.settle(to)
            self.why = "return"
        elif itype in (IType.OTHER_UNINFERABLE, IType.OTHER_INFERABLE) and to == there:
            self.push("tail", None, here)
        elif indirect and self.go_on(self.elsewhere(to)):
            self.why = "return"
        elif self.stack and self.stack[-1].what == "tail" and self.stack[-1].caller == there:
            self.cut(len(self.stack) - 1, "switch")
        else:
            self.why = "switch"
        return True

    def step_to_trap(self, pc: int, epc: int) -> None:
        """To an instruction that a trap comes before."""
        self.why = ""
        self.step(pc, epc)
        if self.why in ("call", "tail"):
            self.trapped.append(self.function(epc))

    def unreported(self, pc: int, itype: IType, after: int, target: int | None) -> bool:
        """A trap that only shows in that the code does not lead there."""
        if itype is IType.EXCEPTION:
            self.push("trap", after, self.function(pc), asked=True)
            return True
        epc = None if itype in (IType.NOT_TAKEN, IType.TAKEN) else after if target is None else target
        if epc is not None:
            self.step_to_trap(pc, epc)
        self.push("trap", epc, self.function(pc if epc is None else epc))
        return True

    def push(self, what: str, back: int | None, caller: int | None, *, asked: bool = False) -> None:
        self.stack.append(Frame(what, back, caller, self.level, self.position, asked))
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
        self.fresh()
        self.why = why

    def takes_stack(self, pc: int) -> bool:
        """Whether the function of an instruction gives sp another value before it."""
        place = self.function(pc)
        while place is not None and place < pc:
            word = int.from_bytes(self.image.read(place, 2), "little")
            size = 4 if word & 3 == 3 else 2
            if size == 4:
                word |= int.from_bytes(self.image.read(place + 2, 2), "little") << 16
            if sets_stack(word, size):
                return True
            place += size
        return False

    @staticmethod
    def called_at(frames: list[Frame], to: int) -> int:
        """The number of the newest call, if it goes on at an address; else -1."""
        number = len(frames) - 1
        while number >= 0 and frames[number].what == "tail":
            number -= 1
        return number if number >= 0 and (frames[number].what, frames[number].back) == ("call", to) else -1

    def elsewhere(self, to: int | None) -> list[tuple[Task, int]]:
        """The tasks whose newest call goes on at an address."""
        if to is None:
            return []
        return [(task, n) for task in self.waiting if (n := self.called_at(task.frames, to)) >= 0]

    def waiting_at(self, to: int) -> list[tuple[Task, int]]:
        """The same, and those that were interrupted there."""
        found = []
        for task in self.waiting:
            number = self.called_at(task.frames, to)
            number = number if number >= 0 else self.trapped_at(task.frames, to)
            if number >= 0:
                found.append((task, number))
        return found

    def called_in(self, frames: list[Frame], to: int) -> int:
        """The same, if it was made in the function of an address that is not its start."""
        there = self.function(to)
        number = len(frames) - 1
        while number >= 0 and frames[number].what == "tail":
            number -= 1
        made = number >= 0 and frames[number].what == "call" and frames[number].caller == there
        return number if made and there not in (None, to) else -1

    def go_on(self, tasks: list[tuple[Task, int]], here: int = -1) -> bool:
        """With one of these tasks, where it has so many frames left, or with this one."""
        if not tasks:
            return False
        self.wait()
        if here >= 0:
            tasks = [*tasks, (self.waiting[-1], here)]
        different = [one for number, one in enumerate(tasks) if not any(one[0].same(it) for it, _ in tasks[:number])]
        if len(different) == 1:
            self.take(*tasks[0])
            return True
        self.fresh()
        self.doubtful = min(self.doubtful, self.position)
        self.stack = [Frame("doubt", None, None, 0, 0, maybe=tuple(different))]
        return True

    def wait(self) -> None:
        if self.stack:
            self.waiting.append(Task(self.stack, self.level, self.stretch))

    def fresh(self) -> None:
        """A task that was not seen before."""
        self.waiting = self.waiting[-WAITING:]
        self.stack, self.level = [], 0
        self.lowest.append(0)
        self.stretch = len(self.lowest) - 1

    def take(self, task: Task, count: int) -> None:
        self.waiting.remove(next(it for it in self.waiting if it is task))
        self.stretch = task.stretch
        self.stack, self.level = task.frames[:count], task.frames[count].level
        self.lowest[self.stretch] = min(self.lowest[self.stretch], self.level)

    def to_other_task(self, to: int) -> bool:
        """A return of a function that took another stack."""
        here = self.called_at(self.stack, to)
        tasks = self.waiting_at(to)
        if not tasks and here < 0:
            here = self.called_in(self.stack, to)
            if here < 0:
                return False
            tasks = [(task, n) for task in self.waiting if (n := self.called_in(task.frames, to)) >= 0]
        return self.go_on(tasks, here)

    def fitting(self, doubt: Frame, to: int | None) -> list[tuple[Task, int]]:
        if to is None:
            return []
        return [(task, n) for task, count in doubt.maybe if (n := self.called_at(task.frames[:count], to)) >= 0]

    def settle(self, to: int | None) -> None:
        """A return to where one of several tasks may have called."""
        doubt = self.without_tails()[-1]
        found = [(task, n) for task, n in self.fitting(doubt, to) if any(it.same(task) for it in self.waiting)]
        if len(found) == 1:
            self.take(next(it for it in self.waiting if it.same(found[0][0])), found[0][1])
            return
        if found:
            self.level = doubt.level - 1
            self.stack = [Frame("doubt", None, None, self.level, 0, maybe=tuple(found))]
            self.lower("return")
            return
        self.stack, self.level = [], doubt.level
        if not self.go_on(self.elsewhere(to)):
            self.come_out("return")

    def come_back(self, to: int | None, takes_stack: bool = False) -> None:
        """A return."""
        self.why = "return"
        if to is not None and takes_stack and self.to_other_task(to):
            return
        waiting = self.without_tails()
        elsewhere = self.elsewhere(to)
        if not waiting:
            if not self.go_on(elsewhere):
                self.come_out("return")
            return
        if waiting[-1].what == "doubt":
            self.settle(to)
            return
        if waiting[-1].what == "call" and to in (None, waiting[-1].back):
            self.cut(len(waiting) - 1, "return")
            return
        newest = range(len(self.stack) - 1, max(len(self.stack) - 1 - SEARCHED, -1), -1)
        for number in newest:
            if self.stack[number].what == "call" and self.stack[number].back == to:
                self.cut(number, "return")
                return
        if self.go_on(elsewhere):
            return
        there = self.function(to)
        for number in newest:
            if there in (None, to) or self.stack[number].what == "trap":
                break
            if self.stack[number].caller == there:
                self.cut(number, "return")
                return
        if takes_stack and to is not None:
            inside = [(task, n) for task in self.waiting if (n := self.called_in(task.frames, to)) >= 0]
            if self.go_on(inside):
                return
        if waiting[-1].what == "trap":
            self.stack, self.level = waiting, waiting[-1].level + 1
            self.why = "return"
        else:
            self.wait()
            self.fresh()

    def come_out(self, why: str) -> None:
        """Into a caller that was not seen before."""
        if self.stack:
            self.level = self.stack[0].level
        self.stack = []
        self.level -= 1
        self.lower(why)

    @staticmethod
    def newest_trap(frames: list[Frame]) -> int:
        newest = range(len(frames) - 1, max(len(frames) - 1 - SEARCHED, -1), -1)
        return next((number for number in newest if frames[number].what == "trap"), -1)

    def trapped_at(self, frames: list[Frame], to: int) -> int:
        """The number of the newest trap, if what it came over goes on at an address; else -1."""
        number = self.newest_trap(frames)
        back = frames[number].back if number >= 0 else None
        if back is None:
            return -1
        return number if to == back or (frames[number].asked and 0 < to - back <= 4) else -1

    def back_from_trap(self, to: int, takes_stack: bool) -> None:
        self.why = "trap return"
        there = self.function(to)
        newest = self.newest_trap(self.stack)
        tasks = self.waiting_at(to)
        if newest >= 0 and self.stack[newest].back == to and not self.stack[newest].asked:
            me = Task(self.stack, self.level, self.stretch)
            if not takes_stack or all(me.same(task) for task, _ in tasks):
                self.cut(newest, "trap return")
                return
        if self.go_on(tasks, self.trapped_at(self.stack, to)):
            return
        for number in range(len(self.stack) - 1, -1, -1):
            frame = self.stack[number]
            if frame.what != "trap":
                continue
            behind = frame.asked and frame.back is not None and 0 < to - frame.back <= 4
            if frame.back == to or behind or (frame.caller == there and to != there):
                self.cut(number, "trap return")
                return
        if any(frame.what != "tail" for frame in self.stack) or to == there:
            self.wait()
            self.fresh()
        else:
            self.come_out("trap return")
