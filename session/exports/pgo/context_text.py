"""LLVM's text form of sample profiles with call contexts.

    [main:3 @ filter:2.1 @ clamp]:1200:100
     1: 100
     2: 100 round:100

Source: LLVM 19, llvm/ProfileData/SampleProf.h (SampleContext), SampleProfWriter.cpp (order).
"""

from collections.abc import Iterator

from rvtrace_gdb.reports.pgo.context_samples import ContextProfile, SampleContext, ordered_contexts
from rvtrace_gdb.session.exports.pgo.sample_text import place_lines, place_text


def context_lines(profile: ContextProfile) -> Iterator[str]:
    """Yield the lines of some contexts."""
    for context, samples in ordered_contexts(profile):
        yield f"[{context_text(context)}]:{samples.total}:{samples.head}"
        yield from place_lines(samples, 1)


def context_text(context: SampleContext) -> str:
    """Return a context as the form has it."""
    return " @ ".join([*(f"{it.function}:{place_text(it.place)}" for it in context.callers), context.function])
