"""Which addresses ran between two positions of a history, each once."""

from rvtrace_gdb.decode.history import GAP, History, Path, RepeatPath

_Part = tuple[int, ...] | Path | RepeatPath


def addresses(history: History, begin: int, end: int) -> set[int]:
    """Those of positions *begin* to *end* - 1. What is in there several times is looked at once."""
    found: set[int] = set()
    seen: set[int] = set()
    for part, first, last in history.pieces(begin, end):
        _add(part, first, last, found, seen)
    found.discard(GAP)
    return found


def _add(part: _Part, first: int, last: int, found: set[int], seen: set[int]) -> None:
    """Instructions *first* to *last* - 1 of a part."""
    whole = first == 0 and last == len(part)
    if whole:
        if id(part) in seen:
            return
        seen.add(id(part))
    if isinstance(part, tuple):
        found.update(part[first:last])
    elif isinstance(part, RepeatPath):
        _add_rounds(part, first, last, found, seen)
    else:
        position = 0
        for inner in part.parts:
            begin, end = max(first - position, 0), min(last - position, len(inner))
            if begin < end:
                _add(inner, begin, end, found, seen)
            position += len(inner)


def _add_rounds(part: RepeatPath, first: int, last: int, found: set[int], seen: set[int]) -> None:
    unit = part.path.count
    if last - first >= unit:
        _add(part.path, 0, unit, found, seen)
        return
    begin, end = first % unit, first % unit + last - first
    _add(part.path, begin, min(end, unit), found, seen)
    if end > unit:
        _add(part.path, 0, end - unit, found, seen)
