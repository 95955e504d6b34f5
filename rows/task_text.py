"""Which tasks ran, as lines for people and as fields for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rvtrace_gdb.rows.explain_text import WIDTH, ExplainSymbols, place_fields, wrapped
from rvtrace_gdb.rows.list_rows import called
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.rows.task_rows import TaskRow, TasksAnswer, TaskSwitch

SHOWN = 40
"""How many tasks, or switches, are shown unless more are asked for."""
_WIDEST = 32
_NAME, _SHORTEST = 16, 8
"""Columns that the name of a task has at least before others are left out, and in any case."""
_WHERE = {"memory": "", "context": "context", "stack pointer": "sp", "code": "code"}
_MUCH = 0.1
"""The share of instructions whose task is not known from which on it is said what helps."""
_REMEDY = (
    "More is known of a trace that began with memory: `trace start -with-memory`, faster after `set trace save-memory"
    " ADDRESS,+SIZE` for the RAM that the kernel and its tasks use; in a ring that was overwritten, with contexts:"
    " `trace start -context`, where the system writes scontext. See docs/tasks.md."
)
_KERNEL = "Linux"
_WITH_CONTEXTS = "with contexts (`trace start -context`)"
_WHERE_KERNEL_ENDS = (
    "if the hart stands in the kernel where the trace ends, and the kernel's memory is saved there: `set trace"
    " save-memory`"
)
_THREADS_OF_KERNEL = (
    "Those are threads of the kernel, and processes that did not come to user mode: the kernel's memory is not known in"
    " the past. See docs/linux.md."
)
_SYSTEM_WITH_CONTEXTS = "with contexts (`trace start -context`), where the system writes scontext"
_WHERE_HARTS_END = "of the last turns, if all harts are halted where the trace ends"


def task_lines(answer: TasksAnswer, symbols: ExplainSymbols, *, switches: bool, most: int = SHOWN) -> Iterator[str]:
    """Yield the lines of an answer. *switches*: these instead of the tasks. *most*: how many rows, 0: all."""
    rows = answer.switches if switches else answer.tasks
    several = len(answer.harts) > 1
    yield symbols.paint("heading", _headline(answer, switches=switches))
    shown = rows[: most or None]
    width = _label_width(answer)
    if shown and switches:
        yield _switch_heading(width, several=several)
        yield from (_switch_line(row, symbols, width, several=several) for row in answer.switches[: most or None])
    elif shown:
        table = _TaskTable(answer, several=several)
        yield table.heading_line()
        yield from (table.task_line(row, symbols) for row in answer.tasks[: most or None])
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
    elif answer.tasks:
        table = _TaskTable(answer, several=several)
        yield from (table.task_line(it, symbols) for it in answer.tasks[begin : begin + most])


def _headline(answer: TasksAnswer, *, switches: bool) -> str:
    what, count = ("switch", len(answer.switches)) if switches else ("task", len(answer.tasks))
    plural = "" if count == 1 else "es" if switches else "s"
    return f"{answer.system}: {count} {what}{plural} in {answer.instructions} instructions"


class _TaskTable:
    """Lays out the rows of tasks in 80 columns: where they are too many, `last`, `first` and `share` are left out, and
    long names are cut.
    """

    def __init__(self, answer: TasksAnswer, *, several: bool) -> None:
        self._answer, self._several = answer, several
        self._times = Counter((row.label, row.id) for row in answer.tasks)
        cells = [self._cells(row) for row in answer.tasks]
        self._widths = {key: max(len(key), *(len(it[key]) for it in cells)) for key in self._cells(answer.tasks[0])}
        least = max(_NAME, *(_SHORTEST + len(self._more_of(row)) for row in answer.tasks))
        for key in ("last", "first", "share"):
            if self._room() < least:
                del self._widths[key]

    def _room(self) -> int:
        """Return how many columns are left for the name."""
        return WIDTH - sum(width + 2 for width in self._widths.values())

    def heading_line(self) -> str:
        return self._columns({key: key for key in self._widths}) + "task"

    def task_line(self, row: TaskRow, symbols: ExplainSymbols) -> str:
        more = self._more_of(row)
        room = max(self._room() - len(more), _SHORTEST)
        name = row.label if len(row.label) <= room else f"{row.label[: room - 3]}..."
        return f"{self._columns(self._cells(row))}{symbols.paint('function', name)}{more}"

    def _columns(self, cells: dict[str, str]) -> str:
        """Return the columns before the name; the state is on the left of its own."""
        return "".join(
            f"{cells[key]:<{width}}  " if key == "state" else f"{cells[key]:>{width}}  "
            for key, width in self._widths.items()
        )

    def _cells(self, row: TaskRow) -> dict[str, str]:
        share = f"{100 * row.instructions / max(self._answer.instructions, 1):.1f} %" if row.turns else ""
        first, last = ("" if it is None else f"#{it.number}" for it in (row.first, row.last))
        ticks = str(row.time) if row.time is not None else "?" if row.turns else ""
        has_times = any(it.time is not None for it in self._answer.tasks)
        return {
            "turns": str(row.turns), "instructions": str(row.instructions), "share": share,
            **({"time": ticks} if has_times else {}),
            **({"harts": ",".join(map(str, row.harts))} if self._several else {}),
            "first": first, "last": last, "state": row.state,
        }  # fmt: skip

    def _more_of(self, row: TaskRow) -> str:
        """Return what tells a task from others of its name, and from what it is known unless from memory."""
        known = [] if row.id is None else [str(row.id)]
        if row.address is not None and row.name and self._times[row.label, row.id] > 1:
            known.append(f"0x{row.address:x}")
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
    if answer.unknown > _MUCH * answer.instructions:
        yield from wrapped(_remedy(answer), "")
    for text in answer.problems:
        yield from wrapped(f"Not known: {text}.", "")


def _remedy(answer: TasksAnswer) -> str:
    """Return what helps that the trace does not have yet."""
    is_kernel = answer.system == _KERNEL
    if len(answer.harts) == 1 and not is_kernel:
        return _REMEDY
    parts = []
    if not any("context" in row.sources for row in answer.tasks):
        parts.append(_WITH_CONTEXTS if is_kernel else _SYSTEM_WITH_CONTEXTS)
    if not any(row.state for row in answer.tasks):
        parts.append(_WHERE_KERNEL_ENDS if is_kernel else _WHERE_HARTS_END)
    if parts:
        return f"More is known {', and '.join(parts)}. See docs/tasks.md."
    return _THREADS_OF_KERNEL if is_kernel else "See docs/tasks.md for what helps."


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
