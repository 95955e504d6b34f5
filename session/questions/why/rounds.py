"""Values that a line makes of what it made in the round before: counters, sums, pointers of loops."""

from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.questions.why.frames import Activations
from rvtrace_gdb.session.questions.why.links import Origin, ValueLinks
from rvtrace_gdb.session.questions.why.steps import ChainSteps, Use, ValueMaker

_MOST = 500
"""Rounds that are followed."""
_FARTHEST = 1 << 21
"""Instructions through which rounds are followed, in all."""


class Carried(NamedTuple):
    """How a value was carried: through so many *rounds*, of which *first* was the oldest that was followed."""

    rounds: int
    first: ValueMaker
    positions: frozenset[int]


def carried(
    links: ValueLinks, activations: Activations, steps: ChainSteps, maker: ValueMaker, most: int = _MOST
) -> Carried | None:
    """Return how the instruction of a maker made its value of its own one before; None: it did not, or only once."""
    at, positions = maker, [maker.position]
    own = activations.activation_at(maker.position)
    while len(positions) < most and maker.position - at.position < _FARTHEST:
        before = _round_before(links, steps, at)
        if before is None or activations.activation_at(before.position) != own:
            break
        at = before
        positions.append(at.position)
    return Carried(len(positions), at, frozenset(positions)) if len(positions) > 2 else None


def _round_before(links: ValueLinks, steps: ChainSteps, maker: ValueMaker) -> ValueMaker | None:
    """Return what made the value in the round before, by the same instruction."""
    history: History = links.history
    pc = history.pc(maker.position)
    uses: list[Use] = steps.step(maker).uses
    found = [
        it.maker for it in uses
        if it.maker is not None and it.link.origin is Origin.INSTRUCTION and not it.link.doubts
        and history.pc(it.maker.position) == pc and it.maker.position < maker.position
    ]  # fmt: skip
    return max(found, key=lambda it: it.position, default=None)
