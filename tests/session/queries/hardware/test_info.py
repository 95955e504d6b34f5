"""`trace info`: the components of a description, as they are, what they can do, and what feeds what."""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.queries.hardware import info
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from tests.controlregs.interruptions import no_waiting
from tests.session.board import ENCODER, SINK, Board, board
from tests.session.queries.hardware.register_target import Connect, Registers, absent, described

NOBODY: dict[str, str] = {}
CLUSTERS = (
    "encoder e0 0x1000 hart=0 to=['f0']",
    "encoder e1 0x2000 hart=1 to=['f1','own']",
    "funnel f0 0x3000 to=['top']",
    "funnel f1 0x4000 to=['top']",
    "funnel top 0x5000 to=['pib','atb'] inputs={f0=5,f1=2}",
    'ram_sink own 0x6000 mode="SMEM" start=0x80000000 size=4096',
    'pib_sink pib 0x7000 mode="parallel_4" divider=2',
    "atb_bridge atb 0x8000 id=5",
)
ON = {  # tr??Control: Active, Enable, Empty; tr??Impl: 1.0 and the type
    0x1000: 0x0131_006F, 0x1004: 0x0001_0101, 0x2000: 0x0131_006B, 0x2004: 0x0001_0101,
    **dict.fromkeys(range(0x3000, 0x9000, 0x1000), 0x0B),
    **{base + 4: 0x801 for base in (0x3000, 0x4000, 0x5000)}, 0x6004: 0x901, 0x7004: 0xA01, 0x8004: 0xE01,
}  # fmt: skip


def shown(connect: Connect, context: Context, progress: Progress = silent) -> list[str]:
    return info.info(Session(connect, NOBODY), context, progress=progress, connect=connect, environ=NOBODY)


def texts(lines: list[str], name: str) -> list[str]:
    """What is said of a component."""
    begin = next(n for n, line in enumerate(lines) if line.startswith(f"{name}:"))
    end = next((n for n in range(begin + 1, len(lines)) if not lines[n].startswith(" ")), len(lines))
    return [line[lines[begin].index(" ") :].strip() for line in lines[begin:end]]


def test_a_graph_that_is_in_use(tmp_path: Path) -> None:
    """Read off the description above and the registers; nothing is written."""
    target = Registers(dict(ON), targets=("a", "b"), states={"a": "running"})
    context = described(tmp_path, *CLUSTERS, name="chip")
    assert shown(target.connect, context) == [
        f"target:   chip ({context.target_file}), OpenOCD 127.0.0.1:6666",
        "e0:       trace encoder at 0x1000, interface 1.0, hart 0 (a, running): tracing",
        "          N-Trace 1.0 HTM, sync every 128 messages",
        "          to f0 (input 0), top (input 5), pib",
        "          to f0 (input 0), top (input 5), atb",
        "e1:       trace encoder at 0x2000, interface 1.0, hart 1 (b, halted): on",
        "          N-Trace 1.0 HTM, sync every 128 messages",
        "          to own",
        "          to f1 (input 0), top (input 2), pib",
        "          to f1 (input 0), top (input 2), atb",
        "f0:       trace funnel at 0x3000, interface 1.0: on",
        "          from e0 (input 0)",
        "          to top (input 5)",
        "f1:       trace funnel at 0x4000, interface 1.0: on",
        "          from e1 (input 0)",
        "          to top (input 2)",
        "top:      trace funnel at 0x5000, interface 1.0: on",
        "          from f1 (input 2), f0 (input 5)",
        "          to pib, atb",
        "          gives the time to all that feed it",
        "own:      RAM sink at 0x6000, interface 1.0: on",
        "          buffer in SMEM 0x80000000, 4096 bytes",
        "          from e1",
        "pib:      PIB sink at 0x7000, interface 1.0: on",
        "          pins: parallel_4, clock / 2",
        "          from top",
        "atb:      ATB bridge at 0x8000, interface 1.0: on",
        "          ID 0x5 on the trace bus",
        "          from top",
    ]
    assert not target.writes and target.open == 0


def test_without_openocd_there_is_still_the_description(tmp_path: Path) -> None:
    lines = shown(absent, described(tmp_path, *CLUSTERS))
    assert texts(lines, "e0")[0] == "trace encoder at 0x1000, hart 0"
    assert texts(lines, "top")[0] == "trace funnel at 0x5000"
    assert lines[-1] == "warning:  the target cannot be reached: the cable is out"


def test_a_target_that_goes_away_is_asked_no_more(tmp_path: Path) -> None:
    target = Registers(dict(ON), targets=("a", "b"), reads_left=6)
    lines = shown(target.connect, described(tmp_path, *CLUSTERS))
    assert texts(lines, "e1")[0] == "trace encoder at 0x2000, hart 1"
    assert [line for line in lines if "the cable is out" in line] == lines[-1:]
    assert target.open == 0


def test_components_that_cannot_be_used_do_not_hide_the_others(tmp_path: Path) -> None:
    target = Registers({**ON, 0x3004: 0xA01, 0x4004: 0x802, 0x5004: 0x8F1}, broken=(0x2000,))
    lines = shown(target.connect, described(tmp_path, *CLUSTERS))
    assert texts(lines, "e1")[:2] == [
        "trace encoder at 0x2000, hart 1 (OpenOCD has no such target)", "warning: cannot be read: bus error"
    ]  # fmt: skip
    assert texts(lines, "f0")[1].startswith("warning: f0 at 0x3000: this is a pib sink, not a trace funnel")
    assert texts(lines, "f1")[0] == "trace funnel at 0x4000, interface 2.0"
    assert texts(lines, "f1")[1].startswith("warning: f1 at 0x4000: trace control interface 2.0, newer and not supp")
    assert texts(lines, "top")[0] == "trace funnel at 0x5000, interface 1.15: on"
    assert texts(lines, "top")[1].startswith("warning: top at 0x5000: trace control interface 1.15 is experimental")
    assert texts(lines, "atb")[0] == "ATB bridge at 0x8000, interface 1.0: on"


def test_version_0(tmp_path: Path) -> None:
    """teImpl and tfImpl: bit 4 an SRAM sink, 7 one in system memory (SBA), 8 a funnel."""
    target = Registers({0x1000: 0x8100_0077, 0x1004: 0x120, 0x3000: 0x01, 0x3004: 0x90})
    components = ("encoder e 0x1000 version=0 to=['f']", "funnel f 0x3000 version=0",
                  'ram_sink s - mode="SRAM" inside="f"')  # fmt: skip
    lines = shown(target.connect, described(tmp_path, *components))
    assert texts(lines, "e") == [
        "pre-ratified trace encoder at 0x1000, interface 0, hart 0 (cpu0, halted): tracing",
        "can send trace to ATB, Funnel",
        "N-Trace older than 1.0, HTM, implicit return (depth counter), repeated history, sync every 32 messages",
        "to f (input 0), s",
    ]
    assert texts(lines, "f")[:2] == [
        "pre-ratified trace funnel at 0x3000, interface 0: off",
        "has its own SRAM, buffers in system memory",
    ]  # fmt: skip
    assert texts(lines, "s") == ["RAM sink inside f, interface 0: off", "buffer in SRAM", "from f"]
    assert min(address for address, _ in target.writes) >= 0x3000  # what traces is left alone


def test_long_names_stand_in_a_column_of_their_own(tmp_path: Path) -> None:
    context = described(tmp_path, "encoder the-first-encoder 0x1000", 'ram_sink r 0x2000 mode="SRAM"')
    columns = {len(line) - len(line.split(" ", 1)[-1].lstrip()) for line in shown(absent, context)}
    assert columns == {len("the-first-encoder: ")}


def test_without_a_description() -> None:
    with pytest.raises(DescriptionError, match=r"^no target description: .*`rvtrace init` writes one"):
        shown(absent, Context())


def test_it_can_be_interrupted(tmp_path: Path) -> None:
    def watch(label: str, done: int, total: int | None = None) -> None:
        if label == "looking at f0":
            raise Cancelled

    target = Registers(dict(ON))
    with pytest.raises(Cancelled):
        shown(target.connect, described(tmp_path, *CLUSTERS), watch)
    assert target.open == 0


def test_a_component_that_does_not_wake_up(tmp_path: Path) -> None:
    """It is left as it was, and the other one is shown."""
    components = ("encoder e 0x1000", 'ram_sink r 0x2000 mode="SRAM"')
    target = Registers({0x1000: 8, 0x2000: 0x0B, 0x2004: 0x901})
    with no_waiting():
        lines = shown(target.connect, described(tmp_path, *components))
    first, why, _ = texts(lines, "e")
    assert first == "trace encoder at 0x1000, hart 0 (cpu0, halted): in reset"
    assert why.startswith("warning: e at 0x1000: trTeControl did not reach trTeActive=1 within ")
    assert target.words[0x1000] == 8 and not target.words[0x2000] & 4
    assert texts(lines, "r")[0] == "RAM sink at 0x2000, interface 1.0: on"


def test_what_a_component_that_is_off_can_do(tmp_path: Path) -> None:
    """A funnel of which inputs 0, 1 and 2 can be cut: the bits of trFunnelDisInput that take ones. It is off again."""
    components = ("encoder e 0x1000 to=['f']", "funnel f 0x3000", 'ram_sink r 0x2000 mode="SRAM"')
    target = Registers({**ON, 0x2000: 0x0B, 0x2004: 0x901, 0x3000: 9, 0x3008: 5}, writable={0x3008: 7})
    lines = texts(shown(target.connect, described(tmp_path, *components)), "f")
    assert lines == [
        "trace funnel at 0x3000, interface 1.0: off",
        "has inputs that can be cut: 0 to 2",
        "has no timestamps",
        "from e (input 0)",
        "to r",
    ]
    assert target.words[0x3000] == 9 and target.words[0x3008] == 5
    assert {address & ~0xFFF for address, _ in target.writes} == {0x3000}


# A simulated target


@pytest.fixture
def demo(tmp_path: Path, busy_elf: Path) -> Board:
    return board(tmp_path, busy_elf)


def of_board(demo: Board, session: Session, context: Context, *, live: bool = False) -> list[str]:
    return info.info(session, context, live=live, connect=demo.connect, environ=NOBODY)


def registers(demo: Board) -> list[int]:
    bus = demo.machine.bus
    offsets = [offset for offset in range(0, 0x800, 4) if offset not in (0x40, 0x44, 0x48, 0x4C)]
    return [bus.read(base + offset, 4) for base in (ENCODER, SINK) for offset in offsets]


def test_what_components_in_reset_can_do_and_they_are_in_reset_again(demo: Board) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    before = registers(demo)
    lines = of_board(demo, session, context)
    first, has, *more = texts(lines, "encoder0")
    assert first == f"trace encoder at {ENCODER:#x}, interface 1.0, hart 0 (riscv.cpu0, halted): in reset"
    words = has.removeprefix("has ").split(", ")
    assert {"N-Trace 1.0", "BTM", "HTM", "implicit return", "repeated history"} <= set(words)
    assert more[-1] == "to ram0" and more[0].startswith("has no ") and "data trace" in more[0]
    assert texts(lines, "ram0")[0] == f"RAM sink at {SINK:#x}, interface 1.0: in reset"
    assert registers(demo) == before


def test_a_trace_is_not_disturbed(demo: Board, reference: list[int]) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    session.start(context, {"timestamps": True})
    ran, written = demo.run(700), len(demo.writes)
    first, now, *_ = texts(of_board(demo, session, context), "encoder0")
    assert first.endswith(": tracing") and now == "N-Trace 1.0 HTM, timestamps, sync every 128 messages"
    assert len(demo.writes) == written
    ran += demo.run(700)
    session.stop()
    before = registers(demo)
    assert "has N-Trace 1.0, " in "\n".join(of_board(demo, session, context))
    assert registers(demo) == before
    history, _ = session.decoded(context)
    assert list(history.pcs()) == reference[:ran]


def test_a_sink_with_unread_trace_is_not_tried_out(demo: Board, reference: list[int]) -> None:
    """The trace could not be read when it was stopped; later it is."""
    session, context = Session(demo.connect, NOBODY), demo.describe(size=0x800)
    session.start(context, {"stop_on_wrap": True})
    demo.run(20_000)  # more than fits: the sink has stopped by itself
    written = len(demo.writes)
    assert texts(of_board(demo, session, context), "ram0")[0].endswith(": off")
    assert len(demo.writes) == written
    history, _ = session.decoded(context)
    assert list(history.pcs()) == reference[: len(history)] and len(history) > 1000


def test_a_capture(demo: Board, tmp_path: Path) -> None:
    session, context = Session(demo.connect, NOBODY), demo.describe()
    session.start(context)
    demo.run(100)
    session.save(tmp_path / "it.rvt", context)
    session.stop()
    session.open(tmp_path / "it.rvt", str(demo.elf))
    lines = of_board(demo, session, replace(context, target_file=None))
    assert lines[0].startswith("capture:  of board, 2")
    assert lines[1:] == [
        f"encoder0: trace encoder at {ENCODER:#x}, hart 0",
        "          N-Trace 1.0 HTM, sync every 128 messages",
        "          to ram0",
        f"ram0:     RAM sink at {SINK:#x}: SMEM 0x30000000, 65536 bytes, keeps the newest",
        "          from encoder0",
    ]
    assert of_board(demo, session, context, live=True)[0].startswith("target:   board (")
