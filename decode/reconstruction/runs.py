"""The runs of a history as functions: compiled once for the code that they have, and found again by their paths."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import sub
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, Path
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.decode.reconstruction.code import word_at
from rvtrace_gdb.decode.reconstruction.compiler import LONGEST_RUN, NO_RAM, MainRam, RunCompiler
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.hart import ExecutedHart
from rvtrace_gdb.decode.reconstruction.known_memory import PAGE, KnownMemory, KnownRam

LONGEST_WHOLE = 16 * LONGEST_RUN
"""Instructions of a path whose runs are kept together."""

_KEPT_PIECES = 1 << 11

_LONGEST_INSTRUCTION = 4  # bytes

CountedRun = tuple[Callable[[], None], int]
"""The function of a run, and the number of its instructions."""

Runs = Sequence[CountedRun]

RunKind = tuple[bool, bool]
"""Whether addresses are those of memory, and whether accesses are observed."""


class _Compilations(NamedTuple):
    """What was compiled: runs by their addresses and what follows, whole paths by their identity and what follows, and
    pieces of them, which also have a beginning and an end.
    """

    runs: dict[tuple[tuple[int, ...], KnownValue], CountedRun]
    complete: dict[tuple[int, KnownValue], Runs]
    pieces: dict[tuple[int, int, int, KnownValue], Runs]


class ProgramCode:
    """The code of one program, *image*; *others*: instructions that are not the program's, by address.

    compilers  those of memory, and of addresses that are translated
    """

    def __init__(self, image: Image, others: Mapping[int, bytes], compilers: Mapping[bool, RunCompiler]) -> None:
        self.image, self.others, self._compilers = image, others, compilers
        self._words: dict[int, int] = {}
        self._compiled: dict[RunKind, _Compilations] = {}
        self._written: set[int] = set()  # addresses of instructions that the program has replaced

    def distrust(self, pages: Iterable[int], memory: KnownMemory) -> bool:
        """Do not believe instructions in *pages*, which the program has written to, if they are not in memory any more.
        Return whether there are such.
        """
        looked_at = frozenset(pages)
        found = [pc for pc, word in self._words.items() if pc & -PAGE in looked_at and self._differs(pc, word, memory)]
        for pc in found:
            self._words[pc] = 0
        self._written.update(found)
        if found:
            self._compiled.clear()
        return bool(found)

    @property
    def is_written(self) -> bool:
        """Whether there are instructions that are not believed any more."""
        return bool(self._written)

    def _differs(self, pc: int, word: int, memory: KnownMemory) -> bool:
        if not word or pc in self.others:
            return False
        size = 2 if word & 3 != 3 else 4
        return memory.bytes(pc, size) != list((word & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def whole_run(self, path: Path, following: KnownValue, kind: RunKind) -> Runs | None:
        """Return the runs of all of a path, None if it is too long to keep them together."""
        compiled = self._of_kind(kind)
        runs = compiled.complete.get((id(path), following))
        if runs is None and path.count <= LONGEST_WHOLE:
            pcs = tuple(chain.from_iterable(path.chunks(0, path.count)))
            runs = compiled.complete[id(path), following] = self.runs(pcs, following, kind)
        return runs

    def piece_runs(self, path: Path, first: int, last: int, following: KnownValue, kind: RunKind) -> Runs | None:
        """Return the runs of instructions *first* to *last* - 1 of a path, None if they are too many to keep: whoever
        looks at each execution of an instruction stops at the same places of the same paths.
        """
        if last - first > LONGEST_WHOLE:
            return None
        pieces = self._of_kind(kind).pieces
        runs = pieces.get((id(path), first, last, following))
        if runs is None:
            if len(pieces) >= _KEPT_PIECES:
                pieces.clear()
            pcs = tuple(chain.from_iterable(path.chunks(first, last)))
            runs = pieces[id(path), first, last, following] = self.runs(pcs, following, kind)
        return runs

    def runs(self, pcs: tuple[int, ...], following: KnownValue, kind: RunKind) -> Runs:
        """Return the runs of instructions at these addresses: compiling is what costs most, so that straight code is
        compiled once, wherever it occurs. *following*: the address that comes after them.
        """
        compiled, size = self._of_kind(kind).runs, len(pcs)
        runs: list[CountedRun] = []
        for begin, end in _straight(pcs):
            key = pcs[begin:end], pcs[end] if end < size else following
            run = compiled.get(key)
            if run is None:
                run = compiled[key] = self._compiled_run(*key, kind)
            runs.append(run)
        return runs

    def _compiled_run(self, pcs: tuple[int, ...], following: KnownValue, kind: RunKind) -> CountedRun:
        physical, observed = kind
        words = [(pc, self.word(pc)) for pc in pcs]
        return self._compilers[physical].compiled(words, following, observed=observed, served=self._served), len(pcs)

    def word(self, pc: int) -> int:
        """Return an instruction; one whose code is not there counts as illegal, so that nothing is known behind it."""
        word = self._words.get(pc)
        if word is None:
            word = 0 if pc in self._written else word_at(self.image, pc, self.others.get(pc, b""))
            self._words[pc] = word
        return word

    def _of_kind(self, kind: RunKind) -> _Compilations:
        found = self._compiled.get(kind)
        return self._compiled.setdefault(kind, _Compilations({}, {}, {})) if found is None else found

    def _served(self, pc: int) -> bool:
        try:
            return pc != GAP and self.image.instruction(pc).served
        except (CodeMissing, UndecodableInstruction):
            return False


def _straight(pcs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield where stretches begin and end whose instructions follow each other in memory, and that are not too long."""
    begin, size = 0, len(pcs)
    apart = map(sub, islice(pcs, 1, None), pcs)
    jumps = (at for at, bytes_between in enumerate(apart, 1) if not 0 < bytes_between <= _LONGEST_INSTRUCTION)
    for end in chain(jumps, (size,) if size else ()):
        while end - begin > LONGEST_RUN:
            yield begin, begin + LONGEST_RUN
            begin += LONGEST_RUN
        yield begin, end
        begin = end


def compilers_of(machine: HartMachine, hart: ExecutedHart, memory: KnownMemory) -> Mapping[bool, RunCompiler]:
    """Return the compilers for addresses that are those of memory (True), and for others."""
    largest = max((ram for ram in memory.rams if ram.is_whole), key=lambda ram: ram.size, default=None)
    main = NO_RAM if largest is None else MainRam(largest.base, largest.size)
    ram, mask = largest or KnownRam(0, PAGE), (1 << machine.xlen) - 1

    def load(offset: int, size: int) -> KnownValue:
        return memory.load(offset + main.base & mask, size)

    def store(offset: int, size: int, value: KnownValue) -> None:
        memory.store(offset + main.base & mask, size, value)

    own = {"x": hart.x, "f": hart.f, "h": hart, "load": load, "store": store, "K": ram.known_bytes, "D": ram.dirty}
    names = {**own, **{f"m{8 * size}": view for size, view in ram.views.items()}}
    no_memory = {**names, "load": _unknown_load, "store": _nowhere}
    return {
        True: RunCompiler(machine.xlen, machine.extensions, main, names),
        False: RunCompiler(machine.xlen, machine.extensions, NO_RAM, no_memory),
    }


def _unknown_load(offset: int, size: int) -> KnownValue:
    return None


def _nowhere(offset: int, size: int, value: KnownValue) -> None:
    """Store where nobody knows: what was known of memory was forgotten before."""
