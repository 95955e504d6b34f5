"""What really happened in a run, from the simulated hart itself: registers, traps, the lowest sp, where it stays.

Nothing here knows the trace, or the code that explains it. A shadow stack has the return addresses of calls; what is
code, and where the stack ends, say the symbols that nm prints.
"""

import subprocess
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart

SANE = "sane"
_DEEP = 500
_LAST = 6000
_ENDED = ("done", "_exit")


class CodeSymbols:
    """The functions of a program, and where its data end."""

    def __init__(self, elf: Path) -> None:
        command = ["riscv64-unknown-elf-nm", "-S", str(elf)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = [row.split() for row in printed.splitlines()]
        self.places = {row[-1]: int(row[0], 16) for row in rows if len(row) > 2}
        self.sizes = {row[-1]: int(row[1], 16) for row in rows if len(row) == 4}
        code = [(int(row[0], 16), int(row[1], 16) if len(row) == 4 else 2) for row in rows if row[-2] in "tT"]
        self.code = range(min(at for at, _ in code), max(at + size for at, size in code))
        self.floor = self.places["__bss_end"]


class Retired(NamedTuple):
    """An instruction that retired, and what it accessed."""

    pc: int
    word: int
    depth: int
    loads: tuple[int, ...]


class Observer:
    """A witness of a *hart*. What went wrong first is in `happened`, by the names of `trace explain`."""

    def __init__(self, hart: Hart, symbols: CodeSymbols) -> None:
        self.hart, self.symbols = hart, symbols
        self.happened: dict[str, int] = {}
        self.last: list[Retired] = []
        self.states: list[tuple[int, tuple[int, ...]]] = []
        self.traps: list[tuple[int, TrapEntry]] = []
        self.stores: list[tuple[int, int, int]] = []
        self.count = 0
        self.stack: list[int] = []
        self.interrupted: list[tuple[TrapEntry, list[int]]] = []
        self._before = 0, 0
        self._accesses: list[int] = []
        self._low = 1 << 64

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...

    def register_written(self, regno: int) -> None: ...

    def halted(self, cause: DebugCause) -> None: ...

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *rest: int) -> None:
        if kind in ("load", "atomic"):
            self._accesses.append(address)
        elif kind == "store":
            self.stores.append((self.count, address, value))
            if len(self.stores) > 2 * _LAST:
                del self.stores[:_LAST]

    def note(self, what: str) -> None:
        self.happened.setdefault(what, self.count)

    def retired(self, block: HartBlock) -> None:
        pc, word = block.pc, block.words[0]
        size = 2 if word & 3 != 3 else 4
        if pc not in self.symbols.code:
            self.note("wild-jump")
        if pc == self.symbols.places["_start"] and self.count:
            self.note("begun-again")
            self.stack, self.interrupted = [], []
        self._follow_calls(pc, word, size)
        self._look_at_division(word)
        sp = self.hart.x[2]
        if self.count > 20 and sp < self.symbols.floor:
            self.note("stack-overflow")
        self.last.append(Retired(pc, word, len(self.interrupted), tuple(self._accesses)))
        self.states.append((pc, tuple(self.hart.x)))
        if len(self.last) > 2 * _LAST:
            del self.last[:_LAST], self.states[:_LAST]
        self._accesses.clear()
        self.count += 1
        self._divisor()

    def _follow_calls(self, pc: int, word: int, size: int) -> None:
        after = self.hart.pc
        name = _jump(word, self.hart.xlen)
        if name == "call":
            self.stack.append(pc + size)
            if len(self.stack) > _DEEP:
                self.note("endless-recursion")
        elif name == "return" and self.stack:
            expected = self.stack.pop()
            if after != expected:
                self.note("smashed-return")
                self.stack.clear()
        elif name == "trap return" and self.interrupted:
            _, self.stack = self.interrupted.pop()

    def _divisor(self) -> None:
        """Remember the registers before the next instruction."""
        self._registers = list(self.hart.x)

    _registers: list[int] | None = None

    def _look_at_division(self, word: int) -> None:
        is_division = word & 0x7F in (0x33, 0x3B) and word >> 25 == 1 and word >> 12 & 4
        if is_division and self._registers is not None and not self._registers[word >> 20 & 31] & 0xFFFF_FFFF:
            self.note("division-by-zero")

    def trapped(self, trap: TrapEntry) -> None:
        self.traps.append((self.count, trap))
        self.interrupted.append((trap, self.stack))
        self.stack = []
        if not trap.interrupt and trap.epc not in self.symbols.code:
            self.note("wild-jump")

    # -- at the end

    def conclude(self, ran_on: "frozenset[int]") -> str:
        """Return what happened first. *ran_on*: the addresses of what ran later, when the run had been watched."""
        stays = self._stays(ran_on)
        if stays and stays != SANE:
            self.note(stays)
        order = ("endless-recursion", "stack-overflow", "smashed-return", "wild-jump", "begun-again")
        causes = [it for it in order if it in self.happened]
        if causes:
            return min(causes, key=lambda it: (self.happened[it], order.index(it)))
        rest = [it for it in self.happened if it != "division-by-zero"]
        return next(iter(rest), "division-by-zero" if "division-by-zero" in self.happened else SANE)

    def _stays(self, ran_on: "frozenset[int]") -> str:
        late = self.last[-_LAST // 2 :]
        if self._ended(late):
            return SANE
        if self._repeats_a_trap():
            return "trap-loop"
        if self._storm(late):
            return "interrupt-storm"
        here = Counter(it.pc for it in late if it.depth == late[-1].depth)
        inside = {it for it, times in here.items()}
        handlers = {it.pc for it in self.last if it.depth > late[-1].depth}
        if len(inside) > 60 or not ran_on <= inside | handlers | self.handled:
            return SANE
        if late[-1].depth and not self.interrupted[-1][0].interrupt:
            return "fault"
        return self._kind_of_loop(late, inside)

    handled: frozenset[int] = frozenset()
    endless = False
    """Whether the program has a main loop that never ends."""

    def _ended(self, late: list[Retired]) -> bool:
        places = self.symbols.places
        return bool(late) and late[-1].pc in range(places["_exit"], places["done"] + 2)

    @cached_property
    def _wakes(self) -> bool:
        clint = self.hart.clint
        return clint is not None and clint.can_wake and bool(self.hart.csr.trap.mie & 1 << 7)

    def _repeats_a_trap(self) -> bool:
        late = [trap for _, trap in self.traps[-4:] if not trap.interrupt]
        near = bool(self.traps) and self.count - self.traps[-1][0] < 300
        same = len(late) == 4 and len({it.epc for it in late}) == 1
        return same and near and self.traps[-1][0] - self.traps[-4][0] < 900

    def _storm(self, late: list[Retired]) -> bool:
        recent = [at for at, trap in self.traps if trap.interrupt and at > self.count - len(late)]
        outside = sum(it.depth == 0 for it in late)
        return len(recent) > 20 and outside < 0.1 * len(late)

    def _stores_change(self, late: list[Retired]) -> bool:
        """Whether a place was given different values in the loop."""
        values: dict[int, set[int]] = {}
        for at, address, value in self.stores:
            if at >= self.count - len(late):
                values.setdefault(address, set()).add(value)
        return any(len(it) > 1 for it in values.values())

    def _kind_of_loop(self, late: list[Retired], inside: set[int]) -> str:
        depth = late[-1].depth
        own = [(it, state) for it, state in zip(late, self.states[-len(late) :], strict=True) if it.depth == depth]
        head = Counter(it.pc for it, _ in own).most_common()[-1][0]
        visits = [state for it, (_, state) in own if it.pc == head]
        atomics = any(it.word & 0x7F == 0x2F for it, _ in own)
        loads = any(it.loads for it, _ in own)
        if any(it.word == 0x1050_0073 for it, _ in own):
            return SANE if self._wakes else "sleeps"
        if not any(_leads_out(it, inside) for it, _ in own):
            places = self.symbols.places
            in_main = any(places["main"] <= it < places["main"] + self.symbols.sizes["main"] for it in inside)
            return SANE if self.endless and in_main else "no-way-out"
        if len(set(visits)) == 1 and not self._stores_change(late):
            return "waits-for-lock" if atomics else "waits" if loads else "no-way-out"
        if len(set(visits)) <= len(visits) // 2 and loads:
            return "follows-pointers"
        return "counts-past-bound"


def _leads_out(retired: Retired, inside: set[int]) -> bool:
    """Return whether an instruction is a branch that can lead out of a loop, by its encoding."""
    pc, word = retired.pc, retired.word
    if word & 3 == 3:
        offset = (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1
        return word & 0x7F == 0x63 and not {pc + 4, pc + offset - (offset >> 12 << 13)} <= inside
    if word & 0xC003 != 0xC001:
        return False
    offset = (word >> 12 & 1) << 8 | (word >> 5 & 3) << 6 | (word >> 2 & 1) << 5 | (word >> 10 & 3) << 3
    offset |= (word >> 3 & 3) << 1
    return not {pc + 2, pc + offset - (offset >> 8 << 9)} <= inside


def _jump(word: int, xlen: int) -> str:
    """Return what an instruction does to the calls, by its encoding."""
    if word == 0x3020_0073:
        return "trap return"
    if word & 3 == 3:
        rd, rs1, opcode = word >> 7 & 31, word >> 15 & 31, word & 0x7F
        if opcode in (0x6F, 0x67) and rd == 1:
            return "call"
        return "return" if opcode == 0x67 and rd == 0 and rs1 == 1 else ""
    if xlen == 32 and word & 0xE003 == 0x2001:  # c.jal
        return "call"
    if word & 0xF07F == 0x8002 and word >> 7 & 31:
        return "return" if word >> 7 & 31 == 1 else ""
    return "call" if word & 0xF07F == 0x9002 and word >> 7 & 31 else ""
