"""How a trace was made, guessed: for bytes whose owner may have forgotten to say one thing of them.

What contradicts the program, or cannot be read at all, is decoded again with one option changed, and then another, as
long as that helps much. A guess is only a hint: with the wrong program every guess is wrong.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from decode.history import EventKind, History
from decode.ntrace.automaton import Program
from decode.ntrace.dialect import DIALECTS
from decode.ntrace.options import ImplicitReturn, Options
from decode.ntrace.streams import decode_streams
from support.progress import Progress, silent

MOST_BYTES = 1 << 18  # decoded for each guess
_BEHIND = 1 << 13  # bytes behind the first contradiction
_CHANGES = 3  # at most
_SRC_BITS = range(9)  # wider ones are rare
_CONTRADICTION = 16  # is as bad as so many bytes that cannot be used
_MUCH = 4  # times fewer contradictions make a guess a good one
_BAD = (EventKind.MISMATCH, EventKind.LOSS)


class _Result(NamedTuple):
    """What became of the bytes with some options: contradictions, bytes decoded, instructions."""

    contradictions: int
    decoded: int
    instructions: int

    @property
    def worth(self) -> tuple[int, int]:
        """More is better."""
        return self.decoded - _CONTRADICTION * self.contradictions, self.instructions

    def much_better_than(self, other: "_Result") -> bool:
        """Whether it explains the bytes, where *other* did not."""
        return self.worth > other.worth and self.contradictions * _MUCH <= other.contradictions


def contradicted(histories: Iterable[History]) -> bool:
    """Whether there is any reason to guess."""
    found = list(histories)
    return any(map(_contradictions, found)) or not any(history.instructions for history in found)


def better_options(
    data: bytes,
    program: Program,
    options: Options,
    histories: Iterable[History],
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> Options | None:
    """Options with which *data* would fit *program* much better than with *options*, if there are any.

    *histories*: what was decoded with *options*. Raises only what *progress* raises.
    """
    part = _part(data, [event for history in histories for event in _interesting(history)])
    if part is None:
        return None
    window, wrapped = data[part.start : part.stop], wrapped or part.start > 0

    def tried(candidate: Options) -> _Result:
        progress("looking for the options", 0, None)
        found = decode_streams(window, program, candidate, wrapped=wrapped)
        contradictions = sum(map(_contradictions, found.histories.values()))
        instructions = sum(history.instructions for history in found.histories.values())
        return _Result(contradictions + (not instructions), found.accounting.decoded, instructions)

    first = result = tried(options)
    best = options
    for _ in range(_CHANGES):
        candidates = {candidate: tried(candidate) for candidate in _changed(best)}
        candidate = max(candidates, key=lambda candidate: candidates[candidate].worth)
        if candidates[candidate].worth <= result.worth:
            break
        best, result = candidate, candidates[candidate]
        if not result.contradictions:
            break
    return best if result.much_better_than(first) else None


def _changed(options: Options) -> Iterator[Options]:
    """With one thing changed, the likely ones first."""
    returns = ImplicitReturn.OFF if options.implicit_return else ImplicitReturn.FULL_STACK
    yield replace(options, implicit_return=returns)
    yield from (replace(options, dialect=dialect) for dialect in DIALECTS.values() if dialect != options.dialect)
    yield from (replace(options, src_bits=bits) for bits in _SRC_BITS if bits != options.src_bits)
    for name in ("timestamps", "btm", "sequential_jump", "all_jumps", "extend_addr_msb"):
        yield replace(options, **{name: not getattr(options, name)})


def _contradictions(history: History) -> int:
    """How often the bytes made no sense; a field too many counts, too."""
    return sum(event.kind in _BAD or _has_field_too_many(event) for event in history.events)
