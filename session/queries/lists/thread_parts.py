"""The parts of a history in which a thread of an operating system ran, by the contexts of the history."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.capture.model import Capture, CapturedThread
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.support.text import printable

_NAMED = 10  # threads that an error names


class NoSuchThread(NoTrace):
    """No thread, or process, is the one that was named."""

    def __init__(self, what: str, name: str, others: Sequence[str]) -> None:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        there = f"there are {', '.join(others[:_NAMED])}{more}" if others else "the trace names none"
        super().__init__(printable(f"no {what} is {name}, by its number or its name: {there}"))


class UnknownThread(NoTrace):
    """The trace is that of one process, and does not say when which of its threads ran."""

    def __init__(self, name: str, process: int) -> None:
        super().__init__(printable(f"the trace does not say when thread {name} of process {process} ran"))


def threads_named(capture: Capture, history: History, process: str, thread: str) -> frozenset[int]:
    """Return the values of scontext of the threads of a *process*, and of a *thread*, both by number or name; "": any.

    A number that only the contexts of the history have is one of both. Raises NoSuchThread, UnknownThread.
    """
    contexts = {context.scontext for context in history.program_contexts if context.scontext is not None}
    known = {it.id: it for it in capture.threads}
    known |= {number: CapturedThread(number, number, "") for number in contexts - known.keys()}
    names = _process_names(known.values())
    own = {it.id for it in known.values() if not process or process in (str(it.process), names.get(it.process))}
    if not own:
        raise NoSuchThread("process", process, [_with_name(it, name) for it, name in sorted(names.items())])
    found = {number for number in own if not thread or thread in (str(number), known[number].name)}
    if not found:
        raise NoSuchThread("thread", thread, [_with_name(number, known[number].name) for number in sorted(own)])
    if not contexts and len(names) == 1 and found < known.keys():
        raise UnknownThread(thread, *names)
    return frozenset(found)


def _process_names(threads: Iterable[CapturedThread]) -> dict[int, str]:
    """Return the name of each process: that of the thread that has its number, else any."""
    found: dict[int, str] = {}
    for thread in threads:
        if thread.id == thread.process or thread.process not in found:
            found[thread.process] = thread.name
    return found


def _with_name(number: int, name: str) -> str:
    return f"{number} ({name})" if name else str(number)


def parts_of_threads(capture: Capture, history: History, threads: frozenset[int]) -> list[range]:
    """Return the positions at which one of some threads ran, by the contexts that the history has. Where it has none,
    everything is of the threads that the capture has.
    """
    if all(context.scontext is None for context in history.program_contexts):
        known = {it.id for it in capture.threads}
        return [range(len(history))] if known and known <= threads and len(history) else []
    begins = [at for at, _ in history.contexts]
    return [
        range(begin, end)
        for (_, context), (begin, end) in zip(history.contexts, pairwise([*begins, len(history)]), strict=True)
        if context.scontext in threads and begin < end
    ]


def thread_at(capture: Capture, history: History, position: int) -> tuple[str | None, str | None]:
    """Return the process that runs at a position, and the thread of it if that is another one, each by its number and
    its name. None: the trace does not say it, or the capture knows no threads.
    """
    number, names = history.context_at(position).scontext, _process_names(capture.threads)
    known = [it for it in capture.threads if number in (it.id, None)]
    if len({it.process for it in known}) != 1 or (number is None and len(names) > 1):
        return None, None
    it = known[0]
    process = _with_name(it.process, names[it.process])
    return process, _with_name(it.id, it.name) if len(known) == 1 and it.id != it.process else None


def thread_texts(capture: Capture) -> dict[int, str]:
    """Return what each thread of a capture is called, by its number: `process 100 (it)`, and, if it is another one than
    the first of its process, `thread 101 (my worker)` behind that.
    """
    names = _process_names(capture.threads)
    found = {}
    for it in capture.threads:
        own = "" if it.id == it.process else f", thread {_with_name(it.id, it.name)}"
        found[it.id] = printable(f"process {_with_name(it.process, names[it.process])}{own}")
    return found


def words_for(process: str, thread: str) -> str:
    """Return the words for what was named, for messages."""
    both = (f"process {process}" if process else "", f"thread {thread}" if thread else "")
    return " and ".join(filter(None, both))
