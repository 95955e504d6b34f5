"""Reading a ring that begins anew when the trace goes on (a TMC), while the user or a cable interrupts it.

What was not read yet would be lost if the trace went on. What is expected are the bytes of the same trace that nothing
interrupted: the target is simulated, and runs alike.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled
from tests.session.board import CableOut
from tests.session.sources.coresight_chip import Chip, chip, program

BUFFER = range(0x9000_0000, 0x9001_0000)
WAITS = "warning: etr0 would begin anew: the trace waits until the next read-out has read the rest"
Interrupt = Callable[[Chip, Session, Context], None]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("interrupted"))


def nothing(board: Chip, session: Session, context: Context) -> None:
    """Do not interrupt."""


def cancel(board: Chip, session: Session, context: Context) -> None:
    def interrupt(label: str, done: int, total: int | None = None) -> None:
        if label == "reading trace" and done:
            raise Cancelled

    with pytest.raises(Cancelled):
        session.decoded(context, interrupt)


def cancel_early(board: Chip, session: Session, context: Context) -> None:
    """While a TMC is flushed, before anything is read; then also the end of the trace, which is asked for."""

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    for command in (lambda: session.decoded(context, interrupt), lambda: session.stop(interrupt)):
        with pytest.raises(Cancelled):
            command()


def pull(board: Chip, session: Session, context: Context) -> None:
    def out(address: int) -> None:
        board.look(address)
        if address in BUFFER and address >= BUFFER.start + 0x200:
            raise CableOut

    board.broken = out
    session.decoded(context)
    assert session.live is not None and session.live.failure is not None
    board.broken = board.look


def stored(folder: Path, elf: Path, interrupt: Interrupt) -> bytes:
    """The bytes of a trace that is read once while it goes on, behind *interrupt*."""
    folder.mkdir()
    board, session, context = chip(folder, elf, ())
    session.start(context)
    board.go_on(8000)
    interrupt(board, session, context)
    session.decoded(context)
    board.go_on(3000)
    session.stop()
    assert session.live is not None and session.live.failure is None
    return session.capture().sinks[0].data


@pytest.mark.parametrize("interrupt", [cancel, cancel_early, pull])
def test_what_was_not_read_is_read_later(tmp_path: Path, elf: Path, interrupt: Interrupt) -> None:
    whole = stored(tmp_path / "whole", elf, nothing)
    assert len(whole) > 0x400
    assert stored(tmp_path / "interrupted", elf, interrupt) == whole


def test_the_trace_waits_until_the_rest_was_read(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    board.go_on(8000)
    cancel(board, session, context)
    assert WAITS in session.status(context)
    session.decoded(context)
    assert WAITS not in session.status(context)
    assert all(encoder.enabled for encoder in (board.machine.components[f"encoder{hart}"] for hart in range(4)))


def test_a_reading_goes_on_where_the_last_one_was_cancelled(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    board.go_on(8000)
    cancel(board, session, context)
    kept = len(session.capture().sinks[0].data)
    assert kept > 0
    board.blocks.clear()
    session.decoded(context)
    assert sum(size for _, size in board.blocks) == len(session.capture().sinks[0].data) - kept
