"""The rows of `rvtrace who-wrote`: who wrote a place last, and each part of it if it has some."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.console.commands.past.query import PastQuery, PastRequest, place_parameters
from rvtrace_gdb.decode.expressions.parts import ValuePart
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.reports.program_sources import ProgramSources
from rvtrace_gdb.rows import answer_text
from rvtrace_gdb.rows.answers import ValueWriter
from rvtrace_gdb.session.questions.why.asking import (
    WrittenBytes,
    expression_parts,
    is_number_at,
    text_in_part,
    written_text,
)
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.support.text import json_line, printable
from rvtrace_gdb.views import json_rows, text_rows
from rvtrace_gdb.views.addresses import address_text
from rvtrace_gdb.views.disassembly import Disassemblers


def writer_rows(query: PastQuery, request: PastRequest) -> Iterator[str]:
    (name,) = request.places
    place = place_parameters(name, query)
    below = previous = None
    for _ in range(request.count):
        context = {"hart": query.selected.hart, "values": request.values}
        params = Params({"context": context, "at": query.at, "below": below, **place}, "who-wrote")
        found = analysis.who_wrote(query.session, params, query.shown.progress)
        if found["writer"] is None:
            if not query.shown.json:
                yield from found["none"]
            elif previous is None:
                yield json_line({"hart": query.selected.hart, "messages": list(found["none"])})
            return
        writer = ValueWriter(**found["writer"])
        first = previous is None and "where" in place
        parts, more = _written_parts(query, request, place) if first else ([], 0)
        if query.shown.json:
            fields = _writer_fields(query, _change(query, place["name"], writer), writer)
            yield json_line({**fields, **_part_fields(query, parts, more)})
        else:
            yield from _writer_lines(query, place["name"], writer, previous)
            yield from _other_part_lines(query, writer, parts, more)
        below, previous = found["below"], writer.ago


class _PartOfPlace(NamedTuple):
    """An element or a member, who wrote it last, and what that changed, or the lines that say why there is none."""

    name: str
    writer: ValueWriter | None
    change: answer_text.ValueChange
    none: list[str]


def _written_parts(query: PastQuery, request: PastRequest, place: dict[str, Any]) -> tuple[list[_PartOfPlace], int]:
    """Return the first parts of an array or a structure, and how many are left out."""
    position, progress = history_position(query.number), query.shown.progress
    most = answer_text.PARTS_MOST
    parts, more = expression_parts(query.session, query.selected, place["name"], position, most, progress)
    context, found = {"hart": query.selected.hart, "values": request.values}, []
    for part in parts if len(parts) > 1 else ():
        where = [place["where"][0] + part.offset, part.size]
        asked = {"context": context, "at": query.at, "name": part.suffix, "where": where}
        it = analysis.who_wrote(query.session, Params(asked, "who-wrote"), progress)
        writer = None if it["writer"] is None else ValueWriter(**it["writer"])
        change = answer_text.ValueChange(part.suffix, None, None)
        if writer is not None:
            change = _part_change(query, place, part, writer)
        found.append(_PartOfPlace(part.suffix, writer, change, list(it["none"])))
    return found, more if found else 0


def _part_change(
    query: PastQuery, place: dict[str, Any], part: ValuePart, writer: ValueWriter
) -> answer_text.ValueChange:
    if writer.store is None:
        return _change(query, part.suffix, writer)
    first, start = place["where"][0], place["where"][0] + part.offset
    begin, end = max(writer.store[0], start) - first, min(sum(writer.store), start + part.size) - first
    if part.bits is not None and end - begin == part.size:
        shift, count = part.bits
        both = (None if it is None else hex(it >> shift & (1 << count) - 1) for it in (writer.old, writer.new))
        return answer_text.ValueChange(part.suffix, *both)
    if part.bits is not None:
        return _change(query, part.suffix, writer)
    write, position = WrittenBytes(first, begin, end, writer.window), history_position(query.number)
    named = text_in_part(query.session, query.selected, part, position, write, query.shown.progress)
    if named is None:
        return _change(query, part.suffix, writer)
    return answer_text.ValueChange(printable(named.name), named.old, named.new)


def _other_part_lines(query: PastQuery, shown: ValueWriter, parts: Sequence[_PartOfPlace], more: int) -> Iterator[str]:
    others = [it for it in parts if it.writer is None or not answer_text.is_same_write(it.writer, shown)]
    if others or more:
        yield answer_text.PARTS_HEADING
        yield from answer_text.part_lines([list(_part_lines(query, it)) for it in others], more)


def _part_lines(query: PastQuery, part: _PartOfPlace) -> Iterator[str]:
    writer, history = part.writer, query.selected.history
    if writer is None:
        yield from (f"    {line}" for line in part.none)
        return
    pc = GAP if writer.number is None else history.pc(history_position(writer.number))
    symbol = None if pc == GAP else query.image.symbol(pc)
    place = "" if pc == GAP else address_text(pc, query.selected.program.xlen, symbol, query.shown.paint)
    yield answer_text.part_line(part.change, writer, query.at, place)
    yield from (f"        {line}" for line in writer.doubts)


def _part_fields(query: PastQuery, parts: Sequence[_PartOfPlace], more: int) -> dict[str, object]:
    """Return the parts, as fields of the row of the whole."""
    rows = [
        {"what": it.name, "messages": it.none} if it.writer is None else _writer_fields(query, it.change, it.writer)
        for it in parts
    ]
    return {**({"parts": rows} if rows else {}), **({"more": more} if more else {})}


def _writer_lines(query: PastQuery, name: str, writer: ValueWriter, previous: int | None) -> Iterator[str]:
    change = _change(query, name, writer)
    line, code = _source_line(query, writer)
    yield f"{change}, {answer_text.written_when(writer, query.at, previous)}"
    if writer.written_as is not None:
        yield f"It was written as {writer.written_as}, which shares bits with it."
    yield from writer.doubts
    if writer.number is None:
        return
    if line:
        yield f"{line}\t{code}"
    history, program = query.selected.history, query.selected.program
    with Disassemblers(program) as source:
        shape = text_rows.Modifiers(paint=query.shown.paint)
        yield from text_rows.lines(history, source, program.xlen, writer.number, writer.number + 1, shape)


def _change(query: PastQuery, name: str, writer: ValueWriter) -> answer_text.ValueChange:
    """Return what a writer changed, as numbers."""
    if writer.store is None:
        bits = writer.bits or query.selected.program.xlen
        return answer_text.ValueChange(name, *(_hex(it, bits // 8) for it in (writer.old, writer.new)))
    address, size = writer.where or writer.store
    begin, end = max(writer.store[0], address) - address, min(sum(writer.store), address + size) - address
    write, position = WrittenBytes(address, begin, end, writer.window), history_position(query.number)
    part = written_text(query.session, query.selected, name, position, write, query.shown.progress)
    if part is not None:
        return answer_text.ValueChange(printable(part.name), part.old, part.new)
    if end - begin < size:
        whole = _whole_change(query, name, writer, range(address, address + size))
        if whole is not None:
            return whole
        name = f"{answer_text.bytes_text(begin, end)} of {name}"
    return answer_text.ValueChange(name, *(_hex(it, end - begin) for it in (writer.old, writer.new)))


def _whole_change(query: PastQuery, name: str, writer: ValueWriter, place: range) -> answer_text.ValueChange | None:
    """Return how a number changed of which some bytes were written; None: it is none, or not all of it is known."""
    if writer.window is None or writer.number is None:
        return None
    start, *both = writer.window
    old, new = (part[place.start - start : place.stop - start] if place.start >= start else [] for part in both)
    if len(new) < len(place) or None in new:
        return None
    position = history_position(writer.number)
    if not is_number_at(query.session, query.selected, place.start, len(place), position, query.shown.progress):
        return None
    return answer_text.ValueChange(name, *(_hex(_number(part), len(place)) for part in (old, new)))


def _number(content: Sequence[int | None]) -> int | None:
    known = [it for it in content if it is not None]
    return int.from_bytes(known, "little") if len(known) == len(content) else None


def _source_line(query: PastQuery, writer: ValueWriter) -> tuple[str, str]:
    """Return file:line of the instruction that wrote, and the text of that line, "" for what is not known."""
    if writer.kind != "instruction" or writer.number is None:
        return "", ""
    history, position = query.selected.history, history_position(writer.number)
    pc = history.pc(position)
    if pc == GAP:
        return "", ""
    sources = ProgramSources(query.selected.program.image_of(history.context_at(position)), shown=True)
    return printable(sources.place(pc)), printable(sources.line_text(pc))


def _hex(value: int | None, size: int) -> str | None:
    return None if value is None else f"0x{value:0{2 * size}x}"


def _writer_fields(query: PastQuery, change: answer_text.ValueChange, writer: ValueWriter) -> dict[str, object]:
    place: dict[str, object] = {}
    if writer.number is not None and (pc := query.selected.history.pc(history_position(writer.number))) != GAP:
        place = json_rows.place(pc, query.image.symbol(pc), query.selected.program.xlen)
    line, code = _source_line(query, writer)
    if line:
        place |= {"source-line": line, **({"code": code} if code else {})}
    fields = {
        "hart": query.selected.hart, "kind": writer.kind, "what": change.name, "old": change.old, "new": change.new,
        "number": writer.number, **place, "group": writer.group, "ago": writer.ago, "task": writer.task,
        "process": writer.process, "thread": writer.thread, "doubts": list(writer.doubts) or None,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}
