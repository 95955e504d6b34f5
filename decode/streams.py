"""What decoders of every format take and give: the code that ran, bytes that are no packet, one history per hart."""

from typing import NamedTuple, Protocol

from decode.history import Accounting, Context, History
from decode.image import Image


class Program(Protocol):
    """The code a hart runs, which may be another in each context. An `Image` is one that is the same in all."""

    @property
    def xlen(self) -> int: ...

    @property
    def path(self) -> str: ...

    @property
    def partial(self) -> bool: ...

    def image_of(self, context: Context) -> Image: ...


class Offsets(Protocol):
    """Where frames are in the trace."""

    def of(self, index: int) -> int:
        """The byte offset of frame *index*; asked for in rising order."""
        ...


class Lost(NamedTuple):
    """Bytes that are no frame: *length* of them from *offset* on."""

    offset: int
    length: int
    why: str


class Streams(NamedTuple):
    """One history for each source found (0 where messages do not say theirs), and what became of all bytes."""

    histories: dict[int, History]
    accounting: Accounting


def skipped(count: int) -> str:
    """What there is to say of so many bytes that were no packet."""
    return f"{count} byte{'' if count == 1 else 's'} skipped"
