"""A trace, message by message: a line each, for people and for grep.

    3	0x00000008 IndirectBranchHist TCODE=28 B-TYPE=0 I-CNT=125 U-ADDR=0x7 HIST=0xffe addr=0x8000000e hist=TTTTTTTTTTN
      # indirect jump, call or return (on the same line)

The number counts from 1, and the address is the offset of the first byte; the rest is described in
`decode.ntrace.wording` and `decode.etrace.wording`.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from rvtrace_gdb.decode.ntrace.items import Item, Itemizer
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.wording import Wording


class ItemAtOffset(Protocol):
    """A message, filling, or bytes that are neither."""

    @property
    def offset(self) -> int: ...


One = TypeVar("One", bound=ItemAtOffset)
OneIn = TypeVar("OneIn", bound=ItemAtOffset, contravariant=True)
OneOut = TypeVar("OneOut", bound=ItemAtOffset, covariant=True)


class AnyItemizer(Protocol[OneOut]):
    """An itemizer of any format."""

    def feed(self, data: bytes) -> Iterator[OneOut]: ...
    def finish(self) -> Iterator[OneOut]: ...


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
        yield number, item, f"{number}\t0x{item.offset:08x} {wording.text(item, raw=raw)}"


def _items(data: Iterable[bytes], itemizer: AnyItemizer[One]) -> Iterator[One]:
    for piece in data:
        yield from itemizer.feed(piece)
    yield from itemizer.finish()
