"""Commands of gdb that go on over several lines, to their `end`: collected, and given to gdb as a file.

Source: "Command Files" and "User-defined Commands" in gdb's manual.
"""

import re

_NESTING = re.compile(r"\s*(?:if|while|while-stepping|stepping|ws|commands|comm|define|def)(?=\s|$)")
"""In these, others of their kind may stand."""
_PLAIN = re.compile(r"\s*(?:(?:document|doc)\s|(?:python|py|guile|gu|compile code)\s*$)")
"""In these, any text stands, up to the next `end`."""
_END = re.compile(r"\s*end\s*$")
_JOINED = re.compile(r"(?<!\\)\\$")


class Block:
    """Lines of one command. `add` them until `complete`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._open: list[bool] = []  # for each block: whether any text stands in it
        self._joined = False

    def add(self, line: str) -> None:
        self.lines.append(line)
        joined, self._joined = self._joined, bool(_JOINED.search(line))
        if joined:
            return
        if self._open and _END.match(line):
            self._open.pop()
        elif self._open and self._open[-1]:
            return
        elif _PLAIN.match(line):
            self._open.append(True)
        elif _NESTING.match(line):
            self._open.append(False)

    @property
    def complete(self) -> bool:
        return not self._open and not self._joined

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def several(self) -> bool:
        """Whether it is more than a line, so that gdb has to read it from a file."""
        return len(self.lines) > 1
