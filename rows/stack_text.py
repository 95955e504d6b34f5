"""How deep the stack was, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvtrace_gdb.rows.explain_text import ExplainSymbols, place_fields, wrapped
from rvtrace_gdb.rows.list_rows import called
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.rows.stack_rows import ChainFrame, FunctionDepth, LevelDepth, StackArea, StackDepth

SHOWN = 10
"""How many frames and functions are shown unless more are asked for."""


def stack_lines(depth: StackDepth, symbols: ExplainSymbols, *, several: bool, most: int = SHOWN) -> Iterator[str]:
    """Yield the lines of an answer. *several*: there are other harts. *most*: how many frames, and functions, of a
    stack, 0: all.
    """
    if several:
        yield symbols.paint("heading", f"Hart {depth.hart}")
    if not depth.areas:
        yield "Nothing is known of the stack: sp is not known anywhere."
    for area in depth.areas:
        yield from _area_lines(area, symbols, most)
    if depth.lost:
        yield from wrapped(symbols.paint("gap", f"Missing: {depth.lost}."), "")
    for text in depth.unknown:
        yield from wrapped(f"Not known: {text}.", "")


def more_stack_lines(
    depths: Sequence[StackDepth], symbols: ExplainSymbols, begin: int, most: int
) -> Iterator[str]:
    """Yield the frames and functions numbered *begin* to *begin* + *most* - 1, from 0, of the stacks that have so many,
    with the lines that say of which stacks.
    """
    for depth in depths:
        for area in depth.areas:
            if max(len(area.chain), len(area.functions)) > begin:
                hart = f" of hart {depth.hart}" if len(depths) > 1 else ""
                yield symbols.paint("heading", f"Stack {area.name}".strip()) + f"{hart}, from row {begin + 1} on:"
                yield from _table_lines(area, symbols, begin, most)


def _area_lines(area: StackArea, symbols: ExplainSymbols, most: int) -> Iterator[str]:
    start = "?" if area.start is None else f"0x{area.start:x}"
    end = "?" if area.end is None else f"0x{area.end:x}"
    name = symbols.paint("heading", f"Stack {area.name}".strip())
    yield from wrapped(f"{name} {start}-{end}: {_used_text(area)}.", "")
    if area.place is not None:
        name = called(area.place.name) if area.place.name else f"0x{area.place.pc:x}"
        line = f"  {area.place.line}" if area.place.line else ""
        yield f"  lowest sp 0x{area.lowest:x} at #{area.place.number} {symbols.paint('function', name)}{line}"
    if len(area.levels) > 1:
        yield from (_level_line(it) for it in area.levels)
    yield from _table_lines(area, symbols, 0, most)


def _table_lines(area: StackArea, symbols: ExplainSymbols, begin: int, most: int) -> Iterator[str]:
    """Yield *most* frames and functions of a stack, 0: all, from number *begin* on."""
    end = begin + most if most else max(len(area.chain), len(area.functions))
    if begin < len(area.chain) or not begin:
        yield "  Deepest chain, innermost first:"
        yield f"    {'bytes':>8}  function"
        yield from (_frame_line(it, symbols) for it in area.chain[begin:end])
        yield from _left_out(len(area.chain) - end, "frame")
    if begin < len(area.functions) or not begin:
        yield "  Functions, by their frames; depth: of the whole stack there, at most:"
        yield f"    {'frame':>8} {'depth':>8}  function"
        yield from (_function_line(it, symbols) for it in area.functions[begin:end])
        yield from _left_out(len(area.functions) - end, "function")


def _used_text(area: StackArea) -> str:
    """Return how much of a stack was used, and is left."""
    used = f"at least {area.highest - area.lowest} bytes used" if area.used is None else f"{area.used} bytes used"
    if area.left is not None and area.left < 0:
        return f"{used}, {-area.left} bytes below its begin"
    if area.used is None or area.left is None:
        return used if area.left is None else f"{used}, {area.left} left"
    size = area.used + area.left
    return f"{area.used} of {size} bytes used ({100 * area.used / max(size, 1):.0f} %), {area.left} left"


def _level_line(level: LevelDepth) -> str:
    what = "no trap" if level.level == 0 else "in a trap" if level.level == 1 else f"{level.level} traps nested"
    used = "" if level.used is None else f"{level.used} bytes, "
    return f"  {what}: {used}sp 0x{level.lowest:x} at #{level.number}"


def _frame_line(frame: ChainFrame, symbols: ExplainSymbols) -> str:
    taken = "?" if frame.bytes is None else str(frame.bytes)
    name = symbols.paint("function", called(frame.name) if frame.name else f"0x{frame.place.pc:x}")
    more = f"  {frame.times} times" if frame.times > 1 else "  interrupted" if frame.trapped else ""
    line = f"  {frame.place.line}" if frame.place.line else ""
    return f"    {taken:>8}  {name}{line}  #{frame.place.number}{more}"


def _function_line(function: FunctionDepth, symbols: ExplainSymbols) -> str:
    size = f"{function.frame}{'+' if function.more else ''}"
    depth = "?" if function.used is None else str(function.used)
    name = called(function.name) if function.name else "code without a symbol"
    return f"    {size:>8} {depth:>8}  {symbols.paint('function', name)}  #{function.number}"


def _left_out(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"    ... {count} more {what}{'s' if count > 1 else ''}"


def stack_fields(depth: StackDepth) -> RowFields:
    """Return the fields of an answer; what is not known has none."""
    more = {"lost": depth.lost, "unknown": depth.unknown}
    return {
        "hart": depth.hart, "first": depth.first, "last": depth.last,
        "stacks": [_area_fields(it) for it in depth.areas],
        **{name: value for name, value in more.items() if value},
    }  # fmt: skip


def _area_fields(area: StackArea) -> RowFields:
    found: RowFields = {
        "name": area.name, "start": _address_text(area.start), "end": _address_text(area.end),
        "highest": _address_text(area.highest), "lowest": _address_text(area.lowest),
        "place": None if area.place is None else place_fields(area.place),
        "used": area.used, "left": area.left,
        "levels": [_present({**it._asdict(), "lowest": _address_text(it.lowest)}) for it in area.levels],
        "chain": [_frame_fields(it) for it in area.chain],
        "functions": [_function_fields(it) for it in area.functions],
    }  # fmt: skip
    return _present(found)


def _frame_fields(frame: ChainFrame) -> RowFields:
    """Return the fields of a frame; *trapped* only where it is."""
    found: RowFields = {**place_fields(frame.place), "bytes": frame.bytes, "times": frame.times}
    return _present({**found, "trapped": frame.trapped or None})


def _function_fields(function: FunctionDepth) -> RowFields:
    found: RowFields = {
        "func": function.name or None, "addr": None if function.start < 0 else _address_text(function.start),
        "frame": function.frame, "more": function.more or None, "lowest": _address_text(function.lowest),
        "number": function.number, "used": function.used,
    }  # fmt: skip
    return _present(found)


def _address_text(value: int | None) -> str | None:
    return None if value is None else f"0x{value:x}"


def _present(fields: RowFields) -> RowFields:
    return {name: value for name, value in fields.items() if value is not None}
