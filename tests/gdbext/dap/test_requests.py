"""gdb 16 and 18 as a server of the Debug Adapter Protocol: requests that go back and elsewhere, and rvtrace's lists.

The hart says what it retired, the symbol table where functions are.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB16, GDB18, PATIENT, SOURCE
from tests.gdbext.mi.test_ide import Dap
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo, symbol_address, symbol_size

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

    GAPS = Path(__file__).parents[2] / "data" / "cases" / "semihosting"

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

    def failure(dap: Dap, request: str, **arguments: Any) -> str:
        """The message of a request that fails."""
        number = dap.send(request, **arguments)
        message = dap.read()
        while message.get("request_seq") != number:
            message = dap.read()
        assert not message["success"]
        return str(message["message"])

    def test_what_is_wrong_is_one_line(dap: Dap) -> None:
        dap.repl("set style enabled on")  # gdb 18 colours names in its errors
        for request, arguments, line in (
            (
                "rvtrace/history", {"at": 1},
                "rvtrace/history: there is no argument at: it takes begin, count, task, process, thread, opcodes",
            ),
            ("rvtrace/find", {}, "-rvtrace-find: LOCATION is missing"),
            ("gotoTargets", {"source": {"path": "no such.c"}, "line": 1}, "No source file named no such.c."),
            ("dataBreakpointInfo", {"name": "nothing"}, 'No symbol "nothing" in current context.'),
            ("restartFrame", {"frameId": 0}, "A frame cannot be restarted: "),
        ):
            message = failure(dap, request, **arguments)
            assert message.startswith(line) and message.isprintable()
        dap.repl("set style enabled off")

    def test_in_the_past_changes_are_refused(dap: Dap) -> None:
        """Also those that gdb itself takes for done: it drops what is written to a register that is always zero."""
        stop(dap, "stepBack")
        [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        scopes = {it["name"]: it for it in dap.request("scopes", frameId=frame["id"])["body"]["scopes"]}
        registers = scopes["Registers"]["variablesReference"]
        dap.request("variables", variablesReference=registers)
        for request, arguments in (
            ("setVariable", {"variablesReference": registers, "name": "zero", "value": "1"}),
            ("setExpression", {"expression": "ticks", "value": "1"}),
            ("writeMemory", {"memoryReference": "0x80002004", "data": "AAAA"}),
        ):
            assert failure(dap, request, **arguments).startswith("the past cannot be changed: `trace live` ")
        assert dap.request("setExpression", expression="$mine", value="5")["body"]["value"] == "5"  # gdb's own

    def line_of(rig: Rig, text: str) -> dict[str, Any]:
        """The place of a line of the program, as a client names it."""
        path = Path(__file__).parents[3] / "examples" / "demo.c"
        [line] = [number for number, row in enumerate(path.read_text().splitlines(), 1) if text in row]
        return {"source": {"path": str(path)}, "line": line}

    def test_goto_leads_to_where_a_line_ran_before_and_after(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        dap.repl("trace live")
        place = line_of(rig, "static int fib(int n)")
        [last] = dap.request("gotoTargets", **place)["body"]["targets"]
        assert stop(dap, "goto", targetId=last["id"])[::2] == ("goto", retired[last["id"] - 1])
        here = last["id"] // 2
        dap.repl(f"trace goto {here}")
        before, after = dap.request("gotoTargets", **place)["body"]["targets"]
        pc = int(before["instructionPointerReference"], 16)
        assert before["line"] == place["line"] and pc == symbol_address(rig.elf, "fib") == retired[before["id"] - 1]
        assert before["id"] < here < after["id"] and retired[after["id"] - 1] == pc
        assert pc not in retired[before["id"] : here] + retired[here - 1 : after["id"] - 1]
        reason, printed, at = stop(dap, "goto", targetId=after["id"])
        assert (reason, at) == ("goto", pc) and f"[{after['id']} of " in printed
        assert stop(dap, "goto", targetId=after["id"]) == ("goto", "", pc)  # gdb is there
        reason, printed, at = stop(dap, "goto", targetId=len(retired) + 1)
        assert (reason, at) == ("pause", pc) and f"there is no number {len(retired) + 1} in the history" in printed

    def test_data_breakpoints_stop_at_each_store_in_both_directions(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        begin = symbol_address(rig.elf, "on_trap")
        handler = range(begin, begin + symbol_size(rig.elf, "on_trap"))
        dap.repl("trace goto begin")
        address = symbol_address(rig.elf, "ticks")
        told = dap.request("dataBreakpointInfo", name="ticks")["body"]
        assert told["dataId"] == f"{address:#x},4" and told["accessTypes"] == ["read", "write", "readWrite"]
        register = dap.request("dataBreakpointInfo", name="$sp")["body"]
        assert register["dataId"] is None and "is not in memory" in register["description"]
        wanted = [{"dataId": told["dataId"], "accessType": "write"}, {"dataId": "ticks"}]
        good, bad = dap.request("setDataBreakpoints", breakpoints=wanted)["body"]["breakpoints"]
        assert good["verified"] and not bad["verified"] and "dataBreakpointInfo" in bad["message"]
        forth = []
        while (found := stop(dap, "continue"))[0] == "data breakpoint":
            forth.append(found[2])
        back = []
        while (found := stop(dap, "reverseContinue"))[0] == "data breakpoint":
            back.append(found[2])
        for hits in (forth, back):  # at the store backward, after it forward
            assert len([pc for pc in hits if pc in handler]) == retired.count(begin) > 1
            [start] = [pc for pc in hits if pc not in handler]  # where it was cleared
            assert symbol_address(rig.elf, "_start") <= start < symbol_address(rig.elf, "add")
        assert dap.request("setDataBreakpoints", breakpoints=[])["body"] == {"breakpoints": []}
        assert stop(dap, "continue")[0] == "no-history"

    def test_function_and_instruction_breakpoints_stop_in_the_past(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        dap.repl("trace goto end")
        trap = symbol_address(rig.elf, "on_trap")
        dap.request("setFunctionBreakpoints", breakpoints=[{"name": "on_trap"}])
        reason, printed, pc = stop(dap, "reverseContinue")
        assert reason == "breakpoint" and trap <= pc < trap + symbol_size(rig.elf, "on_trap")
        dap.request("setFunctionBreakpoints", breakpoints=[])
        dap.repl("trace goto begin")
        pc = retired[len(retired) // 2]
        dap.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": f"{pc:#x}"}])
        reason, printed, at = stop(dap, "continue")
        assert (reason, at) == ("breakpoint", pc) and f"[{retired.index(pc) + 1} of " in printed
        dap.request("setInstructionBreakpoints", breakpoints=[])

    def test_conditions_and_hit_counts_count_in_both_directions(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        pc = symbol_address(rig.elf, "classify")
        numbers = [number for number, ran in enumerate(retired, 1) if ran == pc]
        cases = ({"condition": f"$trace_pos < {numbers[30]}"}, {"hitCondition": "3"})
        for case, wanted in zip(cases, (numbers[29], numbers[-4]), strict=True):
            dap.repl("trace goto end")
            dap.request("setInstructionBreakpoints", breakpoints=[{"instructionReference": f"{pc:#x}", **case}])
            assert f"[{wanted} of " in stop(dap, "reverseContinue")[1]
        dap.request("setInstructionBreakpoints", breakpoints=[])
        dap.repl("trace goto begin")
        dap.request("setFunctionBreakpoints", breakpoints=[{"name": "classify", "hitCondition": "3"}])
        assert f"[{numbers[3]} of " in stop(dap, "continue")[1]
        dap.request("setFunctionBreakpoints", breakpoints=[])
        data = dap.request("dataBreakpointInfo", name="ticks")["body"]["dataId"]
        stores: list[str] = []
        for case in ({}, {"hitCondition": "1"}, {"condition": "$trace_pos > 1000"}):
            dap.repl("trace goto begin")
            dap.request("setDataBreakpoints", breakpoints=[{"dataId": data, "accessType": "write", **case}])
            stores.append(stop(dap, "continue")[1])
        places = [int(re.findall(r"^\[(\d+) of \d+\]$", text, re.M)[0]) for text in stores]
        traps = [number for number, ran in enumerate(retired, 1) if ran == symbol_address(rig.elf, "on_trap")]
        assert places[0] < traps[0] < places[1] < traps[1], "where it is cleared, and in the first trap"
        assert places[2] == places[1], "no store before the first trap but that at the beginning"
        dap.request("setDataBreakpoints", breakpoints=[])

    def test_a_step_enters_the_function_chosen(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        fib = symbol_address(rig.elf, "fib")
        targets: list[dict[str, Any]] = []
        dap.repl("trace goto main")
        while not targets:
            stop(dap, "next")
            [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
            targets = dap.request("stepInTargets", frameId=frame["id"])["body"]["targets"]
        assert targets == [{"id": fib, "label": "fib"}]
        reason, printed, pc = stop(dap, "stepIn", targetId=fib)
        assert (reason, pc) == ("step", fib) and f"[{retired.index(fib) + 1} of " in printed
        assert not [event for event in dap.events if event["event"] == "breakpoint"]
        frames = dap.request("stackTrace", threadId=1)["body"]["stackFrames"]
        assert dap.request("stepInTargets", frameId=frames[1]["id"])["body"]["targets"] == []
        assert stop(dap, "stepIn")[0] == "step"  # without a target: gdb's own
        assert dap.repl("maintenance info breakpoints").strip().startswith("No breakpoints")

    def test_the_tree_of_calls_is_a_request(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        rows = dap.request("rvtrace/calls", depth=2)["body"]["calls"]
        assert [row["func"] for row in rows][:2] == ["_start", "main"]
        functions = dap.request("rvtrace/functions", begin=1)["body"]
        assert functions["functions"][0]["func"] == "_start"
        entered = [row for row in functions["functions"] if int(row["addr"], 16) == symbol_address(rig.elf, "fib")]
        assert entered and {retired[int(row["begin"]) - 1] for row in entered[:1]} == {symbol_address(rig.elf, "fib")}

    def children(dap: Dap, reference: int) -> list[dict[str, Any]]:
        return list(dap.request("variables", variablesReference=reference)["body"]["variables"])

    def views(dap: Dap) -> dict[str, dict[str, Any]]:
        """What the scope rvtrace of the innermost frame has, by name."""
        [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        *_, scope = dap.request("scopes", frameId=frame["id"])["body"]["scopes"]
        assert scope["name"] == "rvtrace" and scope["expensive"] is True
        return {it["name"]: it for it in children(dap, scope["variablesReference"])}

    def test_every_client_can_expand_the_history(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        length = len(retired)

        def check(rows: list[dict[str, Any]], begin: int, end: int) -> None:
            assert [int(row["name"]) for row in rows] == list(range(begin, end + 1))
            for row in rows:
                name, offset = re.findall(r"^(?:=> )?(\w+)(?:\+(\d+))?:  ", row["value"])[0]
                assert symbol_address(rig.elf, name) + int(offset or 0) == retired[int(row["name"]) - 1]

        dap.repl("trace goto 200")
        history = views(dap)["history"]
        assert history["value"] == "at instruction 200"
        before, *near, after = children(dap, history["variablesReference"])
        check(near, 190, 210)
        assert [row["name"] for row in near if row["value"].startswith("=> ")] == ["200"]
        assert (before["name"], after["name"]) == ("1-189", f"211-{length}")
        further, *rows = children(dap, before["variablesReference"])
        check(rows, 90, 189)
        check(children(dap, further["variablesReference"]), 1, 89)
        *rows, further = children(dap, after["variablesReference"])
        check(rows, 211, 310)
        assert further["name"] == f"311-{length}"
        place = dap.request("locations", locationReference=near[0]["valueLocationReference"])["body"]
        text = Path(place["source"]["path"]).read_text().splitlines()[place["line"] - 1]
        assert "static int fib(int n)" in text and near[0]["value"].startswith("fib+")
        assert failure(dap, "locations", locationReference=99999) == "there is no locationReference 99999"
        row = {"variablesReference": history["variablesReference"], "name": "200", "value": "1"}
        assert failure(dap, "setVariable", **row).startswith("the past cannot be changed")

    def test_every_client_can_expand_the_tree_of_calls(dap: Dap, rig: Rig) -> None:
        retired = retired_pcs(rig.folder.parent / "retired.log")
        calls: dict[str, int] = {}
        rows = children(dap, views(dap)["call tree"]["variablesReference"])
        assert [row["name"] for row in rows] == ["_start"] and f"{len(retired)} instructions" in rows[0]["value"]
        while rows:
            row = rows.pop()
            counted = re.findall(r"^(\d+) calls?, ", row["value"])
            calls[row["name"]] = calls.get(row["name"], 0) + sum(map(int, counted))
            rows += children(dap, row["variablesReference"]) if row["variablesReference"] else []
        for name in ("fib", "classify", "add", "on_trap"):
            assert calls[name] == retired.count(symbol_address(rig.elf, name))

    def test_at_both_ends_the_client_is_told_so(dap: Dap) -> None:
        for request in ("reverseContinue", "continue", "reverseContinue"):
            stop(dap, request)
            bodies = [event["body"] for event in dap.events if event["event"] == "stopped"]
            assert bodies[0]["reason"] == "no-history"
            assert bodies[0]["text"] == bodies[0]["description"] == "No more reverse-execution history"

    def test_scopes_show_what_is_known(dap: Dap, rig: Rig) -> None:
        """Of a trace without registers that is pc, and what does not change, if nothing is reconstructed."""
        dap.repl("set trace values off")
        dap.repl("trace goto -next fib")
        [frame] = dap.request("stackTrace", threadId=1, levels=1)["body"]["stackFrames"]
        scopes = {it["name"]: it for it in dap.request("scopes", frameId=frame["id"])["body"]["scopes"]}
        found = {name: children(dap, scope["variablesReference"]) for name, scope in scopes.items()}
        values = {name: {it["name"]: it["value"] for it in rows} for name, rows in found.items()}
        assert values["Registers"]["pc"].startswith("0x80000056") and values["Registers"]["a0"] == "<unavailable>"
        assert values["Arguments"] == {"n": "<unavailable>"}
        assert len(values["Registers"]) > 30
        assert values["Globals"]["ticks"] == values["Globals"]["result"] == "<unavailable>"
        constant = "operations"  # of the program
        [table] = [it["variablesReference"] for it in found["Globals"] if it["name"] == constant]
        rows = dap.request("variables", variablesReference=table)["body"]["variables"]
        assert [re.findall(r"<(.*)>", row["value"]) for row in rows] == [["add"], ["sub"], ["mul"]]
        partly = dap.request("evaluate", expression="*(int (*)[12])&operations", context="watch")["body"]
        words = [it["value"] for it in children(dap, partly["variablesReference"])]
        add = symbol_address(rig.elf, "add")
        assert int(words[0]) & 0xFFFFFFFF == add and words[1] == "0" and words[11] == "<unavailable>"
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

    @pytest.mark.parametrize("gdb", SERVERS)
    def test_what_gdb_prints_on_the_way_is_told(gdb: str) -> None:
        """Which gaps were passed, and why it stops where a condition has no value: each once, in one line."""
        with Dap(gdb, "-q", "-nx", "-i", "dap", "-ex", SOURCE, str(GAPS / "semi.elf")) as dap:
            dap.request("initialize", adapterID="rvtrace")
            for command in (f"trace open {GAPS / 'ntrace.rvt'}", "trace replay", "trace goto begin"):
                dap.repl(command)
            printed = stop(dap, "continue")[1]
            assert len(re.findall(r"^\[.* and 2 more gaps were passed .*cannot be seen$", printed, re.M)) == 1, printed
            condition = {"name": "semihost", "condition": "*(int *) 0x70000000 == 3"}
            [it] = dap.request("setFunctionBreakpoints", breakpoints=[condition])["body"]["breakpoints"]
            reason, printed, _ = stop(dap, "reverseContinue")
            said = f"Error in testing condition for breakpoint {it['id']}: Cannot access memory at address 0x70000000"
            assert reason == "breakpoint" and printed.splitlines().count(said) == 1, printed
            assert "Continuing" not in printed

    BROKEN = (
        ("events", "exec_and_expect_stop", "stepBack and reverseContinue, goto, stepInTargets"),
        ("events", "exec_and_log", "lines that steps print"),
        ("next", "_handle_thread_step", "steps of one hart"),
        ("sources", "make_source", "the scope rvtrace"),
        ("varref", "VariableReference", "unknown values"),
        ("server", "import_line", "goto"),
        ("evaluate", "select_frame", "data breakpoints"),
        ("frames", "frame_for_id", "stepInTargets, the scope rvtrace"),
    )

    RENAMED = (
        ("varref", "unknown values, data breakpoints, the scope rvtrace"),
        (
            "server",
            "stepBack and reverseContinue, lines that steps print, steps of one hart, names of threads, unknown values,"
            " refusals to change the past, goto, data breakpoints, stepInTargets, rvtrace/history and other lists, the"
            " scope rvtrace",
        ),
    )
    """Modules of a gdb to come, which has others in their place."""

    @pytest.mark.parametrize("gdb", SERVERS)
    def test_a_server_of_another_kind_is_without_what_it_lacks_and_a_line_says_so(gdb: str) -> None:
        with Dap(gdb, "-q", "-nx", "-i", "dap", "-ex", SOURCE) as dap:
            whole = dap.request("initialize", adapterID="rvtrace")["body"]
            for module, name, features in BROKEN:
                dap.repl(f"python import sys; m = sys.modules['gdb.dap.{module}']; k = m.{name}; del m.{name}")
                [line] = dap.repl(SOURCE).splitlines()
                assert line.startswith("The DAP server of gdb ") and f"it is without {features};" in line, line
                assert dap.repl("python print(1)") == "1\n" and dap.request("rvtrace/info")["body"]["commands"]
                declared = dap.request("initialize", adapterID="rvtrace")["body"]
                assert ("supportsStepBack" in declared) is ("stepBack" not in features)
                assert {key: value for key, value in whole.items() if key in declared} == declared
                dap.repl(f"python m.{name} = k")
            dap.repl("python s = sys.modules['gdb.dap.server']; k = s._capabilities; del s._capabilities")
            assert "it is without stepBack and reverseContinue, lines that steps print, steps of" in dap.repl(SOURCE)
            dap.repl("python s._capabilities = k")
            for module, features in RENAMED:
                dap.repl(f"python m = sys.modules.pop('gdb.dap.{module}')")
                [line] = dap.repl(SOURCE).splitlines()
                assert line.startswith("The DAP server of gdb ") and f"it is without {features};" in line, line
                assert dap.repl("python print(1)") == "1\n"
                dap.repl(f"python sys.modules['gdb.dap.{module}'] = m")
            assert dap.repl(SOURCE) == ""
            assert dap.request("initialize", adapterID="rvtrace")["body"] == whole
