"""Sample profiles as LLVM has them: how often each place of each function ran, by lines and discriminators.

A place is (lines from the one in which the function is declared, discriminator). Its count is that of the instruction
of it that ran most, or of its calls if these are more; the total of a function is the sum over its instructions. Where
a function was inlined, what ran of it belongs to the place of its call. Code that did not run, of functions that did,
has the count 0.

Source: LLVM 19, llvm/ProfileData/SampleProf.h, and what llvm-profgen makes of ranges and branches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.program.source.inline_frames import InlineFrames, SourceFrame
from rvtrace_gdb.reports.pgo.discriminators import base_of, duplication_of
from rvtrace_gdb.reports.pgo.program_counts import CodeStep, ProgramCounts

_OFFSETS = 0xFFFF


class SamplePlace(NamedTuple):
    """A place in a function: *offset* in lines from its first one, and *discriminator*, 0 without one."""

    offset: int
    discriminator: int


@dataclass
class FunctionSamples:
    """What ran of a function.

    name     as linkers have it
    total    the sum of the counts of its instructions, those of inlined functions included
    head     how often it was entered, as a function of its own
    body     the counts of its places
    calls    of its places with calls: how often which function was called
    inlined  of its places: the functions that were inlined there, by name
    """

    name: str
    total: int = 0
    head: int = 0
    body: dict[SamplePlace, int] = field(default_factory=dict)
    calls: dict[SamplePlace, dict[str, int]] = field(default_factory=dict)
    inlined: dict[SamplePlace, dict[str, "FunctionSamples"]] = field(default_factory=dict)

    def inside(self, place: SamplePlace, name: str) -> "FunctionSamples":
        """Return what ran of a function that was inlined at a place."""
        return self.inlined.setdefault(place, {}).setdefault(name, FunctionSamples(name))

    def count_instruction(self, place: SamplePlace, times: int) -> None:
        """Count an instruction."""
        self.body[place] = max(self.body.get(place, 0), times)

    def add(self, other: "FunctionSamples") -> None:
        """Add what ran at other times, of a function into which nothing is nested."""
        self.total += other.total
        self.head += other.head
        for place, times in other.body.items():
            self.body[place] = self.body.get(place, 0) + times
        for place, targets in other.calls.items():
            for name, times in targets.items():
                self.call(place, name, times)

    def call(self, place: SamplePlace, callee: str, times: int) -> None:
        """Count calls."""
        targets = self.calls.setdefault(place, {})
        targets[callee] = targets.get(callee, 0) + times

    def cover_calls(self) -> None:
        """Count places at least as often as what they called. Copies of a call, those of an unrolled loop, say, ran
        less, each by itself.
        """
        for place, targets in self.calls.items():
            self.body[place] = max(self.body.get(place, 0), sum(targets.values()))
        for inlined in self.inlined.values():
            for samples in inlined.values():
                samples.cover_calls()


class SampleProfile:
    """The samples of a *program*. *frames*: of the code of all functions that ran (`covered`)."""

    def __init__(self, program: ProgramCounts, frames: InlineFrames) -> None:
        self._program, self._frames = program, frames
        self.functions: dict[str, FunctionSamples] = {}
        """By the names of the functions."""
        self.unknown = 0
        """Instructions that ran, of which the function or the line is not known."""

    def add_code(self, ran: Mapping[int, int]) -> None:
        """Add how often instructions ran."""
        for pc, times in sorted(ran.items()):
            frames = self._frames.complete_frames(pc)
            if not frames:
                self.unknown += times
                continue
            times *= duplication_of(frames[0].discriminator)
            leaf, place = self._leaf(frames, times)
            leaf.count_instruction(place, times)

    def add_calls(self, steps: Mapping[CodeStep, int]) -> None:
        """Add the calls among some steps."""
        for (source, target), times in sorted(steps.items()):
            name = function_name(self._program, self._frames, target)
            if not name or times <= 0 or not self._program.is_start(target):
                continue
            if not self._program.is_entry(source, target):
                continue
            frames = self._frames.complete_frames(source)
            if frames:
                leaf, place = self._leaf(frames, 0)
                leaf.call(place, name, times)
            if self._frames.at(target):
                self._samples_of(name).head += times

    def _samples_of(self, name: str) -> FunctionSamples:
        return self.functions.setdefault(name, FunctionSamples(name))

    def _leaf(self, frames: tuple[SourceFrame, ...], times: int) -> tuple[FunctionSamples, SamplePlace]:
        """Return the samples of the function of an instruction, and its place there; count *times* in all that it is
        inlined into.
        """
        *callers, _ = [(frame.function, place_of(frame)) for frame in reversed(frames)]
        samples = self._samples_of(frames[-1].function)
        samples.total += times
        for (_, place), frame in zip(callers, reversed(frames[:-1]), strict=True):
            samples = samples.inside(place, frame.function)
            samples.total += times
        return samples, place_of(frames[0])


def place_of(frame: SourceFrame) -> SamplePlace:
    """Return the place of a frame in its function."""
    return SamplePlace(frame.line - frame.first_line & _OFFSETS, base_of(frame.discriminator))


def function_name(program: ProgramCounts, frames: InlineFrames, start: int) -> str:
    """Return the name of the function that begins at an address: the one that its samples have, else the linker's, ""
    without one. Of a function that has several symbols, debug information knows one name.
    """
    found = frames.at(start)
    return found[-1].function if found and found[-1].function else program.linker_names.get(start, "")


def covered(program: ProgramCounts) -> dict[int, int]:
    """Return how often each instruction of the functions that ran was run, 0 for those that were not."""
    found = dict.fromkeys(_code(program), 0)
    found.update(program.ran)
    return found


def _code(program: ProgramCounts) -> Iterable[int]:
    ran = {function for pc in program.ran if (function := program.function_at(pc)) is not None}
    for function in sorted(ran):
        yield from program.code_of(function)


def sample_profile(program: ProgramCounts) -> tuple[SampleProfile, list[str]]:
    """Return the samples of a program, and what is wrong with its debug information."""
    ran = covered(program)
    frames = InlineFrames(program.elf, ran)
    profile = SampleProfile(program, frames)
    profile.add_code(ran)
    profile.add_calls(program.steps)
    for samples in profile.functions.values():
        samples.cover_calls()
    return profile, frames.problems
