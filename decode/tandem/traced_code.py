"""The code that a tandem trace says ran, beside that of the program: paths of it, and where the two differ."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image, Program
from rvtrace_gdb.decode.tandem.plausibility import TRACE
from rvtrace_gdb.decode.tandem.traced_paths import TracedPaths

_MOST_PATHS = 1 << 16

class _UnsureInstruction(NamedTuple):
    """An instruction that ran where the program had no code."""

    path: Path
    image: Image
    pc: int
    code: bytes


class TracedCode:
    """The paths of instructions that ran, and the code that the program lacks.

    image  the program that runs now
    paths  those that ran in it, which are the same whenever the same instructions ran
    """

    def __init__(self, program: Program, builder: HistoryBuilder) -> None:
        self._program, self._builder = program, builder
        self.image = program.image_of(ProgramContext())
        self.paths = TracedPaths()
        self._paths_of = {self.image: self.paths}
        self._missing: dict[Image, dict[int, bytes]] = {}
        self._unsure: list[_UnsureInstruction] = []
        self._mismatches: set[int] = set()

    def enter(self, context: ProgramContext) -> None:
        """Continue with the program of another context."""
        self.image = self._program.image_of(context)
        if self.image not in self._paths_of:
            self._paths_of[self.image] = TracedPaths()
        self.paths = self._paths_of[self.image]

    @property
    def is_full(self) -> bool:
        """Whether there are so many paths that they should be forgotten."""
        return sum(map(len, self._paths_of.values())) > _MOST_PATHS

    def forget(self) -> None:
        """Forget all paths; they are made again when needed."""
        for paths in self._paths_of.values():
            paths.clear()

    def check(self, path: Path, pc: int, code: bytes, *, varies: bool) -> Loss | None:
        """Compare an instruction that ran with the program's; code that the program lacks is added to it later.

        The path has what differs, and what does so elsewhere in the trace. Returns the first mismatch of the trace.
        """
        try:
            expected = self.image.read(pc, len(code))
        except CodeMissing:
            self._missing.setdefault(self.image, {}).setdefault(pc, code)
            self._unsure.append(_UnsureInstruction(path, self.image, pc, code))
            return None
        if expected != code or varies:
            self._differs(path, pc, code)
        if expected == code or self.image.origin(pc) == TRACE:
            return None
        self._mismatches.add(pc)
        detail = (self.image.origin(pc), pc, code[::-1].hex(), expected[::-1].hex())
        return Loss(LossCause.OTHER_INSTRUCTION, detail) if len(self._mismatches) == 1 else None

    def complete(self) -> None:
        """Add the code that the program lacked, and note on the paths where that was not the same each time."""
        for image, missing in self._missing.items():
            for start, code in _stretches(missing):
                image.add_code(start, code, TRACE)
            missing.clear()
        for path, image, pc, code in self._unsure:
            if image.read(pc, len(code)) != code:
                self._differs(path, pc, code)
        self._unsure.clear()

    def more_places(self) -> Note | None:
        """Return the note on further places where trace and program differ, None if there are none."""
        more = len(self._mismatches) - 1
        return Note(NoteCause.MORE_PLACES, (more, self.image.origin(0))) if more > 0 else None

    def _differs(self, path: Path, pc: int, code: bytes) -> None:
        path.code = {**path.code, pc: code}
        self._builder.code_varies = True


def _stretches(code: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Return instructions by address as pieces as long as possible."""
    start, joined = -1, bytearray()
    for pc, data in sorted(code.items()):
        if joined and pc == start + len(joined):
            joined += data
        else:
            if joined:
                yield start, bytes(joined)
            start, joined = pc, bytearray(data)
    if joined:
        yield start, bytes(joined)
