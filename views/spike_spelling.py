"""The text of the instructions of groups as Spike would have it; where that is not known here, the disassembler's."""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.views.spike_text import Spelled, spelled
from rvtrace_gdb.views.tandem_groups import Row
from rvtrace_gdb.views.tandem_texts import Texts

UNKNOWN = "unknown"
"""What Spike writes for what is no instruction to it."""


class Spelling:
    """*texts*: for what has no text here."""

    def __init__(self, texts: Texts, xlen: int) -> None:
        self._texts, self._xlen = texts, xlen

    def of(self, row: Row) -> Spelled:
        """The instruction of a group, which was learnt before."""
        assert row.instr is not None
        return spelled(row.instr.word, self._xlen) or _respelled(self._texts.of(row).instruction)

    def text(self, row: Row) -> str:
        """The line of `spike -l`, behind the encoding."""
        return self.of(row).text

    def learn(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those rows; their text is known then."""
        page = list(rows)
        self._texts.learn(row for row in page if row.instr is not None and spelled(row.instr.word, self._xlen) is None)
        return iter(page)


def _respelled(text: str) -> Spelled:
    """A disassembler's text: `add a0,a0,16 # 0x80000010 <main+16>`."""
    name, _, operands = text.partition("\t")
    if not name or name.startswith(".") or " " in name:
        return Spelled(UNKNOWN, ())
    operands = operands.partition(" #")[0].partition(" <")[0].strip()
    return Spelled(name, tuple(operand.strip() for operand in operands.split(",")) if operands else ())
