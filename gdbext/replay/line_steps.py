"""Where gdb goes on at each instruction while it steps by lines in the past: the session then spares it these steps.

gdb steps backward, and over inlined functions, one instruction at a time: each takes it about a millisecond. The hooks
of its commands say which one begins (`trace enter`), the unwinder where gdb looks. Then the session is told in which
addresses gdb would go on, whichever it is at (`session.replay.step_regions`):

- In what the line table has for a line, within one function or inlined function: there gdb is in a line that it steps
  over, or it would have stopped.
- `next` and `finish`: in all of an inlined function, called from the one that gdb steps in or finishes to.

gdb looks at the beginnings of such ranges, where it may stop for a new line, or for the call of an inlined function.
With watchpoints in software, gdb looks at each instruction. `set range-stepping off` lets it do so always.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.tracer import tracer

_BY_LINES = ("step", "next", "until", "finish")
_OVER = ("next", "until")
_WATCHPOINTS = (
    gdb.BP_WATCHPOINT, gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_READ_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT
)  # fmt: skip
_LARGEST = 1 << 14  # bytes of code that are looked at for a region
_INSTRUCTION = 2  # bytes: the alignment of instructions
_PASSES_BEGINNINGS = 16
"""Since this version gdb, stepping backward from the beginning of a line, does not end when it comes to it again."""

_LEAVES_CALLS = 14
"""Since this version gdb, stepping backward, remembers that it left a call, and may stop anywhere until it is done."""

FunctionChain = tuple[tuple[int, int, str], ...]
"""The function at an address, and those that it is inlined in, innermost first: (start, end, name)."""


class InvocationLevel(NamedTuple):
    """Which invocation of a function a frame is: `rows.answers.FrameRow`."""

    stack: int
    level: int


class _SteppedRegion(NamedTuple):
    """Ranges of addresses, and whether gdb goes on at their beginnings, too, where it did so before."""

    ranges: list[tuple[int, int]]
    repeats: bool


class LineSteps:
    """The command that steps by lines, while gdb works on it."""

    def __init__(self) -> None:
        self._command = ""
        self._backward = False
        self._within: FunctionChain = ()  # the function that gdb steps in, or finishes to; () for neither
        self._level: InvocationLevel | None = None
        self._regions: dict[tuple[int, bool], _SteppedRegion | None] = {}

    def begin(self, command: str, level: InvocationLevel | None) -> None:
        """Note that gdb begins a command in the past. *level*: that of its innermost frame."""
        self.end()
        name = command[len("reverse-") :] if command.startswith("reverse-") else command
        if name not in _BY_LINES or level is None or not gdb.parameter("range-stepping") or _has_watchpoints():
            return
        self._within = _finished_to() if name == "finish" else _functions_of(gdb.newest_frame())
        if name == "finish" and not self._within:
            return
        self._command, self._level = name, level
        self._backward = name != command or "everse" in neutral.printed("show exec-direction")

    def end(self) -> None:
        """Note that gdb has stopped."""
        command, self._command = self._command, ""
        self._within, self._level = (), None
        self._regions.clear()
        if command:
            tracer().request("steps", thread_hart=selected_hart())

    def look(self, number: int, pc: int, level: InvocationLevel) -> None:
        """Note that gdb looks at the instruction with a number, to go on or not."""
        if not self._command:
            return
        region = self._region(pc, self._is_same_invocation(level))
        if region is not None:
            ends = [end for part in region.ranges for end in part]
            repeats = {"repeats": True} if region.repeats else {}
            with contextlib.suppress(gdb.GdbError):  # gdb then looks at each instruction
                tracer().request("steps", thread_hart=selected_hart(), number=number, ranges=ends, **repeats)

    def _is_same_invocation(self, level: InvocationLevel) -> bool:
        """Return whether gdb is in the invocation in which the command began; not any more once that was left."""
        if self._level is None:
            return False
        if level.stack == self._level.stack and level.level < self._level.level:
            self._level = None
        return level == self._level

    def _region(self, pc: int, same_invocation: bool) -> _SteppedRegion | None:
        """Return the region around *pc*; None if gdb has to look at each instruction there."""
        for (_, same), known in self._regions.items():
            if known is not None and same == same_invocation and any(first <= pc < end for first, end in known.ranges):
                return known
        key = pc, same_invocation
        if key not in self._regions:
            self._regions[key] = self._new_region(pc, same_invocation)
        return self._regions[key]

    def _new_region(self, pc: int, same_invocation: bool) -> _SteppedRegion | None:
        if self._backward and not same_invocation and _version() >= _LEAVES_CALLS:
            return None
        functions = _functions_at(pc)
        inlined = functions[-len(self._within) - 1 :]
        if self._command != "step" and same_invocation and self._within and inlined[1:] == self._within:
            return self._whole_of(inlined)
        return None if self._command == "finish" else self._part_of_line(pc, functions)

    def _whole_of(self, inlined: FunctionChain) -> _SteppedRegion | None:
        """Return all of an inlined function, with what is inlined in it. gdb looks at what has no line."""
        begin, end, _ = inlined[0]
        if end - begin > _LARGEST:
            return None
        inside = (at for at in range(begin, end, _INSTRUCTION) if _functions_at(at)[-len(inlined) :] == inlined)
        ranges = _address_ranges(at for at in inside if _line_at(at))
        return _SteppedRegion(ranges, not self._backward or _passes_beginnings())

    def _part_of_line(self, pc: int, functions: FunctionChain) -> _SteppedRegion | None:
        """Return what the line table has for the line at *pc*, as far as it is in the same functions."""
        line = _line_at(pc)
        if line is None or line[1] - line[0] > _LARGEST:
            return None
        addresses = range(line[0], line[1], _INSTRUCTION)
        ranges = _address_ranges(at for at in addresses if _line_at(at) == line and _functions_at(at) == functions)
        around = [part for part in ranges if part[0] <= pc < part[1]]
        if not around:
            return None
        return _SteppedRegion(around, around[0][0] == line[0] and self._passes_beginning(line[0], functions))

    def _passes_beginning(self, pc: int, functions: FunctionChain) -> bool:
        """Return whether gdb goes on at the beginning of a line, where it did so before."""
        if any(pc == begin for begin, _, _ in functions[:-1]):
            return False  # `step` stops for an inlined function
        return not self._backward or _passes_beginnings() or _begins_function(pc)


def _has_watchpoints() -> bool:
    return any(it.is_valid() and it.enabled and it.type in _WATCHPOINTS for it in gdb.breakpoints())


def _version() -> int:
    version = re.match(r"\d+", gdb.VERSION)
    return 0 if version is None else int(version[0])


def _passes_beginnings() -> bool:
    return _version() >= _PASSES_BEGINNINGS


def _begins_function(pc: int) -> bool:
    """Return whether gdb takes an address for the beginning of a function: backward, it goes on there to the call."""
    address = f"{pc:#x}"
    said = neutral.printed(f"info symbol {address}")
    return re.search(r" \+ \d+ ", said) is None and address not in said


def _functions_at(pc: int) -> FunctionChain:
    """Return the functions at an address, () if that is not known."""
    try:
        return _functions_around(gdb.block_for_pc(pc))
    except (RuntimeError, gdb.error):
        return ()


def _functions_of(frame: gdb.Frame) -> FunctionChain:
    """Return the function of a frame, and those that it is inlined in, () if that is not known."""
    try:
        return _functions_around(frame.block())
    except (RuntimeError, gdb.error):
        return ()


def _functions_around(block: gdb.Block | None) -> FunctionChain:
    found: list[tuple[int, int, str]] = []
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            found.append((int(block.start), int(block.end), str(block.function)))
        block = block.superblock
    return tuple(found)


def _finished_to() -> FunctionChain:
    """Return the function that `finish` leads to from the selected frame, if that is one of an inlined function within
    the one that runs; else ().
    """
    frame: gdb.Frame | None = gdb.newest_frame()
    while frame is not None and frame.type() == gdb.INLINE_FRAME:
        older = frame.older()
        if frame == gdb.selected_frame():
            return () if older is None else _functions_of(older)
        frame = older
    return ()


def _line_at(pc: int) -> tuple[int, int] | None:
    """Return the addresses that the line table has for the line at *pc*; None without a line."""
    found = gdb.find_pc_line(pc)
    return (int(found.pc), int(found.last) + 1) if found.line and found.last is not None else None


def _address_ranges(addresses: Iterable[int]) -> list[tuple[int, int]]:
    """Return the ranges that consecutive addresses of instructions make."""
    ranges: list[tuple[int, int]] = []
    for at in addresses:
        if ranges and ranges[-1][1] == at:
            ranges[-1] = ranges[-1][0], at + _INSTRUCTION
        else:
            ranges.append((at, at + _INSTRUCTION))
    return ranges


line_steps = LineSteps()
