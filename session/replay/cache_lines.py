"""Known memory that a debugger misses when it reads whole lines, as LLDB does, of which a part is unknown.

That is looked for where a debugger reads at every stop: in the stack, and in the variables of the program.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.proxy.backend import MemoryPart

LINE = 512
"""Bytes of a line of LLDB's cache (target.process.memory-cache-line-size)."""
_STACK = 8 * LINE  # bytes of it that are looked at
_VARIABLES = 16 * LINE
_OVER = 64  # bytes of the lines before and behind: what is read may be in both


class PlaceValues(Protocol):
    """The part of a past, or of a fork, that is asked here."""

    def registers(self, position: int) -> Mapping[str, int]: ...

    def memory(self, position: int, address: int, size: int) -> list[int | None]: ...


def partly_known_lines(past: PlaceValues, position: int, image: Image) -> Iterator[MemoryPart]:
    """Yield what is known at a position of lines that are partly known."""
    sp = past.registers(position).get("sp")
    places = [] if sp is None else [range(_line(sp), _line(sp) + _STACK)]
    for place in _separate([*places, *_variables(image)]):
        yield from _known_parts(place.start, past.memory(position, place.start, len(place) + _OVER), len(place))


def _variables(image: Image) -> Iterator[range]:
    """Yield the lines of the program's memory that are no constants, as many as are looked at."""
    left = _VARIABLES
    constants = [part for elf, _ in image.layers for part in elf.constants]
    for elf, bias in image.layers:
        for section in elf.sections:
            if any(section.start in part for part in constants) or section.start == section.end:
                continue
            start, end = _line(section.start + bias), _line(section.end + bias + LINE - 1)
            size = min(end - start, left)
            left -= size
            if size:
                yield range(start, start + size)


def _separate(places: list[range]) -> Iterator[range]:
    """Yield the same places in rising order, without what they share."""
    at = 0
    for place in sorted(places, key=lambda it: it.start):
        if place.stop > max(at, place.start):
            yield range(max(at, place.start), place.stop)
            at = place.stop


def _known_parts(start: int, contents: list[int | None], size: int) -> Iterator[MemoryPart]:
    """Yield the known parts of those lines that are partly known."""
    for line in range(0, size, LINE):
        at, end = line, line + LINE
        if None not in contents[line:end]:
            continue
        while at > max(line - _OVER, 0) and contents[at - 1] is not None:
            at -= 1
        while at < end:
            part_end = _run_end(contents, at, end + _OVER)
            if part_end > at:
                yield start + at, bytes(byte for byte in contents[at:part_end] if byte is not None)
            at = part_end + 1


def _run_end(contents: list[int | None], at: int, end: int) -> int:
    """Return where the known bytes from a place on end."""
    while at < end and contents[at] is not None:
        at += 1
    return at


def _line(address: int) -> int:
    return address // LINE * LINE
