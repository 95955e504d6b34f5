"""What went wrong with an input, said so that the same place in the program is one finding."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).resolve().parent.parent.parent
TRACEBACK, HANG, GROWTH, CRASH = "traceback", "hang", "growth", "crash"
KINDS = (TRACEBACK, HANG, GROWTH, CRASH)


class Finding(NamedTuple):
    """*kind*: of `KINDS`. *where*: the innermost line of the program, with the type of the exception.

    *number*: of the input; *variant* and *data*: the input; *text*: a traceback.
    """

    kind: str
    where: str
    number: int
    variant: str
    data: bytes
    text: str

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "data": self.data.hex()}

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> Finding:
        return cls(**{**fields, "data": bytes.fromhex(fields["data"])})


def where(error: BaseException) -> str:
    """Where an exception comes from, in a few words: the innermost line that is the program's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(frame.filename)]
    if not frames:
        return type(error).__name__
    last = own[-1] if own else frames[-1]
    return f"{type(error).__name__} {Path(last.filename).relative_to(root_of(last.filename))}:{last.lineno}"


def text(error: BaseException) -> str:
    """The traceback."""
    return "".join(traceback.format_exception(error))


def root_of(file: str) -> Path:
    """The folder in which the rooms are; that of the file for one that is in none."""
    path = Path(file)
    return next((parent for parent in path.parents if (parent / "pyproject.toml").is_file()), path.parent)


def _is_own(file: str) -> bool:
    """Whether it is the program's, neither a library's nor one of these here."""
    path = Path(file)
    return ".venv" not in path.parts and path.parent.name != "fuzz" and (root_of(file) / "pyproject.toml").is_file()
