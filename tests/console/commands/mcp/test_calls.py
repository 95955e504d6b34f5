"""What clients may call: arguments, errors that lead on, pages, hostile names; nothing is written, nobody waits."""

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from rvtrace_gdb.console.commands.mcp import AskedTrace, McpRequest
from rvtrace_gdb.console.commands.mcp.tools import TOOLS
from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.reports.program_sources import source_code_lines
from rvtrace_gdb.support.errors import Cancelled, Progress
from tests.console.commands.mcp.asked import Asker, asked_trace, asking, client_of
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import EXAMPLES, HOME
from tests.helpers.example_captures import example_capture
from tests.helpers.hostile_program import NAMES, renamed
from tests.helpers.wait import PATIENCE
from tests.session.packs.pack_files import with_text

RANDOM_CALLS = 10_000 if LONG else 100
SOURCE = str(EXAMPLES / "two_harts" / "two_harts.c")
PACKED = b"int read_first"
TEXTS = [
    "main", "uart_put", "hang.c:27", "$a0", "$pc", "ring", "0x80000000", "0x80000000,64", "--elf=/etc/passwd", "-h",
    "/etc/passwd", "`id`", "$(id)", "; id", "a\nb", "\x1b[2J", "\u202e", "", "x" * 400, "put_count", "999", "1,2", "@f",
    "hang.c:999999", "none.c:1", "*main", "0x0,0x10", "*0x80000048", "no_such_name", "\ud800",
]  # fmt: skip
VALUES: list[Any] = [0, 1, 2, 15, 330, 2999, 3000, 3001, -1, 1 << 62, 1 << 70, 1.5, True, None, [], {}, ["main", 3]]


@pytest.fixture(scope="module")
def hang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTrace]:
    with asked_trace(example_capture(tmp_path_factory.mktemp("mcp"), "hang")) as trace:
        yield trace


@pytest.fixture(scope="module")
def two_harts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedTrace]:
    """A pack whose program and sources are nowhere else."""
    folder = tmp_path_factory.mktemp("pack")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RVTRACE_CACHE", str(folder / "cache"))
        pack, capture = folder / "two.rvtz", example_capture(folder, "two_harts")
        assert main(["pack", str(capture), "-o", str(pack), "--quiet"]) == 0
        pack.write_bytes(with_text(pack.read_bytes(), SOURCE, Path(SOURCE).read_bytes().replace(b"int before", PACKED)))
        capture.unlink()
        next(folder.glob("*.elf")).unlink()
        with asked_trace(pack) as trace:
            yield trace


def test_of_a_pack_its_own_sources_are_shown(two_harts: AskedTrace) -> None:
    async def talk(ask: Asker) -> None:
        (first, *_) = (await ask("find", where=["two_harts.c:27"], hart=1)).rows
        assert first["source"] == f"{PACKED.decode()} = balance;"

    asking(two_harts, talk)


def test_what_follows_is_of_the_same_hart(two_harts: AskedTrace, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages, errors, and where the calls lead: each names the hart that was named."""
    assert main(["functions", two_harts.file, "--hart", "1", "--json", "--quiet"]) == 0
    expected = [json.loads(line)["begin"] for line in capsys.readouterr().out.splitlines()]
    begins: list[int] = []

    async def talk(ask: Asker) -> None:
        following: Any = {"tool": "functions", "arguments": {"hart": 1}}
        while following is not None:
            found = await ask(following["tool"], **following["arguments"])
            begins.extend(row["begin"] for row in found.rows)
            following = found.json.get("more")
        wrong: dict[str, dict[str, Any]] = {
            "find": {"where": ["none"]}, "at": {"number": 5000}, "value": {"what": "no"},
        }  # fmt: skip
        for name, arguments in wrong.items():
            then = (await ask(name, hart=1, **arguments)).json["call instead"]
            assert then["arguments"]["hart"] == 1
        for name in ("overview", "at"):
            led = (await ask(name, hart=1)).json["more"]
            assert {it["arguments"]["hart"] for it in led} == {1}

    asking(two_harts, talk)
    assert begins == expected[-len(begins):] and begins[0] in expected[:2]


def random_call(source: random.Random) -> tuple[str, dict[str, Any]]:
    """A tool with arguments: half of the time of their types, and sometimes of a place that is there."""
    name = source.choice([*TOOLS, *TOOLS, "no_tool"])
    arguments: dict[str, Any] = {}
    for key, argument in (TOOLS[name].arguments if name in TOOLS else {}).items():
        if not argument.needed and source.random() < 0.5:
            continue
        kind = argument.schema["type"] if source.random() < 0.8 else source.choice(["integer", "string", "any"])
        if kind == "integer":
            arguments[key] = source.choice([source.randrange(1, 3100), source.randrange(0, 3), *VALUES[:4]])
        elif kind == "array":
            arguments[key] = source.choices(TEXTS, k=source.randrange(0, 4))
        elif kind == "string":
            arguments[key] = source.choice([*argument.schema.get("enum", TEXTS), *TEXTS])
        else:
            arguments[key] = source.choice(VALUES)
    if source.random() < 0.05:
        arguments[source.choice(["file", "elf", "--json", "output"])] = "/tmp/x"
    return name, arguments


@pytest.mark.parametrize("name", ["hang", "two_harts"])
def test_random_calls_are_answered(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace: AskedTrace = request.getfixturevalue(name)
    monkeypatch.chdir(tmp_path)
    source, good = random.Random(36), 0

    async def talk(ask: Asker) -> None:
        nonlocal good
        for _ in range(RANDOM_CALLS):
            name, arguments = random_call(source)
            arguments = json.loads(json.dumps(arguments).replace("\\ud800", "?"))
            found = await ask(name, **arguments)
            assert "Traceback" not in found.text and "internal error" not in found.text, (name, arguments, found.text)
            assert "root:" not in found.text
            if found.is_error:
                then = found.json["call instead"]
                assert then["tool"] in TOOLS
            else:
                good += 1

    asking(trace, talk)
    assert good > RANDOM_CALLS // 5
    assert list(tmp_path.iterdir()) == []


def test_an_error_leads_to_a_call_that_works(hang: AskedTrace) -> None:
    wrong: list[tuple[str, Mapping[str, Any]]] = [
        ("nothing", {}), ("at", {"number": 3001}), ("at", {"number": "3"}), ("find", {}), ("find", {"where": ["none"]}),
        ("history", {"first": 0}), ("value", {"what": "none"}), ("value", {"what": "-x"}), ("events", {"kind": "x"}),
        ("frame", {"number": 1, "level": 9}), ("ask", {}), ("ask", {"question": "intervals", "what": "none"}),
        ("ask", {"question": "log", "what": "put_count"}), ("ask", {"question": "diff"}),
        ("ask", {"question": "sql", "what": "DROP TABLE calls"}), ("ask", {"question": "why", "what": "none"}),
        ("calls", {"depth": -1}), ("overview", {"hart": 7}), ("overview", {"file": "x"}),
    ]  # fmt: skip

    async def talk(ask: Asker) -> None:
        for name, arguments in wrong:
            failed = await ask(name, **arguments)
            assert failed.is_error, (name, arguments)
            then = failed.json["call instead"]
            assert not (await ask(then["tool"], **then["arguments"])).is_error, then

    asking(hang, talk)


@pytest.mark.parametrize(
    ("tool", "key"), [("functions", "number"), ("find", "number"), ("history", "number"), ("calls", "")]
)
def test_pages_have_each_row_once(
    tool: str, key: str, hang: AskedTrace, capsys: pytest.CaptureFixture[str]
) -> None:
    begin: dict[str, dict[str, Any]] = {
        "functions": {}, "find": {"where": ["uart_put", "hang.c:27"]}, "history": {"first": 2900, "count": 40},
        "calls": {"depth": 0},
    }  # fmt: skip
    rows: list[Any] = []

    async def talk(ask: Asker) -> None:
        following: dict[str, Any] | None = {"tool": tool, "arguments": begin[tool]}
        for _ in range(60):
            if following is None:
                return
            found = await ask(following["tool"], **following["arguments"])
            rows.extend(found.rows)
            following = found.json.get("more")
        raise AssertionError("it never ends")

    asking(hang, talk)
    if key:
        numbers = [row[key] for row in rows]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    else:
        assert main(["calls", hang.file, "--depth", "0", "--json", "--quiet"]) == 0
        assert len(rows) == len(capsys.readouterr().out.splitlines())


def test_calls_are_independent_of_what_was_asked_before(hang: AskedTrace) -> None:
    """The same call has the same answer, in whatever order: nothing is remembered of a client."""
    asked = [(name, dict(tool.example)) for name, tool in TOOLS.items()]

    async def talk(ask: Asker) -> None:
        first = [await ask(name, **arguments) for name, arguments in asked]
        again = [await ask(name, **arguments) for name, arguments in reversed(asked)]
        assert first == again[::-1]

    asking(hang, talk)


def test_hostile_names_change_nothing(tmp_path: Path) -> None:
    """Every answer is the one about the program with its own names, but for these, which are escaped."""
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    for folder in (plain, hostile):
        folder.mkdir()
    example_capture(plain, "demo")
    capture = plain / "demo.rvt"
    elf = next(plain.glob("*.elf"))
    names = {old: new for old, new in NAMES.items() if old != b"demo.c"}
    renamed(elf, names, hostile / elf.name)
    moved = hostile / "demo.rvt"
    moved.write_bytes(capture.read_bytes())
    answers: list[list[str]] = []

    async def talk(ask: Asker) -> None:
        found = []
        for name, arguments in (
            ("functions", {}), ("calls", {}), ("events", {}), ("at", {"number": 700}), ("history", {"first": 600}),
        ):  # fmt: skip
            found.append((await ask(name, **arguments)).text)
        answers.append(found)

    for file, program in ((capture, elf), (moved, hostile / elf.name)):
        trace = _asked_with(file, program)
        try:
            asking(trace, talk)
        finally:
            trace.close()
    for one, other in zip(*answers, strict=True):
        for old, new in names.items():
            shown = json.dumps(new.decode("utf-8", "replace"))[1:-1]
            other = other.replace(shown, old.decode())
        assert _bare(other) == _bare(one)


def test_what_is_lost_is_said_in_the_row(tmp_path: Path) -> None:
    """Of a trace with noise in it, and of which no value is known."""
    data = (reference_streams.FOLDER / "median.1.nex").read_bytes()
    file = tmp_path / "short.nex"
    file.write_bytes(data[:150] + b"\xff" * 8 + data[158:300])
    elf = str(reference_streams.FOLDER / "median.elf")
    args = parser().parse_args(["mcp", str(file), "--ntrace", "--elf", elf])
    trace = AskedTrace(McpRequest(raw.trace_request(args, args.capture), sources=True))

    async def talk(ask: Asker) -> None:
        (gap,) = (await ask("events", kind="gap")).rows
        assert "lost" in gap["unknown"] and gap["from"]["line"] == "unknown"
        number = gap["position"]
        assert "lost" in (await ask("history", first=number)).rows[-1]["unknown"]
        there = (await ask("at", number=number)).json
        assert "not known" in there["calls under way, innermost first"][0]["unknown"]
        assert there["registers before it"] == {} and there["registers not listed"].startswith("unknown")
        frame = (await ask("frame", number=number - 2)).json
        assert frame["ended"] == f"unknown: trace is lost at {number}"
        assert set(frame["arguments"].values()) == {"unknown"}
        value = (await ask("value", what="$a0")).json
        assert value["value"][0]["value"] == "unknown"
        assert any("may have been written" in doubt for doubt in value["rows"][0]["doubts"])

    try:
        asking(trace, talk)
    finally:
        trace.close()


def test_only_source_code_is_read(tmp_path: Path) -> None:
    """Debug information may name any file of the machine: the text of one that is no source code is not shown."""
    secret, source = tmp_path / "secret.txt", tmp_path / "code.c"
    secret.write_text("the secret")
    source.symlink_to(secret)
    assert source_code_lines(str(secret)) == source_code_lines(str(source)) == []
    source.unlink()
    source.write_text("int x;")
    assert source_code_lines(str(source)) == ["int x;"]


def test_without_the_sdk_an_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "anyio", None)
    assert main(["mcp", "x.rvt"]) == 1
    assert capsys.readouterr().err.endswith("-m pip install mcp (or 'rvtrace-gdb[agents]')\n")


def _bare(text: str) -> list[str]:
    return [row for row in text.splitlines() if not row.startswith(('"trace"',))]


def _asked_with(file: Path, elf: Path) -> AskedTrace:
    return AskedTrace(McpRequest(RequestedTrace(str(file), None, Programs((str(elf),))), True))


def test_tools_are_few_and_say_that_they_only_read(hang: AskedTrace) -> None:
    async def run() -> None:
        async with client_of(hang.ask) as client:
            tools = (await client.list_tools()).tools
            assert len(tools) <= 10
            assert all(it.annotations is not None and it.annotations.read_only_hint for it in tools)
            assert len(json.dumps([it.model_dump() for it in tools])) < 12_000  # 3,000 tokens of every conversation

    anyio.run(run)


def test_a_long_question_reports_progress_and_blocks_nobody() -> None:
    """While it works, the server lists its tools; when the client has enough, the work ends."""
    goes_on, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def ask(tool: str, arguments: Mapping[str, Any], progress: Progress) -> str:
        if tool == "overview":
            for done in range(1_000_000):
                progress("decoding (bytes)", done, 1_000_000)
                if goes_on.wait(0.01):
                    return "{}"
        begun.set()
        try:
            while not ended.wait(0.01):
                progress("for ever", 1)
        except Cancelled:
            ended.set()
            raise
        return "{}"

    said: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, message))

    async def until(condition: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE):
            while not condition():
                await anyio.sleep(0.01)

    async def run() -> None:
        async with client_of(ask) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.call_tool("overview", {}, progress_callback=note))
                await until(lambda: len(said) >= 2)
                with anyio.fail_after(PATIENCE):
                    assert (await client.list_tools()).tools
                goes_on.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.call_tool("at", {}))
                await until(begun.is_set)
                tasks.cancel_scope.cancel()
            await until(ended.is_set)

    anyio.run(run)
    assert "decoding (bytes)" in str(said[0][1]) and said[0][0] < said[1][0]


def test_the_command_serves_on_standard_input(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    file = example_capture(tmp_path, "trap_loop")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    environ = {**os.environ, "PYTHONPATH": str(HOME)}
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "rvtrace_gdb", "mcp", str(file)], env=environ, cwd=tmp_path
    )

    async def run() -> None:
        async with Client(started) as client:
            assert client.server_info is not None and client.server_info.name == "rvtrace"
            found = await client.call_tool("events", {"kind": "exception"})
            assert "read_reg" in str(found.content)

    anyio.run(run)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_standard_input_is_the_clients() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rvtrace_gdb", "mcp", "-"], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rvtrace: FILE: standard input is the client's: give the name of a file\n"
