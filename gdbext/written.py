"""The lines of `trace who-wrote`: what changed, when, and which instruction did it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import gdb

from rvtrace_gdb.gdbext import listing, lvalues, sources

_OUTSIDE = "from outside the hart"


class Change(NamedTuple):
    """What changed, and from what to what: None where that is not known."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.new is None:
            return self.name if self.old is None else f"{self.name}: {self.old} -> not known"
        return f"{self.name}: {self.new}" if self.old is None else f"{self.name}: {self.old} -> {self.new}"


def lines(place: lvalues.Place, found: dict[str, Any], seen: int | None = None) -> Iterator[str]:
    """Of the session's answer. *seen*: how many instructions ago the writer was that was shown before."""
    writer = found["writer"]
    if writer is None:
        yield from found["none"]
        return
    yield f"{change(place, writer)}, {_when(writer, place.at, seen)}"
    if writer["told"] is not None:
        yield f"It was written as {writer['told']}, which shares bits with it."
    yield from writer["doubts"]
    with listing.readable_code():
        yield from _row(writer, found["hart"])


def _when(writer: dict[str, Any], at: int | None, seen: int | None) -> str:
    group = "" if writer["group"] is None else f" (group {writer['group']})"
    ago = _ago(writer["ago"], at, seen)
    if writer["kind"] == "instruction":
        return f"written {ago}{group}"
    by = {"trap": "by a trap", "reset": "by a reset of the hart"}.get(writer["kind"], _OUTSIDE)
    return f"written {by}{group}, {ago}"


def change(place: lvalues.Place, writer: dict[str, Any]) -> Change:
    """What a writer changed."""
    if writer["store"] is None:
        old, new = (_of_register(place, writer[it], writer["bits"]) for it in ("old", "new"))
        return Change(place.name, old, new)
    address, size = writer["where"]  # the session knows the size of a symbol
    begin = max(writer["store"][0], address) - address
    end = min(sum(writer["store"]), address + size) - address
    if place.kind is not None:
        found = _typed_values(place.kind, begin, end, address, writer["window"])
        if found is not None:
            return found._replace(name=f"{_in_brackets(place.text, found.name)}{found.name}")
    if place.bits is not None and end - begin == size:
        return Change(place.text, *(_bits(writer[it], *place.bits) for it in ("old", "new")))
    name = place.text if end - begin == size else f"{_bytes(begin, end)} of {place.text}"
    old, new = (None if writer[it] is None else f"0x{writer[it]:0{2 * (end - begin)}x}" for it in ("old", "new"))
    return Change(name, old, new)


def _bits(value: int | None, shift: int, count: int) -> str | None:
    return None if value is None else f"{value >> shift & (1 << count) - 1:#x}"


def _bytes(begin: int, end: int) -> str:
    return f"byte {begin}" if end - begin == 1 else f"bytes {begin} to {end - 1}"


def _in_brackets(text: str, suffix: str) -> str:
    return f"({text})" if suffix and not re.fullmatch(r"[\w.\[\]>-]+", text) else text


def _typed_values(kind: gdb.Type, begin: int, end: int, address: int, window: list[Any] | None) -> Change | None:
    """The innermost part of an object that was stored to, as gdb shows it; None: not all of it is known now."""
    suffix, inner, first = lvalues.part(kind, begin, end)
    if window is None:
        return None
    at = address + first - window[0]
    old, new = (data[at : at + inner.sizeof] if at >= 0 else [] for data in window[1:])
    if len(new) < inner.sizeof or None in new or inner.code == gdb.TYPE_CODE_FUNC:
        return None
    known = None if None in old else _shown(bytes(old), inner)
    return Change(suffix, known, _shown(bytes(new), inner))


def _shown(data: bytes, kind: gdb.Type) -> str:
    text: str = gdb.Value(data, kind).format_string()
    return " ".join(text.split())


def _of_register(place: lvalues.Place, value: int | None, bits: int) -> str | None:
    if value is None:
        return None
    kind = place.kind.strip_typedefs() if place.kind is not None else None
    if place.text != f"${place.register}" and kind is not None and kind.sizeof <= bits // 8:
        return _shown(value.to_bytes(bits // 8, "little")[: kind.sizeof], kind)
    if (kind is not None and kind.code == gdb.TYPE_CODE_PTR) or place.register == "pc":
        return listing.place(value)
    return f"0x{value:0{bits // 4}x}"


def _ago(ago: int, at: int | None, seen: int | None) -> str:
    """*seen*: it is said how long before what was shown last."""
    before = "ago" if at is not None else "before the end of the trace"
    if seen is not None:
        ago, before = ago - seen, "before that"
    if not ago:
        return "right before that" if seen is not None else "right before now" if at is not None else "at its end"
    return f"{ago} instruction{'s' if ago > 1 else ''} {before}"


def _row(writer: dict[str, Any], hart: int) -> Iterator[str]:
    """The instruction, with its source line, as `trace history /s` shows it."""
    if writer["happened"]:
        yield f"\t{listing.happened(writer['happened'], None, None)}"
    row = writer["row"]
    if row is None:
        return
    line = sources.line_of(row[1]) if len(row) == 2 and row[1] is not None else None
    if line is not None and writer["kind"] == "instruction":
        yield line
    yield from listing.Lister(listing.Format(), listing.mark(hart)).lines([row])
