"""From the log of another simulator to what an encoder takes: blocks, traps and contexts, in constant memory.

with Log("app.spike") as log:
    executed = Executed(log, image)
    for item in executed.items(): ...
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, KnownBlocks, blocks_from_pcs
from rvtrace_gdb.decode.executed.qemu import QemuLogReader
from rvtrace_gdb.decode.executed.readers import Log, LogError, LogPiece, LogReader, PcListReader
from rvtrace_gdb.decode.executed.spike import SpikeReader
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.support.errors import Progress, silent

READERS: Mapping[str, type[LogReader]] = {"spike": SpikeReader, "qemu": QemuLogReader, "pcs": PcListReader}
"""The formats by name, in the order in which they are tried: lists of addresses last, because much looks like one."""


class Executed:
    """What was executed, according to a log.

    format        a name of READERS; None: recognized from the log's first lines
    hart          whose execution; None: the only one in the log
    starts        the address of the instruction to start at; None: the first one that is in the image
    limit         end after this many instructions; None: with the log
    contexts      yield contexts too, if the log has them

    Raises LogError if the format of the log is not known.
    """

    def __init__(
        self, log: Log, image: Image, *, format: str | None = None, hart: int | None = None,
        starts: Callable[[int], bool] | None = None, limit: int | None = None, contexts: bool = False,
        progress: Progress = silent,
    ) -> None:  # fmt: skip
        self.format = format or _recognized(log)
        self.instructions = 0
        """How many instructions retired in the items yielded so far."""
        self.skipped = 0
        """How many instructions of the log precede the first one yielded; in a log of blocks, how many blocks."""
        self._log, self._image, self._progress = log, image, progress
        self._reader = READERS[self.format](log, image, hart)
        self._starts = starts or self._has_code
        self._limit, self._contexts = limit, contexts
        self._known: KnownBlocks = {}
        self._guessed = 0
        self._from_log = 0  # bytes

    @property
    def notes(self) -> list[str]:
        """Return what the user should know about how the log was read, a line each."""
        notes = list(self._reader.notes)
        if self._guessed:
            traps = "1 trap was" if self._guessed == 1 else f"{self._guessed} traps were"
            notes.append(f"{traps} guessed, from steps the code cannot make: {self._reader.advice}")
        elif self._reader.can_name_traps and not self._reader.exact:
            notes.append(f"no trap is in the log; if there were any, {self._reader.advice}")
        if self._from_log:
            notes.append(f"{self._from_log} bytes of code are not in {self._image.path} and were taken from the log")
        return notes

    def items(self) -> Iterator[Block | IngressTrap | ProgramContext]:
        """Yield what was executed, oldest first. To be called once.

        Raises LogError for malformed lines and for execution that contradicts the image.
        """
        pieces = self._watched(self._limited(self._selected(self._reader.pieces())))
        marks: list[IngressTrap | ProgramContext] = []

        def until_mark() -> Iterator[list[int]]:
            for piece in pieces:
                if not isinstance(piece, list):
                    marks.append(piece)
                    return
                self._take_missing(piece)
                yield piece

        while True:
            yield from self._blocks(chain.from_iterable(until_mark()))
            if not marks:
                return
            yield marks.pop()

    def _blocks(self, pcs: Iterator[int]) -> Iterator[Block | IngressTrap]:
        block: Block | None = None
        try:
            for item in blocks_from_pcs(pcs, self._image, self._known):
                if isinstance(item, Block):
                    block = item
                    self.instructions += item.instructions
                else:
                    self._check_guess(block, item)
                    if self._has_code(item.epc) and self._image.instruction(item.epc).itype is IType.EXCEPTION:
                        item = item._replace(interrupt=False)  # an ecall or ebreak, which never retires
                yield item
        except (CodeMissing, UndecodableInstruction) as error:
            asked = f"did {self._image.path} run?"
            raise LogError(self._log.name, None, f"after line {self._log.line}: {error}: {asked}") from None

    def _check_guess(self, block: Block | None, trap: IngressTrap) -> None:
        """Raise an error for a step the code cannot make if the log would have named the trap."""
        self._guessed += 1
        if self._reader.exact and block is not None:
            last = block.fall - 2 * block.lengths[-1]
            raise LogError(
                self._log.name,
                None,
                f"after line {self._log.line}: from the instruction at 0x{last:x} execution continues at"
                f" 0x{trap.handler:x}, which only a trap can do, and the log has none there: did {self._image.path}"
                " run, and"
                " is the log complete?",
            )

    def _watched(self, pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
        for piece in pieces:
            if self._log.size is not None:
                self._progress("reading the log", self._log.done, self._log.size)
            else:
                self._progress("reading the log (instructions)", self.instructions)
            yield piece

    def _selected(self, pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
        """Yield the pieces from the start on, without contexts unless they are requested."""
        relevant = (piece for piece in pieces if self._contexts or not isinstance(piece, ProgramContext))
        context = None
        for piece in relevant:
            if isinstance(piece, ProgramContext):
                context = piece
            elif isinstance(piece, list):
                at = next((i for i, pc in enumerate(piece) if self._starts(pc)), len(piece))
                self.skipped += at
                if at < len(piece):
                    yield from () if context is None else (context,)
                    yield piece[at:]
                    yield from relevant
                    return
        raise LogError(self._log.name, None, "no instruction in it is where encoding can start; is this the right ELF?")

    def _limited(self, pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
        left = self._limit
        for piece in pieces:
            if left is not None and isinstance(piece, list):
                if len(piece) >= left:
                    yield piece[:left]
                    return
                left -= len(piece)
            yield piece

    def _has_code(self, pc: int) -> bool:
        try:
            self._image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return False
        return True

    def _take_missing(self, pcs: list[int]) -> None:
        """Add the code of these addresses, which only the log has, to the image."""
        missing = self._reader.missing
        if not missing:
            return
        stretches: list[tuple[int, bytearray]] = []
        for pc in sorted(missing.keys() & set(pcs)):
            code = missing.pop(pc)
            self._from_log += len(code)
            if stretches and pc == stretches[-1][0] + len(stretches[-1][1]):
                stretches[-1][1].extend(code)
            else:
                stretches.append((pc, bytearray(code)))
        for start, stretch in stretches:
            self._image.add_code(start, bytes(stretch))


def _recognized(log: Log) -> str:
    head = log.head()
    if not head:
        raise LogError(log.name, None, "is empty")
    for name, reader in READERS.items():
        if reader.recognizes(head):
            return name
    raise LogError(
        log.name,
        None,
        "is neither a list of addresses nor a log of Spike (-l, --log-commits) or QEMU (-d exec,nochain,int);"
        " if it is one that begins with something else, name it with --format",
    )
