"""`trace start` on TACIT, a simulated one: what it sends is what the hart ran."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.tacit.procedures import NoTacit, sink_of
from rvtrace_gdb.controlregs.tacit.registers import ENCODER_BASE, SINK_BASE
from rvtrace_gdb.controlregs.tacit.sinks import NeedsWideAccess
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import file, tables
from rvtrace_gdb.session.description.model import DescriptionError, TacitDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.devices.tacit import LimitedTacitSink, TacitDevice, TacitSink
from tests.decode.executed.logs import PROGRAMS
from tests.session.board import Board, BoardLink, CableOut, board, executed
from tests.transport.simulated.hart.programs import build

BUFFER, SIZE = 0x8008_0000, 0x4000
TEXT = f"""
[target]
name = "Chipyard"
[[tacit]]
name = "tacit0"
start = {BUFFER:#x}
size = {SIZE:#x}
"""


class Bench:
    """A program on a hart with TACIT, and a session."""

    def __init__(self, folder: Path, text: str = TEXT, *, limited: bool = False) -> None:
        self.elf = build(folder, "start.S", PROGRAMS / "calls_and_traps.c", march="rv64imac")
        self.there: Board = board(folder, self.elf)
        bus = self.there.machine.bus
        self.sink = (LimitedTacitSink if limited else TacitSink)(bus, SINK_BASE)
        self.device = TacitDevice(self.there.machine.harts[0], bus, ENCODER_BASE, self.sink)
        (folder / "rvtrace.toml").write_text(text + ("limited = true\n" if limited else ""))
        self.context = Context(elf=str(self.elf), target_file=str(folder / "rvtrace.toml"))
        self.session = Session(self.there.connect)
        self.ran = 0

    def run(self, instructions: int) -> None:
        self.ran += self.there.run(instructions)

    def pcs(self) -> list[int]:
        return list(self.session.decoded(self.context)[0].pcs())

    def all(self) -> list[int]:
        return list(islice(executed(self.elf), self.ran))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.session.close()


def parts_of(pcs: list[int]) -> list[list[int]]:
    """The stretches between gaps."""
    parts: list[list[int]] = [[]]
    for pc in pcs:
        if pc == GAP:
            parts.append([])
        else:
            parts[-1].append(pc)
    return parts


def test_what_ran_is_the_history(bench: Bench) -> None:
    said = bench.session.start(bench.context)
    assert any("tacit0, hart 0: TACIT, every branch" in line for line in said)
    assert any("the sink has no limit" in line for line in said)
    bench.run(400)
    assert bench.pcs() == bench.all(), "up to the last instruction"
    bench.run(600)
    pcs = bench.pcs()
    assert [pc for pc in pcs if pc != GAP] == bench.all() and pcs.count(GAP) == 1, "the encoder was off in between"
    assert any("tracing" in line and "tacit0" in line for line in bench.session.status(bench.context))
    assert any("byte" in line for line in bench.session.stop())
    assert bench.pcs() == pcs
    assert any("off" in line for line in bench.session.status(bench.context))


def test_a_capture_has_the_registers(bench: Bench, tmp_path: Path) -> None:
    bench.session.start(bench.context)
    bench.run(300)
    pcs = bench.pcs()
    bench.session.stop()
    bench.session.save(tmp_path / "x.rvt", bench.context)
    opened = Session()
    opened.open(tmp_path / "x.rvt", str(bench.elf))
    assert list(opened.decoded()[0].pcs()) == pcs
    assert dict(opened.capture().branches[0].in_force.registers) == {"TR_TE_CTRL": 3, "TR_TE_BRANCH_MODE": 0}


def test_branches_are_predicted_on_request(bench: Bench) -> None:
    """All but what ran after the last packet."""
    said = bench.session.start(bench.context, {"branch_prediction": True})
    assert any("branches predicted" in line for line in said)
    bench.there.state = "running"
    bench.run(3000)
    pcs, ran = bench.pcs(), bench.all()
    assert pcs == ran[: len(pcs)] and len(pcs) > 2500
    bench.run(500)
    bench.session.stop()
    pcs, ran = bench.pcs(), bench.all()
    assert pcs == ran[: len(pcs)] and len(pcs) > 3000
    registers = dict(bench.session.capture().branches[0].in_force.registers)
    assert registers == {"TR_TE_CTRL": 3, "TR_TE_BRANCH_MODE": 2, "bp_entries": 1024}


def test_a_running_hart_is_read_out_without_a_stop(bench: Bench) -> None:
    """The sink has written whole words alone: some packets come with the next read-out."""
    bench.session.start(bench.context)
    bench.there.state = "running"
    for _ in range(5):
        bench.run(200)
        pcs, ran = bench.pcs(), bench.all()
        assert pcs == ran[: len(pcs)] and len(pcs) > len(ran) - 60
    bench.there.state = "halted"
    assert bench.pcs() == bench.all()


def test_a_trace_begins_anew_after_another_one(bench: Bench) -> None:
    """Bytes that the sink has not written keep it from taking an address until they are flushed."""
    bench.session.start(bench.context)
    bench.run(203)
    assert bench.session.start(bench.context)
    begun = bench.ran
    bench.run(300)
    assert bench.pcs() == bench.all()[begun:]


def test_a_session_that_ends_leaves_the_encoder_off(bench: Bench) -> None:
    """Nothing would end it in its buffer."""
    bench.session.start(bench.context)
    bench.run(100)
    assert bench.device.read(0, 4) == 3
    bench.session.close()
    assert bench.device.read(0, 4) == 1


def test_a_buffer_that_is_full_ends_the_trace(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TEXT.replace(f"size = {SIZE:#x}", "size = 64"))
    bench.session.start(bench.context)
    bench.run(2000)
    pcs = bench.pcs()
    assert pcs == bench.all()[: len(pcs)] and 20 < len(pcs) < 1000
    said = bench.session.status(bench.context)
    assert any("the buffer of tacit0 is full, and tracing has ended" in line for line in said)
    assert any("from 0x80080040 on were overwritten" in line for line in said)
    before = bench.sink.read(0x10, 4)
    bench.run(500)
    assert bench.sink.read(0x10, 4) == before, "it writes no more"
    bench.session.close()


def test_a_sink_with_a_limit(tmp_path: Path) -> None:
    """Its last word comes with the next packets; the buffer is used again after each read-out of a halted hart."""
    bench = Bench(tmp_path, TEXT.replace(f"size = {SIZE:#x}", "size = 0x200"), limited=True)
    said = bench.session.start(bench.context)
    assert not any("no limit" in line for line in said)
    for _ in range(6):
        bench.run(400)
        pcs, ran = [pc for pc in bench.pcs() if pc != GAP], bench.all()
        assert pcs == ran[: len(pcs)] and len(pcs) > len(ran) - 60
    bench.run(20_000)
    pcs, ran = [pc for pc in bench.pcs() if pc != GAP], bench.all()
    assert pcs == ran[: len(pcs)] and 2400 < len(pcs) < 10_000
    said = bench.session.status(bench.context)
    assert any("buffer of tacit0 is full, and tracing has ended: newer packets were dropped" in line for line in said)
    assert bench.there.machine.bus.read_bytes(BUFFER + 0x200, 8) == bytes(8), "nothing behind it was written"
    bench.session.close()


def test_a_sink_of_another_sort_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvtrace_gdb.controlregs.tacit.sinks.PATIENCE", 0.0)
    bench = Bench(tmp_path, limited=True)
    Path(bench.context.target_file or "").write_text(TEXT)
    with pytest.raises(SettingRefused, match="check the address of the sink"):
        bench.session.start(bench.context)
    bench.session.close()


def test_a_read_out_that_fails_keeps_what_was_read(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(3000)

    def breaks(address: int) -> None:
        if address >= BUFFER + 0x100:
            raise CableOut

    bench.there.broken = breaks
    pcs = bench.pcs()
    assert pcs == bench.all()[: len(pcs)] and len(pcs) > 100
    assert any("the cable is out" in line for line in bench.session.status(bench.context))
    bench.there.broken = lambda address: None
    assert bench.pcs() == bench.all()


def test_what_is_no_encoder_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.there.targets = ("riscv.cpu0", "riscv.cpu1")
    with pytest.raises(BadOption, match="no TACIT of the target description traces hart 1"):
        bench.session.start(bench.context, {"harts": [1]})
    with pytest.raises(BadOption, match="TACIT has no filters and no triggers: leave out -trigger-on"):
        bench.session.start(bench.context, {"trigger_on": [0x8000_0000]})
    with pytest.raises(BadOption, match="there is no TACIT 'x' in the target description, it has tacit0"):
        bench.session.start(bench.context, {"to": ["x"]})
    with monkeypatch.context() as patched:
        patched.setattr(BoardLink, "write64", BoardLink.write32)  # a half of a register is not written
        patched.setattr("rvtrace_gdb.controlregs.tacit.sinks.PATIENCE", 0.0)
        with pytest.raises(SettingRefused, match="the sink of tacit0 at 0x3010000: TR_SK_DMA_ADDR reads 0x0 after"):
            bench.session.start(bench.context)
    link = BoardLink(bench.there)
    narrow = SimpleNamespace(read32=link.read32, write32=link.write32, read_block=link.read_block)
    with pytest.raises(NeedsWideAccess, match="takes 64 bits at once alone: reach it by OpenOCD"):
        sink_of(narrow, SINK_BASE, "tacit0", limited=False).prepare(BUFFER, SIZE)
    bench.device.read = lambda offset, nbytes: 0  # type: ignore[method-assign]
    Path(bench.context.target_file or "").write_text(TEXT + "base = 0x10000000")
    with pytest.raises(NoTacit, match="tacit0 at 0x10000000 is not an encoder of TACIT: TR_TE_CTRL reads"):
        bench.session.start(bench.context)


def test_options_without_effect_are_named(bench: Bench) -> None:
    said = bench.session.start(bench.context, {"timestamps": True})
    assert any("options without effect: timestamps" in line for line in said)


def test_the_description_is_read_and_written() -> None:
    more = '[[tacit]]\nname = "tacit1"\nhart = 1\nstart = 0x80090000\nsize = 0x1000\n'
    read = file.parse(TEXT + more + "target = 2\nentries = 64\nlimited = true\n", "x.toml")
    first = TacitDescription("tacit0", ENCODER_BASE, SINK_BASE, BUFFER, SIZE)
    second = TacitDescription("tacit1", 0x300_1000, 0x301_1000, 0x8009_0000, 0x1000, 1, 2, 64, True)
    assert read.tacit == (first, second) and read.harts == [0, 1]
    assert file.parse(tables.text(read), "x.toml").tacit == read.tacit


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hart = 5000", "hart"), ("base = 0x3000002", "base"), ("depth = 3", "depth"), ("entries = 0", "entries"),
        ('[[tacit]]\nname = "tacit0"\nstart = 0x90000000\nsize = 8', "is used 2 times"),
        ('[[tacit]]\nname = "b"\nstart = 0x90000000\nsize = 8', "2 of them trace hart 0"),
        (f'[[tacit]]\nname = "b"\nhart = 1\nstart = {BUFFER + 8:#x}\nsize = 8', "the buffers of tacit0 and b overlap"),
        ('[[tacit]]\nname = "b"\nhart = 1\nsize = 8', "start: missing"),
        ('[[tacit]]\nname = "b"\nhart = 1\nstart = 0x90000004\nsize = 8', "not a multiple of 8"),
        ('[[tracer]]\nname = "tracer0"', "either a TRACER or TACIT"),
    ],
)  # fmt: skip
def test_descriptions_that_cannot_be(text: str, says: str) -> None:
    with pytest.raises(DescriptionError, match=says):
        file.parse(TEXT + text, "x.toml")
