"""Causes of traps that are read from the hart: in lists and captures while they are certain, and not otherwise.

The program says what each trap is (tests/programs/trap_causes.c); where its hart is follows from another one, which is
stepped.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.decode.history.event_fields import event_fields
from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError
from tests.helpers.cross_compiler import HOME, compile_program
from tests.session.board import Board, CableOut, board, executed

ILLEGAL = "exception 2 (illegal instruction), tval 0xffffffff, read from the hart"
LOAD = "exception 5 (load access fault), tval 0x40, read from the hart"
MCAUSE, MEPC = 0x342, 0x341
WIDTHS = '\n[component.etrace]\necause_width = 5\nf0s_width = 1\nsupport = "standard"'
"""Of the simulated encoder; no register has them."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    return compile_program(folder, HOME / "tests" / "programs" / "trap_causes.c", march="rv64ima_zicsr")


@pytest.fixture
def target(elf: Path, tmp_path: Path) -> Board:
    return replace(board(tmp_path, elf), registers=True)


@pytest.fixture
def session(target: Board) -> Session:
    return Session(target.connect, environ={})


@pytest.fixture(scope="module")
def before(elf: Path) -> Callable[..., int]:
    """How many instructions retire before a function runs for the nth time."""
    symbols = {symbol.name: symbol.address for part in read_elf(elf).sections for symbol in part.symbols}
    pcs: list[int] = []
    for pc in executed(elf):
        pcs.append(pc)
        if pc == symbols["returned"] or len(pcs) > 5000:
            break

    def found(name: str, nth: int = 1) -> int:
        at = -1
        for _ in range(nth):
            at = pcs.index(symbols[name], at + 1)
        return at

    return found


class Asked:
    """A session that has traced the first instructions of the program."""

    def __init__(self, session: Session, target: Board, etrace: str = "") -> None:
        self.session, self.target, self.context = session, target, target.describe()
        file = target.folder / "board.toml"
        sink = '\n[[component]]\nname = "ram0"'
        file.write_text(file.read_text().replace(sink, f"{etrace}{sink}"))
        session.start(self.context)
        target.asked.clear()  # of what is saved with the trace
        self._ran = 0

    def run_to(self, place: int) -> None:
        while self._ran < place:
            self._ran += self.target.run(place - self._ran)

    @property
    def traps(self) -> list[str]:
        decoded = self.session.harts(self.context)
        return [event.text for event in decoded.harts.histories[0].events if isinstance(event.fact, Trap)]


@pytest.fixture
def traced(session: Session, target: Board) -> Asked:
    return Asked(session, target)


def test_in_the_handler(traced: Asked, before: Callable[..., int]) -> None:
    traced.run_to(before("on_trap") + 1)
    assert traced.traps == [ILLEGAL], "at its second instruction"
    traced.run_to(before("entered"))
    assert traced.traps == [ILLEGAL]
    traced.run_to(before("entered", 2))
    assert traced.traps == ["exception", LOAD]


def test_what_the_user_gets(traced: Asked, before: Callable[..., int], tmp_path: Path) -> None:
    """The lists of a capture that was saved then have it, too."""
    traced.run_to(before("entered"))
    traced.session.save(tmp_path / "x.rvt", traced.context)
    again = Session(environ={})
    again.open(tmp_path / "x.rvt", str(traced.target.elf))
    for session in (traced.session, again):
        events = session.harts(traced.context).harts.histories[0].events
        assert [it.text for it in events if isinstance(it.fact, Trap)] == [ILLEGAL]
        [fields] = [event_fields(it) for it in events if isinstance(it.fact, Trap)]
        assert fields == {"interrupt": 0, "cause": 2, "value": "0xffffffff", "from-hart": 1}
    assert len(again.capture().traps) == 1


def test_the_hart_is_asked_once(traced: Asked, before: Callable[..., int]) -> None:
    traced.run_to(before("entered"))
    context = traced.context = Context(traced.context.elf, traced.context.target_file, runs=1)
    assert traced.traps == traced.traps == [ILLEGAL]
    assert traced.target.asked.count(MCAUSE) == traced.target.asked.count(MEPC) == 1
    traced.run_to(before("entered") + 2)
    traced.context = Context(context.elf, context.target_file, runs=2)
    assert traced.traps == [ILLEGAL] and traced.target.asked.count(MCAUSE) == 2


def test_a_hart_that_cannot_be_asked(traced: Asked, before: Callable[..., int]) -> None:
    traced.run_to(before("entered"))
    for asked in range(200):
        traced.target.broken = broken_after(asked)
        try:
            traps = traced.traps
        except RvtraceError:  # nothing was read out
            continue
        finally:
            traced.target.broken = lambda address: None
        assert traps in ([], ["exception"], [ILLEGAL])
        if traps == [ILLEGAL]:
            return
    raise AssertionError("it is asked again when it can be")


def broken_after(accesses: int) -> Callable[[int], None]:
    left = iter(range(accesses))

    def broken(address: int) -> None:
        if next(left, None) is None:
            raise CableOut

    return broken


def test_etrace_has_the_causes_itself(elf: Path, tmp_path: Path, before: Callable[..., int]) -> None:
    target = replace(board(tmp_path, elf, (TeFormat.E_TRACE,)), registers=True)
    traced = Asked(Session(target.connect, environ={}), target, WIDTHS)
    traced.run_to(before("entered"))
    assert traced.traps == ["exception 2 (illegal instruction), tval 0xffffffff"]
    assert target.asked == [], "it is not read from the hart"
    traced.session.stop()
    assert traced.session.capture().traps == ()
