"""What the history window asks at each prompt: little, and without a trace in what `trace history` does."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.session.board import Board, CableOut, board

ALL = 1 << 40


class Window:
    """A session on a simulated board, and how a window asks it."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.session = Session(board.connect, {})
        self.context: Context = replace(board.describe(), runs=0)
        self._methods = Methods(self.session)

    def run(self, instructions: int) -> int:
        """How many have run: gdb says that it let the program run."""
        self.context = replace(self.context, runs=(self.context.runs or 0) + 1)
        return self.board.run(instructions)

    def glance(self, most: int | None, *, anew: bool | None = None) -> dict[str, Any]:
        params = {"context": asdict(self.context), "most": most, "anew": anew}
        found: dict[str, Any] = self._methods.call("glance", params, silent)
        return found


@pytest.fixture
def window(tmp_path: Path, busy_elf: Path) -> Window:
    return Window(board(tmp_path, busy_elf))


def test_without_a_trace_it_is_said_why(window: Window) -> None:
    assert window.glance(None) == {
        "length": 0, "gaps": 0, "hart": None, "current": False, "unread": 0, "problem": None,
    }  # fmt: skip
    assert "there is no trace" in window.glance(ALL)["problem"]
    window.session.start(window.context)
    assert "nothing has been traced yet" in window.glance(ALL)["problem"]


def test_much_is_not_read_out_unasked(window: Window) -> None:
    """What is left is what reading it out then brings, but for what the encoder still holds."""
    window.session.start(window.context)
    window.run(3000)
    asked = window.glance(16)
    assert asked["length"] == 0 and not asked["current"]
    window.glance(ALL)
    read = len(window.session.capture().sinks[0].data)
    assert 16 < asked["unread"] <= read <= asked["unread"] + 256


def test_nothing_is_asked_of_a_target_that_did_not_run(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    window.session.start(window.context)
    ran = window.run(500)
    window.glance(ALL)
    monkeypatch.setattr(window.board, "touch", lambda address: pytest.fail("the target was asked"))
    assert window.glance(ALL)["length"] == ran


def test_a_target_that_is_gone_does_not_hide_what_is_there(window: Window) -> None:
    window.session.start(window.context)
    ran = window.run(500)
    window.glance(ALL)
    window.run(500)
    window.board.broken = cable_out
    found = window.glance(ALL)
    assert found["length"] == ran
    assert not found["current"]
    assert found["problem"] == str(CableOut())


def cable_out(address: int) -> None:
    raise CableOut
