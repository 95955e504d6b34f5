"""The session as gdb meets it: a process that takes JSON lines."""

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.rpc import server
from rvtrace_gdb.session.rpc.protocol import ROWS_AT_MOST
from rvtrace_gdb.session.rpc.server import Methods, SessionServer
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.usb.errors import UsbHartNotHalted, UsbRegisterRefused, UsbTimeout
from tests.session.board import DEMO, Board, board
from tests.session.rpc.conftest import Client, Pipe, replies, served


def counted(made: list[object]) -> type[CallHistory]:
    """A CallHistory that notes each that is made."""

    class Counted(CallHistory):
        def __init__(self, history: History, program: Program, progress: Progress | None = silent) -> None:
            super().__init__(history, program, progress)
            made.append(self)

    return Counted


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    demo, file = board(tmp_path), tmp_path / "x.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    session.start(context)
    demo.run(400)
    session.save(file, context)
    return file


_ROWS = {"what": "history"}


def test_a_conversation(client: Client, capture: Path) -> None:
    hello = client.call("hello")["result"]
    assert hello["protocol"] == 2
    assert hello["tool"].startswith("rvtrace")
    lines = client.call("open", path=str(capture), elf=str(DEMO))["result"]["lines"]
    assert lines[0] == f"capture:  {capture}"
    context: dict[str, Any] = {"elf": str(DEMO), "target_file": None, "overrides": {}}
    asked = {"what": "history", "context": context}
    page = client.call("page", args="1,5", size=10, **asked)["result"]
    rows = [[n, 0x80000000 + pc] for n, pc in enumerate((0, 4, 8, 12, 16), 1)]
    assert page["length"] > 5
    assert page == {
        "begin": 1, "end": 6, "hart": 0, "rows": rows, "events": [], "length": page["length"], "notice": None,
        "lines": [], "overwritten": False, "comes": False, "now": None, "folds": None, "instead": "",
    }  # fmt: skip
    assert client.call("rows", what="history", begin=1, end=6)["result"] == {"rows": rows, "events": []}
    end = client.call("page", args="1,9999999", size=None, **asked)["result"]["end"]
    notice = client.call("page", args="", size=0, **asked)["result"]
    assert (notice["length"], notice["rows"]) == (end - 1, [])
    assert (notice["begin"], notice["end"], notice["lines"]) == (end, end, [])
    assert notice["notice"] == "At the end of the branch trace record."
    assert any(line.startswith("history:  ") for line in client.call("status", context=context)["result"]["lines"])
    messages = {"what": "messages", "context": context}
    page = client.call("page", args="", size=2, offset=3, **messages)["result"]
    assert (page["begin"], page["end"], page["notice"], page["lines"], page["hart"]) == (1, 3, None, [], None)
    first, second = page["rows"]
    assert client.call("rows", what="messages", begin=1, end=3)["result"]["rows"] == [first, second]
    assert first[:2] == [1, 0] and first[2].startswith("ProgTraceSync TCODE=9 SYNC=3 I-CNT=0 F-ADDR=0x40000000 ")
    assert second[0] == 2 and second[1] > 3
    assert " RAW=24" in client.call("page", args="1,1", raw=True, **messages)["result"]["rows"][0][2]


@pytest.mark.parametrize(
    ("method", "params", "kind", "message"),
    [
        ("start", {"context": {"elf": None}}, "NoElf", "no program: load the ELF that runs"),
        ("start", {"context": {"elf": str(DEMO)}}, "DescriptionError", "no target description: "),
        ("stop", {}, "NoTrace", "nothing is being traced: `trace start` begins"),
        ("page", {"what": "history", "context": {}, "args": ""}, "NoTrace", "there is no trace: "),
        ("open", {"path": "/nowhere/x.rvt", "elf": None}, "CaptureError", "/nowhere/x.rvt: cannot be read: "),
        ("open", {"path": 5}, "BadRequest", "open: path is 5, which is not what protocol 2 says"),
        ("rows", {**_ROWS, "begin": 1, "end": ROWS_AT_MOST + 2}, "BadRequest", "rows 1 to 4098: at most 4096 from 1 "),
        ("rows", {**_ROWS, "begin": 0, "end": 1}, "BadRequest", "rows 0 to 1: at most 4096 from 1 on "),
        ("rows", {**_ROWS, "begin": 9, "end": 8}, "BadRequest", "rows 9 to 8: at most 4096 from 1 on "),
        ("rows", {**_ROWS, "begin": 1, "end": 1, "hart": -1}, "BadRequest", "rows: hart is -1, which is not what "),
        ("rows", {"what": "rows", "begin": 1, "end": 1}, "BadRequest", "rows: what is 'rows', which is not what proto"),
        ("rows", {"what": "messages", "begin": 1, "end": 2}, "NoTrace", "no list has been requested yet"),
        ("page", {"what": "messages", "context": {}}, "NoTrace", "there is no trace: "),
        ("status", {"context": 7}, "BadRequest", "status: context is 7, which is not what protocol 2 says"),
        ("status", {"context": {"overrides": []}}, "BadRequest", "status: overrides is [], which is not what "),
        ("fly", {}, "BadRequest", "there is no method 'fly' in protocol 2: "),
    ],
)  # fmt: skip
def test_each_refusal_is_one_line_and_its_kind(
    refusing: Client, method: str, params: dict[str, Any], kind: str, message: str
) -> None:
    error = refusing.call(method, **params)["error"]
    assert error["kind"] == kind
    assert error["message"].startswith(message)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"7", b'{"id": []}', b"\xff\xfe", b"[" * 100_000, b'{"params": 3}'])
def test_what_is_no_request_is_refused_and_survived(refusing: Client, line: bytes) -> None:
    refusing.write(line)
    assert refusing.read()["error"]["kind"] == "BadRequest"
    assert "result" in refusing.call("hello")


# In this process, where the work can be watched


class Slow(Session):
    """Works until it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.works = threading.Event()

    def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            progress("working", 1, 2)
            self.works.set()
            time.sleep(0.001)
        return []


class Clock:
    """For `session.rpc.server`: goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Timed(Session):
    """Works for a second by *clock*, a hundred times something."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
        for _ in range(100):
            progress("working", 1, 2)
            self._clock.now += 0.01
        return []


def test_progress_comes_at_most_five_times_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, clock = Pipe(), Clock()
    monkeypatch.setattr("rvtrace_gdb.session.rpc.server.time", clock)
    pipe.put(id="x", method="stop")
    thread, sink = served(Timed(clock), pipe, tmp_path / "log")
    deadline = time.monotonic() + 60
    while b"result" not in sink.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    pipe.end()
    thread.join(60)
    *progress, last = replies(sink)
    assert last == {"id": "x", "result": {"lines": []}}
    assert 4 <= len(progress) <= 5
    assert progress[0] == {"id": "x", "progress": {"label": "working", "done": 1, "total": 2}}


def test_when_the_client_goes_work_ends(tmp_path: Path) -> None:
    pipe, session = Pipe(), Slow()
    thread, _ = served(session, pipe, tmp_path / "log")
    pipe.put(id=1, method="stop")
    assert session.works.wait(60)
    pipe.end()
    thread.join(60)
    assert not thread.is_alive()


def test_a_client_that_takes_no_answers_ends_it(tmp_path: Path) -> None:
    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    pipe, session = Pipe(), Slow()
    pipe.put(id=1, method="stop")
    SessionServer(session, pipe, Closed(), tmp_path / "log").run()  # type: ignore[arg-type]


def test_a_mistake_of_ours_is_one_line_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Session):
        def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
            raise ZeroDivisionError("two\nlines")

    pipe = Pipe()
    thread, sink = served(Broken(), pipe, tmp_path / "log")
    pipe.put(id=1, method="stop")
    pipe.end()
    thread.join(60)
    [reply] = replies(sink)
    assert reply["error"]["kind"] == "Internal"
    assert reply["error"]["message"] == (
        f"internal error, please report it with {tmp_path / 'log'} (ZeroDivisionError: two lines)"
    )
    assert "Traceback" in caplog.text


def test_a_live_trace_by_requests(tmp_path: Path) -> None:
    """What gdb asks in a session, method by method."""
    demo: Board = board(tmp_path)
    methods = Methods(Session(demo.connect, {}))
    context: dict[str, Any] = {"elf": str(DEMO), "target_file": demo.describe().target_file, "overrides": {}, "runs": 0}
    started = methods.call("start", {"context": context, "options": {"sync_period": 1000}}, silent)
    assert "sync every 1024 halfwords" in started["lines"][0]
    ran = demo.run(100)
    context["runs"] = 1
    page = methods.call("page", {"what": "history", "context": context, "args": "", "size": 4}, silent)
    assert (page["begin"], page["end"]) == (ran - 3, ran + 1)
    rows = page["rows"]
    assert json.loads(json.dumps(rows)) == [[number, pc] for number, pc in rows]
    assert methods.call("stop", {}, silent)["lines"][0] == "Tracing stopped."
    file = tmp_path / "y.rvt"
    assert methods.call("save", {"context": context, "path": str(file)}, silent)["lines"][0].startswith("Saved ")
    assert file.exists()


class Idle(Session):
    """Prepares for ever the first time, until it is asked something."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()

    def prepare(self, progress: Progress) -> None:
        if self.ended.is_set():
            return
        self.begun.set()
        try:
            while True:
                progress("preparing", 0)
        finally:
            self.ended.set()


def test_what_is_prepared_meanwhile_does_not_hold_up_a_request(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    answers, session = io.BytesIO(), Idle()
    with os.fdopen(reading, "rb") as source:
        server = threading.Thread(target=SessionServer(session, source, answers, tmp_path / "log").run)
        server.start()
        with os.fdopen(writing, "wb") as requests:
            assert session.begun.wait(60)
            requests.write(b'{"id": 1, "method": "hello", "params": {}}\n')
            requests.flush()
            assert session.ended.wait(60)
        server.join(60)
    assert json.loads(answers.getvalue().splitlines()[0])["id"] == 1


class Counting(Session):
    """Notes how many answers there are whenever it may prepare something."""

    def __init__(self, answers: io.BytesIO) -> None:
        super().__init__()
        self._answers, self._calls = answers, threading.Condition()
        self.seen: list[int] = []

    def prepare(self, progress: Progress) -> None:
        with self._calls:
            self.seen.append(self._answers.getvalue().count(b"\n"))
            self._calls.notify_all()

    def wait(self, answers: int) -> None:
        """Wait until it may prepare something after so many answers."""
        with self._calls:
            assert self._calls.wait_for(lambda: self.seen and self.seen[-1] == answers, 60)


def test_an_answer_does_not_wait_for_what_later_requests_need(tmp_path: Path) -> None:
    answers = io.BytesIO()
    session = Counting(answers)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        server = threading.Thread(target=SessionServer(session, source, answers, tmp_path / "log").run)
        server.start()
        with os.fdopen(writing, "wb", buffering=0) as requests:
            session.wait(0)
            requests.write(b'{"id": 1, "method": "hello", "params": {}}\n')
            session.wait(1)
        server.join(60)
    assert session.seen[:2] == [0, 1], "never between a request and its answer"


def test_what_is_prepared_meanwhile_does_not_hold_up_the_proxy(tmp_path: Path) -> None:
    pipe, session = Pipe(), Idle()
    thread, _ = served(session, pipe, tmp_path / "log")
    assert session.begun.wait(60)
    with session.proxy_lock:
        assert session.ended.is_set(), "it had the lock until then"
    pipe.end()
    thread.join(60)


def test_the_calls_are_found_while_nobody_waits(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, found = Session(), list[object]()
    monkeypatch.setattr("rvtrace_gdb.session.selected_history.CallHistory", counted(found))
    session.prepare(silent)
    session.open(capture, None)
    session.prepare(silent)
    assert found == [], "nothing was decoded yet"
    session.history("", 10, Context())
    session.prepare(silent)
    assert len(found) == 1
    methods, context = Methods(session), {"elf": str(DEMO)}
    methods.call("page", {"what": "functions", "count": 5, "context": context}, silent)
    methods.call("page", {"what": "functions", "context": context}, silent)
    methods.call("page", {"what": "calls", "depth": 10, "context": context}, silent)
    methods.call("page", {"what": "executions", "name": "x", "first": 0, "context": context}, silent)
    methods.call("coverage", {"context": context}, silent)
    assert len(found) == 1, "for all that lists something"


def test_the_log_is_readable_by_its_owner_alone_and_nobody_can_foresee_its_name(tmp_path: Path) -> None:
    """It is in the common temporary folder: others could put a link to a file of ours in its place beforehand."""
    program = (
        "import logging, os, sys\n"
        "from rvtrace_gdb.session.__main__ import _LogFile\n"
        "for _ in range(2):\n"
        "    file = _LogFile()\n"
        "    logging.getLogger().addHandler(file)\n"
        "    logging.error('what should not happen')\n"
        "    print(file, os.getpid())\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-I", "-c", program], env=environ, capture_output=True, check=True)
    made = [line.split() for line in done.stdout.decode().splitlines()]
    assert sorted(map(str, tmp_path.iterdir())) == sorted(name for name, _ in made)
    assert len({name for name, _ in made}) == 2, "also of processes with the same number"
    for name, number in made:
        assert Path(name).name.startswith(f"rvtrace-session-{number}-") and name.endswith(".log")
        assert Path(name).stat().st_mode & 0o777 == 0o600
        assert "what should not happen" in Path(name).read_text()


def test_every_module_has_the_methods_it_is_loaded_for() -> None:
    tables = {name: import_module(f"rvtrace_gdb.session.rpc.{name}").METHODS for name in set(server.MODULES.values())}
    assert {(name, module) for module, table in tables.items() for name in table} == set(server.MODULES.items())


@pytest.mark.parametrize("name", sorted({"server", *server.MODULES.values()}))
def test_the_docstring_of_a_module_has_each_of_its_methods(name: str) -> None:
    """In a row of a table, or as `method {params}`. A module of lists has a row for each list, too."""
    module = import_module(f"rvtrace_gdb.session.rpc.{name}")
    text = str(module.__doc__)
    rows = re.findall(r"^\| ([a-z_]+(?:, [a-z_]+)*) +\|", text, re.M)
    cells = rows + re.findall(r"^(?:    )?([a-z_]+) \{", text, re.M)
    named = sorted(word for cell in cells for word in cell.split(", ") if cell not in ("method", "what"))
    assert named == sorted([*module.METHODS, *getattr(module, "LISTS", ())])


def test_a_session_loads_what_its_trace_needs(capture: Path, tmp_path: Path) -> None:
    """Each gdb starts one, and waits for it: what one format, or one sort of target, needs comes with the first."""

    def loaded(*requests: tuple[str, dict[str, Any]]) -> set[str]:
        """The last request marks in the log where the others have been answered, because a session that has nothing
        else to do prepares, and loads, what may be asked next. All are sent at once, so that it always has.
        """
        log = tmp_path / "log"
        with log.open("wb") as file:
            client = Client({"TMPDIR": str(tmp_path)}, "-v", log=file)
            lines = [{"id": method, "method": method, "params": params} for method, params in (*requests, mark)]
            client.write("\n".join(map(json.dumps, lines)).encode())
            while (reply := client.read())["id"] != mark[0]:
                assert "error" not in reply
            client.close()
        answered, _, _ = log.read_text().partition(f"rpc/{server.MODULES[mark[0]].replace('.', '/')}.py")
        return set(re.findall(r"^import 'rvtrace_gdb\.([\w.]+)'", answered, re.MULTILINE))

    mark = "waves_status", dict[str, Any]()
    at_start = loaded(("hello", {}))
    assert 200_000 < _source_size(at_start) < 810_000
    kinds = ("decode.ntrace", "decode.etrace", "decode.ctr", "decode.tandem", "session.sources.", "transport.usb")
    assert [name for name in at_start if name.startswith(kinds)] == []
    page = "page", {"what": "history", "context": {"elf": str(DEMO)}}
    opened = loaded(("open", {"path": str(capture), "elf": str(DEMO)}), page)
    assert {name for name in opened - at_start if name.startswith(("session.formats.", "session.sources."))} == {
        "session.formats.ntrace"
    }
    assert _source_size(opened) < 1_400_000


def _source_size(modules: set[str]) -> int:
    """Return how many bytes the files of modules have: what loading costs, however they are divided into files."""
    files = (Path(str(import_module(f"rvtrace_gdb.{name}").__file__)) for name in modules)
    return sum(file.stat().st_size for file in files if file.suffix == ".py")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UsbTimeout("adapter", "bits were read", 2), "NoAnswer"),
        (UsbHartNotHalted("adapter", 0, "running"), "HartNotHalted"),
        (UsbRegisterRefused("adapter", 0, 0x300, "it has none"), "RegisterRefused"),
    ],
)
def test_errors_of_an_adapter_keep_their_kinds_in_the_protocol(
    error: RvtraceError, kind: str, tmp_path: Path
) -> None:
    """Clients tell errors apart by these kinds, which are older than the classes' names."""

    class Failing(Session):
        def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
            raise error

    pipe = Pipe()
    thread, sink = served(Failing(), pipe, tmp_path / "log")
    pipe.put(id=1, method="stop")
    pipe.end()
    thread.join(60)
    [reply] = replies(sink)
    assert reply["error"] == {"kind": kind, "message": str(error)}
