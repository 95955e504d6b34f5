"""What the readers of execution logs have in common: a log becomes pieces, which are addresses, traps and contexts."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.executed.log import Log
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.ingress import Trap

Piece = list[int] | Trap | Context
"""Addresses of instructions that retired, in order; or what happened between two of them."""

_SHOWN = 60  # characters of a bad line


class Reader(ABC):
    """Reads one format. `pieces` reads the log as far as it is asked to; the attributes tell about that part.

    hart     whose lines are read; None until the first line says
    exact    the log names every trap, so a step the code cannot make is an error; else it is taken for a trap
    missing  instructions of the pieces that the image has no code for, which the log itself has; for the user of the
             pieces to take out
    notes    what was left out, a line each
    """

    expected: str
    """What a line of the format looks like, for messages."""

    advice: str
    """How to get a log that names its traps, for messages."""

    can_name_traps = True
    """Whether there are logs of this format that do."""

    def __init__(self, log: Log, image: Image, hart: int | None = None) -> None:
        self.log, self.image, self.hart = log, image, hart
        self.exact = False
        self.missing: dict[int, bytes] = {}
        self.notes: list[str] = []
        self._all_harts_known = hart is not None

    @classmethod
    @abstractmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Whether a log that begins with these lines is of this format."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """What ran, oldest first. Raises LogError."""

    def _bad_line(self, index: int, line: bytes) -> None:
        """A line that is not as expected is an error, unless it is the last one and cut off."""
        if not line.endswith(b"\n"):
            self.notes.append("the last line is cut off and was left out")
            return
        text = line.decode("ascii", "replace").strip()
        text = "".join(character if character.isprintable() else "?" for character in text)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        raise self.log.error(index, f"expected {self.expected}, found `{shown}`")

    def _is_wanted(self, index: int, hart: int) -> bool:
        """Whether a line about *hart* counts. Raises LogError for a second hart while none was chosen."""
        if self.hart is None:
            self.hart = hart
        elif hart != self.hart and not self._all_harts_known:
            raise self.log.error(index, f"hart {hart} after lines of hart {self.hart}: choose one with --hart")
        return hart == self.hart
