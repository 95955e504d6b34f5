"""Where remembered steps part by an entry of the jump target cache, or by states of the branch predictor."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from rvtrace_gdb.decode.etrace.layout import Ext, Packet, TeInstFormat
from rvtrace_gdb.decode.etrace.state import CacheFork, PredictorFork, PredictorVariant, Remembered, State

_VARIANTS = 8  # remembered steps of one packet for different states of the predictor


def cache_index(packet: Packet) -> int | None:
    """Return the entry of the jump target cache in which the address of a packet is, None if the packet has it."""
    if packet.format != TeInstFormat.OPT_EXT or packet.subformat != Ext.JUMP_TARGET:
        return None
    return packet.fields.get("index", 0)  # a cache of one entry has no index


def step_place(
    state: State,
    payload: bytes,
    packet: Packet,
    index: int | None,
    targets: Mapping[int, int],
    guard: Sequence[tuple[int, int]],
) -> tuple[dict[Any, Any], Any]:
    """Return the dictionary in which the step of a packet is remembered, and its key there.

    index    the entry of the cache on which the step depends, None: none
    targets  what is in the cache, by index
    guard    the states of predictor entries on which it depends, as in `StepResult`
    """
    known: dict[Any, Any] = state
    key: Any = payload
    if index is not None:
        lookup = known.get(key)
        if not isinstance(lookup, CacheFork):
            lookup = known[key] = CacheFork(index)
        known, key = lookup, targets.get(index)
    return (_predictor_variant(known, key, packet, guard), 0) if guard else (known, key)


def _predictor_variant(
    variants: dict[Any, Any], key: Any, packet: Packet, guard: Sequence[tuple[int, int]]
) -> dict[int, Remembered]:
    """Return the dictionary for a step that depends on these states of predictor entries."""
    guarded = variants.get(key)
    if not isinstance(guarded, PredictorFork) or len(guarded) >= _VARIANTS:
        guarded = variants[key] = PredictorFork(packet)
    indices, states = zip(*guard, strict=True)
    required = states if len(states) > 1 else states[0]
    for variant in guarded:
        if variant.states == required and variant.indices == indices:
            return variant.variants
    variant = PredictorVariant(itemgetter(*indices), required, {}, indices)
    guarded.append(variant)
    return variant.variants
