"""Which process and thread perf is told of, by context and task."""

from types import SimpleNamespace
from typing import Any, cast

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.session.capture.model import CapturedThread
from rvtrace_gdb.session.exports.perf.processes import ExportedProcesses
from rvtrace_gdb.support.errors import silent


def processes(
    contexts: list[tuple[int, ProgramContext]], owners: list[tuple[int, str | None]], *threads: CapturedThread
) -> ExportedProcesses:
    """Those of hart 2, where processes 738 and 739 have programs of their own."""

    def context_at(position: int) -> ProgramContext:
        return next((it for at, it in reversed(contexts) if at <= position), ProgramContext())

    named = {738: "maps/gtod.map", 739: "init 739"}
    images = [SimpleNamespace(name=name, scontext=pid, hcontext=None, virtual=None) for pid, name in named.items()]
    trace = SimpleNamespace(
        hart=2,
        session=SimpleNamespace(capture=lambda: SimpleNamespace(images=images, threads=threads)),
        history=SimpleNamespace(
            contexts=contexts, context_at=context_at, program_contexts=[context_at(0), *(it for _, it in contexts)]
        ),
        owners=lambda progress: owners,
    )
    return ExportedProcesses(cast(Any, trace), silent)


def test_a_context_is_a_process() -> None:
    contexts = [(10, ProgramContext(0, scontext=738)), (20, ProgramContext(3, scontext=738))]
    contexts += [(30, ProgramContext(0, scontext=739)), (40, ProgramContext(0, scontext=5))]
    contexts += [(50, ProgramContext(0, scontext=1 << 31)), (60, ProgramContext(0, scontext=0))]
    found = processes(contexts, [])
    assert found.changes == [10, 20, 30, 40, 50, 60]
    assert [found.process_at(at) for at in (0, 10, 20, 30, 45, 50, 60)] == [
        (3, 3, "hart2"), (738, 738, "gtod.map"), (738, 738, "gtod.map"), (739, 739, "init-739"), (5, 5, "context5"),
        (3, 3, "hart2"), (3, 3, "hart2"),
    ]  # fmt: skip


def test_a_task_is_a_thread_of_the_hart_or_names_the_process() -> None:
    owners = [(0, None), (5, "idle"), (8, "worker #2"), (12, "idle")]
    found = processes([], owners)
    threads = [found.process_at(at) for at in (0, 4, 5, 8, 11, 12)]
    idle, worker = (3, 3002, "idle"), (3, 3003, "worker-#2")
    assert threads == [(3, 3, "hart2"), (3, 3, "hart2"), idle, worker, worker, idle]
    found = processes([(8, ProgramContext(0, scontext=738))], owners)
    assert found.process_at(9) == (738, 738, "worker-#2") and found.changes == [0, 5, 8, 12]


def test_threads_that_are_known_are_those_of_their_process() -> None:
    """As `perf script -F comm,pid,tid` has them."""
    threads = CapturedThread(100, 100, "prog"), CapturedThread(101, 100, "my worker"), CapturedThread(200, 200, "")
    contexts = [(at, ProgramContext(0, scontext=tid)) for at, tid in ((0, 100), (5, 101), (9, 200), (12, 738))]
    found = processes(contexts, [], *threads)
    assert [found.process_at(at) for at in (0, 5, 9, 12)] == [
        (100, 100, "prog"), (100, 101, "my-worker"), (200, 200, "context200"), (738, 738, "gtod.map"),
    ]  # fmt: skip


def test_a_trace_of_one_process_is_its() -> None:
    threads = CapturedThread(102, 100, "other"), CapturedThread(100, 100, "prog")
    assert processes([], [], *threads).process_at(0) == (100, 100, "prog")
    assert processes([], [], threads[0]).process_at(7) == (100, 102, "other")
    two = processes([], [], *threads, CapturedThread(200, 200, "prog"))
    assert two.process_at(0) == (3, 3, "hart2"), "which of the two ran is not known"
