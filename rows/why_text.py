"""The lines of the answer of `trace why`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Callable

from rvtrace_gdb.rows.list_rows import WhyRow, called
from rvtrace_gdb.rows.running_thread import RunningThread

WHY_KINDS: Mapping[str, str] = {
    "wrote": "",
    "constant": "constant",
    "rounds": "",
    "call": "",
    "probably": "probably",
    "again": "",
    "before": "before",
    "beginning": "not written in this trace before",
    "input": "input",
    "outside": "written from outside the hart",
    "trap": "written by a trap",
    "no-address": "the address of this load is not known: the chain ends here",
    "undecoded": "an instruction that rvtrace does not know: what it used is not known",
    "branch": "because of",
    "called": "called at",
    "jumped": "jumped to from",
    "trapped": "in an interrupt or exception after",
    "begins": "the trace does not show what came before",
}
"""What is said of each kind of row; "": the row says it by what it has."""
_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*(?:\[[0-9]+\][\w.]*)*")
_REGISTER = re.compile(r"[xf][0-9]+|ra|sp|gp|tp|f?[as][0-9]+|f?t[0-9]+")
_CODE_MOST = 48
"""Characters of a source line that are shown: the rest of a comment is left out in a terminal of 80 columns."""
_RAN = ("branch", "called", "jumped", "trapped", "begins")


def why_text(row: WhyRow, address: str, paint: Callable[[str, str], str]) -> str:
    """Return the line for a value, or for what let an instruction run. *address*: of the instruction, if it has no
    source line. *paint*: returns a text in the colour for what it is.
    """
    text = _decision_text(row) if row.kind in _RAN else _value_text(row, paint)
    place = _maker_text(row, address, paint)
    doubts = f" [{paint('gap', ' '.join(row.doubts))}]" if row.doubts else ""
    more = " ..." if row.deeper and row.kind not in _RAN else ""
    return f"{row.number}\t{'  ' * row.level}{text}{place}{doubts}{more}"


def _value_text(row: WhyRow, paint: Callable[[str, str], str]) -> str:
    said = [WHY_KINDS[row.kind]] if WHY_KINDS[row.kind] and row.kind != "before" else []
    if row.kind == "beginning" and row.doubts:
        said = [f"perhaps {WHY_KINDS[row.kind]}"]
    if row.role == "address":
        said.append("index or pointer")
    if row.given is not None:
        said.append(f"argument, given at @{row.given}")
    if row.kind == "call":
        count = f"{row.instructions} instruction{'' if row.instructions == 1 else 's'} in one step"
        is_result = row.subject == called(row.returned)
        said.append(count if is_result else f"by {called(row.returned)}, {count}")
    elif row.returned:
        said.append(f"returned by {called(row.returned)}")
    if row.rounds is not None:
        said.append(f"through {row.rounds} rounds, from" if row.kind == "rounds" else f"in {row.rounds} rounds")
    if row.left is not None:
        by = f"left over from {called(row.left)}" if row.left else "nothing has written it"
        said.append(paint("gap", f"UNINITIALISED: {by}"))
    if row.same is not None:
        said.append(f"as in row {row.same}")
    before = "before: " if row.kind == "before" else ""
    value = "not known" if row.value is None else row.value
    noted = f" ({', '.join(said)})" if said else ""
    return f"{before}{row.subject} = {value}{noted}"


def _decision_text(row: WhyRow) -> str:
    said = []
    if row.taken is not None:
        said.append("taken" if row.taken else "not taken")
    said += [f"{name} = {'not known' if value is None else value}" for name, value in row.operands or ()]
    if row.rounds is not None:
        said.append(f"{row.rounds} rounds")
    noted = f" ({', '.join(said)})" if said else ""
    return f"{WHY_KINDS[row.kind]}{noted}"


def _maker_text(row: WhyRow, address: str, paint: Callable[[str, str], str]) -> str:
    if row.position is None:
        return ""
    inside = f"{paint('function', row.inside)} " if row.inside else ""
    runner = RunningThread(row.task, row.process, row.thread).text
    who = f"{runner} " if runner else ""
    code = row.code if len(row.code) <= _CODE_MOST else f"{row.code[: _CODE_MOST - 2].rstrip()}.."
    return f"\t@{row.position} {inside}{who}{row.source_line or address}{f': {code}' if code else ''}"


def rounds_hint(rows: Iterable[WhyRow], log: str) -> str:
    """Return what shows each round of the first row that was made through many; "" if there is none. *log*: the command
    `trace log`, up to the address.
    """
    for row in rows:
        if row.kind == "rounds" and row.pc is not None:
            is_name = _EXPRESSION.fullmatch(row.subject) and not _REGISTER.fullmatch(row.subject)
            name = row.subject if is_name else "EXPRESSION"
            return f"`{log}{row.pc:#x} {name}` shows each round of row {row.number}."
    return ""
