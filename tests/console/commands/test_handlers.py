"""Handlers of interrupts and exceptions in lists of calls: what they interrupted, and that an xRET is their return.

Where an interrupt hit follows from what ran: that instruction did not run before the handler, and runs behind it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import compile_program
from tests.helpers.example_captures import RAM, example_capture
from tests.session.board import board

VECTORED = Path(__file__).parents[2] / "programs" / "vectored.c"
Listed = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> Listed:
    def rows(verb: str, capture: Path, *words: str) -> list[dict[str, Any]]:
        assert main([verb, str(capture), *words, "--json", "--quiet"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return rows


def vectored(folder: Path) -> Path:
    """Interrupts and ecalls, whose handler has one mret."""
    target, file = board(folder, compile_program(folder, VECTORED)), folder / "vectored.rvt"
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(6000)
    session.save(file, context)
    session.close()
    return file


@pytest.mark.parametrize("name", ["demo", "latency"])
def test_an_interrupt_is_placed_where_the_hart_goes_on(name: str, tmp_path: Path, listed: Listed) -> None:
    capture = example_capture(tmp_path, name)
    handler = {"demo": "on_trap", "latency": "on_timer"}[name]
    calls, ran = listed("calls-of", capture, handler), {it["number"]: it for it in listed("decode", capture)}
    begins = [it["position"] for it in calls]
    after = {it["position"]: it["end"] for it in calls}
    for call in calls:
        end = call["end"]
        while end in after:  # the next interrupt comes before anything else runs
            end = after[end]
        assert call["from"]["addr"] == ran[end]["addr"], call
    assert any(it["from"]["func"] != ran[it["position"] - 1]["func"] for it in calls) or name != "demo"
    for other in (listed("find", capture, handler), listed("events", capture, "--kind", "trap")):
        assert [(it["position"], it["from"]) for it in other] == [(it["position"], it["from"]) for it in calls]
    query = "SELECT from_addr FROM calls_of ORDER BY position"
    cells = listed("sql", capture, query, "--calls-of", handler)
    assert [it["from_addr"] for it in cells] == [it["from"]["addr"] for it in calls] and len(begins) > 1


def test_a_handler_returns_by_mret(tmp_path: Path, listed: Listed) -> None:
    """Of an interrupt to where that hit, of an exception to behind it."""
    calls = listed("calls-of", vectored(tmp_path), "vector")
    kinds = {it["text"].split()[0] for it in calls}
    assert kinds == {"interrupt", "exception"} and not any("why" in it for it in calls)


