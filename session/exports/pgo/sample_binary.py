"""LLVM's raw binary form of sample profiles, which its compilers and `llvm-profdata` read.

All numbers are ULEB128. The header is a magic and a version; a summary follows, the table of names, and the functions.

Source: LLVM 19, llvm/ProfileData/SampleProfReader.h ("Raw binary format"), ProfileSummaryBuilder.cpp (the summary).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from rvtrace_gdb.reports.pgo.samples import FunctionSamples
from rvtrace_gdb.session.exports.pgo.sample_text import ordered

MAGIC = int.from_bytes(b"SPROF42\0", "big")
"""What files begin with; the last byte says which form it is."""
VERSION = 103
_RAW = 0xFF
_SCALE = 1_000_000
_CUTOFFS = (
    10000, 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000, 900000, 950000, 990000, 999000, 999900,
    999990, 999999,
)  # fmt: skip
"""The shares, in millionths, of which the summary says how few of the greatest counts make them up."""


def sample_bytes(functions: Iterable[FunctionSamples]) -> bytes:
    """Return the form of some functions."""
    found = ordered(functions)
    names = numbered_names(chain.from_iterable(map(_names, found)))
    out = bytearray(uleb(MAGIC | _RAW) + uleb(VERSION) + profile_summary(found) + name_table(names))
    for function in found:
        out += uleb(function.head) + _function_bytes(function, names)
    return bytes(out)


def numbered_names(names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of names in the table."""
    return {name: number for number, name in enumerate(sorted(set(names)))}


def name_table(names: Iterable[str]) -> bytes:
    """Return the table of names in the order of their numbers."""
    found = [name.encode(errors="surrogateescape") + b"\0" for name in names]
    return uleb(len(found)) + b"".join(found)


def _names(function: FunctionSamples) -> Iterator[str]:
    yield function.name
    for targets in function.calls.values():
        yield from targets
    for inlined in _inlined(function):
        yield from _names(inlined)


def _inlined(function: FunctionSamples) -> Iterator[FunctionSamples]:
    for by_name in function.inlined.values():
        yield from by_name.values()


def _function_bytes(function: FunctionSamples, names: dict[str, int]) -> bytes:
    return uleb(names[function.name]) + body_bytes(function, names)


def body_bytes(function: FunctionSamples, names: dict[str, int]) -> bytes:
    """Return what follows the name of a function. *names*: the numbers of names in the table."""
    places = sorted({*function.body, *function.calls})
    out = bytearray(uleb(function.total) + uleb(len(places)))
    for place in places:
        calls = sorted(function.calls.get(place, {}).items(), key=lambda it: (-it[1], it[0]))
        out += uleb(place.offset) + uleb(place.discriminator) + uleb(function.body.get(place, 0)) + uleb(len(calls))
        for name, times in calls:
            out += uleb(names[name]) + uleb(times)
    sites = [(place, one) for place in sorted(function.inlined) for one in function.inlined[place].values()]
    out += uleb(len(sites))
    for place, one in sorted(sites, key=lambda it: (it[0], it[1].name)):
        out += uleb(place.offset) + uleb(place.discriminator) + _function_bytes(one, names)
    return bytes(out)


def profile_summary(functions: list[FunctionSamples]) -> bytes:
    """Return the summary of a profile: how large its counts are."""
    counts = Counter(chain.from_iterable(map(_counts, functions)))
    total = sum(count * times for count, times in counts.items())
    head = max((function.head for function in functions), default=0)
    entries = list(_summary_entries(counts, total))
    facts = (total, max(counts, default=0), head, sum(counts.values()), len(functions), len(entries))
    return b"".join(map(uleb, chain(facts, chain.from_iterable(entries))))


def _counts(function: FunctionSamples) -> Iterator[int]:
    yield from function.body.values()
    for inlined in _inlined(function):
        yield from _counts(inlined)


def _summary_entries(counts: Counter[int], total: int) -> Iterator[tuple[int, int, int]]:
    """Yield (share, least count, number of counts): the greatest counts, as many as make up each share."""
    falling = sorted(counts.items(), reverse=True)
    at = reached = number = least = 0
    for cutoff in _CUTOFFS:
        wanted = total * cutoff // _SCALE
        while reached < wanted and at < len(falling):
            least, times = falling[at]
            reached += least * times
            number += times
            at += 1
        yield cutoff, least, number


def uleb(value: int) -> bytes:
    """Return a number as ULEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
