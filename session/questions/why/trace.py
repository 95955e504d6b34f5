"""The history that is asked why, with all that is known of it: programs, values, writers, kinds of memory."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Start
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.past.past import OUTSIDE, NoWrite, Past, PastWrite
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.support.errors import Progress, silent


class HartRanges(NamedTuple):
    """The hart of a history. *others*: whether there are more; *ranges*: the memory that is described."""

    number: int
    others: bool
    ranges: Sequence[MemoryRange]


class TracedPast:
    """A history, its *program* by context, and its *past*, if it has one. *writers*: of its registers; None: the past
    itself says more of them, because the trace has registers.
    """

    def __init__(
        self, history: History, program: ContextImages, past: Past | None, writers: RegisterWriters | None,
        hart: HartRanges,
    ) -> None:  # fmt: skip
        self.history, self.program, self.past, self.hart = history, program, past, hart
        self.progress: Progress = silent
        """Called by what takes long; it may raise to end that."""
        self._writers = writers
        self._losses = writers or RegisterWriters(history, program)
        starts = [it for it in history.events if isinstance(it.fact, Start) and it.fact.reason.resumes]
        self._halts = [it.position for it in starts if it.position]

    def image_at(self, position: int) -> Image:
        """Return the program that runs at a position."""
        at = max(min(position, len(self.history) - 1), 0)
        return self.program.image_of(self.history.context_at(at))

    # -- registers

    def last_register_write(self, position: int, number: int) -> PastWrite | NoWrite:
        """Return the last write to a register before a position."""
        if self._writers is not None or self.past is None:
            return self._losses.last(position, number, progress=self.progress)
        return self.past.register_writer(position, number)

    def register_value(self, position: int, number: int) -> int | None:
        """Return a register before the instruction at a position, None: not known."""
        return None if self.past is None else self.past.registers(position).get(_plain_name(number))

    def lost_between(self, first: int, last: int) -> Iterator[str]:
        """Yield what is missing in the trace behind one position, up to before another."""
        return self._losses.lost_between(first, last)

    # -- memory

    def written_at_halt(self, since: int, position: int, address: int, size: int) -> int | None:
        """Return where a debugger wrote some bytes last, behind position *since* and not behind another one."""
        if self.past is None or not any(since < it <= position for it in self._halts):
            return None
        found = self.past.memory_writer(position, address, size)
        is_outside = not isinstance(found, NoWrite) and found.kind == OUTSIDE and found.position > since
        return found.position if is_outside and not isinstance(found, NoWrite) else None

    def is_device(self, address: int) -> bool:
        """Return whether an address is that of a device, or of memory that changes by itself."""
        return any(it.kind is MemoryKind.VOLATILE for it in self._ranges_at(address))

    def memory_doubt(self, address: int) -> str:
        """Return why somebody else may write to an address; "": nobody does."""
        ranges = self._ranges_at(address)
        if not ranges:
            return "" if self._is_program(address) else "This memory is not described: a device may be there."
        if any(it.dma for it in ranges):
            return "A device may have written it (DMA)."
        if any(it.harts and self.hart.number not in it.harts for it in ranges) or (
            self.hart.others and not all(it.harts == (self.hart.number,) for it in ranges)
        ):
            return "Another hart may have written it."
        return ""

    def _ranges_at(self, address: int) -> list[MemoryRange]:
        return [it for it in self.hart.ranges if it.address <= address < it.address + it.size]

    def _is_program(self, address: int) -> bool:
        """Return whether an address is in the memory of the program."""
        files = self.program.all_programs.layers
        return any(it.start <= address - bias < it.end for elf, bias in files for it in elf.sections)


def _plain_name(number: int) -> str:
    """Return a name of a register, as `Past.registers` has it."""
    if X <= number < F:
        return f"x{number - X}"
    return f"f{number - F}" if F <= number < F + 32 else f"csr{number}"
