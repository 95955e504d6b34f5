"""Histories, decoded with the kernel and without, as they are compared: all that a history is made of."""

from collections.abc import Callable, Sequence
from typing import Any

from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.history.history import AnyPath, History, RepeatPath

Shape = tuple[object, ...]
"""Equal for histories that are equal."""


def shape(history: History, shapes: dict[int, object] | None = None) -> Shape:
    """Everything in a history: its entries by what they contain and by which of them are the same object, its index,
    events, contexts, times, gaps and accounting.
    """
    known: dict[int, object] = {} if shapes is None else shapes
    entries: Sequence[AnyPath] = history._entries
    numbers: dict[int, int] = {}
    same = [numbers.setdefault(id(entry), len(numbers)) for entry in entries]
    return (
        [path_shape(entry, known) for entry in entries],
        same,
        list(history._index),
        len(history),
        list(history.events),
        list(history.contexts),
        list(history.times),
        list(history.gap_positions),
        history.accounting,
    )


def path_shape(path: Any, known: dict[int, object]) -> object:
    if isinstance(path, tuple):
        return path
    if id(path) not in known:
        if isinstance(path, RepeatPath):
            known[id(path)] = hash(("repeated", path_shape(path.path, known), path.times))
        else:
            known[id(path)] = hash(tuple(path_shape(part, known) for part in path.parts))
    return known[id(path)]


def decoded_both_ways(decoder: Callable[..., Any], pieces: Sequence[bytes]) -> tuple[dict[int, Shape], ...]:
    """The shapes of the histories by source, with the kernel and without. *decoder* takes `compiled`."""
    both = []
    for compiled in (True, False):
        made = decoder(compiled=compiled)
        for piece in pieces:
            made.feed(piece)
        histories, accounting = made.finish()
        both.append({src: (*shape(history), accounting) for src, history in histories.items()})
    return tuple(both)


def followed_both_ways(decoder: Callable[..., Any], pieces: Sequence[bytes]) -> tuple[list[Shape], ...]:
    """The pieces of a history that is taken away while it grows. *decoder* takes `compiled` and `builders`."""
    both = []
    for compiled in (True, False):
        builder = IncrementalBuilder()
        made = decoder(compiled=compiled, builders=lambda source, builder=builder: builder)
        found: list[Shape] = []
        for piece in pieces:
            made.feed(piece)
            taken = builder.take()
            found.append((*shape(taken.history), taken.begin, taken.end, list(taken.events)))
        made.finish()
        taken = builder.take(last=True)
        found.append((*shape(taken.history), taken.begin, taken.end, list(taken.events)))
        both.append(found)
    return tuple(both)
