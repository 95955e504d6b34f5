"""Whether work is under way: what interrupts it comes neither before it nor after it, however slow the machine is."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rvtrace_gdb.console.gdb_driver.engine import Engine
from tests.helpers.wait import PATIENCE, until


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """*work* on another thread, to its end. What it raises is raised here, unless the block raises something."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(2 * PATIENCE)
    assert not thread.is_alive()
    if raised:
        raise raised[0]


def busy(file: Path) -> str:
    """Python for gdb that goes on for a minute, in which any Ctrl-C is heard. It makes *file* when it has begun."""
    return f"{_making(file)}; import time; [time.sleep(0.05) for _ in range(1200)]"


def when_it_runs(file: Path, turns: int = 0) -> str:
    """A command of gdb that makes *file* as soon as gdb has let the program run and listens again.

    *turns*: so many turns of its event loop later.
    """
    again = f"again = lambda left: gdb.post_event(lambda: again(left - 1)) if left else {_making(file)}"
    ran = f"ran = lambda event: (gdb.events.cont.disconnect(ran), gdb.post_event(lambda: again({turns})))"
    return f"python {again}; {ran}; gdb.events.cont.connect(ran)"


def interrupt(engine: Engine, times: int = 1) -> None:
    """Ctrl-C, pressed so often, each time when the one before it was heard."""
    for _ in range(times):
        engine.interrupt()
        until(lambda: not engine._interrupt_requested, "the interrupt is heard")


def _making(file: Path) -> str:
    return f"open({str(file)!r}, 'w').close()"


@contextmanager
def stdin(fd: int) -> Iterator[None]:
    """Standard input is *fd*."""
    before = os.dup(0)
    os.dup2(fd, 0)
    yield
    os.dup2(before, 0)
    os.close(before)
