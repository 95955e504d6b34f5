"""The programs of a hart's contexts: one for the kernel, others for its processes and for guests.

A trace reports the context of a hart in Ownership messages: privilege mode, scontext and hcontext (N-Trace 1.0, 7.1). A
Linux kernel with support for that writes the pid of the task it switches to into scontext: in captures this is the pid
of the traced process, and 0 for the idle task.
"""

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.image import Image

_MACHINE = 3  # the privilege mode M


class _Attached(NamedTuple):
    """An image and the contexts it is for; None means any, and so do no epochs."""

    image: Image
    scontext: int | None
    hcontext: int | None
    virtual: bool | None
    epochs: frozenset[int] = frozenset()

    @property
    def selectors(self) -> int:
        return sum(value is not None for value in self[1:4])

    def covers(self, context: ProgramContext) -> bool:
        contexts = (self.scontext, context.scontext), (self.hcontext, context.hcontext)
        pairs = (*contexts, (self.virtual, context.virtual))
        if self.epochs and context.epoch not in self.epochs:
            return False
        return all(value is None or value == actual for value, actual in pairs)


class _AttachedTogether(Image):
    """The programs that are attached to contexts, in one image. At an address where several of them have different
    symbols, none is known; code that several have is that of the first.
    """

    def __init__(self, base: Image, images: list[Image]) -> None:
        super().__init__(base.xlen, read_missing=base._read_missing)
        self._images = images
        self._found: dict[int, tuple[str, int] | None] = {}
        placed = {(elf.path, bias): (elf, bias) for image in images for elf, bias in image.elves}
        for elf, bias in placed.values():
            self.add_elf(elf, bias, loaded=False)
        for image in images:
            for start, data in image.code:
                self.add_code(start, data, image.origin(start))
            self.absent += image.absent

    def symbol(self, addr: int) -> tuple[str, int] | None:
        """Return the same as `Image.symbol`; None also where programs have different symbols."""
        if addr not in self._found:
            found = {symbol for image in self._images if (symbol := image.symbol(addr)) is not None}
            self._found[addr] = found.pop() if len(found) == 1 else None
        return self._found[addr]

    def _function_start(self, addr: int) -> int | None:
        found = self.symbol(addr)
        return None if found is None else addr - found[1]


class ContextImages:
    """The image of each context: the images attached to it, over a base that all contexts share.

    The base is the bare-metal program, or the kernel and the firmware under it. M-mode has the base alone: it runs at
    physical addresses, where a process may have code of its own.
    """

    def __init__(self, base: Image) -> None:
        self.base = base
        self._attached: list[_Attached] = []
        self._layered: dict[tuple[int, ...], Image] = {(): base}  # by the ids of what is over the base, undermost first

    partial = True
    """Much code that runs on such a system was not supplied, so missing code is not an error."""

    @property
    def xlen(self) -> int:
        """The XLEN: 32 or 64."""
        return self.base.xlen

    @property
    def path(self) -> str:
        """The path of the base's ELF file, or of the first one attached; "" without any."""
        images = (self.base, *(attached.image for attached in self._attached))
        return next((image.path for image in images if image.path), "")

    @property
    def elves(self) -> list[Elf]:
        """The files of the programs of all contexts, each once: those of the base come first."""
        images = (self.base, *(attached.image for attached in self._attached))
        return list({elf.path: elf for image in images for elf, _ in image.elves}.values())

    def attach(
        self,
        image: Image,
        *,
        scontext: int | None = None,
        hcontext: int | None = None,
        virtual: bool | None = None,
        epochs: Collection[int] = (),
    ) -> None:
        """Attach *image* to the contexts with these values; a value that is not given, and no *epochs*, match any.

        If several images match a context, the one for fewer contexts hides the others, and a later one hides an earlier
        one. Raises BadElf if the code has another XLEN than the base.
        """
        if image.xlen != self.xlen:
            raise BadElf(image.path, f"is {image.xlen}-bit code, and the base program is {self.xlen}-bit")
        self.__dict__.pop("all_programs", None)
        self._attached.append(_Attached(image, scontext, hcontext, virtual, frozenset(epochs)))

    @cached_property
    def all_programs(self) -> Image:
        """The base and all programs attached to contexts, in one image: for what asks by a name, or by an address of
        which no context is known. Where a context is known, `image_of` is what ran. Without attached ones it is the
        base.

        The base hides what is attached. Of attached ones at the same address, only a symbol that all of them have is
        known.
        """
        images = list({id(it.image): it.image for it in self._attached}.values())
        if not images:
            return self.base
        whole = self.base.over(_AttachedTogether(self.base, images))
        whole.elves = whole.layers
        return whole

    @property
    def reported_program(self) -> Image:
        """The program that was named, else all of them: what a report is about that has one program."""
        return self.base if self.base.path else self.all_programs

    def code_parts(self) -> Iterator[bytes] | None:
        """Return the same as `Image.code_parts`, for the images of all contexts."""
        parts = [self.base.code_parts(), *(it.image.code_parts() for it in self._attached)]
        if None in parts:
            return None
        selectors = repr([(*it[1:4], sorted(it.epochs)) for it in self._attached]).encode()
        return chain([selectors], *(part for part in parts if part is not None))

    def image_of(self, context: ProgramContext) -> Image:
        """Return the code in *context*: the same object for contexts with the same code."""
        if context.prv == _MACHINE:
            return self.base
        chosen = [attached for attached in self._attached if attached.covers(context)]
        return self._over_base([attached.image for attached in sorted(chosen, key=lambda one: one.selectors)])

    def _over_base(self, images: list[Image]) -> Image:
        key = tuple(map(id, images))
        if key not in self._layered:
            self._layered[key] = images[-1].over(self._over_base(images[:-1]))
        return self._layered[key]
