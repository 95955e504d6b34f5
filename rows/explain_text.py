"""How a run ended, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import Protocol

from rvtrace_gdb.rows.explain_rows import ExplainedFinding, ExplainedPlace, Explanation, LastCall
from rvtrace_gdb.rows.list_rows import Place, called
from rvtrace_gdb.rows.list_text import RowFields

WIDTH = 80
_INDENT = "  "


class ExplainSymbols(Protocol):
    """The addresses and the colours of an explanation."""

    def address_text(self, place: Place) -> str:
        """Return `0xADDRESS <function+offset>`."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is: "heading", "function", "event", "gap"."""


def explanation_lines(
    explanation: Explanation, symbols: ExplainSymbols, *, several: bool, file: str | None = None
) -> Iterator[str]:
    """Yield the lines of an explanation. *several*: there are other harts. *file*: that of the shell's commands, None:
    commands are gdb's.
    """
    head = f"Hart {explanation.hart} ended" if several else "Ended"
    head += f" in task {explanation.task}" if explanation.task else ""
    place = explanation.place
    at = "" if place is None or not place.line else f", {place.line}"
    number = "" if place is None or place.number is None else f"#{place.number} "
    yield from wrapped(symbols.paint("heading", f"{head} at {number}{explanation.ended}{at}."), "")
    if explanation.outcome and not explanation.findings:
        yield from wrapped(f"Nothing wrong was seen: {explanation.outcome}.", "")
    for finding in explanation.findings:
        yield from _finding_lines(finding, symbols)
    if explanation.calls:
        yield "Last calls, newest first:"
        for call in explanation.calls:
            yield _INDENT + _call_line(call, symbols)
    if explanation.lost:
        yield from wrapped(symbols.paint("gap", f"Missing: {explanation.lost}."), "")
    for text in explanation.unknown:
        yield from wrapped(f"Not known: {text}.", "")
    for index, command in enumerate(next_commands(explanation, file)):
        yield f"{'      ' if index else 'Next: '}{command}"


def next_commands(explanation: Explanation, file: str | None) -> list[str]:
    """Return what to type next: commands of gdb, or with a *file* of the shell."""
    if file is None:
        return [f"trace {it}" for it in explanation.commands]
    at = next((it.partition(" ")[2] for it in explanation.commands if it.startswith("goto ")), "")
    hart = f" --hart {explanation.hart}" if explanation.hart else ""
    return [_shell_command(it, quote(file), at) + hart for it in explanation.commands]


def _shell_command(command: str, file: str, at: str) -> str:
    verb, _, rest = command.partition(" ")
    if verb == "goto":
        return f"rvtrace decode {file} {rest},-20"
    if verb == "why":
        asked = rest.removeprefix("-branches ")
        place = f" --at {at}" if at else ""
        return f"rvtrace why {file} {quote(asked)}{place}{' --branches' if asked != rest else ''}"
    if verb == "calls-of":
        name, _, numbers = rest.partition(" ") if rest[-1:].isdigit() and ", " not in rest else (rest, "", "")
        return f"rvtrace calls-of {file} {quote(name)}{f' {numbers}' if numbers else ''}"
    return f"rvtrace {verb} {file}{f' --kind {rest}' if verb == 'events' else f' {rest}' if rest else ''}"


def _finding_lines(finding: ExplainedFinding, symbols: ExplainSymbols) -> Iterator[str]:
    yield from wrapped(f"{symbols.paint('event', finding.kind)}: {finding.text}.", "")
    if finding.place is not None:
        yield from place_lines(finding.place, symbols)
    for detail in finding.details:
        yield from wrapped(detail, _INDENT)


def place_lines(place: ExplainedPlace, symbols: ExplainSymbols) -> Iterator[str]:
    """Yield the lines of a place: its number, address and source line, with the text of that."""
    number = "" if place.number is None else f"#{place.number}  "
    name: Place = (place.pc, place.name, place.offset) if place.name else (place.pc,)
    source = f"`{place.source}`" if place.source else ""
    text = f"{_INDENT}{number}{symbols.address_text(name)}{f'  {place.line}' if place.line else ''}"
    if source and _text_width(text) + 2 + len(source) <= WIDTH:
        yield f"{text}  {source}"
        return
    yield text
    if source:
        yield f"{2 * _INDENT}{source}"


def _call_line(call: LastCall, symbols: ExplainSymbols) -> str:
    place = call.place
    times = f"  {call.times} times" if call.times > 1 else ""
    name = symbols.paint("function", called(place.name) if place.name else f"0x{place.pc:x}")
    return f"#{place.number:<10}{name}{f'  {place.line}' if place.line else ''}{times}"


def wrapped(text: str, indent: str) -> Iterator[str]:
    """Yield the lines of a sentence. What is coloured has no more than its own width."""
    line = ""
    for word in text.split(" "):
        if line and _text_width(line) + 1 + _text_width(word) > WIDTH:
            yield line
            line = f"{indent}{_INDENT}{word}"
        else:
            line = f"{line} {word}" if line else f"{indent}{word}"
    yield line


def _text_width(text: str) -> int:
    shown, inside = 0, False
    for character in text:
        if character == "\033":
            inside = True
        elif inside:
            inside = not character.isalpha()
        else:
            shown += 1
    return shown


def explanation_fields(explanation: Explanation, file: str | None = None) -> RowFields:
    """Return the fields of an explanation; what is not known has none. *file*: that of the shell's commands, None:
    commands are gdb's.
    """
    fields: RowFields = {
        "hart": explanation.hart, "first": explanation.first, "last": explanation.last, "ended": explanation.ended,
        **({"task": explanation.task} if explanation.task else {}),
        **({} if explanation.place is None else {"place": place_fields(explanation.place)}),
        "findings": [_finding_fields(it) for it in explanation.findings],
        "calls": [{**place_fields(it.place), "times": it.times} for it in explanation.calls],
    }  # fmt: skip
    outcome = "" if explanation.findings else explanation.outcome
    more: RowFields = {
        "outcome": outcome, "lost": explanation.lost, "unknown": explanation.unknown,
        "next": next_commands(explanation, file),
    }  # fmt: skip
    if file is not None:
        more["next_in_gdb"] = next_commands(explanation, None)
    return {**fields, **{name: value for name, value in more.items() if value}}


def place_fields(place: ExplainedPlace) -> RowFields:
    """Return the fields of a place."""
    found: RowFields = {"number": place.number, "addr": f"0x{place.pc:x}"}
    if place.name:
        found.update({"func": place.name, "offset": place.offset})
    if place.line:
        file, _, line = place.line.rpartition(":")
        found.update({"file": file, "line": int(line)})
    if place.source:
        found["source"] = place.source
    return {name: value for name, value in found.items() if value is not None}


def _finding_fields(finding: ExplainedFinding) -> RowFields:
    found: RowFields = {"kind": finding.kind, "text": finding.text}
    if finding.place is not None:
        found["place"] = place_fields(finding.place)
    if finding.details:
        found["details"] = finding.details
    return {**found, **({"facts": finding.facts} if finding.facts else {})}
