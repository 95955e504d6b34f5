"""Requests to the session: JSON objects with any method and parameters, about a trace of any format."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.backend import RegisterBatches
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.replay.gdb_commands import GdbCommands
from rvtrace_gdb.session.replay.record_btrace import Btrace
from rvtrace_gdb.session.rpc.protocol import CannotAsk
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.waves.follower import Bell, Waves
from rvtrace_gdb.session.waves.viewer import Viewer, ViewerGone, ViewerLink
from rvtrace_gdb.session.waves.wcp import Wcp
from rvtrace_gdb.support.errors import silent
from tests.decode.program import elves
from tests.fuzz.damage import containers, mutations
from tests.fuzz.exercise import Input, refused
from tests.fuzz.kinds.captures import captures
from tests.fuzz.kinds.program_files import InFolder
from tests.session.queries.hardware.register_target import Registers

Request = tuple[str, dict[str, Any]]


def _rows(what: str, **more: Any) -> Request:
    return "rows", {"what": what, "begin": 1, "end": 9, **more}


_HISTORY: Request = ("page", {"what": "history", "args": "1,9", "size": 10, "events": 1})
_FOUND: dict[str, Any] = {"what": "executions", "name": "main", "first": 0x8000_0000, "function": None, "others": []}
_BOARD_TOO = {"context": {"elf": "x.elf", "target_file": "board.toml"}}
ASKED: tuple[tuple[Request, ...], ...] = (
    (("hello", {}),),
    (("status", {"context": {}}), ("page", {"what": "history", "size": 10, "context": {}}), _rows("history")),
    (_HISTORY, _rows("history", events=1, times=1), ("page", {"what": "history", "args": "-", "size": 3})),
    (("page", {"what": "messages", "args": "", "size": 10, "offset": 5, "raw": 1}), _rows("messages")),
    (("page", {"what": "events", "kinds": ["trap"], "args": ""}), _rows("events")),
    (("page", {"what": "gaps"}), _rows("gaps"), ("page", {**_FOUND, "last": 0x8000_0040}), _rows("executions")),
    (("page", {**_FOUND, "others": [0x8000_0004]}), _rows("executions"), ("goto", {"pc": 4, **_FOUND, "nth": 1})),
    (("page", {"what": "functions", "args": "", "size": 10, "lines": 1}), _rows("functions")),
    (("page", {"what": "calls", "depth": 3}), _rows("calls")),
    (("page", {"what": "accesses", "where": [0x8000_1000, 8], "args": "", "size": 9}), _rows("accesses")),
    (("page", {"what": "interleaved", "args": "", "size": 9, "at": 3}), _rows("interleaved", hart=0, events=1)),
    (("page", {"what": "log", "where": _FOUND, "expressions": ["$pc", "1+1"], "condition": "$sp", "args": ""}),
     ("page", {"what": "calls_of", "where": {**_FOUND, "function": 0x8000_0000}, "args": "1,5"}),),
    (("page", {"what": "why", "name": "a0", "register": "a0", "at": 9, "branches": 1, "depth": 3}),
     ("page", {"what": "why", "name": "it", "where": [0x8000_1000, 4], "at": None, "thin": 1}),),
    (("sql", {"query": "SELECT * FROM calls, log", "begin": 1, "count": 9, "hart": 0,
              "logs": [{"where": _FOUND, "expressions": ["$pc"], "condition": "$sp", "letter": "x"}]}),
     ("sql", {"query": "SELECT * FROM calls_of", "calls_of": [{"where": {**_FOUND, "function": 0x8000_0000}}]})),
    (("check", {}),),
    (("coverage", {"args": "", "functions": 1, "branches": 1, "ranges": [0x8000_0000, 0x8000_0100]}),),
    (("coverage_live", {"begin": 1}), ("coverage_live", {})),
    (("top", {"begin": 1, "top": 3}), ("top", {})),
    (("task_names", {}), ("tasks", {"args": "", "all": 1, "switches": 1}), ("tasks", {"args": "1,50", "hart": 0})),
    (("stack", {"args": "", "all": 1}), ("stack", {"args": "1,50", "hart": 0})),
    (("fork", {}), ("fork", {"number": 5}), ("fork_end", {})),
    (("fork_check", {"args": "", "all": 1, "through_devices": 1}), ("fork_check", {"args": "9,50", "hart": 0})),
    (("explain", {"args": "", "all": 1}), ("explain", {"args": "1,50", "hart": 0})),
    (("report", {"args": "", "all": 1, "each": 1, "top": 3, "depth": 2}),
     ("report", {"sections": ["traps"], "hart": 0})),
    (("intervals", {"first": {**_FOUND, "place": "execution"}, "last": {"place": "trap", "cause": 7}, "unit": "ticks"}),
     ("intervals", {"first": {**_FOUND, "place": "execution", "function": 1}}),),
    (("diff", {"other": "/no/such.rvt", "other_elf": "/no/such.elf", "other_hart": 1}),
     ("page", {"what": "differences", "other": "/no/such.rvt", "args": ""}),),
    (("page", {"what": "events", "begin": 1, "count": 5, "kinds": []}), ("page", {"what": "functions", "count": 3}),
     ("page", {"what": "calls", "depth": 2, "count": 3}),),
    (("glance", {"most": 100, "anew": 1}), ("past", {"thread_hart": 0, "prompt": 1}), ("notes", {}), ("place", {})),
    (("enter", {"pc": 0x8000_0000}), ("goto", {"number": 3}), ("frames", {"number": 3, "first": 0, "count": 9})),
    (("goto", {"from_end": 1}), ("registers_known", {"number": 1, "registers": ["sp"]}), ("entered_at", {"number": 2})),
    (("goto", {"number": 3}), ("show_place", {"thread_hart": 0, "number": 5})),
    (("goto", {"number": 3}), ("steps", {"thread_hart": 0, "number": 3, "ranges": [2, 9], "repeats": 1}),),
    (("goto", {"to": "begin"}), ("goto", {"to": "live"}), ("native", {"limit": 10, "seconds": 1})),
    (("who_wrote", {"name": "a0", "register": "a0", "at": 5, "below": None}),),
    (("who_wrote", {"name": "it", "where": [0x8000_1000, 4], "at": None}), ("who_wrote", {"name": "x", "at": 2})),
    (("itc", {"context": {}}), ("itc", {"context": {}, "hart": 0, "channel": 3})),
    (("note", {"text": "it", "number": 5}), ("note", {}), ("note", {"delete": 1, "hart": 0})),
    (("regs", {"name": "encoder0", "everything": 1}), ("info", {}), ("components", {}), ("choices", {})),
    (("propose", {"chip": {"idcodes": [147], "harts": [[1161, 7]], "device_tree": "0A3+7Q=="}}),),
    (("start", {"options": {"format": "etrace", "data": True}, **_BOARD_TOO}),
     ("stop", {})),
    (("info", _BOARD_TOO), ("regs", _BOARD_TOO)),
    (("ctr_start", {**_BOARD_TOO, "access": {"way": "named"}, "options": {"depth": 16}}), ("ctr_status", {})),
    (("page", {**_BOARD_TOO, "what": "records", "access": {"way": "packets", "openocd": False}}), _rows("records")),
    (("ctr_stack", {**_BOARD_TOO, "access": {"way": "monitor", "version": "1.0"}}), ("ctr_clear", {}),
     ("ctr_stop", {})),
    (("save", {"path": "y.rvt"}), ("open", {"path": "y.rvt", "elf": None}), _HISTORY, _rows("history")),
    (("values", {"context": {}, "at": 5}), ("values", {"at": None}), ("follow_program", {"context": {}}), ("gone", {})),
    (("exports", {}), ("export", {"context": {}, "name": "spike", "path": "out.log"}), ("close", {}), _HISTORY),
    (("pgo_forms", {}), ("pgo", {"context": {}, "name": "symbol-order", "path": "out.order", "hart": 0}),
     ("pgo", {"name": "gcda", "path": "x.gcda", "gcno": "x.gcno", "program": "a"})),
    (("goto", {"number": 3}), ("waves_show", {"thread_hart": 0, "offset": "1/2", "scale": "3"}),
     ("waves_cursor", {"context": {}, "scale": "0.5"}), ("waves_status", {"thread_hart": 0}), ("waves_close", {})),
    (("ctr_connected", {"access": {"way": "named"}}), ("glance", {"most": 10})),
    (("snapshot", {"context": {"elf": "x.elf"}, "elves": [], "address": 4}), ("snapshot", {"answer": ["00", None]})),
)  # fmt: skip
UNASKED = {
    "connect": "opens sockets: the kind `proxy`",
    "waves_open": "opens sockets, and starts a viewer",
    **dict.fromkeys(("usb", "usb_harts", "usb_halt", "usb_resume", "usb_step", "usb_reg"), "needs an adapter"),
}
"""The methods that no request is for, and why."""
_ANSWERS: tuple[Any, ...] = ("0000000000000000", ["0d00000000000000"], {"a0": 1}, None, "E01", [None], "", 7, [[]])
_BOARD = (
    '[target]\nname = "it"\n[[component]]\nname = "encoder0"\ntype = "encoder"\nbase = 0x20000000\n'
    '[[component]]\nname = "ram0"\ntype = "ram_sink"\nbase = 0x20001000\nmode = "SMEM"\nstart = 0x30000000\n'
    "size = 4096\n"
)


class Requests(InFolder):
    """A variant is the number of a capture; an input a list of requests, and what gdb answers in between."""

    def __init__(self) -> None:
        super().__init__()
        self.captures: list[Capture] = list(captures())
        elves.build(self.folder, "nop\nret\n", name="x")
        self.written(_BOARD.encode(), "board.toml")
        for number in range(len(self.captures)):
            self.seeds += [Input(str(number), _text(asked)) for asked in ASKED]
        self.seeds.append(Input("none", _text(ASKED[1])))

    def isolate(self) -> None:
        os.chdir(self.folder)
        Component.__init__.__defaults__ = (None, 0.02)  # the registers here never change by themselves
        socket.socket.connect = _nobody  # type: ignore[method-assign,assignment] # nobody else's target is disturbed

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return containers.mutated_json(rng, data)

    def run(self, variant: str, data: bytes) -> None:
        try:
            asked = json.loads(data)
            requests, answers = list(asked["requests"]), list(asked["answers"])
        except (ValueError, RecursionError, TypeError, KeyError):
            return
        session = self.session(None if variant == "none" else self.captures[int(variant)])
        session.ask = lambda need: _answer(answers)
        wanted = [request for request in requests[:8] if isinstance(request, list) and len(request) == 2]
        self.call(session, [request for request in wanted if str(request[0]) not in UNASKED])

    def call(self, session: Session, requests: Sequence[Sequence[Any]]) -> None:
        """Some requests, and what is done while nobody asks for anything."""
        methods = Methods(session)
        for method, params in requests:
            with refused:
                json.dumps(methods.call(method, params, silent))
        with refused:
            session.prepare(silent)

    def session(self, capture: Capture | None) -> Session:
        """One that looks at a capture, connected to a gdb."""
        session = Session(lambda host, port: Registers({}), {})
        if capture is not None:
            session.open_capture(capture, "x.rvt", None)
            debugger = ProxyDebugger(session, Context(), (GdbCommands(), Btrace(session), RegisterBatches()))
            debugger._proxy = Proxy(ProxySetup(debugger.timeline, session.lock, None))
            debugger._proxy.connected = True
            session.debugger = debugger
            viewer = Viewer("Surfer", _NoLink(), Wcp(), bool)
            viewer.cursor = 5
            session.waves = Waves(viewer, None, Bell(None))
        return session


class _NoLink(ViewerLink):
    """The way to a viewer that is gone."""

    def connect(self, goes_on: Callable[[], bool]) -> socket.socket:
        raise ViewerGone("nobody is there")

    def close(self) -> None:
        """Nothing is open."""


class RequestsOnDamage(Requests):
    """Sound requests about a damaged trace. A variant: the numbers of a capture and of a list of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = [
            Input(f"{number} {asked}", capture.captured[0].data)
            for number, capture in enumerate(self.captures)
            for asked in range(len(ASKED))
        ]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return mutations.mutated(rng, data, rng.choice(self.seeds).data)

    def run(self, variant: str, data: bytes) -> None:
        number, _, asked = variant.partition(" ")
        session = self.session(_with(self.captures[int(number)], data))
        self.call(session, [(method, {"context": {}, **params}) for method, params in ASKED[int(asked)]])


def _with(capture: Capture, data: bytes) -> Capture:
    """The same of another trace."""
    if capture.sinks:
        return replace(capture, sinks=(replace(capture.sinks[0], data=data),))
    if capture.tandem:
        return replace(capture, tandem=(replace(capture.tandem[0], data=data),))
    if capture.branches:
        return replace(capture, branches=(replace(capture.branches[0], data=data),))
    whole = data[: len(data) - len(data) % ENTRY_BYTES]
    return replace(capture, records=(replace(capture.records[0], data=whole),))


def _text(asked: Sequence[Request]) -> bytes:
    requests = [[method, {"context": {}, **params}] for method, params in asked]
    return json.dumps({"requests": requests, "answers": list(_ANSWERS)}).encode()


def _answer(answers: list[Any]) -> Any:
    if not answers:
        raise CannotAsk
    return answers.pop(0)


def _nobody(self: socket.socket, address: Any) -> None:
    raise ConnectionRefusedError("nobody is there")
