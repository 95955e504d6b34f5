"""Which code runs in which context: one program for the kernel, others for its processes and for guests.

A trace tells the context of a hart in Ownership messages: privilege mode, scontext and hcontext (N-Trace 1.0, 7.1).
Linux writes the pid of the task it switches to into scontext when it has been taught to: in captures the pid of the
process that was traced, and 0 for the idle task.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.errors import BadElf
from rvtrace_gdb.decode.history import Context
from rvtrace_gdb.decode.image import Image

_MACHINE = 3


class _Attached(NamedTuple):
    """An image and the contexts it is for: None means any."""

    image: Image
    scontext: int | None
    hcontext: int | None
    virtual: bool | None

    @property
    def selectors(self) -> int:
        return sum(value is not None for value in self[1:])

    def covers(self, context: Context) -> bool:
        wanted = ((self.scontext, context.scontext), (self.hcontext, context.hcontext), (self.virtual, context.virtual))
        return all(value is None or value == actual for value, actual in wanted)


class ContextImages:
    """The image of each context: those attached to it over a base that all contexts share.

    The base is the bare-metal program, or the kernel and the firmware under it. M-mode sees the base alone: it runs at
    physical addresses, where a process may have code of its own.
    """

    def __init__(self, base: Image) -> None:
        self.base = base
        self._attached: list[_Attached] = []
        self._layered: dict[tuple[int, ...], Image] = {(): base}  # by the ids of what is over the base, undermost first

    partial = True
    """Much runs on such a system that nobody supplied: where there is no code, nothing is wrong."""

    @property
    def xlen(self) -> int:
        """32 or 64."""
        return self.base.xlen

    @property
    def path(self) -> str:
        """The base's ELF, or the first one attached; "" without any."""
        images = (self.base, *(attached.image for attached in self._attached))
        return next((image.path for image in images if image.path), "")

    def attach(
        self,
        image: Image,
        *,
        scontext: int | None = None,
        hcontext: int | None = None,
        virtual: bool | None = None,
    ) -> None:
        """*image* is in memory in the contexts with these values; one that is not given may be any.

        Where several are, the one for fewer contexts hides the others, then the later one the earlier ones. Raises
        BadElf when it is code of another XLEN than the base's.
        """
        if image.xlen != self.xlen:
            raise BadElf(image.path, f"is {image.xlen}-bit code, and the base program is {self.xlen}-bit")
        self._attached.append(_Attached(image, scontext, hcontext, virtual))

    def image_of(self, context: Context) -> Image:
        """What code there is in *context*: the same object for contexts with the same code."""
        if context.prv == _MACHINE:
            return self.base
        chosen = [attached for attached in self._attached if attached.covers(context)]
        return self._over_base([attached.image for attached in sorted(chosen, key=lambda one: one.selectors)])

    def _over_base(self, images: list[Image]) -> Image:
        key = tuple(map(id, images))
        if key not in self._layered:
            self._layered[key] = images[-1].over(self._over_base(images[:-1]))
        return self._layered[key]
