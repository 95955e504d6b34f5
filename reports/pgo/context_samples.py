"""Sample profiles with call contexts, as LLVM has them (CSSPGO): the samples of a function, for each way it was called.

A context is the places of the calls that led to a function. Inlined functions have contexts, too: nothing is nested.

Source: LLVM 19, llvm/ProfileData/SampleProf.h (SampleContext), and what llvm-profgen makes of ranges with contexts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.decode.program.source.inline_frames import InlineFrames, SourceFrame
from rvtrace_gdb.reports.pgo.call_contexts import CallContext, ContextTally
from rvtrace_gdb.reports.pgo.discriminators import duplication_of
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts
from rvtrace_gdb.reports.pgo.samples import FunctionSamples, SamplePlace, covered, function_name, place_of


class ContextFrame(NamedTuple):
    """A function, and the place in it that called the next one."""

    function: str
    place: SamplePlace


class SampleContext(NamedTuple):
    """A *function*, and the calls that led to it, the outermost first."""

    callers: tuple[ContextFrame, ...]
    function: str

    @property
    def caller(self) -> "SampleContext":
        """The context of the function that called."""
        return SampleContext(self.callers[:-1], self.callers[-1].function)


ContextProfile = dict[SampleContext, FunctionSamples]


class ContextSampleProfile:
    """The samples of a *program* whose contexts are counted. *frames*: of the code of all functions that ran."""

    def __init__(self, program: ProgramCounts, frames: InlineFrames) -> None:
        self._program, self._frames = program, frames
        self.contexts: ContextProfile = {}
        self.other_units: set[SampleContext] = set()
        """The contexts of functions that another unit of compilation called."""
        for context, tally in program.contexts.items():
            _add_profile(self.contexts, self._of_tally(context, tally))
        for samples in self.contexts.values():
            samples.cover_calls()
        self.unknown = sum(times for pc, times in program.ran.items() if not frames.complete_frames(pc))
        """Instructions that ran, of which the function or the line is not known."""

    def place(self, context: CallContext, pc: int) -> tuple[SampleContext, SourceFrame] | None:
        """Return the context of an instruction, and its place in the innermost function; None if that is not known."""
        frames = self._frames.complete_frames(pc)
        if not frames:
            return None
        callers = (*self._callers(context), *_inlined_into(frames))
        return SampleContext(callers, frames[0].function), frames[0]

    def _callers(self, context: CallContext) -> tuple[ContextFrame, ...]:
        found: tuple[ContextFrame, ...] = ()
        for site in context.sites:
            frames = self._frames.complete_frames(site)
            last = (ContextFrame(frames[0].function, place_of(frames[0])),) if frames else ()
            found = (*found, *_inlined_into(frames), *last) if frames else ()
        return found

    def _of_tally(self, context: CallContext, tally: ContextTally) -> ContextProfile:
        """Return the samples of what ran in one context."""
        found: ContextProfile = {}
        for pc, times in tally.ran.items():
            where = self.place(context, pc)
            if where is not None:
                times *= duplication_of(where[1].discriminator)
                samples = _samples_of(found, where[0])
                samples.total += times
                samples.count_instruction(place_of(where[1]), times)
        for (site, callee), times in tally.calls.items():
            where, name = self.place(context, site), function_name(self._program, self._frames, callee)
            if where is not None and name and times:
                _samples_of(found, where[0]).call(place_of(where[1]), name, times)
        name = function_name(self._program, self._frames, context.function)
        own = found.get(SampleContext(self._callers(context), name))
        if own is not None:
            own.head += tally.entries
            if context.sites and not self._frames.in_one_unit(context.sites[-1], context.function):
                self.other_units.add(SampleContext(self._callers(context), name))
            self._add_rest(own, context)
        return found

    def _add_rest(self, samples: FunctionSamples, context: CallContext) -> None:
        """Add the places of a function that did not run in a context, but for those of functions inlined into it."""
        function = self._program.function_at(context.function)
        for pc in () if function is None else self._program.code_of(function):
            frames = self._frames.complete_frames(pc)
            if len(frames) == 1:
                samples.body.setdefault(place_of(frames[0]), 0)


def _inlined_into(frames: tuple[SourceFrame, ...]) -> tuple[ContextFrame, ...]:
    return tuple(ContextFrame(frame.function, place_of(frame)) for frame in reversed(frames[1:]))


def _samples_of(profile: ContextProfile, context: SampleContext) -> FunctionSamples:
    return profile.setdefault(context, FunctionSamples(context.function))


def _add_profile(total: ContextProfile, other: ContextProfile) -> None:
    """Add samples to others: those of copies of a call, say, which have the same place."""
    for context, samples in other.items():
        _samples_of(total, context).add(samples)


def add_inlined_calls(profile: ContextProfile) -> None:
    """Count the calls of inlined functions, for which no instruction is left, in those that they were inlined into:
    compilers that know contexts look for them there. It was made as often as the first place of the function ran.
    """
    for depth in range(max((len(it.callers) for it in profile), default=0), 0, -1):
        for context in [it for it in profile if len(it.callers) == depth]:
            samples = profile[context]
            if not samples.head:
                place, into = context.callers[-1].place, _samples_of(profile, context.caller)
                times = _first_count(samples)
                into.call(place, context.function, times)
                into.body[place] = into.body.get(place, 0) + times
                into.total += times


def _first_count(samples: FunctionSamples) -> int:
    counts = (times for _, times in sorted(samples.body.items()) if times)
    return next(counts, 0)


def context_samples(program: ProgramCounts) -> tuple[ContextSampleProfile, list[str]]:
    """Return the samples of a program, and what is wrong with its debug information."""
    frames = InlineFrames(program.elf, covered(program))
    return ContextSampleProfile(program, frames), frames.problems


def ordered_contexts(profile: ContextProfile) -> Iterable[tuple[SampleContext, FunctionSamples]]:
    """Return contexts in the order of the form: most first."""
    return sorted(profile.items(), key=lambda it: (-it[1].total, it[0].function, it[0].callers))
