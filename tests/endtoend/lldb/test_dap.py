"""The real lldb-dap behind `rvtrace lldb-dap`, in a conversation as an editor has it, against the retired list.

What is expected comes from another simulated hart, which is stepped without any trace, and from the rules of gdb's
reverse-next.
"""

import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.console.commands.serve.served import capture, serving
from tests.endtoend.lldb.lldb_process import number_in
from tests.endtoend.reverse.line_rules import Lines, LineWalk
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.gdbext.mi.test_ide import Dap
from tests.helpers.cross_compiler import HOME
from tests.session.board import DEMO

_UNPACKED = HOME / ".tools" / "lldb-dap" / "lldb-dap"
LLDB_DAP = os.environ.get("RVTRACE_LLDB_DAP") or (str(_UNPACKED) if _UNPACKED.exists() else None)
LLDB_DAPS = [pytest.param(LLDB_DAP, id="lldb-dap")] if LLDB_DAP else []
SCRIPT = f"command script import {HOME / 'rvtrace_lldb.py'}"
THREAD = 1


def place(dap: Dap) -> int:
    """Where the program stands, by the number of the next instruction in the history, from 0."""
    return number_in(dap.repl("`register read trace_pos")) - 1


def went(dap: Dap, request: str, **arguments: object) -> int:
    """Where a request leads; the editor hears of the stop behind the answer."""
    dap.events.clear()
    number = dap.send(request, threadId=THREAD, **arguments)
    while (message := dap.read()).get("request_seq") != number:
        assert message.get("event") != "stopped"
    assert message["success"] and message["command"] == request
    dap.stopped()
    return place(dap)


@pytest.mark.parametrize("program", LLDB_DAPS)
def test_step_back_by_lines_and_instructions_and_reverse_continue(program: str, tmp_path: Path) -> None:
    served = capture(tmp_path)
    code = Code(DEMO)
    walk = Walk(code, [it.pc for it in served.moments[:-1]], frozenset())
    lines = LineWalk(walk, Lines(DEMO), optimization="-Og")
    words = (sys.executable, "-m", "rvtrace_gdb", "lldb-dap", "--program", program)
    with serving(served.file) as server, Dap(*words) as dap:
        assert dap.request("initialize", adapterID="lldb-dap", linesStartAt1=True)["body"]["supportsStepBack"]
        connect = f"gdb-remote {server.port}"
        dap.send("attach", program=str(DEMO), attachCommands=[connect], postRunCommands=[SCRIPT], stopOnEntry=True)
        while not any(event["event"] == "initialized" for event in dap.events):
            dap.read()
        dap.request("setFunctionBreakpoints", breakpoints=[{"name": "leaf"}])
        dap.request("configurationDone")
        dap.stopped()
        places = [place(dap), *(went(dap, "stepBack") for _ in range(3))]
        back = went(dap, "stepBack", granularity="instruction")
        hit = went(dap, "reverseContinue")
        dap.request("setFunctionBreakpoints", breakpoints=[])
        beginning = went(dap, "reverseContinue")
        number = dap.send("stepBack", threadId=THREAD)
        while (refused := dap.read()).get("request_seq") != number:
            pass
        there = went(dap, "next")
        dap.request("disconnect")
    assert places[0] == walk.present
    assert not [it for it in pairwise(places) if lines.wrong("reverse-next", *it)]
    assert back == places[-1] - 1
    walk.breakpoints.add(code.symbols["leaf"])
    assert hit == walk.run(back, -1) > 0
    assert beginning == 0 and not refused["success"]
    assert refused["message"] == "this is the beginning of the trace"
    assert there == 1, "without lines a step is an instruction"
