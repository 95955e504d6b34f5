"""Where gdb's commands lead in what a hart retired: a model that knows the disassembly of objdump and nothing else.

Positions are counted from 0 in the list of retired addresses; its length stands for the present. Source: GDB manual,
"Running programs backward"; "Continuing and Stepping".
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f]+) *\t(\S+)(?:\t([^#<\n]*))?", re.M)


class Code:
    """What objdump says of a program: which instructions call, return, and return from traps."""

    def __init__(self, elf: Path) -> None:
        text = _output("riscv64-unknown-elf-objdump", "-d", "-M", "no-aliases", str(elf))
        self.calls, self.returns, self.trap_returns = dict[int, int](), set[int](), set[int]()
        for address, code, name, operands in _LINE.findall(text):
            pc, behind = int(address, 16), int(address, 16) + len(code) // 2
            first = operands.split(",")[0].strip()
            if (name in ("jal", "jalr") and first in ("ra", "t0")) or name in ("c.jal", "c.jalr"):
                self.calls[pc] = behind
            elif name in ("jalr", "c.jr") and re.search(r"\b(ra|t0)\b", operands):
                self.returns.add(pc)
            elif name in ("mret", "sret"):
                self.trap_returns.add(pc)
        symbols = _output("riscv64-unknown-elf-nm", str(elf)).split("\n")
        self.symbols = {words[2]: int(words[0], 16) for words in map(str.split, symbols) if len(words) == 3}

    def function(self, pc: int) -> int:
        """Where the function begins in which an instruction is."""
        return max(address for address in self.symbols.values() if address <= pc)


class Walk:
    """The model. *handlers*: addresses that nothing but a trap leads to."""

    def __init__(self, code: Code, pcs: Sequence[int], handlers: frozenset[int]) -> None:
        self.pcs, self.present, self._main = pcs, len(pcs), code.symbols["main"]
        self.breakpoints: set[int] = set()
        self.called_at: list[tuple[int, ...]] = []
        """For each position the calls and traps under way: the positions of what made them, oldest first."""
        stack: tuple[tuple[int, bool], ...] = ()
        for position, pc in enumerate(pcs):
            self.called_at.append(tuple(at for at, _ in stack))
            following = pcs[position + 1] if position + 1 < len(pcs) else None
            if pc in code.calls and following != code.calls[pc]:
                stack += ((position, False),)
            elif pc in code.returns:
                stack = stack[:-1]
            elif pc in code.trap_returns:
                while stack and not stack[-1][1]:
                    stack = stack[:-1]
                stack = stack[:-1]
            if following in handlers:
                stack += ((position, True),)
        self.called_at.append(tuple(at for at, _ in stack))

    def stepi(self, here: int, direction: int, count: int = 1) -> int:
        """`stepi COUNT`, `reverse-stepi COUNT`."""
        for _ in range(count):
            here = self._one(here, direction)
            if self._stops(here):
                break
        return here

    def run(self, here: int, direction: int, until: int | None = None) -> int:
        """`continue`, `reverse-continue`; not beyond *until*."""
        while True:
            before, here = here, self._one(here, direction)
            if here in (before, self.present, until) or self._stops(here):
                return here

    def nexti(self, here: int, direction: int) -> int:
        """`nexti`, `reverse-nexti`."""
        depth = len(self.called_at[here])
        there = self._one(here, direction)
        # gdb passes over what was called where it began, not over a handler that interrupts the first instruction there
        called = len(self.called_at[there]) == depth + 1
        if self._stops(there) or there in (here, self.present) or not called:
            return there
        return self.run(there, direction, self._leaves(there, depth) if direction > 0 else self._entered(there))

    def finish(self, here: int, direction: int) -> int:
        """`finish`, `reverse-finish`: an error, and no step, where the caller is not known."""
        calls = self.called_at[here]
        entry = calls[-1] + 1 if calls else None
        main_runs = entry is not None and entry < self.present and self.pcs[entry] == self._main
        if not calls or main_runs:  # gdb takes main for the outermost frame
            return here
        return self.run(here, direction, self._leaves(here, len(calls) - 1) if direction > 0 else self._entered(here))

    def _leaves(self, here: int, depth: int) -> int | None:
        """The first position behind that is not a deeper."""
        return next((r for r in range(here + 1, self.present) if len(self.called_at[r]) <= depth), None)

    def _entered(self, here: int) -> int | None:
        """What ran before the first instruction of the function that runs.

        That is the call; where an interrupt came before that instruction, it is the end of the handler.
        """
        calls = self.called_at[here]
        inside = [r for r in range(calls[-1] + 1, here + 1) if self.called_at[r] == calls]
        return inside[0] - 1 if inside else None

    def _one(self, here: int, direction: int) -> int:
        return min(max(here + direction, 0), self.present)

    def _stops(self, here: int) -> bool:
        return here < self.present and self.pcs[here] in self.breakpoints


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
