"""LLVM's extensible binary form of sample profiles, with call contexts.

After the magic and the version, a table has the type, the flags, the offset and the size of each section, in 64 bits
each. Contexts are numbered in an order in which each is followed by those inside it. So a compiler that builds one unit
loads only what begins in its functions.

Source: LLVM 19, llvm/ProfileData/SampleProf.h (sections and flags), SampleProfReader.cpp, SampleProfWriter.cpp.
"""

import struct
from itertools import chain

from rvtrace_gdb.reports.pgo.context_samples import ContextProfile, SampleContext
from rvtrace_gdb.reports.pgo.samples import FunctionSamples, SamplePlace
from rvtrace_gdb.session.exports.pgo.sample_binary import (
    MAGIC,
    VERSION,
    body_bytes,
    name_table,
    numbered_names,
    profile_summary,
    uleb,
)

_EXTENSIBLE = 4
_SUMMARY, _NAMES, _OFFSETS, _CONTEXTS, _SAMPLES = 1, 2, 4, 6, 32
_HAS_CONTEXTS, _IS_ORDERED = 1 << 33, 1 << 32
_INNERMOST = SamplePlace(0, 0)


def context_bytes(profile: ContextProfile) -> bytes:
    """Return the form of some contexts."""
    ordered = sorted(profile, key=_frames)
    names = numbered_names(chain.from_iterable(_names(context, profile[context]) for context in ordered))
    samples = [uleb(profile[it].head) + uleb(at) + body_bytes(profile[it], names) for at, it in enumerate(ordered)]
    offsets, end = bytearray(uleb(len(ordered))), 0
    for number, of_context in enumerate(samples):
        offsets += uleb(number) + uleb(end)
        end += len(of_context)
    return _sectioned_bytes([
        (_SUMMARY, _HAS_CONTEXTS, profile_summary(_by_function(profile))),
        (_NAMES, 0, name_table(names)),
        (_CONTEXTS, 0, uleb(len(ordered)) + b"".join(_context_bytes(context, names) for context in ordered)),
        (_OFFSETS, _IS_ORDERED, bytes(offsets)),
        (_SAMPLES, 0, b"".join(samples)),
    ])  # fmt: skip


def _sectioned_bytes(sections: list[tuple[int, int, bytes]]) -> bytes:
    out = bytearray(uleb(MAGIC | _EXTENSIBLE) + uleb(VERSION) + struct.pack("<Q", len(sections)))
    offset = len(out) + len(sections) * struct.calcsize("<4Q")
    for kind, flags, content in sections:
        out += struct.pack("<4Q", kind, flags, offset, len(content))
        offset += len(content)
    return bytes(out) + b"".join(content for _, _, content in sections)


def _frames(context: SampleContext) -> tuple[tuple[str, SamplePlace], ...]:
    return (*context.callers, (context.function, _INNERMOST))


def _context_bytes(context: SampleContext, names: dict[str, int]) -> bytes:
    frames = _frames(context)
    return uleb(len(frames)) + b"".join(
        uleb(names[function]) + uleb(place.offset) + uleb(place.discriminator) for function, place in frames
    )


def _names(context: SampleContext, samples: FunctionSamples) -> list[str]:
    return [*(function for function, _ in _frames(context)), *chain.from_iterable(samples.calls.values())]


def _by_function(profile: ContextProfile) -> list[FunctionSamples]:
    """Return the samples of functions without contexts, of which the summary is."""
    found: dict[str, FunctionSamples] = {}
    for context, samples in profile.items():
        found.setdefault(context.function, FunctionSamples(context.function)).add(samples)
    return list(found.values())
