"""What editors say to gdb's server of the Debug Adapter Protocol, as tests/data/dap has it, said again.

Each request is sent when as many responses and stops have come as had come when the editor sent it. The hart says what
it retired: where the history is at each stop, and that steps backward lead backward.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB16, GDB18, PATIENT, SOURCE
from tests.gdbext.mi.test_ide import Dap
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import EXAMPLES, demo

RECORDED = Path(__file__).parents[2] / "data" / "dap"
CLIENTS = sorted(path.stem for path in RECORDED.glob("*.json"))
BACK, FORTH = ("stepBack", "reverseContinue"), ("next", "stepIn", "stepOut", "continue")


class Replay:
    """A conversation with a server: what was answered, and where the program was at each stop."""

    def __init__(self, dap: Dap) -> None:
        self._dap = dap
        self.answers: list[dict[str, Any]] = []
        self.failed: list[dict[str, Any]] = []
        self._sent: dict[int, tuple[str, dict[str, Any]]] = {}
        self._references: dict[str, int] = {}
        self._last: dict[str, Any] = {}

    @property
    def stops(self) -> list[dict[str, Any]]:
        return [event["body"] for event in self._dap.events if event["event"] == "stopped"]

    def say(self, command: str, arguments: dict[str, Any], answers: int, stops: int) -> None:
        """Send a request after so many answers and stops."""
        while len(self.answers) < answers or len(self.stops) < stops:
            self.read()
        self._sent[self._dap.send(command, **self._filled(arguments))] = command, arguments

    def finish(self) -> None:
        while len(self.answers) < len(self._sent):
            self.read()

    def read(self) -> None:
        message = self._dap.read()
        if message["type"] != "response":
            return
        self.answers.append(message)
        if not message["success"]:
            self.failed.append(message)
            return
        command, arguments = self._sent[message["request_seq"]]
        body = message.get("body") or {}
        self._last[command] = body
        if command == "scopes":
            self._references = {it["name"]: it["variablesReference"] for it in body["scopes"]}
        elif command == "variables":
            within = arguments["variablesReference"]
            self._references.update({f"{within}/{it['name']}": it["variablesReference"] for it in body["variables"]})

    def _filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with what was answered before at the places of its names."""
        given = dict(arguments)
        if "variablesReference" in given:
            given["variablesReference"] = self._references[given["variablesReference"]]
        if "targetId" in given:
            last = "gotoTargets" if "line" not in given and "granularity" not in given else "stepInTargets"
            given["targetId"] = self._last[last]["targets"][0]["id"]
        if given.get("breakpoints") and "dataId" in given["breakpoints"][0]:
            data = self._last["dataBreakpointInfo"]["dataId"]
            given["breakpoints"] = [{**it, "dataId": data} for it in given["breakpoints"]]
        return given

    def places(self) -> list[int | None]:
        """The number in the history that was printed for each stop, None in the present."""
        found: list[int | None] = []
        for event in self._dap.events:
            if event["event"] == "stopped":
                found.append(None)
            elif event["event"] == "output" and found:
                for number in re.findall(r"^\[(\d+) of \d+\]$", event["body"]["output"], re.M):
                    found[-1] = int(number)
        return found


if GDB16 is not None:  # gdb 13 has no DAP

    NEW = GDB18 or GDB16
    TOLD = [(NEW, "nvim-dap"), *long_only(*((gdb, it) for gdb in (GDB16, NEW) for it in CLIENTS))]

    @pytest.fixture
    def rig(tmp_path: Path) -> Iterator[Rig]:
        with Rig(demo(tmp_path), tmp_path / "rig", "--log-retired", str(tmp_path / "retired.log")) as rig:
            yield rig

    @pytest.mark.parametrize("gdb, client", list(dict.fromkeys(TOLD)), ids=lambda it: Path(it).name)
    def test_a_conversation_leads_through_the_past(gdb: str, client: str, rig: Rig) -> None:
        text = (RECORDED / f"{client}.json").read_text(encoding="utf-8")
        with held_port() as port:
            connect = f"trace connect -listen {port} localhost:{rig.gdb_port}"
            setup = (PATIENT, SOURCE, f"set trace target {rig.target_file}", connect)
            words = [word for command in setup for word in ("-ex", command)]
            here = {"${target}": f"localhost:{port}", "${program}": rig.elf, "${source}": EXAMPLES / "demo.c"}
            for name, value in here.items():
                text = text.replace(name, str(value))
            conversation = json.loads(text)["conversation"]
            with Dap(gdb, "-q", "-nx", "-i", "dap", *words) as dap:
                replay = Replay(dap)
                for command, arguments, answers, stops in conversation:
                    replay.say(command, arguments or {}, answers, stops)
                replay.finish()
                places = replay.places()
        assert not replay.failed
        check_places(conversation, replay, places, retired_pcs(rig.folder.parent / "retired.log"))

    def check_places(
        conversation: list[Any], replay: Replay, places: list[int | None], retired: list[int]
    ) -> None:
        """The stops are where the hart was, and in the direction of the request before them."""
        frames = [it["body"]["stackFrames"] for it in replay.answers if it["command"] == "stackTrace"]
        newest = [stack[0] for stack in frames if stack and stack[0]["id"] == 0]
        pcs = {int(frame["instructionPointerReference"], 16) for frame in newest}
        past = [number for number in places if number is not None]
        assert len(past) > 3 and {retired[number - 1] for number in past} <= pcs
        numbers = [len(retired) + 1 if number is None else number for number in places]
        ways = [0, 0]
        for command, _, _, stops in conversation:
            moved = places[stops - 1 : stops + 1] if command in (*BACK, *FORTH) else []
            if len(moved) == 2 and moved != [None, None]:
                here, before = numbers[stops], numbers[stops - 1]
                ways[command in BACK] += 1
                assert here <= before if command in BACK else here >= before, (command, before, here)
                assert here != before or here in (1, len(retired) + 1), (command, here)
        assert min(ways) > 1
