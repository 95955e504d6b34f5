"""History listings in the shape of gdb's `record instruction-history`, for use outside gdb.

`NUMBER TAB   ADDRESS <function+offset>:TAB instruction`, and `NUMBER TAB [text]` for a gap (GDB manual, "Process
Record and Replay"; shape checked against gdb 13.1). The marker of the current pc, "=>", needs a target and never
appears here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from decode.history import GAP, History
from support.errors import RvtraceError
from support.progress import Progress, silent
from views.disassembly import Disassembler
from views.text import Text

_AT_ONCE = 4096  # positions disassembled together; bounds memory, and the wait for the first line
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit: room for 8 bytes


class ModifierError(RvtraceError):
    """A listing modifier that does not exist, in gdb's words."""


@dataclass(frozen=True)
class Modifiers:
    """The letters after a slash: /r raw bytes, /f offsets without function names; /p (no "=>") changes nothing."""

    raw: bool = False
    omit_function: bool = False

    @classmethod
    def split(cls, arguments: str) -> "tuple[Modifiers, str]":
        """Modifiers and what follows them, e.g. "/rf 1,5" -> (raw and omit_function, "1,5"). Raises `ModifierError`."""
        letters, rest = "", arguments.strip()
        if rest == "/":
            raise ModifierError("Missing modifier.")
        while rest.startswith("/"):
            word, _, rest = rest.partition(" ")
            letters += word.replace("/", "")
            rest = rest.lstrip()
        for letter in letters:
            if letter not in "rfp":
                raise ModifierError(f"Invalid modifier: {letter}.")
        return cls("r" in letters, "f" in letters), rest


def lines(
    history: History,
    disassembler: Disassembler,
    xlen: int,
    begin: int,
    end: int,
    modifiers: Modifiers = Modifiers(),
    progress: Progress = silent,
) -> Iterator[str]:
    """The lines for the positions numbered *begin* to *end* - 1; numbers count from 1, as gdb's do."""
    for first in range(begin, end, _AT_ONCE):
        pcs = list(history.pcs(first - 1, min(first + _AT_ONCE, end) - 1))
        texts = disassembler.texts((pc for pc in pcs if pc != GAP), progress)
        for number, pc in enumerate(pcs, first):
            if pc == GAP:
                yield f"{number}\t[{history.gap_at(number - 1).text}]"
            else:
                raw = disassembler.raw(pc) if modifiers.raw else ""
                yield f"{number}\t   {line(pc, texts[pc], xlen, raw, modifiers.omit_function)}"


def line(pc: int, text: Text, xlen: int, raw: str = "", omit_function: bool = False) -> str:
    """`ADDRESS <function+offset>:TAB instruction`, with *raw* bytes before the instruction if given."""
    place = ""
    if text.symbol is not None:
        name, offset = text.symbol
        place = f" <+{offset}>" if omit_function else f" <{name}+{offset}>"
    column = f"{raw:<{_RAW_WIDTH[len(raw.partition(' ')[0])]}}\t" if raw else ""
    return f"0x{pc:0{xlen // 4}x}{place}:\t{column}{text.instruction}"
