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


def _inside(function: FunctionSamples, depth: int) -> Iterator[str]:
    indent = " " * depth
    for place in sorted({*function.body, *function.calls}):
        calls = function.calls.get(place, {})
        targets = "".join(f" {name}:{times}" for name, times in sorted(calls.items(), key=lambda it: (-it[1], it[0])))
        yield f"{indent}{_place(place)}: {function.body.get(place, 0)}{targets}"
    for place in sorted(function.inlined):
        for inlined in sorted(function.inlined[place].values(), key=lambda it: it.name):
            yield f"{indent}{_place(place)}: {inlined.name}:{inlined.total}"
            yield from _inside(inlined, depth + 1)


def _place(place: SamplePlace) -> str:
    return f"{place.offset}.{place.discriminator}" if place.discriminator else str(place.offset)
