"""Raw N-Trace, message by message: a line each, for people and for grep.

    3	0x00000008 IndirectBranchHist TCODE=28 B-TYPE=0 I-CNT=125 U-ADDR=0x7 HIST=0xffe addr=0x8000000e hist=TTTTTTTTTTN
      # indirect jump, call or return (on the same line)

The number counts from 1, the address is the offset of the first byte; the rest is described in `decode.ntrace.wording`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from decode.ntrace.items import Item, Itemizer
from decode.ntrace.options import Options
from decode.ntrace.wording import Wording


def lines(
    data: Iterable[bytes], options: Options, xlen: int, *, wrapped: bool = False, raw: bool = False
) -> Iterator[tuple[int, Item, str]]:
    """For each item of a trace that comes in pieces: its number, itself, and its line.

    Needs no more memory for more trace, and takes any bytes. *wrapped*: the trace starts anywhere. *raw*: with
    the bytes.
    """
    itemizer = Itemizer(options, xlen, wrapped=wrapped)
    items = chain(chain.from_iterable(map(itemizer.feed, data)), itemizer.finish())
    wording = Wording(options)
    for number, item in enumerate(items, 1):
        yield number, item, f"{number}\t0x{item.offset:08x} {wording.text(item, raw=raw)}"
