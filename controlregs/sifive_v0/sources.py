"""Source IDs of version 0: srcID and nSrcBits in teImpl, which "may be fixed or variable", and teInhibitSrc.

Ref: see the package; proposal, teImpl. On the P550 both are fixed.
"""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.request import EncoderInForce, TraceRequest
from rvtrace_gdb.controlregs.sifive_v0.encoder import CONTROL, IMPL
from rvtrace_gdb.controlregs.sifive_v0.switching import update

_ADVICE = "trace one of them, or let each feed a sink of its own"


def set_sources(graph: Graph, request: TraceRequest) -> list[str]:
    """IDs that count up, if the encoders can have them, and for those that share a sink as many bits as it takes.

    The encoders were just reset. Returns what was not granted; `check_streams` says whether it is enough. Raises
    FieldRange, ComponentAccess.
    """
    ids = [request.src_id + n for n in range(len(graph.encoders))]
    mixed = [encoder for encoder in graph.encoders if any(map(graph.shared, graph.sinks_of(encoder)))]
    notes: list[str] = []
    given = _give(graph.encoders, ids)
    bits = max([request.src_bits, *(given[encoder.name].bit_length() or 1 for encoder in mixed)])
    for encoder in graph.encoders:
        width = bits if encoder in mixed else request.src_bits
        notes += _set(encoder, given[encoder.name], width, mixed=encoder in mixed)
    return notes


def _give(encoders: Sequence[Component], wishes: Sequence[int]) -> Mapping[str, int]:
    """What to ask each encoder to be: its wish, unless that is another one's fixed ID. Raises FieldRange."""
    IMPL.pack(srcID=max(wishes))
    taken: dict[str, int] = {}
    for encoder in encoders:
        found = {IMPL.get(encoder.set(IMPL, srcID=number), "srcID") for number in (0, 15)}
        if len(found) == 1:
            taken |= {encoder.name: found.pop()}
    left = [n for n in (*wishes, *range(16)) if n not in taken.values()]
    for encoder, wish in zip(encoders, wishes, strict=True):
        if encoder.name not in taken:
            taken[encoder.name] = wish if wish in left else next(iter(left), wish)
            left = [n for n in left if n != taken[encoder.name]]
    return taken


def _set(encoder: Component, number: int, bits: int, *, mixed: bool) -> list[str]:
    value = encoder.set(IMPL, srcID=number, nSrcBits=bits)
    got_bits, got = IMPL.get(value, "nSrcBits"), IMPL.get(value, "srcID")
    inhibit = CONTROL.get(update(encoder, teInhibitSrc=int(not bits)), "teInhibitSrc")
    if mixed:
        return []  # that it can be told apart is checked, and nobody has asked for a certain width
    notes = []
    if (0 if inhibit else got_bits) != bits:
        notes.append(f"{encoder.name}: source IDs in messages have {0 if inhibit else got_bits} bits, not {bits}")
    if bits and got != number:
        notes.append(f"{encoder.name}: its source ID is {got}, not {number}")
    return notes


def check_streams(graph: Graph, in_force: Sequence[EncoderInForce]) -> None:
    """Raises SettingRefused when a sink would get trace that cannot be taken apart."""
    by_name = {encoder.name: encoder for encoder in in_force}
    for sink in graph.sinks:
        seen: dict[int, EncoderInForce] = {}
        stream = [by_name[encoder.name] for encoder in graph.encoders_of(sink)]
        for encoder in stream if len(stream) > 1 else ():
            why = _conflict(encoder, stream[0], seen)
            if why:
                names = ", ".join(e.name for e in stream)
                mixed = f"and the trace of {names} is mixed in {sink.name}: {_ADVICE}"
                raise SettingRefused(encoder.name, encoder.base, f"{why}, {mixed}")
            seen[encoder.src_id] = encoder


def _conflict(encoder: EncoderInForce, first: EncoderInForce, seen: Mapping[int, EncoderInForce]) -> str:
    """Why the trace of *encoder* cannot be told from that of others."""
    if not encoder.src_bits:
        return "it puts no source ID into its messages (nSrcBits reads 0, or teInhibitSrc stays 1)"
    if encoder.src_id.bit_length() > encoder.src_bits:
        return f"its source ID {encoder.src_id} does not fit the {encoder.src_bits} bits of nSrcBits"
    if encoder.src_bits != first.src_bits:
        return f"its source IDs have {encoder.src_bits} bits, those of {first.name} {first.src_bits}"
    if encoder.src_id in seen:
        return f"its source ID is {encoder.src_id} like that of {seen[encoder.src_id].name} (srcID)"
    return ""
