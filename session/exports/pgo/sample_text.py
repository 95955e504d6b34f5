"""LLVM's text form of sample profiles.

Source: LLVM 19, llvm/ProfileData/SampleProfReader.h ("Text format"), SampleProfWriter.cpp (order).
"""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.reports.pgo.samples import FunctionSamples, SamplePlace


def sample_lines(functions: Iterable[FunctionSamples]) -> Iterator[str]:
    """Yield the lines of some functions."""
    for function in ordered(functions):
        yield f"{function.name}:{function.total}:{function.head}"
        yield from _inside(function, 1)


def ordered(functions: Iterable[FunctionSamples]) -> list[FunctionSamples]:
    """Return functions in the order of the form: most first."""
    return sorted(functions, key=lambda it: (-it.total, it.name))


def place_lines(function: FunctionSamples, depth: int) -> Iterator[str]:
    """Yield the lines of the places of a function, without those of functions that were inlined into it."""
    indent = " " * depth
    for place in sorted({*function.body, *function.calls}):
        calls = function.calls.get(place, {})
        targets = "".join(f" {name}:{times}" for name, times in sorted(calls.items(), key=lambda it: (-it[1], it[0])))
        yield f"{indent}{place_text(place)}: {function.body.get(place, 0)}{targets}"


def _inside(function: FunctionSamples, depth: int) -> Iterator[str]:
    indent = " " * depth
    yield from place_lines(function, depth)
    for place in sorted(function.inlined):
        for inlined in sorted(function.inlined[place].values(), key=lambda it: it.name):
            yield f"{indent}{place_text(place)}: {inlined.name}:{inlined.total}"
            yield from _inside(inlined, depth + 1)


def place_text(place: SamplePlace) -> str:
    """Return a place as the form has it."""
    return f"{place.offset}.{place.discriminator}" if place.discriminator else str(place.offset)
