"""The states that are kept of a hart that executes a history, from which any other is reached quickly.

One checkpoint is kept for each stretch of the history, with the pages that have changed since the one before. Of the
stretch that was visited last there are more: whoever goes back steps through it, or looks at each hit of a breakpoint.
"""

from array import array
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart, RegistersCopy
from rvtrace_gdb.decode.reconstruction.known_memory import BLANK, KnownMemory, PageContent, StoredPages

_MOST_PAGES = 1 << 12
"""So many pages are kept of the stretch that was visited last: 18 MB."""

_Versions = dict[int, list[tuple[int, PageContent]]]
"""Pages by address: what they were, with the position from which on."""


class Checkpoint(NamedTuple):
    """*pages*: those that have changed since the checkpoint before. *stored*: where stores went in between; *lost*: see
    `ExecutedHart`.
    """

    position: int
    hart: RegistersCopy
    rewritten: frozenset[int]
    pages: Mapping[int, PageContent]
    stored: StoredPages
    lost: int


class KeptExecution(NamedTuple):
    """What was found out by executing a history, see `Forward.kept`.

    checkpoints     the first is at the beginning, the last at the end of the history
    unknown_stores  the positions of the stores to unknown addresses
    switched        positions from which on addresses are no longer those of memory, or are again
    replaced        the addresses of bytes that breakpoints replaced
    """

    checkpoints: Sequence[Checkpoint]
    unknown_stores: "array[int]"
    switched: Sequence[int]
    replaced: frozenset[int]

    def with_fewer(self, times: int) -> "KeptExecution":
        """Return the same with one checkpoint for each *times* of those behind the first one."""
        first, *others = self.checkpoints
        joined = (_joined_checkpoint(others[at : at + times]) for at in range(0, len(others), times))
        return self._replace(checkpoints=[first, *joined])


def _joined_checkpoint(them: Sequence[Checkpoint]) -> Checkpoint:
    """Return the last one of some, with what has changed since the one before the first."""
    pages: dict[int, PageContent] = {}
    lost = 0
    for it in them:
        pages.update(it.pages)
        lost |= it.lost
    stored = StoredPages(*(frozenset[int]().union(*parts) for parts in zip(*(it.stored for it in them), strict=True)))
    return them[-1]._replace(pages=pages, stored=stored, lost=lost)


class Checkpoints:
    """The checkpoints of *hart*, which `all` has in order."""

    def __init__(self, hart: ExecutedHart, memory: KnownMemory) -> None:
        self._hart, self._memory = hart, memory
        self.all: list[Checkpoint] = []
        self._versions: _Versions = {}
        self._base = 0  # memory is what it was at this position, but for pages marked in it, and `_unsettled` ones
        self._unsettled: set[int] = set()
        self._visited = -1  # the number of the stretch of which there are more
        self._more: list[Checkpoint] = []
        self._versions_there: _Versions = {}
        self._pages_there = 0  # how many pages `_versions_there` has

    def keep(self, position: int) -> None:
        """Keep what is now as the state at a position, behind all others."""
        self.all.append(self._built_checkpoint(position, self._versions))
        self._base = position

    def use_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Have kept these, before anything is kept. The state is to be restored from one of them."""
        self.all = list(checkpoints)
        for checkpoint in checkpoints:
            for address, content in checkpoint.pages.items():
                self._versions.setdefault(address, []).append((checkpoint.position, content))
        self._base = -1

    def drop(self) -> None:
        """Drop the last one: it does not hold. The state is to be restored from another one."""
        last = self.all.pop()
        for address in last.pages:
            self._versions[address].pop()
        self._unsettled.update(last.pages)
        self._base = self.all[-1].position
        self.leave()

    def keep_there(self, position: int) -> None:
        """Keep one more in the stretch that `nearest` was asked for, unless there is one at this position."""
        at = bisect_right(self._more, position, key=_position_of)
        if not at or self._more[at - 1].position < position:
            kept = self._built_checkpoint(position, self._versions_there)
            self._more.insert(at, kept)
            self._pages_there += len(kept.pages)
            self._base = position

    def number(self, position: int) -> int:
        """Return the number of the last one up to a position."""
        return bisect_right(self.all, position, key=_position_of) - 1

    def nearest(self, position: int) -> Checkpoint:
        """Return the last one up to a position, in a stretch of which more are kept from now on."""
        number = self.number(position)
        if number != self._visited:
            self.leave()
            self._visited = number
        at = bisect_right(self._more, position, key=_position_of) - 1
        return self._more[at] if at >= 0 else self.all[number]

    @property
    def is_full(self) -> bool:
        """Whether what is kept of the stretch that was visited last is to be dropped: it takes much memory."""
        return self._pages_there > _MOST_PAGES

    def leave(self) -> None:
        """Drop what is kept of the stretch that was visited last: whoever goes on there has to restore a state."""
        self._unsettled.update(self._versions_there)
        self._more.clear()
        self._versions_there.clear()
        self._visited, self._pages_there = -1, 0

    def restore(self, checkpoint: Checkpoint) -> None:
        """Set the hart back, or forward."""
        position = checkpoint.position
        low, high = sorted((self._base, position))
        changed = {*self._unsettled, *self._memory.dirty_pages(), *_changed(self._versions_there, low, high)}
        if self.number(low) != self.number(high):
            changed.update(_changed(self._versions, low, high))
        is_more = self.all[self.number(position)] is not checkpoint
        pages = {}
        for address in changed:
            kept = _page_at(self._versions.get(address, ()), position)
            if is_more:
                kept = max(kept, _page_at(self._versions_there.get(address, ()), position), key=_since)
            pages[address] = kept[1]
        self._memory.restore(pages, checkpoint.rewritten)
        self._hart.restore(checkpoint.hart)
        self._base = position
        self._unsettled.clear()

    def _built_checkpoint(self, position: int, versions: _Versions) -> Checkpoint:
        pages, stored = self._memory.changed_pages()
        for address, content in pages.items():
            insort(versions.setdefault(address, []), (position, content), key=_since)
        hart = self._hart
        return Checkpoint(position, hart.snapshot(), self._memory.rewritten, pages, stored, hart.lost)


def _position_of(checkpoint: Checkpoint) -> int:
    return checkpoint.position


def _since(version: tuple[int, PageContent]) -> int:
    """Return from which position on a page was so."""
    return version[0]


def _changed(versions: _Versions, low: int, high: int) -> Iterator[int]:
    """Yield the pages that have changed between two positions, as far as checkpoints up to the second one tell."""
    for address, kept in versions.items():
        at = bisect_right(kept, high, key=_since)
        if at and kept[at - 1][0] > low:
            yield address


def _page_at(versions: Sequence[tuple[int, PageContent]], position: int) -> tuple[int, PageContent]:
    """Return what a page was at a position, and since when."""
    at = bisect_right(versions, position, key=_since)
    return versions[at - 1] if at else (-1, BLANK)
