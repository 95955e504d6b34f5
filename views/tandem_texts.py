"""The text of instructions as a trace has them, which need not be what the program has at their addresses."""

from collections.abc import Iterable

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import length
from rvtrace_gdb.decode.tandem.group import Instr
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.views.disassembly import Disassembler, Disassemblers, Images
from rvtrace_gdb.views.tandem_groups import Row
from rvtrace_gdb.views.text import Text

_REMEMBERED = 1 << 18


class Texts:
    """*source*: of the program; *images*: the same program."""

    def __init__(self, source: Disassemblers, images: Images, xlen: int) -> None:
        self._source, self._images, self._xlen = source, images, xlen
        self._known: dict[tuple[int | None, int, Instr], Text] = {}

    def symbol(self, address: int, context: Context) -> tuple[str, int] | None:
        """The name of an address, and how far behind it."""
        return self._images.image_of(context).symbol(address)

    def of(self, row: Row) -> Text:
        """That of the instruction of a group, which was learnt before."""
        if row.instr is None or row.pc is None:
            return Text(None, "" if row.instr is None else _encoding(row.instr))
        return self._known[row.mode, row.pc, row.instr]

    def learn(self, rows: Iterable[Row], progress: Progress = silent) -> None:
        """The text of the instructions of some groups."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        others: dict[tuple[int | None, int, Instr], Row] = {}
        wanted: dict[int | None, dict[int, Instr]] = {}
        for row in rows:
            if row.instr is None or row.pc is None or (row.mode, row.pc, row.instr) in self._known:
                continue
            if not _is_whole(row.instr):
                symbol = self.symbol(row.pc, row.context)
                self._known[row.mode, row.pc, row.instr] = Text(symbol, _encoding(row.instr))
            elif self._is_there(row.pc, row.instr, row.context):
                wanted.setdefault(row.mode, {})[row.pc] = row.instr
            else:
                others[row.mode, row.pc, row.instr] = row
        for mode, instructions in wanted.items():
            texts = self._source.of(Context(mode)).texts(instructions, progress)
            self._known |= {(mode, pc, instr): texts[pc] for pc, instr in instructions.items()}
        self._learn_others(others)

    def _is_there(self, pc: int, instr: Instr, context: Context) -> bool:
        try:
            return self._images.image_of(context).read(pc, instr.length) == _bytes(instr)
        except CodeMissing:
            return False

    def _learn_others(self, others: dict[tuple[int | None, int, Instr], Row]) -> None:
        """What the program does not have, or has otherwise."""
        while others:
            image, taken = Image(self._xlen), dict[int, tuple[int | None, int, Instr]]()
            for key in others:
                _, pc, instr = key
                if not any(at in taken for at in range(pc - 3, pc + 4)):
                    image.add_code(pc, _bytes(instr), "the trace")
                    taken[pc] = key
            with Disassembler(image) as disassembler:
                texts = disassembler.texts(taken)
                for pc, key in taken.items():
                    symbol = self.symbol(pc, others[key].context)
                    self._known[key] = Text(symbol, texts[pc].instruction)
                    del others[key]


def _is_whole(instr: Instr) -> bool:
    """Whether its encoding has the length it was told to have; a disassembler would want more bytes, or fewer."""
    try:
        return length(instr.word & 0xFFFF) == instr.length
    except UndecodableInstruction:
        return False


def _bytes(instr: Instr) -> bytes:
    return instr.word.to_bytes(instr.length, "little")


def _encoding(instr: Instr) -> str:
    """Where its address is not known, what it is relative to is not either."""
    return f".{instr.length}byte\t0x{instr.word:0{2 * instr.length}x}"
