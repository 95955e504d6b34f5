"""Control Transfer Records in a session: started, looked at, read again, kept in a file. The hart is a register file
written from the documents (tests/controlregs/ctr/hart_model.py); what ran is read off the program below.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.gdb_driver.state import trace_state
from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.errors import DepthRefused, HartRuns, NoCtr
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName
from rvtrace_gdb.rows.list_rows import Between
from rvtrace_gdb.session.capture.model import SavedAt
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import Busy, NoElf, NoTrace, WrongXlen
from rvtrace_gdb.session.queries.lists import ctr_records
from rvtrace_gdb.session.rpc.protocol import reported_facts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import ctr_commands
from rvtrace_gdb.support.errors import Cancelled, silent
from tests.console.status_lines import read
from tests.controlregs.ctr.hart_model import CtrHart

PROGRAM = """
        .option norvc
        .globl _start
_start: j a                     # 0x80000000
        nop
a:      nop                     # 0x80000008
        jal ra, f
        nop                     # 0x80000010
stop:   j stop
f:      nop                     # 0x80000018
        ret
"""
BASE = 0x8000_0000
TRANSFERS = ((0x00, 0x08, 11), (0x0C, 0x18, 9), (0x1C, 0x10, 13))  # source, target, TYPE
RAN = [0x00, 0x08, 0x0C, 0x18, 0x1C, 0x10]
WAY = {"way": "packets", "version": None}
ALL = 7  # M, S and U


@dataclass
class Hart(CtrHart):
    """One that stands somewhere. *runs*: it does not stand still."""

    pc: int = BASE + 0x14
    runs: bool = False
    trap: Mapping[CsrName, int] = field(default_factory=dict)

    def _read(self, register: CsrName) -> CsrAnswer:
        if register == "pc":
            return self.pc
        return self.trap[register] if register in self.trap else super()._read(register)

    def _access(self, register: CsrName, value: int | None) -> CsrAnswer:
        if self.runs:
            raise HartRuns(self.name)
        return super()._access(register, value)

    def run_program(self, transfers: tuple[tuple[int, int, int], ...] = TRANSFERS) -> None:
        for source, target, kind in transfers:
            self.record(BASE + source, BASE + target, kind)


@dataclass
class Board:
    """A session, and the harts it reaches. `ran`: how often gdb resumed them."""

    session: Session
    elf: Path
    harts: dict[int, Hart] = field(default_factory=dict)
    ran: int = 0

    def context(self, hart: int | None = 0) -> Context:
        return Context(str(self.elf), runs=self.ran, thread_hart=hart)

    def start(self, **options: Any) -> list[str]:
        return ctr_commands.start(self.session, self.context(), WAY, options)

    def run(self, hart: int = 0) -> None:
        self.harts[hart].run_program()
        self.ran += 1

    def rows(self, hart: int = 0, way: Mapping[str, Any] | None = WAY) -> list[tuple[Any, ...]]:
        """(number, from, to, type) of all that `trace ctr show` shows."""
        shown, _ = ctr_records.shown(self.session, self.context(hart), way, silent)
        assert shown.select("1,1", 0) == (1, 2, None)
        ends = [[place and place[0] for place in (row.source, row.target)] for row in shown.rows(1, 257)]
        return [(row.number, *end, row.type) for row, end in zip(shown.rows(1, 257), ends, strict=True)]

    def history(self, hart: int = 0) -> list[int]:
        history, _ = self.session.decoded(self.context(hart))
        return [pc - BASE for pc in history.pcs()]


def listed(*transfers: tuple[int, int, str]) -> list[tuple[Any, ...]]:
    return [(number, BASE + source, BASE + target, kind) for number, (source, target, kind) in enumerate(transfers)]


ROWS = listed((0x1C, 0x10, "function return"), (0x0C, 0x18, "direct call"), (0x00, 0x08, "direct jump"))


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ctr")
    (folder / "a.S").write_text(PROGRAM)
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac", "-mabi=lp64", "-nostdlib", "-Wl,-Ttext=0x80000000"]
    subprocess.run([*command, "-o", str(folder / "a.elf"), str(folder / "a.S")], check=True)
    return folder / "a.elf"


@pytest.fixture
def board(elf: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    board = Board(Session(), elf, {0: Hart(), 1: Hart()})
    monkeypatch.setattr(ctr_commands, "open_access", lambda way, session, hart: board.harts[hart])
    return board


def status(session: Session, context: Context, way: Mapping[str, Any]) -> list[str]:
    """The lines, which programs are told the same by."""
    lines = ctr_commands.status(session, context, way)
    assert trace_state(reported_facts(lines)) == read(lines)
    return lines


def test_all_since_the_start(board: Board) -> None:
    """Without a record of it, as long as no record was overwritten or cleared."""
    hart = board.harts[0]
    hart.pc = BASE + 8
    board.start(depth=16)
    assert [(saved.at, saved.pc) for saved in board.session.capture().registers] == [(SavedAt.START, BASE + 8)]
    hart.run_program(TRANSFERS[1:])
    hart.pc, board.ran = BASE + 0x14, 1
    assert board.history() == RAN[1:]
    assert board.session.capture().records[0].in_force.begin == BASE + 8
    ctr_commands.clear(board.session, board.context(), WAY)
    hart.run_program(TRANSFERS[1:])
    board.ran += 1
    assert board.history() == RAN[2:]


def test_a_description_without_components_is_one_of_memory(board: Board, tmp_path: Path) -> None:
    target = tmp_path / "target.toml"
    target.write_text('[[memory]]\naddress = 0x80000000\nsize = 0x1000\nkind = "ram"\n')
    context = replace(board.context(), target_file=str(target))
    ctr_commands.start(board.session, context, WAY, {})
    assert [it.size for it in board.session.capture().ranges] == [0x1000]
    board.session.stop()
    with pytest.raises(DescriptionError, match='there is none of type "encoder"'):
        board.session.start(context)
    target.write_text('[usb]\nadapter = "esp"\n')
    with pytest.raises(DescriptionError, match=r"the firmware of Espressif.s chips sets the trace up"):
        board.session.start(context)


def test_from_start_to_stop(board: Board) -> None:
    board.harts[0].control = 1 << 11 | 1  # the program's own: U mode, freeze at breakpoints
    board.harts[0].code = 1
    line, note = board.start(depth=16)
    assert line == "ctr0:     CTR 1.0, 16 entries, records M-mode, S-mode and U-mode, all kinds of transfers"
    assert note.startswith("note:     mctrctl was 0x801, recording was on: those records are lost")
    assert (board.harts[0].control, board.harts[0].code) == (ALL, 0)
    board.run()
    assert board.rows() == ROWS
    assert board.history() == RAN
    assert ctr_commands.stop(board.session) == [
        "Tracing stopped.",
        "ctr0:     3 of 16 entries have records",
        "note:     mctrctl is 0x801 again, as before: recording continues with that",
    ]
    assert (board.harts[0].control, board.harts[0].code) == (1 << 11 | 1, 1)
    assert board.harts[0].user_state() == Hart().user_state()
    board.run()
    assert board.rows() == ROWS, "what was recorded until it was stopped"
    assert status(board.session, board.context(), WAY)[:2] == [line, "read:     3 of 16 entries have records"]
    assert "ended already" in ctr_commands.stop(board.session)[0]


def test_stop_is_interrupted(board: Board) -> None:
    """While it reads, recording goes on; while it puts registers back, the next one does that."""

    def interrupted(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    board.harts[0].control = 1
    board.start()
    board.run()
    with pytest.raises(Cancelled):
        ctr_commands.stop(board.session, progress=interrupted)
    assert "state:" in status(board.session, board.context(), WAY)[1]
    assert board.rows() == ROWS
    stop = procedures.stop
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Cancelled):
        patch.setattr(procedures, "stop", lambda *arguments: interrupted("", 0))
        ctr_commands.stop(board.session)
    assert procedures.stop is stop and board.harts[0].control == ALL
    lines = status(board.session, board.context(), WAY)
    assert lines[-1] == "note:     the registers of hart 0 are not restored: `trace ctr stop` does it"
    assert ctr_commands.stop(board.session)[0] == "The trace had ended already."
    assert board.harts[0].control == 1 and board.rows() == ROWS


def test_what_ran_between_two_records_and_since(board: Board) -> None:
    board.start()
    board.run()
    shown, _ = ctr_records.shown(board.session, board.context(), WAY, silent)
    between = [row.between for row in shown.rows(1, 4)]
    assert between == [
        Between(instructions=2, first=4, last=5, why=None), Between(instructions=2, first=2, last=3, why=None), None,
    ]  # fmt: skip
    assert shown.since() == Between(instructions=1, first=6, last=6, why=None)


def test_nothing_is_read_twice(board: Board) -> None:
    board.start()
    board.run()
    board.rows()
    before = board.harts[0].batches
    board.rows()
    board.history()
    assert board.harts[0].batches == before + 1, "a look whether the hart still stands where it stood"
    board.run()
    assert len(board.rows()) == 6


def test_a_program_that_records_by_itself_is_looked_at(board: Board) -> None:
    """Nothing is written; each hart is looked at when it is asked for, and all of it is read again when they ran."""
    for hart in board.harts.values():
        hart.control = ALL
    board.run()
    before = board.harts[0].batches
    assert board.rows() == ROWS
    reads = board.harts[0].batches - before
    assert board.history() == RAN and board.harts[0].batches == before + reads
    with pytest.raises(NoTrace, match="no control transfer has been recorded yet"):
        board.rows(hart=1)
    board.run(hart=1)
    assert board.rows(hart=1) == board.rows() == ROWS
    written = {register for register, value in board.harts[0].log if value is not None}
    assert written == {0x150}, "siselect alone"
    note = "note:     recording was not started by rvtrace, so it continues in the program"
    assert ctr_commands.stop(board.session)[-1] == note
    assert board.harts[0].control == ALL


def test_harts_are_all_started_or_none(board: Board) -> None:
    board.harts[0].control = 1 << 12
    board.harts[1] = Hart(codes=(0,))
    with pytest.raises(DepthRefused):
        board.start(harts=[0, 1], depth=64)
    assert (board.harts[0].control, board.harts[0].depth) == (1 << 12, 16)
    assert board.session.live is None


def test_a_capture_file_shows_the_same(board: Board, tmp_path: Path) -> None:
    board.start()
    board.run()
    board.rows()
    history = board.history()
    assert board.session.save(tmp_path / "x.rvt", board.context())[0].startswith("Saved 72 bytes of trace")
    other = Board(Session(), board.elf)
    lines = other.session.open(tmp_path / "x.rvt", str(board.elf))
    assert any("ctr0" in line and "CTR 1.0" in line for line in lines)
    assert other.rows(way=None) == ROWS
    assert other.history() == history == RAN
    assert ctr_commands.status(other.session, other.context(), None)[0].startswith("ctr0:     CTR 1.0, 256 entries")
    with pytest.raises(Busy, match="a capture file is open"):
        ctr_commands.clear(other.session, other.context(), None)


def test_clear(board: Board) -> None:
    board.start()
    board.run()
    board.rows()
    assert ctr_commands.clear(board.session, board.context(), WAY) == ["The records of hart 0 are empty."]
    with pytest.raises(NoTrace, match="no control transfer has been recorded yet"):
        board.rows()
    board.run()
    assert board.rows() == ROWS


def test_stacks(board: Board) -> None:
    """With RAS emulation the calls that are left; without, those that did not return, as far as that was recorded."""
    board.start(ras=True)
    board.harts[0].run_program(((0x0C, 0x18, 9), (0x40, 0x50, 8)))
    board.harts[0].pop()
    board.ran += 1
    found = ctr_records.stack(board.session, board.context(), WAY)
    assert (found["ras"], found["full"]) == (True, False)
    pc, call = found["frames"]
    assert pc == {"pc": BASE + 0x14, "call": False, "to": None}
    assert call == {"pc": BASE + 0x0C, "call": True, "to": BASE + 0x18}
    board.start()
    transfers = ((0x0C, 0x18, 9), (0x18, 0x40, 8), (0x44, 0x1C, 13), (0x1C, 0x50, 12), (0x54, 0x60, 11))
    board.harts[0].run_program(transfers)
    board.ran += 1
    frames = ctr_records.stack(board.session, board.context(), WAY)["frames"]
    assert [frame["pc"] - BASE for frame in frames[1:]] == [0x1C], "the swap took the first call's place"


def test_a_stack_needs_calls_and_returns(board: Board) -> None:
    board.start(inhibit=[12, 13])
    board.harts[0].run_program(TRANSFERS[:2])
    board.ran += 1
    with pytest.raises(NoTrace, match="lack calls or returns"):
        ctr_records.stack(board.session, board.context(), WAY)


def test_what_is_wrong_is_one_line(board: Board, elf: Path) -> None:
    with pytest.raises(NoTrace, match="no control transfers are being recorded"):
        ctr_commands.stop(board.session)
    with pytest.raises(NoElf):
        ctr_commands.start(board.session, Context(), WAY, {})
    with pytest.raises(NoTrace, match="gdb is not connected"):
        board.rows(way=None)
    board.harts[0] = Hart(xlen=32)
    with pytest.raises(WrongXlen, match="RV64"):
        board.start()
    board.harts[0] = Hart(lies=type(Hart().lies)(refused=frozenset({0x14E, 0x34E})))
    with pytest.raises(NoCtr, match="this hart has no Control Transfer Records"):
        board.rows()
    board.harts[0] = Hart(runs=True)
    with pytest.raises(HartRuns):
        board.start()


def test_while_the_hart_runs(board: Board) -> None:
    """What was read is kept; stopping is refused, because the registers could not be put back."""
    board.start()
    board.run()
    board.rows()
    board.harts[0].runs = True
    board.ran += 1
    with pytest.raises(HartRuns):
        board.rows()
    assert board.history() == RAN
    with pytest.raises(HartRuns):
        ctr_commands.stop(board.session)
    assert any("the hart runs" in line for line in status(board.session, board.context(), WAY))
    board.harts[0].runs = False
    ctr_commands.stop(board.session)
    assert board.harts[0].control == 0


def test_the_draft(board: Board) -> None:
    board.harts[0] = Hart(version="0.1.4")
    assert board.start()[0].startswith("ctr0:     CTR 0.1.4, 256 entries")
    board.run()
    assert board.rows() == ROWS
    assert board.history() == RAN
