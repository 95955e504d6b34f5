"""The rows of `rvtrace values`: registers and memory, or how much of them is known."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from rvtrace_gdb.console.commands.past.query import PastError, PastQuery, PastRequest, common_name, place_parameters
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number, history_position
from rvtrace_gdb.decode.tandem.wording import F, X
from rvtrace_gdb.rows import values_text
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.rpc.questions import values
from rvtrace_gdb.support.text import json_line, printable
from rvtrace_gdb.views.addresses import address_text, digits

UNAVAILABLE = "<unavailable>"
_BYTES = 16  # of memory in a line


def value_rows(query: PastQuery, request: PastRequest) -> Iterator[str]:
    if request.at is None and not request.places:
        return _summary(query)
    places = [place_parameters(text, query) for text in request.places]
    past = query.past()
    if past is None:
        raise PastError("no value is known in this trace: see `rvtrace values FILE`")
    return _known_rows(query, past, places) if places else _register_rows(query, past, every=request.all)


def _summary(query: PastQuery) -> Iterator[str]:
    row = values.row_at(query.session, query.selected, query.at, query.shown.progress)
    if query.shown.json:
        yield json_line(values_text.fields(row))
    else:
        yield from values_text.lines(row, query.selected.program.xlen)


def _known_rows(query: PastQuery, past: Past, places: Sequence[dict[str, Any]]) -> Iterator[str]:
    known = past.registers(history_position(query.number))
    if not query.shown.json:
        yield _where(query)
    for it in places:
        if "register" in it:
            yield _register_row(query, it["register"], known.get(common_name(it["register"])))
    for it in places:
        if "where" in it:
            yield from _memory_rows(query, past, it["name"], *it["where"])


def _register_rows(query: PastQuery, past: Past, *, every: bool) -> Iterator[str]:
    """Yield the registers. What is not known is listed for programs, and if *every* register is; else integer registers
    alone are, if any of them is known, and the others counted.
    """
    known, names = past.registers(history_position(query.number)), _names(past)
    if every or query.shown.json:
        shown = names
    else:
        integers = set(X) if any(name in known for name in X[1:]) else set()
        shown = [name for name in names if name in known or name in integers]
    if not query.shown.json:
        yield _where(query)
    for name in shown:
        yield _register_row(query, name, known.get(name))
    left_out = set(names).difference(shown)
    if left_out and set(shown) <= {"pc"}:
        yield f"No register is known here{_known_again(query, past)}: `rvtrace values FILE` says why."
    elif left_out:
        yield f"not known: {_counts_text(left_out)} (--all lists them, `rvtrace values FILE` says why)"


def _known_again(query: PastQuery, past: Past) -> str:
    """Return a place soon after one without known registers where there are some, "" if none is found: the distance is
    doubled, then halved.
    """
    at, end, distance = history_position(query.number), len(query.selected.history), 1

    def knows(position: int) -> bool:
        return not {"pc"}.issuperset(past.registers(position))

    while not knows(min(at + distance, end)):
        if at + distance >= end:
            return ""
        distance *= 2
    found = at + 1 + bisect_left(range(at + 1, min(at + distance, end)), True, key=knows)
    return f"; some are before instruction {history_number(found)}" if found < end else "; some are at the end"


def _counts_text(names: set[str]) -> str:
    """Return how many registers of each kind there are."""
    kinds = {"integer register": names & set(X), "floating-point register": names & set(F)}
    kinds["CSR"] = names.difference(X, F, ["pc"])
    counts = {"pc": len(names & {"pc"}), **{kind: len(found) for kind, found in kinds.items()}}
    return ", ".join(
        kind if kind == "pc" else f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts.items() if count
    )


def _where(query: PastQuery) -> str:
    history, xlen = query.selected.history, query.selected.program.xlen
    pc = history.pc(history_position(query.number)) if query.number <= len(history) else GAP
    if pc == GAP:
        return "at the end of the trace" if query.number > len(history) else f"before instruction {query.number}, a gap"
    return f"before instruction {query.number}: {address_text(pc, xlen, query.image.symbol(pc), query.shown.paint)}"


def _names(past: Past) -> list[str]:
    traced = past.traced_registers()
    if traced is None:
        return ["pc"]
    return ["pc", *X[1:], *(F if traced.flen else ()), *traced.csrs]


def _register_row(query: PastQuery, name: str, value: int | None) -> str:
    if not query.shown.json:
        return f"{name:<15}{UNAVAILABLE if value is None else f'{value:#x}'}"
    fields = {"hart": query.selected.hart, "number": query.number, "register": name}
    return json_line(fields if value is None else {**fields, "value": f"{value:#x}"})


def _memory_rows(query: PastQuery, past: Past, name: str, address: int, size: int) -> Iterator[str]:
    xlen = query.selected.program.xlen
    for begin in range(0, size, _BYTES):
        found = past.memory(history_position(query.number), address + begin, min(_BYTES, size - begin))
        text = ["--" if byte is None else f"{byte:02x}" for byte in found]
        at = digits(address + begin, xlen)
        if query.shown.json:
            fields = {"hart": query.selected.hart, "number": query.number, "what": name, "addr": at}
            yield json_line({**fields, "bytes": [None if byte is None else byte for byte in found]})
        else:
            yield f"{at} <{printable(name)}+{begin}>:\t{' '.join(text)}" if begin or size > _BYTES else (
                f"{at} <{printable(name)}>:\t{' '.join(text)}"
            )
