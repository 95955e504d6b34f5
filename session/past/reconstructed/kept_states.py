"""The states of a hart that a long execution ended with, in a file, for the next time that the same trace is opened.

`KeptStates` is such a file. Its name is a hash of all that the states follow from: the trace, its program, what is
known besides, and the code that computes them (`session.kept_files`). A file that is damaged is no file. One has at
most `_PLACES` checkpoints and `_BYTES` bytes: of a longer execution fewer checkpoints are kept.

The file is compressed. A line of JSON has all but contents of memory, which follow it in the order of their addresses
there.
"""

import json
import os
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.decode.reconstruction.beliefs import BELIEFS
from rvtrace_gdb.decode.reconstruction.checkpoints import Checkpoint, KeptExecution
from rvtrace_gdb.decode.reconstruction.hart import RegistersCopy
from rvtrace_gdb.decode.reconstruction.known_memory import GRANULE, PAGE, PageContent, StoredPages
from rvtrace_gdb.session.kept_files import folder_of_kept, write_kept
from rvtrace_gdb.session.past.reconstructed.facts import Disagreement, Dropped

LEAST = 1 << 20
"""A shorter execution takes no time."""
_PLACES = 1 << 12
_BYTES = 1 << 25
_UNKNOWN = 1 << 20  # stores to unknown addresses, at most
_PAGE_BYTES = PAGE + PAGE // GRANULE


class BelievedExecution(NamedTuple):
    """What came of an execution. *level*: the number of the belief it has in the end, *disagreements*: why."""

    execution: KeptExecution
    level: int
    disagreements: Sequence[Disagreement]


class KeptStates:
    """The file of a history. *name*: returns the hash, None if nothing is to be kept."""

    def __init__(self, name: Callable[[], str | None]) -> None:
        self._make_name = name
        self._name: str | None = None
        self._is_named = False

    def _file_name(self) -> str | None:
        if not self._is_named:
            self._is_named = True
            name = self._make_name() if folder_of_kept() is not None else None
            self._name = None if name is None else f"{name}.states"
        return self._name

    def read(self, length: int) -> BelievedExecution | None:
        """Return what was written, None if there is nothing that can be used. *length*: of the history."""
        name, folder = self._file_name(), folder_of_kept()
        if name is None or folder is None:
            return None
        try:
            check, _, packed = (folder / name).read_bytes().partition(b" ")
            if int(check, 16) != zlib.crc32(packed):
                return None
            head, _, content = zlib.decompress(packed).partition(b"\n")
            found = _from_head(json.loads(head), content)
            os.utime(folder / name)
        except (OSError, ValueError, KeyError, TypeError, IndexError, zlib.error):
            return None
        return found if found.execution.checkpoints[-1].position == length else None

    def write(self, believed: BelievedExecution) -> None:
        """Write the file; nothing happens if that is not possible, or if there is too much of it."""
        name, kept = self._file_name(), _bounded(believed.execution)
        if name is None or kept is None:
            return
        head = json.dumps(_head(believed._replace(execution=kept))).encode()
        pages = b"".join(part for it in kept.checkpoints for page in it.pages.values() for part in page)
        packed = zlib.compress(head + b"\n" + kept.unknown_stores.tobytes() + pages, 1)
        write_kept(name, (b"%08x " % zlib.crc32(packed), packed))


def _bounded(execution: KeptExecution) -> KeptExecution | None:
    """Return an execution with so many checkpoints as are kept; None: it is too large."""
    if len(execution.unknown_stores) > _UNKNOWN:
        return None
    while True:
        size = sum(len(it.pages) for it in execution.checkpoints) * _PAGE_BYTES
        if len(execution.checkpoints) <= _PLACES and size <= _BYTES:
            return execution
        if len(execution.checkpoints) <= 2:
            return None
        execution = execution.with_fewer(2)


def _head(believed: BelievedExecution) -> dict[str, Any]:
    execution = believed.execution
    return {
        "level": believed.level,
        "disagreements": [list(it) for it in believed.disagreements],
        "unknown_stores": len(execution.unknown_stores),
        "switched": list(execution.switched),
        "replaced": sorted(execution.replaced),
        "checkpoints": [_row(it) for it in execution.checkpoints],
    }


def _row(checkpoint: Checkpoint) -> list[Any]:
    x, f, _, *others = checkpoint.hart
    hart = [x, f, [*checkpoint.hart.csrs.items()], *others]  # JSON has no numbers as keys
    stored = checkpoint.stored
    sets = [sorted(pages) for pages in (checkpoint.rewritten, stored.stored, stored.elsewhere)]
    return [checkpoint.position, hart, list(checkpoint.pages), *sets, checkpoint.lost]


def _from_head(head: Mapping[str, Any], content: bytes) -> BelievedExecution:
    stores = array("Q")
    at = head["unknown_stores"] * stores.itemsize
    stores.frombytes(content[:at])
    pages = _pages(content, at)
    checkpoints = [_checkpoint(row, pages) for row in head["checkpoints"]]
    level, believed = head["level"], [_disagreement(*row) for row in head["disagreements"]]
    if next(pages, None) is not None or not 0 <= level < len(BELIEFS):
        raise ValueError
    execution = KeptExecution(checkpoints, stores, head["switched"], frozenset(head["replaced"]))
    return BelievedExecution(execution, level, believed)


def _pages(content: bytes, begin: int) -> Iterator[PageContent]:
    for at in range(begin, len(content), _PAGE_BYTES):
        yield PageContent(content[at : at + PAGE], content[at + PAGE : at + _PAGE_BYTES])


def _checkpoint(row: Sequence[Any], pages: Iterator[PageContent]) -> Checkpoint:
    position, hart, addresses, rewritten, stored, elsewhere, lost = row
    x, f, csrs, status, *others = hart
    value, known = status
    return Checkpoint(
        position,
        RegistersCopy(tuple(x), tuple(f), dict(csrs), (value, known), *others),
        frozenset(rewritten),
        dict(_paired(addresses, pages)),
        StoredPages(frozenset(stored), frozenset(elsewhere)),
        lost,
    )


def _paired(addresses: Iterable[int], pages: Iterator[PageContent]) -> Iterator[tuple[int, PageContent]]:
    for address in addresses:
        page = next(pages, None)
        if page is None:
            raise ValueError
        yield address, page


def _disagreement(position: int, pc: int, dropped: str, at_stop: bool, window: None) -> Disagreement:
    return Disagreement(position, pc, Dropped(dropped), at_stop, window)
