"""Rows for programs: JSON, an object a line, with the names that the MI commands have (docs/json.md).

    {"number": 3, "hart": 0, "addr": "0x80000004", "func": "main", "offset": 4, "opcodes": "1141", "inst": "ret"}

Addresses and values are text in hexadecimal, for JSON readers that know floating point only; what is not known has no
field.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.accesses import access_text, note_text
from rvtrace_gdb.decode.history.event_fields import event_fields
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.history.positions import history_number, history_number_if_known
from rvtrace_gdb.decode.item_texts import MOST_TEXTS
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import CSR, MemoryAccess
from rvtrace_gdb.support.text import json_line
from rvtrace_gdb.views.addresses import digits
from rvtrace_gdb.views.dump import FramePlace
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.row_pieces import RowFrame
from rvtrace_gdb.views.text_rows import accesses_to

JsonFields = dict[str, Any]


class HistoryRows:
    """The shape of rows of a history as JSON, see `views.text_rows.Shape`."""

    raw = True
    coloured = False

    def frame(self, hart: int, several: bool) -> RowFrame:
        return RowFrame('{"number": ', f', "hart": {hart}, ')

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        fields = {**place(pc, text.symbol, xlen), "opcodes": raw or None, "inst": text.instruction}
        return json_line(fields)[1:]

    def gap(self, frame: RowFrame, number: int, what: str) -> str:
        return f"{frame.before}{number}{frame.after}{json_line({'gap': what})[1:]}"


def place(pc: int, symbol: tuple[str, int] | None, xlen: int) -> JsonFields:
    """Return the fields of a code address."""
    name, offset = (None, None) if symbol is None else symbol
    return {"addr": digits(pc, xlen), "func": name, "offset": offset}


def events(histories: Mapping[int, History], program: Program) -> Iterator[str]:
    """Yield the events between the instructions, in the order of the bytes. Numbers are those of `trace events`."""
    found = sorted(
        (event.offset, hart, order) for hart, history in histories.items() for order, event in enumerate(history.events)
    )
    for _, hart, order in found:
        yield event(hart, order + 1, histories[hart].events[order], histories[hart], program)


def event(hart: int, number: int, event: Event, history: History, program: Program) -> str:
    """Return an event of a history, with its number among them."""
    return json_line({"number": number, "hart": hart, **_Shown(history, program).event(event)})


def accesses(hart: int, history: History, program: Program, where: tuple[int, int] | None = None) -> Iterator[str]:
    """Yield each access, or each to the memory *where*: (first byte, size in bytes)."""
    for fields in access_fields(history, program, where):
        yield json_line({"number": fields.pop("number"), "hart": hart, **fields})


def access_fields(
    history: History, program: Program, where: tuple[int, int] | None = None
) -> Iterator[JsonFields]:
    """Yield the fields of each access, or of each to the memory *where*, with its number among these."""
    shown = _Shown(history, program)
    for number, access in enumerate(accesses_to(history.accesses, where), 1):
        yield {"number": number, **shown.access(access)}


def message(sink: str, number: int, offset: int, text: str) -> str:
    """Return a message of a trace. *sink*: "" if there is none; *text*: its line without number and offset."""
    return message_row(sink)(number, offset, text)


class MessageRows(Protocol):
    """Makes the row of a message. *place*: where in CoreSight frames it begins."""

    def __call__(self, number: int, offset: int, text: str, place: FramePlace | None = None) -> str: ...


def message_row(sink: str) -> MessageRows:
    """Return the function that makes the rows of one sink, see `message`. What it makes of a text is remembered."""
    of_sink = f", {json_line({'sink': sink})[1:-1]}" if sink else ""
    parts = Computed(_message_part, MOST_TEXTS)

    def row(number: int, offset: int, text: str, place: FramePlace | None = None) -> str:
        framed = "" if place is None else f'"atb-id": {place.atb_id}, "frame-byte": {place.offset}, '
        return f'{{"number": {number}{of_sink}, "trace-byte": {offset}, {framed}{parts[text]}'

    return row


def _message_part(text: str) -> str:
    """Return the part of a row that depends on the text of the message alone, to its end."""
    columns, _, meaning = text.partition(" # ")
    name, *pairs = columns.split(" ")
    fields: JsonFields = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        fields[key] = int(value) if value.isdecimal() else value
    raw = fields.pop("RAW", None)
    row = {"name": name, "fields": fields, "bytes": None if raw is None else str(raw), "text": meaning or None}
    return json_line(row)[1:]


class _Shown(NamedTuple):
    """The rows of one history."""

    history: History
    program: Program

    def place(self, pc: int | None, position: int) -> JsonFields | None:
        """Return the fields of a code address; the context at *position* determines the program."""
        if pc is None:
            return None
        image = self.program.image_of(self.history.context_at(max(position, 0)))
        found = place(pc, image.symbol(pc), self.program.xlen)
        return {name: value for name, value in found.items() if value is not None}

    def event(self, event: Event) -> JsonFields:
        history, position = self.history, event.position
        here = history.pc(position) if position < len(history) else None
        what = {"what": "end"} if here is None else {"what": "gap"} if here == GAP else self.place(here, position)
        last = self.place(event.last_pc, position - 1)
        if event.kind is EventKind.HART_EVENT and last is not None:
            what, last = last, None
        fields = {"position": history_number(position), "kind": event.kind_name, **(what or {})}
        fields |= {"text": event.text or None, "from": last}
        fields |= {"to": self.place(event.next_pc, position), "time": history.time_of(event)}
        fields |= {"trace-byte": event.offset, **event_fields(event)}
        return {**fields, **_context(history.context_at(position))}

    def access(self, access: MemoryAccess) -> JsonFields:
        position = access.position
        at = self.place(self.history.pc(position), position) if position is not None else None
        image = self.program.image_of(self.history.context_at(max(access.after if position is None else position, 0)))
        fields = {"position": history_number_if_known(position), **(at or {}), "kind": access.kind}
        fields |= {"operation": access.operation or None, "size": access.size, "trace-byte": access.offset}
        if access.address is not None:
            fields |= (
                _csr_field(access.address) if access.kind == CSR else self._memory_fields(access.address, position)
            )
        for name, value in (("value", access.value), ("operand", access.operand)):
            fields[name] = None if value is None else f"0x{value:0{2 * access.size}x}"
        text = access_text(access._replace(notes=()), self.program.xlen, image.symbol)
        return {**fields, "failed": access.failed or None, "note": note_text(access) or None, "text": text}

    def _memory_fields(self, address: int, position: int | None) -> JsonFields:
        found = self.place(address, position or 0) or {}
        name = {"symbol": found.pop("func")} if "func" in found else {}
        return {"memory": {"addr": found.pop("addr"), **name, **found}}


def _csr_field(number: int) -> JsonFields:
    return {"csr": f"0x{number:03x}"}


def _context(context: ProgramContext) -> JsonFields:
    virtual = None if context.prv is None else int(context.virtual)
    return {"prv": context.prv, "v": virtual, "scontext": context.scontext, "hcontext": context.hcontext}
