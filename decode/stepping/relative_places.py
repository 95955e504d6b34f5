"""Where decoders are in a trace, whatever the bytes and instructions before it have been.

A part of a long trace can be decoded before what comes before it: a decoder that begins somewhat earlier, at a
synchronization, knows after that as much as one that has decoded everything. Whether it does is never guessed.
`relative` makes a checkpoint independent of how much came before. If those of both decoders are the same at the
beginning of the part, so is all that they do from there on, and `carried_over` returns the checkpoint at its end.

What only grows (bytes, losses, counts of stretches) may differ where what the decoder does in this part does not depend
on it.
"""

from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.decode.history.checkpoints import Checkpoint
from rvtrace_gdb.decode.stepping.reports import SHOWN

_HART_BYTES = ("_total", "_idle", "_unused")
_BYTES = ("_idle", "_skipped")
_GROWING = ("_count", "_exact", "_fewer", "_later")  # of a judge of stretches
_RARE = ("_short", "_long")  # after which it compares what has grown


def relative(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint without how much came before, and without what nothing later depends on."""
    harts = [[source, _relative_hart(hart)] for source, hart in sorted(checkpoint["harts"], key=_source_of)]
    return checkpoint | dict.fromkeys(_BYTES, 0) | {"harts": harts}


def absolute(checkpoint: Checkpoint, positions: Mapping[int, int]) -> Checkpoint:
    """Return a checkpoint of `relative` with these numbers of instructions and gaps before it, by source."""
    harts = [
        [source, hart | {"builder": _moved(hart["builder"], positions.get(source, 0) - hart["builder"]["length"])}]
        for source, hart in checkpoint["harts"]
    ]
    return checkpoint | {"harts": harts}


def carried_over(true: Checkpoint, guess: Checkpoint, end: Checkpoint) -> Checkpoint | None:
    """Return the place after a part of a trace that begins at the place *true*, if a decoder that was at *guess* went
    from there to *end*; None if it may have done something else. All of them are results of `relative`.
    """
    if true == guess:
        return end
    losses = _losses_carried_over(true, guess, end)
    ones, others, ends = (dict(map(tuple, it["harts"])) for it in (true, guess, end))
    if losses is None or ones.keys() != others.keys() or _rest(true) != _rest(guess):
        return None
    harts = []
    for source, hart in ends.items():
        found = _hart_carried_over(ones[source], others[source], hart) if source in ones else hart
        if found is None:
            return None
        harts.append([source, found])
    return end | {"harts": harts, "losses": losses}


def _source_of(pair: list[Any]) -> int:
    source: int = pair[0]
    return source


def _rest(checkpoint: Checkpoint) -> dict[str, Any]:
    return {name: value for name, value in checkpoint.items() if name not in ("harts", "losses")}


def _losses_carried_over(true: Checkpoint, guess: Checkpoint, end: Checkpoint) -> Checkpoint | None:
    """Return the losses at the end. What a hart is told of them depends on those before only if it comes later."""
    one, other, last = true["losses"], guess["losses"], end["losses"]
    if one == other:
        found: Checkpoint = last
        return found
    here, there = ({source for source, _ in it["harts"]} for it in (true, end))
    told = all(not it["losses"]["count"] or set(it["losses"]["harts"]) == here for it in (true, guess))
    if here != there or not told:
        return None
    count, length = (last[name] - other[name] + one[name] for name in ("count", "length"))
    harts = sorted({*one["harts"], *last["harts"]}) if count else []
    return {"count": count, "length": length, "first": one["first"] or last["first"], "harts": harts}


def _hart_carried_over(true: Checkpoint, guess: Checkpoint, end: Checkpoint) -> Checkpoint | None:
    if true == guess:
        return end
    ones, others = dict(true), dict(guess)
    one, other = ones.pop("period"), others.pop("period")
    if ones != others or one is None or other is None:
        return None
    judges = one["judge"], other["judge"], end["period"]["judge"]
    if {**one, "judge": 0} != {**other, "judge": 0} or _decisive(judges[0]) != _decisive(judges[1]):
        return None
    if any(judges[1][name] != judges[2][name] for name in _RARE):
        return None
    counts = {name: judges[2][name] - judges[1][name] + judges[0][name] for name in _GROWING}
    judge = judges[0] | counts
    return end | {"period": end["period"] | {"judge": judge}}


def _decisive(judge: Checkpoint) -> tuple[int, bool, bool]:
    """Return what the decisions of a judge depend on, as long as no stretch is much too short or too long."""
    return min(judge["_exact"], SHOWN), bool(judge["_fewer"]), bool(judge["_later"])


def _relative_hart(hart: Checkpoint) -> Checkpoint:
    checker, lost = hart["period"], hart["_lost_at"]
    sync = None if checker is None else checker["sync"]
    if checker is None or (sync is not None and lost <= sync):
        lost = -1  # it is compared with this synchronization, and with later ones
    builder = _without_past(hart["builder"])
    first = min(builder["length"], 1)
    return hart | dict.fromkeys(_HART_BYTES, 0) | {
        "_lost_at": lost, "builder": _moved(builder, first - builder["length"])
    }  # fmt: skip


def _without_past(builder: Checkpoint) -> Checkpoint:
    """Return the state of a builder without what happened before the last instruction."""
    start, opened, events = max(builder["length"] - 1, 0), builder["open"], builder["events"]
    kept = [
        number
        for number, event in enumerate(events)
        if event["Event"][0] >= start
        or (opened is not None and number >= opened)
        or (number == len(events) - 1 and "Stop" in (event["Event"][3] or {}))
    ]
    positions, times = builder["times"]
    timed = [number for number, position in enumerate(positions) if position >= start]
    return builder | {
        "events": [events[number] for number in kept],
        "open": None if opened is None else opened - len(events) + len(kept),
        "gap": [position for position in builder["gap"] if position >= start],
        "contexts": [[max(position, start), context] for position, context in builder["contexts"]],
        "times": [[column[number] for number in timed] for column in (positions, times)],
    }


def _moved(builder: Checkpoint, by: int) -> Checkpoint:
    """Return the state of a builder with other numbers."""
    events = [{"Event": [event["Event"][0] + by, *event["Event"][1:]]} for event in builder["events"]]
    return builder | {
        "length": builder["length"] + by,
        "events": events,
        "gap": [position + by for position in builder["gap"]],
        "contexts": [[position + by, context] for position, context in builder["contexts"]],
        "times": [[position + by for position in builder["times"][0]], builder["times"][1]],
    }
