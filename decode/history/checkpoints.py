"""The state of a decoder between two messages, as JSON values: what it needs to go on there as if it had decoded all
before.

`packed` makes such a value, and `unpacked` gives it back. Only types of `_TYPES` and plain values are known, so that
nothing in a file that somebody else wrote can become another object. A decoder that has something else at hand has no
checkpoint there (`NoCheckpoint`): another place will do.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias

from rvtrace_gdb.decode.history import events, hart_events
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.program.csrs import ProgramContext

Checkpoint: TypeAlias = dict[str, Any]
"""The parts of a state, by name."""

_TYPES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Event, ProgramContext, events.ContextChange, events.EventKind, events.Loss, events.LossCause,
        events.MismatchedReturn, events.Note, events.NoteCause, events.Open, events.Start, events.StartReason,
        events.Stop, events.StopReason, events.Trap, events.TrapKind, hart_events.HartEvent, hart_events.HartEventKind,
        hart_events.ItcWrite,
    )
}  # fmt: skip


class Resumable(Protocol):
    """A part of a decoder that has a state."""

    def checkpoint(self) -> Checkpoint:
        """Return the state. Raises NoCheckpoint."""
        ...

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        """Go on with a state that another one had, before anything else is done."""
        ...


class NoCheckpoint(Exception):
    """A decoder cannot go on from here later."""


class BadCheckpoint(Exception):
    """What was read is no state of a decoder."""


def packed(value: Any) -> Any:
    """Return a value as JSON has it: numbers, texts, bytes, tuples, and the types of `_TYPES`. Raises NoCheckpoint."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if isinstance(value, bytes | bytearray):
        return {"bytes": value.hex()}
    name = type(value).__name__
    if _TYPES.get(name) is type(value):
        return {name: value.name} if isinstance(value, Enum) else {name: [packed(each) for each in value]}
    if type(value) in (tuple, list):
        return [packed(each) for each in value]
    raise NoCheckpoint(name)


def unpacked(value: Any) -> Any:
    """Return what was packed; sequences are tuples. Raises BadCheckpoint."""
    if isinstance(value, list):
        return tuple(map(unpacked, value))
    if not isinstance(value, dict):
        return value
    try:
        ((name, parts),) = value.items()
        if name == "bytes":
            return bytes.fromhex(parts)
        kind = _TYPES[name]
        return kind[parts] if issubclass(kind, Enum) else kind(*map(unpacked, parts))
    except (KeyError, TypeError, ValueError) as error:
        raise BadCheckpoint(str(error)) from None


def attributes(thing: object, *names: str) -> Checkpoint:
    """Return attributes of an object, packed. Raises NoCheckpoint."""
    return {name: packed(getattr(thing, name)) for name in names}


def set_attributes(thing: object, checkpoint: Mapping[str, Any], *names: str) -> None:
    """Give an object the attributes that `attributes` returned. Raises BadCheckpoint."""
    for name in names:
        setattr(thing, name, unpacked(checkpoint[name]))


class StreamPlace(NamedTuple):
    """A place of a trace at which decoding can go on. *offset*: of the byte. *positions*: how many instructions and
    gaps come before it, and *times*: the last time before it, both by source.
    """

    offset: int
    positions: dict[int, int]
    times: dict[int, int]
    checkpoint: Checkpoint
