"""The transcripts of a page of docs/tutorials: what is typed in its fenced blocks, and what is printed there.

In a page `...` stands for any text in its line, and a line of its own for any lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROMPTS = {"$ ": "shell", "(rvtrace) ": "console", "(gdb) ": "gdb"}
CTRL_C = "^C"


@dataclass(frozen=True)
class Exchange:
    """A command that is typed at *prompt* in *line* of the page, and the lines that the page shows below it."""

    line: int
    prompt: str
    command: str
    printed: list[str] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        """Ctrl-C is pressed while the command runs."""
        return self.printed[:1] == [CTRL_C]

    @property
    def expected(self) -> list[str]:
        return self.printed[1:] if self.interrupted else self.printed


def exchanges(page: Path) -> list[Exchange]:
    """All that is typed in the fenced blocks `console`, in order. Fails where such a block does not begin so."""
    found: list[Exchange] = []
    for number, line, begins in _fenced(page.read_text(encoding="utf-8")):
        prompt = next((prompt for prompt in PROMPTS if line.startswith(prompt)), None)
        if prompt is not None:
            found.append(Exchange(number, PROMPTS[prompt], line.removeprefix(prompt)))
        else:
            assert not begins, f"{page.name}, line {number}: a block begins with a prompt"
            found[-1].printed.append(line)
    return found


def _fenced(text: str) -> Iterator[tuple[int, str, bool]]:
    """(number, line, whether it is the first of its block) of the lines in blocks."""
    inside = begins = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = begins = line == "```console"
        elif inside:
            yield number, line, begins
            begins = False


def lines_of(text: str) -> list[str]:
    """The lines of *text* that say something, with a space for each run of white space.

    What gdb says of `continue` is left out: a console with a pipe and one at a terminal differ in it.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if line and line != "Continuing."]


def is_printed(expected: list[str], text: str) -> bool:
    """Whether *text* is what a page says."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in lines_of("\n".join(expected))
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines_of(text))) is not None
