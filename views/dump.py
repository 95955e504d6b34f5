"""A trace, message by message: a line each, for people and for grep.

    3	0x00000008 IndirectBranchHist TCODE=28 B-TYPE=0 I-CNT=125 U-ADDR=0x7 HIST=0xffe addr=0x8000000e hist=TTTTTTTTTTN
      # indirect jump, call or return (on the same line)

The number counts from 1, and the address is the offset of the first byte; the rest is described in
`decode.ntrace.wording` and `decode.etrace.wording`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from rvtrace_gdb.decode.item_texts import ItemText
from rvtrace_gdb.decode.ntrace.items import Item, Itemizer
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.wording import Wording


class FramePlace(NamedTuple):
    """A byte *offset* in CoreSight frames, and the ATB ID of the byte there."""

    atb_id: int
    offset: int


class ItemAtOffset(Protocol):
    """A message, filling, or bytes that are neither."""

    @property
    def offset(self) -> int: ...
    @property
    def end(self) -> int: ...


One = TypeVar("One", bound=ItemAtOffset)
OneIn = TypeVar("OneIn", bound=ItemAtOffset, contravariant=True)
OneOut = TypeVar("OneOut", bound=ItemAtOffset, covariant=True)


class AnyItemizer(Protocol[OneOut]):
    """An itemizer of any format."""

    def feed(self, data: bytes) -> Iterator[OneOut]: ...
    def finish(self) -> Iterator[OneOut]: ...


@runtime_checkable
class TextItemizer(Protocol[OneOut]):
    """An itemizer that remembers the text of items."""

    def texts(self, data: bytes, wording: "AnyWording[OneOut]", *, raw: bool = False) -> Iterator[ItemText]: ...


class AnyWording(Protocol[OneIn]):
    """A wording of the same format."""

    def text(self, item: OneIn, *, raw: bool = False) -> str: ...


def lines(
    data: Iterable[bytes], options: Options, xlen: int, *, wrapped: bool = False, raw: bool = False
) -> Iterator[tuple[int, Item, str]]:
    """Yield the `lines_of` an N-Trace trace. *wrapped*: it may start inside a message."""
    return lines_of(data, Itemizer(options, xlen, wrapped=wrapped), Wording(options), raw=raw)


def lines_of(
    data: Iterable[bytes], itemizer: AnyItemizer[One], wording: AnyWording[One], *, raw: bool = False
) -> Iterator[tuple[int, One, str]]:
    """Yield, for each item of a trace that comes in pieces, its number, the item, and its line.

    Memory is bounded, and any bytes are accepted. *raw*: with the bytes.
    """
    for number, item in enumerate(_items(data, itemizer), 1):
        yield number, item, item_line(number, item.offset, wording.text(item, raw=raw))


def item_line(number: int, offset: int, text: str, place: FramePlace | None = None) -> str:
    """Return the line of an item. *place*: where in CoreSight frames it begins."""
    if place is None:
        return f"{number}\t0x{offset:08x} {text}"
    return f"{number}\t0x{offset:08x} {place.atb_id:#04x}@0x{place.offset:08x} {text}"


def _items(data: Iterable[bytes], itemizer: AnyItemizer[One]) -> Iterator[One]:
    for piece in data:
        yield from itemizer.feed(piece)
    yield from itemizer.finish()


def texts_of(
    data: Iterable[bytes],
    itemizer: AnyItemizer[One],
    wording: AnyWording[One],
    source_of: Callable[[One], int | None],
    *,
    raw: bool = False,
) -> Iterator[ItemText]:
    """Yield the items of a trace as `lines_of` does, without numbers; quicker where the itemizer remembers texts."""
    if isinstance(itemizer, TextItemizer):
        for piece in data:
            yield from itemizer.texts(piece, wording, raw=raw)
        data = ()
    for item in _items(data, itemizer):
        yield item.offset, item.end, source_of(item), wording.text(item, raw=raw)
