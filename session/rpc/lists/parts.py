"""Lists of what ran in a task, a process or a thread of an operating system: parameters that several lists have.

*task*: the turns of tasks, see `TaskTurns.tasks_named`. *process*, *thread*: by number or name, see
`session.queries.lists.thread_parts`. Several at once: what is in all of them.

    task_names {context} -> {names}

What *task* may be in the history that was decoded last, see `TaskTurns.selectors`, for completion; nothing, if no
task is known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rvtrace_gdb.session.queries.lists.parts_query import PartsQuery
from rvtrace_gdb.session.queries.lists.search import ListQuery
from rvtrace_gdb.session.queries.lists.thread_parts import parts_of_threads, threads_named, words_for
from rvtrace_gdb.session.rpc.protocol import PARTS, JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.stack_turns import stack_turns
from rvtrace_gdb.session.tasks.tasks import known_tasks, tasks_of
from rvtrace_gdb.support.errors import Progress


def part_query(
    session: Session, query: ListQuery, selected: SelectedHistory, params: Params, progress: Progress
) -> PartsQuery:
    """Return a query for what another one finds in the parts that a request is about.

    Raises NoTasks, BadTaskSystem, BadQuery (there is no such task), NoSuchThread, and what *progress* raises.
    """
    found, words = parts_asked_for(session, selected, params, progress)
    return PartsQuery(query, tuple(found), words)


def parts_asked_for(
    session: Session, selected: SelectedHistory, params: Params, progress: Progress
) -> tuple[list[range], str]:
    """Return the parts that a request is about, and the words for whose they are. Raises as `part_query`."""
    return _found_parts(session, selected, params, on_stacks=False, progress=progress)


def counted_parts(
    session: Session, threads: Mapping[str, str], progress: Progress
) -> Callable[[SelectedHistory], Sequence[range]] | None:
    """Return what returns the parts of a history that counts of calls are about; None: all of it. *threads*: by PARTS.
    """
    if not threads:
        return None
    return lambda selected: parts_with_own_stacks(session, selected, Params(threads, "parts"), progress)


def parts_with_own_stacks(
    session: Session, selected: SelectedHistory, params: Params, progress: Progress
) -> list[range]:
    """Return the parts that a request is about, those of a task from where its call stack runs. Raises as `part_query`.
    """
    return _found_parts(session, selected, params, on_stacks=True, progress=progress)[0]


def _found_parts(
    session: Session, selected: SelectedHistory, params: Params, *, on_stacks: bool, progress: Progress
) -> tuple[list[range], str]:
    """Return the parts, and the words for whose they are."""
    task, process, thread = (params.text(name, "") for name in PARTS)
    parts, words = [range(len(selected.history))], list[str]()
    if task:
        turns = tasks_of(session, selected, progress)
        if on_stacks:
            turns = stack_turns(turns, call_frames(session, selected, progress), progress)
        parts, words = turns.ranges_of(turns.tasks_named(task)), [f"task {task}"]
    if process or thread:
        capture = session.require_capture().capture
        threads = threads_named(capture, selected.history, process, thread)
        parts = list(_common(parts, parts_of_threads(capture, selected.history, threads)))
        words.append(words_for(process, thread))
    return parts, " and ".join(words)


def _common(some: Sequence[range], others: Sequence[range]) -> Iterator[range]:
    """Yield what is in two lists of parts, which are in order."""
    at = other = 0
    while at < len(some) and other < len(others):
        both = range(max(some[at].start, others[other].start), min(some[at].stop, others[other].stop))
        if both:
            yield both
        if some[at].stop <= others[other].stop:
            at += 1
        else:
            other += 1


def task_names(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return what tasks are called, see the module. Raises BadTaskSystem, and what *progress* raises."""
    selected = session.last_selected(params.context())
    if selected is None or not len(selected.history):
        return {"names": []}
    turns = known_tasks(session, selected, progress)
    return {"names": [] if turns is None else turns.selectors}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"task_names": task_names}
