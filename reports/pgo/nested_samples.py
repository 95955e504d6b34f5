"""Sample profiles in which each call has what ran in it, as if all that was called had been inlined.

Compilers that know no contexts take them: they inline what ran enough there, and add the rest to the profile of the
function itself. That needs both in one unit of compilation: of a function that another unit calls, what ran is in the
caller and in the profile of its own.
"""

from rvtrace_gdb.reports.pgo.context_samples import ContextSampleProfile, SampleContext
from rvtrace_gdb.reports.pgo.samples import FunctionSamples


def nested_samples(profile: ContextSampleProfile) -> dict[str, FunctionSamples]:
    """Return the samples of the functions that nobody is known to call, or that another unit calls, by name."""
    found: dict[str, FunctionSamples] = {}
    for context, samples in profile.contexts.items():
        for first in range(len(context.callers) + 1):
            below = SampleContext(context.callers[:first], _function(context, first))
            if not first or below in profile.other_units:
                _add_context(found, context, first, samples)
    for function in found.values():
        _drop_calls(function)
    return found


def _function(context: SampleContext, at: int) -> str:
    return context.callers[at].function if at < len(context.callers) else context.function


def _add_context(
    total: dict[str, FunctionSamples], context: SampleContext, first: int, samples: FunctionSamples
) -> None:
    """Add the samples of a context to those of one of its callers, by number, or its own function."""
    name = _function(context, first)
    into = total.setdefault(name, FunctionSamples(name))
    for number, frame in enumerate(context.callers[first:], first + 1):
        into.total += samples.total
        into = into.inside(frame.place, _function(context, number))
    into.add(samples)
    if first < len(context.callers):
        into.head = 0


def _drop_calls(function: FunctionSamples) -> None:
    """Take out the calls of which the function has what ran in them."""
    for place, inlined in function.inlined.items():
        targets = function.calls.get(place, {})
        left = function.body.get(place, 0) - sum(targets.pop(name, 0) for name in inlined)
        if left > 0:
            function.body[place] = left
        else:
            function.body.pop(place, None)
        if not targets:
            function.calls.pop(place, None)
        for of_call in inlined.values():
            _drop_calls(of_call)
