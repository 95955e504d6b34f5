"""The states that are kept of a hart that executes a history, from which any other is reached quickly.

One checkpoint is kept for each stretch of the history, with the pages that have changed since the one before. Of the
stretch that was visited last there are more: whoever goes back steps through it.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart, RegistersCopy
from rvtrace_gdb.decode.reconstruction.known_memory import BLANK, KnownMemory, PageContent, StoredPages

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


class Checkpoints:
    """The checkpoints of *hart*, which `all` has in order."""

    def __init__(self, hart: ExecutedHart, memory: KnownMemory) -> None:
        self._hart, self._memory = hart, memory
        self.all: list[Checkpoint] = []
        self._versions: _Versions = {}
        self._base = 0  # what has changed since this position is marked in memory, or in `_versions_there`
        self._visited = -1  # the number of the stretch of which there are more
        self._more: list[Checkpoint] = []
        self._versions_there: _Versions = {}

    def keep(self, position: int) -> None:
        """Keep what is now as the state at a position, behind all others."""
        self.all.append(self._built_checkpoint(position, self._versions))
        self._base = position

    def drop(self) -> None:
        """Drop the last one: it does not hold. The state is to be restored from another one."""
        last = self.all.pop()
        for address in last.pages:
            self._versions[address].pop()
            self._versions_there.setdefault(address, [])  # it has changed since it was restored
        self._base, self._visited = self.all[-1].position, -1
        self._more.clear()

    def keep_there(self, position: int) -> None:
        """Keep one more in the stretch that `nearest` was asked for."""
        if not self._more or position > self._more[-1].position:
            self._more.append(self._built_checkpoint(position, self._versions_there))

    def number(self, position: int) -> int:
        """Return the number of the last one up to a position."""
        return bisect_right(self.all, position, key=lambda it: it.position) - 1

    def nearest(self, position: int) -> Checkpoint:
        """Return the last one up to a position, in a stretch of which more are kept from now on."""
        number = self.number(position)
        if number != self._visited:
            self._visited = number
            self._more.clear()  # their pages stay until `restore` has set them back
        at = bisect_right(self._more, position, key=lambda it: it.position) - 1
        return self._more[at] if at >= 0 else self.all[number]

    def restore(self, checkpoint: Checkpoint) -> None:
        """Set the hart back, or forward."""
        there, position = self._versions_there, checkpoint.position
        since = min(self._base, position)
        changed = {address for address, versions in self._versions.items() if versions and versions[-1][0] > since}
        changed.update(there, self._memory.dirty_pages())
        is_more = any(checkpoint is it for it in self._more)
        pages = {}
        for address in changed:
            kept = _page_at(self._versions.get(address, ()), position)
            if is_more:
                kept = max(kept, _page_at(there.get(address, ()), position), key=lambda it: it[0])
            pages[address] = kept[1]
        self._memory.restore(pages, checkpoint.rewritten)
        self._hart.restore(checkpoint.hart)
        self._base = position
        if not self._more:
            there.clear()

    def _built_checkpoint(self, position: int, versions: _Versions) -> Checkpoint:
        pages, stored = self._memory.changed_pages()
        for address, content in pages.items():
            versions.setdefault(address, []).append((position, content))
        hart = self._hart
        return Checkpoint(position, hart.snapshot(), self._memory.rewritten, pages, stored, hart.lost)


def _page_at(versions: Sequence[tuple[int, PageContent]], position: int) -> tuple[int, PageContent]:
    """Return what a page was at a position, and since when."""
    at = bisect_right(versions, position, key=lambda it: it[0])
    return versions[at - 1] if at else (-1, BLANK)
