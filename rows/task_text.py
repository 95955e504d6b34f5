"""Which tasks ran, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator

from rvtrace_gdb.rows.explain_text import ExplainSymbols, place_fields, wrapped
from rvtrace_gdb.rows.list_rows import called
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.rows.task_rows import TaskRow, TasksAnswer, TaskSwitch

SHOWN = 40
"""How many tasks, or switches, are shown unless more are asked for."""
_WIDEST = 32
_WHERE = {"memory": "", "context": "context", "stack pointer": "stack pointer"}


def task_lines(answer: TasksAnswer, symbols: ExplainSymbols, *, switches: bool, most: int = SHOWN) -> Iterator[str]:
    """Yield the lines of an answer. *switches*: these instead of the tasks. *most*: how many rows, 0: all."""
    rows = answer.switches if switches else answer.tasks
    several = len(answer.harts) > 1
    yield symbols.paint("heading", _headline(answer, switches=switches))
    shown = rows[: most or None]
    width = _label_width(answer)
    if shown:
        yield _switch_heading(width, several=several) if switches else _heading(answer, several=several)
    for row in shown:
        if isinstance(row, TaskSwitch):
            yield _switch_line(row, symbols, width, several=several)
        else:
            yield _task_line(row, answer, symbols, several=several)
    if len(rows) > len(shown):
        yield f"... {len(rows) - len(shown)} more"
    yield from _unknown_lines(answer, symbols)


def more_task_lines(
    answer: TasksAnswer, symbols: ExplainSymbols, begin: int, most: int, *, switches: bool
) -> Iterator[str]:
    """Yield the rows *begin* to *begin* + *most* - 1, counted from 0."""
    several, width = len(answer.harts) > 1, _label_width(answer)
    if switches:
        yield from (_switch_line(it, symbols, width, several=several) for it in answer.switches[begin : begin + most])
    else:
        yield from (_task_line(it, answer, symbols, several=several) for it in answer.tasks[begin : begin + most])


def _headline(answer: TasksAnswer, *, switches: bool) -> str:
    what, count = ("switch", len(answer.switches)) if switches else ("task", len(answer.tasks))
    plural = "" if count == 1 else "es" if switches else "s"
    return f"{answer.system}: {count} {what}{plural} in {answer.instructions} instructions"


def _heading(answer: TasksAnswer, *, several: bool) -> str:
    harts = f"{'harts':>8}" if several else ""
    time = f"{'time':>12}" if _has_times(answer) else ""
    return f"{'turns':>7}{'instructions':>14}{'share':>8}{time}{harts}{'first':>10}{'last':>10}  {'state':<10} task"


def _has_times(answer: TasksAnswer) -> bool:
    return any(row.time is not None for row in answer.tasks)


def _task_line(row: TaskRow, answer: TasksAnswer, symbols: ExplainSymbols, *, several: bool) -> str:
    share = f"{100 * row.instructions / max(answer.instructions, 1):.1f} %" if row.turns else ""
    ticks = row.time if row.time is not None else "?" if row.turns else ""
    time = f"{ticks:>12}" if _has_times(answer) else ""
    harts = f"{','.join(map(str, row.harts)):>8}" if several else ""
    first, last = ("" if it is None else f"#{it.number}" for it in (row.first, row.last))
    name = symbols.paint("function", row.label)
    return (
        f"{row.turns:>7}{row.instructions:>14}{share:>8}{time}{harts}{first:>10}{last:>10}  {row.state:<10} {name}"
        f"{_more_of(row)}"
    )


def _more_of(row: TaskRow) -> str:
    """Return what tells a task from others of its name, and from what it is known unless from memory."""
    known = [] if row.id is None else [str(row.id)]
    known += [] if row.address is None or not row.name else [f"0x{row.address:x}"]
    known += [text for source in row.sources if (text := _WHERE[source])]
    return f"  ({', '.join(known)})" if known else ""


def _label_width(answer: TasksAnswer) -> int:
    """Return how wide the labels of the tasks in the list of switches are."""
    return min(max([len(_switched_name(it.after)) for it in answer.switches], default=0), _WIDEST)


def _switch_heading(width: int, *, several: bool) -> str:
    return f"{'at':>10}{'hart' if several else '':>{6 * several}}  {'from':<{width}}  {'to':<{width}}  why"


def _switch_line(row: TaskSwitch, symbols: ExplainSymbols, width: int, *, several: bool) -> str:
    hart = f"{row.hart:>6}" if several else ""
    before, after = (_switched_name(it) for it in (row.before, row.after))
    place = "" if row.place is None else f" in {symbols.paint('function', called(row.place.name))}"
    line = "" if row.place is None or not row.place.line else f"  {row.place.line}"
    time = "" if row.time is None else f"  t={row.time}"
    return f"{f'#{row.number}':>10}{hart}  {before:<{width}}  {after:<{width}}  {row.why}{place}{line}{time}"


def _switched_name(label: str | None) -> str:
    return "?" if label is None else label or "-"


def _unknown_lines(answer: TasksAnswer, symbols: ExplainSymbols) -> Iterator[str]:
    if answer.outside:
        yield f"Before the first task: {answer.outside} instructions."
    if answer.unknown:
        share = 100 * answer.unknown / max(answer.instructions, 1)
        yield symbols.paint("gap", f"Not known which task ran: {answer.unknown} instructions ({share:.1f} %).")
    for text in answer.problems:
        yield from wrapped(f"Not known: {text}.", "")


def tasks_fields(answer: TasksAnswer, *, switches: bool) -> RowFields:
    """Return the fields of an answer; what is not known has none."""
    found: RowFields = {
        "system": answer.system, "harts": answer.harts, "instructions": answer.instructions,
        "outside": answer.outside, "unknown": answer.unknown, "tasks": [_task_fields(it) for it in answer.tasks],
    }  # fmt: skip
    if switches:
        found["switches"] = [_switch_fields(it) for it in answer.switches]
    return {**found, "problems": answer.problems} if answer.problems else found


def _task_fields(row: TaskRow) -> RowFields:
    return _with_values({
        "task": row.label, "name": row.name or None, "address": None if row.address is None else f"0x{row.address:x}",
        "id": row.id, "idle": row.idle or None, "harts": row.harts, "turns": row.turns,
        "instructions": row.instructions, "time": row.time,
        "first": None if row.first is None else row.first._asdict(),
        "last": None if row.last is None else row.last._asdict(), "state": row.state or None, "from": row.sources,
    })  # fmt: skip


def _switch_fields(row: TaskSwitch) -> RowFields:
    return _with_values({
        "hart": row.hart, "number": row.number, "before": row.before, "after": row.after, "why": row.why,
        "place": None if row.place is None else place_fields(row.place), "time": row.time,
    })  # fmt: skip


def _with_values(fields: RowFields) -> RowFields:
    return {name: value for name, value in fields.items() if value is not None}
