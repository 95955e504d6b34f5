"""gdb 16 as a server of the Debug Adapter Protocol: the requests of the buttons for going back, and rvtrace's lists.

The hart says what it retired.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB16, GDB18, PATIENT, SOURCE
from tests.gdbext.mi.test_ide import Dap
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo

if GDB16 is not None:  # gdb 13 has no DAP

    SERVERS = [pytest.param(GDB16, id="gdb16"), *long_only(*([pytest.param(GDB18, id="gdb18")] if GDB18 else []))]

    @pytest.fixture(scope="module", params=SERVERS)
    def server(request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(scope="module")
    def rig(tmp_path_factory: pytest.TempPathFactory, server: str) -> Iterator[Rig]:
        folder = tmp_path_factory.mktemp("dap")
        with Rig(demo(folder), folder / "rig", "--log-retired", str(folder / "retired.log")) as rig:
            yield rig

    @pytest.fixture(scope="module")
    def dap(rig: Rig, server: str) -> Iterator[Dap]:
        """At `finish`, with what led there traced."""
        with Dap(server, "-q", "-nx", "-i", "dap", "-ex", PATIENT, "-ex", SOURCE, "-ex", SOURCE) as dap:
            assert dap.request("initialize", adapterID="rvtrace")["body"]["supportsStepBack"] is True
            dap.repl(f"set trace target {rig.target_file}")
            dap.send("attach", program=str(rig.elf), target=f"localhost:{rig.gdb_port}")
            dap.request("configurationDone")
            dap.stopped()
            dap.repl("trace connect")
            dap.events.clear()
            dap.repl("trace start")
            dap.repl("tbreak finish")
            dap.request("continue", threadId=1)
            dap.stopped()
            yield dap

    def stop(dap: Dap, request: str, **arguments: Any) -> tuple[str, str, int]:
        """The reason of the stop after a request, what else was printed, and the pc there."""
        dap.events.clear()
        dap.request(request, threadId=1, **arguments)
        before = [event for event in dap.events if event["event"] == "stopped"]
        assert not before, "the response comes first"
        while not any(event["event"] == "stopped" for event in dap.events):
            dap.read()
        [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        dap.request("threads")  # before its response come the events that gdb 18 held back during the last request
        reasons = [event["body"]["reason"] for event in dap.events if event["event"] == "stopped"]
        printed = "".join(event["body"]["output"] for event in dap.events if event["event"] == "output")
        return reasons[0], printed, int(frame["instructionPointerReference"], 16)

    def test_there_and_back(dap: Dap, rig: Rig) -> None:
        reason, printed, pc = stop(dap, "stepBack", granularity="instruction")
        retired = retired_pcs(rig.folder.parent / "retired.log")
        length = len(retired)
        assert (reason, pc) == ("step", retired[-1]) and f"[{length} of {length}]" in printed
        reason, printed, pc = stop(dap, "stepBack")
        number = int(re.findall(r"^\[(\d+) of \d+\]$", printed, re.M)[0])
        assert reason == "step" and number < length and pc == retired[number - 1]
        symbols = dap.request("rvtrace/find", arguments="classify", count=1)["body"]
        last = symbols["executions"][0]["position"]
        dap.repl("break classify")
        reason, printed, pc = stop(dap, "reverseContinue")
        assert (reason, pc) == ("breakpoint", retired[last - 1]) and f"[{last} of {length}]" in printed
        dap.repl("delete")
        reason, printed, pc = stop(dap, "reverseContinue")
        assert pc == retired[0] and f"[1 of {length}]" in printed
        reason, printed, pc = stop(dap, "next", granularity="instruction")
        assert pc == retired[1]

    def test_lists_are_requests(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        body = dap.request("rvtrace/history", begin=5, count=3)["body"]
        assert body["length"] == len(retired) and body["begin"] == 5
        assert [int(row["addr"], 16) for row in body["history"]] == retired[4:7]
        events = dap.request("rvtrace/events", kind=["trap"])["body"]["events"]
        assert events and {event["kind"] for event in events} == {"trap"}
        dap.request("rvtrace/status")

    def test_what_is_wrong_is_one_line(dap: Dap) -> None:
        for request, arguments, line in (
            ("rvtrace/history", {"at": 1}, "rvtrace/history: there is no argument at: it takes begin, count, opcodes"),
            ("rvtrace/find", {}, "-rvtrace-find: LOCATION is missing"),
        ):
            number = dap.send(request, **arguments)
            message = dap.read()
            while message.get("request_seq") != number:
                message = dap.read()
            assert not message["success"] and message["message"].startswith(line)

    def test_at_both_ends_the_client_is_told_so(dap: Dap) -> None:
        for request in ("reverseContinue", "continue", "reverseContinue"):
            stop(dap, request)
            bodies = [event["body"] for event in dap.events if event["event"] == "stopped"]
            assert bodies[0]["reason"] == "no-history"
            assert bodies[0]["text"] == bodies[0]["description"] == "No more reverse-execution history"

    def test_scopes_show_what_is_known(dap: Dap) -> None:
        """Of a trace without registers that is pc, and what does not change, if nothing is reconstructed."""
        dap.repl("set trace values off")
        dap.repl("trace goto -next fib")
        [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        scopes = {it["name"]: it for it in dap.request("scopes", frameId=frame["id"])["body"]["scopes"]}
        values = {}
        for name, scope in scopes.items():  # Globals is the last
            found = dap.request("variables", variablesReference=scope["variablesReference"])["body"]["variables"]
            values[name] = {it["name"]: it["value"] for it in found}
        assert values["Registers"]["pc"].startswith("0x80000056") and values["Registers"]["a0"] == "<unavailable>"
        assert values["Arguments"] == {"n": "<unavailable>"}
        assert len(values["Registers"]) > 30
        assert values["Globals"]["ticks"] == values["Globals"]["result"] == "<unavailable>"
        [table] = [it["variablesReference"] for it in found if it["name"] == "operations"]  # a constant of the program
        rows = dap.request("variables", variablesReference=table)["body"]["variables"]
        assert [re.findall(r"<(.*)>", row["value"]) for row in rows] == [["add"], ["sub"], ["mul"]]
        body = dap.request("evaluate", expression="ticks", context="watch", frameId=frame["id"])["body"]
        assert body == {"variablesReference": 0, "result": "<unavailable>"}
        dap.repl("set trace values on")

    @pytest.mark.parametrize("gdb", SERVERS)
    def test_where_gdb_cannot_go_back_the_client_is_told_that_the_thread_has_not_moved(gdb: str) -> None:
        with Dap(gdb, "-q", "-nx", "-i", "dap", "-ex", SOURCE) as dap:
            dap.request("initialize", adapterID="rvtrace")
            dap.request("stepBack", threadId=1)
            while not any(event["event"] == "stopped" for event in dap.events):
                dap.read()
        bodies = [event["body"] for event in dap.events if event["event"] in ("output", "stopped")]
        assert bodies[-2]["output"].startswith(("Target None does not support this command.", "Unknown thread 1."))
        assert "`trace connect`" in bodies[-2]["output"] and bodies[-1]["reason"] == "pause"
