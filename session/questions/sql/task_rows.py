"""The rows of the tables `tasks` and `turns`: which tasks, or threads of Linux, ran on a hart."""

from collections.abc import Iterator
from itertools import pairwise

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.views.addresses import digits


def task_rows(trace: ExportedTrace, progress: Progress) -> Iterator[RowFields]:
    """Yield the tasks of a hart, in the part that is asked for. Raises BadTaskSystem, and what *progress* raises."""
    turns = trace.tasks(progress)
    if turns is None:
        return
    from rvtrace_gdb.session.tasks import answer  # few programs have tasks

    labels = {(task.address, task.name, task.id): label for task, label in zip(turns.tasks, turns.labels, strict=True)}
    for row in answer.task_rows([answer.HartTurns(trace.selected, turns, trace.part)]):
        yield {
            "task": labels.get((row.address, row.name, row.id), row.label), "name": row.name or None,
            "address": None if row.address is None else digits(row.address, trace.program.xlen), "id": row.id,
            "idle": int(row.idle), "turns": row.turns, "instructions": row.instructions, "time": row.time,
            "first": None if row.first is None else row.first.number,
            "last": None if row.last is None else row.last.number, "state": row.state or None,
        }  # fmt: skip


def turn_rows(trace: ExportedTrace, progress: Progress) -> Iterator[RowFields]:
    """Yield the turns of a hart that began in the part that is asked for, gaps left out. Raises as `task_rows`."""
    turns = trace.tasks(progress)
    if turns is None:
        yield from _thread_turns(trace)
        return
    for turn in turns.turns:
        if turn.begin in trace.part and trace.history.pc(turn.begin) != GAP:
            label = None if turn.task is None else turns.labels[turn.task]
            yield {**_part_fields(trace, turn.begin, turn.end), "task": label, "known_from": turn.source.value}


def _thread_turns(trace: ExportedTrace) -> Iterator[RowFields]:
    """Yield the parts of a trace of perf in which a thread ran."""
    from rvtrace_gdb.session.queries.lists.thread_parts import thread_at

    capture, history = trace.session.capture(), trace.history
    if not capture.threads:
        return
    gaps = (at + more for at in history.gap_positions for more in (0, 1))
    cuts = sorted({0, *(at for at, _ in history.contexts), *gaps, len(history)})
    for begin, end in pairwise(cuts):
        if history.pc(begin) == GAP or begin not in trace.part:
            continue
        process, thread = thread_at(capture, history, begin)
        source = "not known" if process is None else "context"
        yield {**_part_fields(trace, begin, end), "process": process, "thread": thread, "known_from": source}


def _part_fields(trace: ExportedTrace, begin: int, end: int) -> RowFields:
    time = trace.history.time_at(begin)
    return {"begin": history_number(begin), "end": end, "instructions": end - begin, "time": time}
