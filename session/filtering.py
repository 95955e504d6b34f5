"""What `trace start` is to trace of all that runs: the filter of its options.

Options, in the session protocol:

range     [[first address, end], ...]
function  [[name, address of the entry], ...]; the program's symbols say where it ends
priv      ["u", "s", "m", ...]
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from rvtrace_gdb.controlregs.filter_setup import Filter
from rvtrace_gdb.controlregs.filters import PRIVILEGES
from rvtrace_gdb.decode.elf import Symbol
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.errors import BadOption

OPTIONS = ("range", "function", "priv")
MODES = {name.lower(): number for number, name in PRIVILEGES.items() if name != "debug"}
"""Privilege modes as the user writes them, and their codes at the trace port."""
_TOP = 1 << 64


def filter_of(options: Mapping[str, Any], image: Image | None) -> Filter | None:
    """The filter that the options ask for, None: everything is to be traced. Raises `BadOption`."""
    ranges = tuple(_range(pair) for pair in _list(options, "range"))
    functions = tuple(_function(image, pair) for pair in _list(options, "function"))
    privileges = tuple(sorted({_mode(word) for word in _list(options, "priv")}))
    return Filter(ranges + functions, privileges) if ranges or functions or privileges else None


def _list(options: Mapping[str, Any], name: str) -> list[Any]:
    value = options.get(name, [])
    if not isinstance(value, list):
        raise BadOption(f"{name} is {value!r}, it must be a list")
    return value


def _range(pair: Any) -> tuple[int, int]:
    if not _is_pair(pair, int, int):
        raise BadOption(f"range has {pair!r}, it must have pairs of addresses")
    start, end = pair
    if not 0 <= start < end <= _TOP:
        raise BadOption(f"the range {start:#x},{end:#x} has no address in it: give FROM,TO with TO behind the last one")
    return start, end


def _mode(word: Any) -> int:
    if not isinstance(word, str) or word not in MODES:
        raise BadOption(f"priv has {word!r}, it must have some of {', '.join(MODES)}")
    return MODES[word]


def _function(image: Image | None, pair: Any) -> tuple[int, int]:
    """From its entry to where its symbol, or what has no size before the next symbol, ends."""
    if not _is_pair(pair, str, int):
        raise BadOption(f"function has {pair!r}, it must have pairs of a name and an address")
    name, entry = pair
    ends = [] if image is None else sorted(_ends(image, entry))
    if not ends:
        raise BadOption(f"{name}: the program has no symbol at {entry:#x} that says where it ends: give -range FROM,TO")
    return entry, ends[-1]


def _ends(image: Image, entry: int) -> Iterator[int]:
    for elf, bias in image.elves:
        for section in elf.sections:
            if section.start <= entry - bias < section.end:
                size = _size(section.symbols, entry - bias, section.end)
                if size:
                    yield entry + size


def _size(symbols: list[Symbol], address: int, section_end: int) -> int:
    """Of the largest symbol at *address*; one without a size reaches to the next. 0: there is none."""
    here = bisect_left(symbols, address, key=lambda symbol: symbol.address)
    behind = bisect_right(symbols, address, key=lambda symbol: symbol.address)
    if here == behind:
        return 0
    size = max(symbol.size for symbol in symbols[here:behind])
    following = symbols[behind].address if behind < len(symbols) else section_end
    return min(size, section_end - address) or following - address


def _is_pair(value: Any, *kinds: type) -> bool:
    """Whether it is a list of two values of these kinds, as JSON has them."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_a, value, kinds))


def _is_a(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
