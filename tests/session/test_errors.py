"""Everything that can be wrong before a trace starts, and requests that make no sense: one line each."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import BadOption, Busy, HartUnreachable, NoElf, NoTrace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources.trace_control import LiveTrace
from rvtrace_gdb.support.errors import RvtraceError
from tests.session.board import ENCODER, SINK, Board, board

NOBODY: dict[str, str] = {}


@pytest.fixture
def demo(tmp_path: Path) -> Board:
    return board(tmp_path)


@pytest.fixture
def session(demo: Board) -> Session:
    return Session(demo.connect, NOBODY)


def refusal(kind: type[RvtraceError], session: Session, context: Context, **options: object) -> str:
    with pytest.raises(kind) as caught:
        session.start(context, options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_elf(demo: Board, session: Session) -> None:
    line = refusal(NoElf, session, replace(demo.describe(), elf=None))
    assert line == "no program: load the ELF that runs on the target first (`file app.elf`)"


def test_an_elf_that_is_none(demo: Board, session: Session, tmp_path: Path) -> None:
    assert "nothing.elf: cannot be read" in refusal(BadElf, session, replace(demo.describe(), elf="nothing.elf"))
    (tmp_path / "text.elf").write_text("hello")
    assert "text.elf: is not a readable ELF file" in refusal(
        BadElf, session, replace(demo.describe(), elf=str(tmp_path / "text.elf"))
    )


def test_openocd_is_not_running(demo: Board) -> None:
    """The real transport, and a port nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        context = replace(demo.describe(), overrides={"openocd_port": free.getsockname()[1]})
        line = refusal(RvtraceError, Session(environ=NOBODY), context)
    assert line.startswith("no OpenOCD at 127.0.0.1:")
    assert "start OpenOCD" in line


@pytest.mark.parametrize(
    ("targets", "counted"), [((), "none"), (("riscv.cpu0", "riscv.cpu1"), r"2 (riscv.cpu0, riscv.cpu1)")]
)
def test_a_hart_openocd_does_not_have(demo: Board, session: Session, targets: tuple[str, ...], counted: str) -> None:
    demo.targets = targets
    context = demo.describe()
    assert context.target_file is not None
    file = Path(context.target_file)
    file.write_text(file.read_text().replace(f"base = {ENCODER}", f"base = {ENCODER}\nhart = 2"))
    line = refusal(HartUnreachable, session, context)
    assert line == f"hart 2 cannot be reached: OpenOCD counts {counted}; correct `hart` in the target description"
    assert demo.links[0].closed


def test_a_hart_without_power(demo: Board, session: Session) -> None:
    demo.state = "unknown"
    line = refusal(HartUnreachable, session, demo.describe())
    assert line == (
        "hart 0 cannot be reached: OpenOCD does not know the state of riscv.cpu0; check power, reset and OpenOCD's log"
    )


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [("encoder_base", SINK, "encoder0"), ("ram_sink_base", ENCODER, "ram0"), ("encoder_base", 0x5000_0000, "encoder0")],
)
def test_a_wrong_base_address(demo: Board, session: Session, key: str, value: int, what: str) -> None:
    line = refusal(RvtraceError, session, replace(demo.describe(), overrides={key: value}))
    assert line.startswith(f"{what} at {value:#x}: ")
    assert "target description" in line


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("sync_period", 0, "sync_period is 0, it must be a number of halfwords from 1 on"),
        ("sync_period", "x", "sync_period is 'x', it must be a number of halfwords from 1 on"),
    ],
)
def test_wrong_options(demo: Board, session: Session, option: str, value: object, line: str) -> None:
    assert refusal(BadOption, session, demo.describe(), **{option: value}) == line


def test_requests_without_a_trace(session: Session, demo: Board, tmp_path: Path) -> None:
    context = demo.describe()
    there_is_none = r"^there is no trace: `trace start` makes one, `trace open FILE` shows a saved one$"
    with pytest.raises(NoTrace, match=r"^nothing is being traced: `trace start` begins$"):
        session.stop()
    with pytest.raises(NoTrace, match=there_is_none):
        session.history("", 10, context)
    with pytest.raises(NoTrace, match=there_is_none):
        session.rows(1, 2)
    with pytest.raises(NoTrace, match=there_is_none):
        session.save(tmp_path / "x.rvt", context)
    session.start(context)
    with pytest.raises(NoTrace, match=r"^no history has been requested yet$"):
        session.rows(1, 2)


def test_status_without_a_trace_says_what_would_be_used(session: Session, demo: Board) -> None:
    context = demo.describe()
    assert session.status(context) == [
        "Nothing is being traced.",
        f"target:   board ({context.target_file}), OpenOCD 127.0.0.1:6666, hart 0",
    ]
    first, second = session.status(Context())
    assert (first, second[:40]) == ("Nothing is being traced.", "target:   no target description: name on")


def test_a_capture_is_not_opened_over_a_running_trace(session: Session, demo: Board, tmp_path: Path) -> None:
    context = demo.describe()
    session.start(context)
    demo.run(100)
    session.save(tmp_path / "x.rvt", context)
    with pytest.raises(Busy, match=r"^a trace is being recorded: end it first"):
        session.open(tmp_path / "x.rvt", None)
    session.stop()
    session.open(tmp_path / "x.rvt", None)


def test_a_trace_without_any_synchronization_is_named(
    session: Session, demo: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = demo.describe()
    session.start(context)
    monkeypatch.setattr(LiveTrace, "read_out", lambda self, progress: _junk(self))
    with pytest.raises(NoTrace, match=r"^3 bytes of trace without a synchronizing message, .*-sync-period N"):
        session.history("", 10, context)


def _junk(live: LiveTrace) -> None:
    [sink] = live.components.sinks
    sink.captured = replace(sink.captured, data=b"\xff\xff\xff")
