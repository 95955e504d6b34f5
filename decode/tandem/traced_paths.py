"""The paths of a program's instructions: the same object whenever the same instructions ran.

A run of addresses is cut where an address does not follow the one before it. With the kernel each block of them has a
number; without it, and where the code at an address varies, a path is looked up by its addresses.
"""

from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from rvtrace_gdb.decode.history.history import AnyPath, Path
from rvtrace_gdb.decode.kernel.loading import kernel

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import PathBlocks

_LONGEST = 1 << 10  # instructions of one path

PathBlock = tuple[int, ...]
"""The addresses of a path."""

_PathKey = tuple[int | tuple[bytes, ...], ...]

PathCheck = Callable[[Path, PathBlock, int], None]
"""Is called with each new path, its addresses, and its place in the run, once what ran before it is appended."""

CodeAt = Callable[[PathBlock, int], tuple[bytes, ...] | None]
"""Returns the code of a block at a place of the run, None where the code at its addresses does not vary."""


class TracedPaths:
    """The paths that ran in one program."""

    def __init__(self) -> None:
        self._paths: dict[_PathKey, Path] = {}
        self._numbered: list[Path] = []
        self._blocks = self._new_blocks()

    def __len__(self) -> int:
        return len(self._paths) + len(self._numbered)

    @staticmethod
    def _new_blocks() -> "PathBlocks | None":
        module = kernel()
        return None if module is None else module.PathBlocks()

    def clear(self) -> None:
        """Forget all paths."""
        self._paths.clear()
        self._numbered.clear()
        self._blocks = self._new_blocks()

    def record(self, pcs: "array[int]", pending: list[AnyPath], check: PathCheck) -> None:
        """Append the paths of a run to *pending*."""
        if self._blocks is None:
            self.record_varying(pcs, pending, check, _never_varies)
        else:
            self._record_numbered(self._blocks, pcs, pending, check)

    def record_varying(self, pcs: "array[int]", pending: list[AnyPath], check: PathCheck, code_at: CodeAt) -> None:
        """Append the paths of a run in which code may vary."""
        for first, last in _cut(pcs):
            block = tuple(pcs[first:last])
            code = code_at(block, first)
            if code is None and self._blocks is not None:
                part = array("Q", block)
                self._record_numbered(self._blocks, part, pending, _shifted(check, first))
                continue
            key: _PathKey = block if code is None else (*block, code)
            path = self._paths.get(key)
            if path is None:
                path = self._paths[key] = Path([block])
                check(path, block, first)
            pending.append(path)

    def _record_numbered(
        self, blocks: "PathBlocks", pcs: "array[int]", pending: list[AnyPath], check: PathCheck
    ) -> None:
        ran, new = blocks.cut(pcs, _LONGEST)
        numbers, places = array("I", ran), array("I", new)
        paths, done = self._numbered, 0
        for first, last in zip(places[::2], places[1::2], strict=True):
            at = numbers.index(len(paths), done)
            pending += map(paths.__getitem__, numbers[done:at])
            block = tuple(pcs[first:last])
            path = Path([block])
            paths.append(path)
            check(path, block, first)
            done = at
        pending += map(paths.__getitem__, numbers[done:])


def _never_varies(block: PathBlock, first: int) -> None:
    return None


def _shifted(check: PathCheck, by: int) -> PathCheck:
    return lambda path, block, first: check(path, block, by + first)


def _cut(pcs: "array[int]") -> Iterator[tuple[int, int]]:
    """Yield where the blocks of a run begin and end."""
    begin = 0
    cuts = [i for i, (pc, following) in enumerate(pairwise(pcs), 1) if not 0 < following - pc <= 4]
    for end in (*cuts, len(pcs)):
        for first in range(begin, end, _LONGEST):
            yield first, min(end, first + _LONGEST)
        begin = end
