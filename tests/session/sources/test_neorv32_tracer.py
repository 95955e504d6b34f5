"""`trace start` on a TRACER of NEORV32, a simulated one: what it records is what the hart ran."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.neorv32.procedures import HartNotSelected, NoTracer
from rvtrace_gdb.controlregs.neorv32.registers import BASE
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import file, tables
from rvtrace_gdb.session.description.model import DescriptionError, TracerDescription
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.queries.hardware.info import info
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.devices.neorv32_tracer import Neorv32Tracer
from tests.decode.executed.logs import PROGRAMS
from tests.session.board import Board, CableOut, board, executed
from tests.transport.simulated.hart.programs import build

TEXT = """
[target]
name = "NEORV32"
[[tracer]]
name = "tracer0"
base = 0xfff30000
"""


class Bench:
    """A program on a hart with a TRACER of *depth* entries, and a session."""

    def __init__(self, folder: Path, depth: int, text: str = TEXT) -> None:
        self.elf = build(folder, "start.S", PROGRAMS / "calls_and_traps.c", march="rv32imac")
        self.there: Board = board(folder, self.elf)
        self.tracer = Neorv32Tracer(self.there.machine.harts, self.there.machine.bus, BASE, depth)
        (folder / "rvtrace.toml").write_text(text)
        self.context = Context(elf=str(self.elf), target_file=str(folder / "rvtrace.toml"))
        self.session = Session(self.there.connect)
        self.ran = 0

    def run(self, instructions: int) -> None:
        self.ran += self.there.run(instructions)

    def pcs(self) -> list[int]:
        return list(self.session.decoded(self.context)[0].pcs())

    def registers(self) -> dict[str, int]:
        return dict(self.session.capture().branches[0].in_force.registers)

    def all(self) -> list[int]:
        return list(islice(executed(self.elf), self.ran))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, 1024)
    yield made
    made.session.close()


def is_part(part: list[int], whole: list[int]) -> bool:
    """Whether the part is somewhere in it, without a gap."""
    return any(whole[at : at + len(part)] == part for at, pc in enumerate(whole) if pc == part[0])


def test_what_ran_is_the_history(bench: Bench) -> None:
    said = bench.session.start(bench.context)
    assert any("tracer0, hart 0: TRACER of NEORV32, 1024 entries" in line for line in said)
    bench.run(400)
    first = bench.pcs()
    assert len(first) > 300 and is_part(first, bench.all())
    bench.run(600)
    pcs = bench.pcs()
    assert pcs[: len(first)] == first, "a halted hart is read out without a restart"
    assert GAP not in pcs and is_part(pcs, bench.all()) and len(pcs) > len(first) + 400
    assert any("pair" in line for line in bench.session.stop())
    assert bench.pcs() == pcs


def test_of_a_hart_that_is_halted_all_is_known(bench: Bench) -> None:
    """From where it was halted when tracing began to where it is halted now, wherever that is."""
    bench.there.registers = True
    bench.session.start(bench.context)
    certain = 0
    for instructions in (7, 1, 1, 1, 1, 1, 1, 300, 1, 1, 1, 1, 1, 1, 1, 1, 1, 200):
        bench.run(instructions)
        pcs, whole = bench.pcs(), bench.all()
        assert pcs == whole[: len(pcs)] and len(whole) - len(pcs) < 30
        certain += pcs == whole
    assert certain > 10


def test_it_ends_at_the_stop_address(bench: Bench) -> None:
    whole = list(islice(executed(bench.elf), 600))
    stop = next(pc for pc in whole[300:] if whole.index(pc) > 250)
    said = bench.session.start(bench.context, {"trigger_off": [stop]})
    assert any(line.endswith(f"1024 entries, ends with the instruction at {stop:#x}") for line in said)
    bench.run(600)
    pcs = bench.pcs()
    assert pcs[-1] == stop and is_part(pcs, whole[: whole.index(stop) + 1])
    said = bench.session.status(bench.context)
    assert any(f"tracing ended with the instruction at {stop:#x}" in line for line in said)
    bench.run(100)
    assert bench.pcs() == pcs
    assert "The trace had ended already." in bench.session.stop()
    bench.session.start(bench.context)
    assert bench.tracer.read(4, 4) == 0xFFFF_FFFE, "the next trace has none"


def test_its_status_says_what_is_still_in_tracer(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(300)
    said = "0 pairs, more still in TRACER (the next list of what ran reads them), tracing"
    assert any(said in line for line in bench.session.status(bench.context))
    assert bench.pcs()
    assert not any("still in TRACER" in line for line in bench.session.status(bench.context))


def test_a_reset_ends_it(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(300)
    first = bench.pcs()
    bench.run(100)
    bench.tracer.reset()
    assert bench.pcs() == first
    said = bench.session.status(bench.context)
    assert any("tracer0 was reset, and what it held is lost: `trace start` starts it again" in line for line in said)


def test_what_a_tracer_cannot_select_is_refused(bench: Bench) -> None:
    """It would be misleading to trace everything instead."""
    refused = {"trigger_on": [0x100], "priv": ["m"]}
    with pytest.raises(BadOption, match="no triggers but one -trigger-off: leave out -priv, -trigger-on"):
        bench.session.start(bench.context, refused)
    with pytest.raises(BadOption, match=r"stops at one address \(STOP_ADDR\), and -trigger-off has 2"):
        bench.session.start(bench.context, {"trigger_off": [0x100, 0x104]})
    with pytest.raises(BadOption, match="0xffffffff is not an address of 32 bits"):
        bench.session.start(bench.context, {"trigger_off": [0xFFFF_FFFF]})


def test_a_capture_has_the_registers(bench: Bench, tmp_path: Path) -> None:
    bench.session.start(bench.context)
    bench.run(300)
    pcs = bench.pcs()
    bench.session.stop()
    bench.session.save(tmp_path / "x.rvt", bench.context)
    opened = Session()
    opened.open(tmp_path / "x.rvt", str(bench.elf))
    assert list(opened.decoded()[0].pcs()) == pcs
    assert dict(opened.capture().branches[0].in_force.registers) == {"CTRL": 0x511, "STOP_ADDR": 0xFFFF_FFFE}


def test_a_small_buffer_has_the_newest(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 8)
    bench.session.start(bench.context)
    bench.run(500)
    first = bench.pcs()
    assert bench.session.capture().branches[0].wrapped
    assert is_part(first, bench.all())
    bench.run(500)
    pcs = bench.pcs()
    assert pcs[: len(first)] == first and pcs[len(first)] == GAP
    assert is_part(pcs[len(first) + 1 :], bench.all())
    assert any("older entries may be missing" in line for line in bench.session.status(bench.context))
    bench.session.close()


def test_a_running_hart_is_stopped_for_the_read_out(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(200)
    bench.there.state = "running"
    first = bench.pcs()
    bench.run(200)
    pcs = bench.pcs()
    assert pcs[len(first)] == GAP, "what ran while it was read out is not known"
    assert is_part(first, bench.all()) and is_part(pcs[len(first) + 1 :], bench.all())


def test_a_read_out_that_fails_keeps_what_was_read(bench: Bench) -> None:
    bench.session.start(bench.context)
    bench.run(400)
    count = [0]

    def breaks(address: int) -> None:
        count[0] += address == BASE + 0xC
        if count[0] == 20:
            raise CableOut

    bench.there.broken = breaks
    assert len(bench.pcs()) > 10
    assert any("the cable is out" in line for line in bench.session.status(bench.context))
    count[0] = 100
    pcs = bench.pcs()
    assert is_part(pcs, bench.all()) and len(pcs) > 300


def test_a_read_out_that_fails_does_not_end_where_the_hart_was(bench: Bench) -> None:
    """What ran before the entries that are missing says nothing of where the hart is."""
    bench.there.registers = True
    bench.session.start(bench.context)
    bench.run(300)
    assert bench.pcs() == bench.all() and "END" in bench.registers()
    bench.run(300)
    count = [0]

    def breaks(address: int) -> None:
        count[0] += address == BASE + 0xC
        if count[0] == 10:
            raise CableOut

    bench.there.broken = breaks
    pcs, whole = bench.pcs(), bench.all()
    assert 300 < len(pcs) < 590 and pcs == whole[: len(pcs)] and "END" not in bench.registers()
    assert any("the cable is out" in line for line in bench.session.status(bench.context))
    bench.there.broken = lambda address: None
    assert len(bench.pcs()) > len(pcs) and "END" in bench.registers()


def test_what_is_not_a_tracer_is_refused(bench: Bench) -> None:
    bench.there.targets = ("riscv.cpu0", "riscv.cpu1")
    with pytest.raises(HartNotSelected, match="cannot trace hart 1: HSEL does not select it"):
        bench.session.start(bench.context, {"harts": [1]})
    with pytest.raises(BadOption, match="a TRACER traces one hart"):
        bench.session.start(bench.context, {"harts": [0, 1]})
    with pytest.raises(BadOption, match="there is no TRACER 'x' in the target description, it has tracer0"):
        bench.session.start(bench.context, {"to": ["x"]})
    bench.tracer.read = lambda offset, nbytes: 0  # type: ignore[method-assign]
    Path(bench.context.target_file or "").write_text(TEXT.replace("0xfff30000", "0x10000000"))
    with pytest.raises(NoTracer, match="tracer0 at 0x10000000 is not a TRACER of NEORV32: CTRL reads"):
        bench.session.start(bench.context)


def test_of_two_harts_either_can_be_traced(bench: Bench) -> None:
    bench.there.targets = ("riscv.cpu0", "riscv.cpu1")
    said = info(bench.session, bench.context, connect=bench.there.connect)
    assert said[1:] == ["tracer0:  TRACER of NEORV32 at 0xfff30000, hart 0", "          1024 entries, off"]


def test_options_without_effect_are_named(bench: Bench) -> None:
    said = bench.session.start(bench.context, {"timestamps": True})
    assert any("options without effect: timestamps" in line for line in said)


def test_the_description_is_read_and_written() -> None:
    read = file.parse(TEXT + 'hart = 1\n[[tracer]]\nname = "other"\n', "x.toml")
    assert read.tracers == (TracerDescription("tracer0", BASE, 1), TracerDescription("other", BASE, 0))
    assert read.harts == [0, 1]
    assert file.parse(tables.text(read), "x.toml").tracers == read.tracers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hart = 2", "hart"), ("base = 0xfff30002", "base"), ("depth = 3", "depth"),
        ('[[tracer]]\nname = "tracer0"', "is used 2 times"),
    ],
)  # fmt: skip
def test_descriptions_that_cannot_be(text: str, says: str) -> None:
    changed = TEXT.replace("base = 0xfff30000\n", "") + text if text.startswith("base") else TEXT + text
    with pytest.raises(DescriptionError, match=says):
        file.parse(changed, "x.toml")
