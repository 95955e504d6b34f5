"""gdb's server of the Debug Adapter Protocol with two harts: what is asked for one of them moves no other.

Each of the simulated harts says what it retired.
"""

from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB16, GDB18, PATIENT, SOURCE
from tests.gdbext.mi.test_ide import Dap
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import symbol_address
from tests.transport.simulated.harts import PROGRAMS, compiled

if GDB16 is not None:  # gdb 13 has no DAP

    def go(dap: Dap, request: str, thread: int, **arguments: Any) -> dict[str, Any]:
        """The stop after a request."""
        dap.events.clear()
        dap.request(request, threadId=thread, **arguments)
        while not any(event["event"] == "stopped" for event in dap.events):
            dap.read()
        return dict(next(event["body"] for event in dap.events if event["event"] == "stopped"))

    def history(dap: Dap, thread: int) -> str:
        """The place with the arrow among the lines that a client shows for a thread; the other one is selected then."""
        [frame] = dap.request("stackTrace", threadId=thread, levels=1)["body"]["stackFrames"]
        *_, scope = dap.request("scopes", frameId=frame["id"])["body"]["scopes"]
        dap.repl(f"thread {3 - thread}")
        [found, _] = dap.request("variables", variablesReference=scope["variablesReference"])["body"]["variables"]
        lines = dap.request("variables", variablesReference=found["variablesReference"])["body"]["variables"]
        [line] = [it["value"] for it in lines if it["value"].startswith("=> ")]
        return str(line.removeprefix("=> ").partition(":")[0])

    @pytest.mark.parametrize("gdb", [GDB18 or GDB16, *long_only(GDB16)], ids=lambda it: Path(it).parent.name)
    def test_steps_of_a_thread_move_its_hart_alone(gdb: str, tmp_path: Path) -> None:
        elf = compiled(tmp_path, PROGRAMS / "apart.c")
        first = symbol_address(elf, "first")
        rig = Rig(elf, tmp_path / "rig", "--harts", "2", "--log-retired", str(tmp_path / "log"))
        with rig, Dap(gdb, "-q", "-nx", "-i", "dap", "-ex", PATIENT, "-ex", SOURCE) as dap:
            dap.request("initialize", adapterID="rvtrace")
            dap.repl(f"set trace target {rig.target_file}")
            dap.send("attach", program=str(elf), target=f"localhost:{rig.gdb_port}")
            dap.request("configurationDone")
            dap.stopped()
            dap.repl("trace connect")
            dap.repl("trace start")
            dap.repl("hbreak done")
            for _ in range(2):
                go(dap, "continue", 1)
            dap.repl("delete")

            def places() -> list[int]:
                threads = sorted(dap.request("threads")["body"]["threads"], key=lambda it: int(it["id"]))
                assert [bool(it["name"]) for it in threads] == [True, True]
                stacks = [dap.request("stackTrace", threadId=it["id"], levels=1)["body"] for it in threads]
                return [int(it["stackFrames"][0]["instructionPointerReference"], 16) for it in stacks]

            present = places()
            back = []
            for thread in (1, 2):
                go(dap, "stepBack", thread, granularity="instruction", singleThread=thread == 2)
                back.append(places())
            assert back[0][1] == present[1] and back[1][0] == back[0][0] != present[0] and back[1][1] != present[1]
            dap.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": f"{first:#x}"}])
            for thread in (1, 2):
                assert go(dap, "reverseContinue", thread)["threadId"] == thread
            assert places() == [first, first]
            for request, one in (("next", False), ("stepIn", True), ("stepIn", False)):
                go(dap, request, 2, granularity="instruction", singleThread=one)
                assert places()[0] == first, "it stands at a breakpoint, over which it is not stepped"
            second = places()[1]
            assert [history(dap, thread) for thread in (2, 1)] == ["first+6", "first"]
            stopped = go(dap, "continue", 2)
            assert stopped["threadId"] == 2 and stopped["reason"] == "no-history" and places() == [first, present[1]]
        ran = retired_pcs(tmp_path / "log.1")
        last = len(ran) - 1 - ran[::-1].index(first)
        assert second == ran[last + 3]
