"""Where encoders need trace-notify triggers, what is set, and what is said: against a model of a trigger module."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rvtrace_gdb.controlregs.trace_control.encoder_registers import ImplicitReturnMode, TeFormat
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.sources import options
from rvtrace_gdb.session.sources.notify_triggers import NotifyPlaces, set_needed
from rvtrace_gdb.session.sources.options import Armed
from tests.controlregs.trigger_model import M, TriggerHart, Unit
from tests.helpers.cross_compiler import symbol_address
from tests.transport.simulated.harts import PROGRAMS, compiled

PROCESSES = PROGRAMS.parent / "contexts"
BOARD: Any = SimpleNamespace(context_notify=("sret",))
OTHER_BOARD: Any = SimpleNamespace(context_notify=())
FULL, COUNTER = ImplicitReturnMode.FULL_ADDRESS_STACK, ImplicitReturnMode.DEPTH_COUNTER
LATE = "what follows them has the context of before until the next synchronization"


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With six sret, and the bytes of one that is none."""
    sources = ("-DSPARE=5", "-Dmet=z_riscv_switch", str(PROCESSES / "processes.S"))
    return compiled(tmp_path_factory.mktemp("processes"), PROCESSES / "processes.c", options=sources)


def encoder(*, context: bool, returns: ImplicitReturnMode | None = None, format: int = TeFormat.N_TRACE) -> Any:
    return SimpleNamespace(context=context, implicit_return=returns, format=format)


def armed_with(monkeypatch: pytest.MonkeyPatch, harts: dict[int, TriggerHart]) -> Armed:
    monkeypatch.setattr(options, "csrs_of", lambda link, hart, names: harts[hart])
    link: Any = None
    return Armed(link)


def test_where_the_program_has_sret(elf: Path) -> None:
    """As objdump disassembles it."""
    command = ["riscv64-unknown-elf-objdump", "-d", "--no-show-raw-insn", str(elf)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expected = tuple(int(line.partition(":")[0], 16) for line in text.splitlines() if line.split()[1:] == ["sret"])
    assert len(expected) == 6
    assert NotifyPlaces(Image.from_elf(elf)).trap_returns(("sret",)) == expected
    assert Image.from_elf(elf).read(symbol_address(elf, "spare") + 32, 4) == bytes.fromhex("73002010")


def test_what_is_set_and_said_of_harts_with_too_few(elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harts = {hart: TriggerHart([Unit() for _ in range(2 if hart == 3 else 4)], 64) for hart in range(4)}
    armed = armed_with(monkeypatch, harts)
    settings = {hart: encoder(context=True) for hart in harts}
    first, missing, third, more = set_needed(armed, BOARD, settings, (), Image.from_elf(elf))
    assert first.startswith("harts 0 to 2: trace-notify triggers at <enter+18>, <spare+2>, <spare+8> and <spare+")
    assert first.endswith("(4 of 4 free triggers): there the encoder reports the context")
    assert missing.startswith("warning: harts 0 to 2: no free trigger for <spare+") and missing.endswith(LATE)
    assert third.startswith("hart 3: trace-notify triggers at <enter+18> and <spare+2> (2 of 2 free triggers)")
    assert more.startswith("warning: hart 3: no free trigger for <spare+8>, ")
    there = symbol_address(elf, "exit_to_user")
    assert [hart.fired(there, M) for hart in harts.values()] == [[4]] * 4
    assert not armed and armed.disarm() == []
    assert [hart.fired(there, M) for hart in harts.values()] == [[]] * 4


def test_the_switch_comes_first_and_places_that_the_user_named_are_left_out(
    elf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed = armed_with(monkeypatch, {0: TriggerHart([Unit(), Unit()], 64)})
    sret = NotifyPlaces(Image.from_elf(elf)).trap_returns(("sret",))
    settings = {0: encoder(context=True, returns=COUNTER)}
    lines = set_needed(armed, BOARD, settings, sret[:5], Image.from_elf(elf))
    last = f"<spare+{sret[5] - symbol_address(elf, 'spare')}>"
    set_up = [line.partition(" (")[0] for line in lines]
    assert set_up == [f"hart 0: trace-notify trigger at {place}" for place in ("<z_riscv_switch>", last)]


@pytest.mark.parametrize("kept", [encoder(context=False), encoder(context=False, returns=FULL)])
def test_nothing_where_nothing_is_needed(kept: Any, elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in E-Trace, where a notification is no synchronization."""
    for settings, board in [
        (kept, BOARD), (encoder(context=True), OTHER_BOARD),
        (encoder(context=False, returns=COUNTER, format=TeFormat.E_TRACE), BOARD),
    ]:  # fmt: skip
        assert set_needed(armed_with(monkeypatch, {}), board, {0: settings}, (), Image.from_elf(elf)) == []


def test_a_hart_without_triggers(elf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    armed = armed_with(monkeypatch, {0: TriggerHart([], 64), 1: TriggerHart([Unit(actions=(0, 1))], 64)})
    settings = {hart: encoder(context=True) for hart in (0, 1)}
    none, refused = set_needed(armed, BOARD, settings, (), Image.from_elf(elf))
    assert none.startswith("warning: hart 0: no free trigger for <enter+18>")
    assert refused.startswith("warning: hart 1: no trigger at <enter+18>")
    assert "hart 1 has no trigger with the action trace-notify (tdata1 reads" in refused
