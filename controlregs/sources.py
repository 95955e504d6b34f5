"""Source IDs: by them the messages of several encoders that go into one stream are told apart.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, trTeInstFeatures (trTeSrcID, trTeSrcBits), trTeInhibitSrc;
N-Trace 1.0, field SRC: all encoders of a stream use the same number of bits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import INST_FEATURES
from rvtrace_gdb.controlregs.encoder_setup import PROTOCOLS
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.request import EncoderInForce, TraceRequest

_BITS_MAX = 12
_ADVICE = "trace one of them, or let each feed a sink of its own"


@dataclass(frozen=True)
class Source:
    """What is to be written to trTeSrcID and trTeSrcBits."""

    id: int
    bits: int


def choose_sources(graph: Graph, request: TraceRequest) -> dict[str, Source]:
    """IDs that count up, if the encoders can have them, and for those that share a sink as many bits as it takes.

    The encoders were just reset, and their protocol is chosen. What one really does is checked by `check_streams`.
    Raises FieldRange, ComponentAccess.
    """
    asked = [request.src_id + n for n in range(len(graph.encoders))]
    INST_FEATURES.pack(trTeSrcID=asked[-1], trTeSrcBits=request.src_bits)
    mixed = [encoder for encoder in graph.encoders if any(map(graph.shared, graph.sinks_of(encoder)))]
    if not mixed:
        return {e.name: Source(n, request.src_bits) for e, n in zip(graph.encoders, asked, strict=True)}
    able = {encoder.name: _ids(encoder) for encoder in graph.encoders}
    ids, bits = _give(able, asked), None
    for wishes in (asked, range(len(asked))):  # low ones, if the others are too wide
        ids = _give(able, wishes)
        bits = _width(mixed, ids, request.src_bits)
        if bits is not None:
            break
    wide = bits if bits is not None else _needed(ids[encoder.name] for encoder in mixed)
    return {e.name: Source(ids[e.name], wide if e in mixed else request.src_bits) for e in graph.encoders}


def _ids(encoder: Component) -> list[int]:
    """The source IDs it can have, the lowest first, as far as all ones and all zeros tell."""
    ones, zeros = (
        INST_FEATURES.get(encoder.set(INST_FEATURES, trTeSrcID=value, trTeSrcBits=_BITS_MAX), "trTeSrcID")
        for value in (0xFFF, 0)
    )
    fixed = ~(ones ^ zeros)
    return [n for n in range(1 << _BITS_MAX) if n & fixed == zeros & fixed]


def _give(able: Mapping[str, Sequence[int]], wishes: Sequence[int]) -> dict[str, int]:
    """A different ID for each encoder, its wish if it can; who has the least choice comes first."""
    given: dict[str, int] = {}
    wish = dict(zip(able, wishes, strict=True))
    for name in sorted(able, key=lambda name: len(able[name])):
        others = set(given.values())
        free = (n for n in able[name] if n not in others)
        wished = wish[name] in able[name] and wish[name] not in others
        given[name] = wish[name] if wished else next(free, able[name][0])
    return {name: given[name] for name in able}


def _needed(ids: Iterable[int]) -> int:
    return max(1, max(ids).bit_length())


def _width(mixed: Sequence[Component], ids: Mapping[str, int], asked: int) -> int | None:
    """The fewest bits that all of these encoders can use and that their IDs need. None: there is no such width."""
    needed = max(asked, _needed([ids[encoder.name] for encoder in mixed]))
    for bits in range(needed, _BITS_MAX + 1):
        if all(_has(encoder, ids[encoder.name], bits) for encoder in mixed):
            return bits
    return None


def _has(encoder: Component, number: int, bits: int) -> bool:
    value = encoder.set(INST_FEATURES, trTeSrcID=number, trTeSrcBits=bits)
    return (INST_FEATURES.get(value, "trTeSrcID"), INST_FEATURES.get(value, "trTeSrcBits")) == (number, bits)


def check_streams(graph: Graph, in_force: Sequence[EncoderInForce]) -> None:
    """Raises SettingRefused when a sink would get trace that cannot be taken apart."""
    by_name = {encoder.name: encoder for encoder in in_force}
    for sink in graph.sinks:
        seen: dict[int, EncoderInForce] = {}
        stream = [by_name[encoder.name] for encoder in graph.encoders_of(sink)]
        for encoder in stream if len(stream) > 1 else ():
            why = _no_id(encoder) or _conflict(encoder, stream[0], seen.get(encoder.src_id))
            if why:
                names = ", ".join(e.name for e in stream)
                mixed = f"and the trace of {names} is mixed in {sink.name}: {_ADVICE}"
                raise SettingRefused(encoder.name, encoder.base, f"{why}, {mixed}")
            seen[encoder.src_id] = encoder


def _no_id(encoder: EncoderInForce) -> str:
    """Why its messages do not say whose they are."""
    if not encoder.src_bits:
        kept = "trTeSrcBits reads 0" if not encoder.feature("trTeSrcBits") else "trTeInhibitSrc stays 1"
        return f"it puts no source ID into its messages ({kept})"
    if encoder.src_id.bit_length() > encoder.src_bits:
        return f"its source ID {encoder.src_id} does not fit the {encoder.src_bits} bits of trTeSrcBits"
    return ""


def _conflict(encoder: EncoderInForce, other: EncoderInForce, same: EncoderInForce | None) -> str:
    """Why the trace of *encoder* cannot be told from that of another. *same*: who has its ID already."""
    if encoder.format != other.format:
        return f"it produces {_protocol(encoder)}, {other.name} {_protocol(other)}"
    if encoder.src_bits != other.src_bits:
        return f"its source IDs have {encoder.src_bits} bits, those of {other.name} {other.src_bits}"
    if same is not None:
        return f"its source ID is {encoder.src_id} like that of {same.name}"
    return ""


def _protocol(encoder: EncoderInForce) -> str:
    return PROTOCOLS[encoder.format][0] if encoder.format in PROTOCOLS else f"format {encoder.format}"
