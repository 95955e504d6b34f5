"""`trace regs` of what is kept, and of harts: captures, and Control Transfer Records.

Bits are those of the Trace Control Interface 1.0, Control Transfer Records 1.0 and their draft 0.1.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.errors import NoWay
from rvtrace_gdb.session.queries.hardware import info, registers
from rvtrace_gdb.session.queries.hardware.registers import RegisterRequest
from rvtrace_gdb.session.queries.lists import ctr_records
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources import ctr_commands
from rvtrace_gdb.support.errors import silent
from rvtrace_gdb.transport.openocd.errors import OpenOcdAbsent
from tests.controlregs.ctr.hart_model import CtrHart
from tests.session.board import DEMO
from tests.session.captures import SMALL, WITH_RECORDS, captures
from tests.session.queries.hardware.register_target import Registers, absent, described

NOBODY: dict[str, str] = {}
WAY = {"way": "packets", "version": None}


def test_registers_of_a_capture() -> None:
    """The end of a buffer is inclusive: trRamLimit."""
    capture = replace(SMALL, encoders=(replace(SMALL.encoders[0], hart=5),))
    assert registers.captured_names(capture) == ("encoder0", "ram0")
    title, *lines = registers.captured_lines(capture, "encoder0")
    assert title == "encoder0 at 0x20000000: trace encoder, hart 5, in the capture"
    assert [line.split()[:2] for line in lines] == [["trTeControl", "0x0134006f:"], ["trTeImpl", "0x10010001:"]]
    title, *lines = registers.captured_lines(capture, "ram0")
    assert title == "ram0 at 0x20001000: RAM sink, in the capture"
    assert [line.split()[:2] for line in lines] == [
        ["trRamControl", "0x00000013:"], ["trRamImpl", "0x00002901:"], ["trRamStartLow", "0x30000000"],
        ["trRamLimitLow", "0x3000fffc"],
    ]  # fmt: skip


def test_of_an_imported_trace_it_is_said_that_they_were_not_read() -> None:
    encoder = SMALL.encoders[0]
    imported = replace(SMALL, encoders=(replace(encoder, in_force=replace(encoder.in_force, base=0)),))
    lines = registers.captured_lines(imported, "encoder0")
    assert lines[0] == "encoder0: trace encoder, hart 0, in the capture"
    assert lines[-1].startswith("  note: not read from a target: ")


def test_records_of_a_capture() -> None:
    """1.0 has the depth in a register of its own, 0.1.4 in the control register."""
    assert registers.captured_lines(WITH_RECORDS, "ctr1") == [
        "ctr1: Control Transfer Records 1.0, hart 1, in the capture",
        "  sctrstatus 0x80000001: WRPTR=1 FROZEN=1",
        "  sctrdepth 0x00000000: DEPTH=0 (entries_16)",
        "  vsctrctl 0x0000000000000003: U=1 S=1 RASEMU=0 STE=0 BPFRZ=0 LCOFIFRZ=0 EXCINH=0 INTRINH=0 TRETINH=0 "
        "NTBREN=0 TKBRINH=0 INDCALLINH=0 DIRCALLINH=0 INDJMPINH=0 DIRJMPINH=0 CORSWAPINH=0 RETINH=0 INDLJMPINH=0 "
        "DIRLJMPINH=0 Custom=0",
        "  mctrctl 0x0000801000000087: U=1 S=1 M=1 RASEMU=1 STE=0 MTE=0 BPFRZ=0 LCOFIFRZ=0 EXCINH=0 INTRINH=0 "
        "TRETINH=0 NTBREN=1 TKBRINH=0 INDCALLINH=0 DIRCALLINH=0 INDJMPINH=0 DIRJMPINH=0 CORSWAPINH=0 RETINH=0 "
        "INDLJMPINH=0 DIRLJMPINH=1 Custom=0",
    ]
    title, *lines = registers.captured_lines(WITH_RECORDS, "ctr2")
    assert title == "ctr2: Control Transfer Records 0.1.4, hart 2, in the capture"
    assert [line.split()[:2] for line in lines] == [
        ["mctrcontrol", "0x0000000000000007:"], ["mctrstatus", "0x00000000:"],
    ]  # fmt: skip


@given(captures())
def test_any_capture_can_be_shown(capture: Capture) -> None:
    for name in registers.captured_names(capture):
        for everything in (False, True):
            lines = registers.captured_lines(capture, name, everything=everything)
            assert len(lines) > 1 and name in lines[0]
    assert list(info.of_capture(capture))


# Harts


@dataclass
class Hart(CtrHart):
    """One that stands somewhere. *runs*: it does not stand still."""

    runs: bool = False

    def _read(self, register: CsrName) -> CsrAnswer:
        return 0x8000_0000 if register == "pc" else super()._read(register)

    def _access(self, register: CsrName, value: int | None) -> CsrAnswer:
        if self.runs:
            raise HartRuns
        return super()._access(register, value)


@dataclass
class Target:
    """A session, and the harts it reaches."""

    session: Session = field(default_factory=lambda: Session(absent, NOBODY))
    harts: Mapping[int, Hart] = field(default_factory=lambda: {0: Hart(), 1: Hart()})
    context: Context = field(default_factory=lambda: Context(str(DEMO), thread_hart=0))

    def start(self, **options: Any) -> None:
        ctr_commands.start(self.session, self.context, WAY, options)

    def show(self, *names: str, context: Context | None = None, **more: Any) -> registers.ShownRegisters:
        wish = RegisterRequest(names, access=WAY, **more)
        return registers.show(self.session, context or self.context, wish, silent, absent, NOBODY)


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    target = Target()
    for module in (ctr_commands, ctr_records):
        monkeypatch.setattr(module, "open_access", lambda way, session, hart: target.harts[hart])
    return target


def value(lines: list[str], register: str) -> int:
    return next(int(line.split()[1].rstrip(":"), 16) for line in lines if line.startswith(f"  {register} "))


def test_a_hart_that_records(target: Target) -> None:
    target.start(depth=64)
    lines, csrs = target.show()
    assert lines[0] == "ctr0: Control Transfer Records 1.0, hart 0" and csrs
    assert (value(lines, "mctrctl"), value(lines, "sctrdepth"), value(lines, "sctrstatus")) == (7, 2, 0)
    target.harts[0].record(0x8000_0000, 0x8000_0010, 11)
    assert value(target.show().lines, "sctrstatus") == 1  # as it is now, not as it was when it was started
    assert registers.names(target.session, Context(), NOBODY) == ["ctr0"]


def test_a_hart_nobody_started(target: Target) -> None:
    """The program may record by itself. What is read is what was there, and stays."""
    hart = target.harts[1]
    hart.control = 1 << 11 | 1
    before = hart.user_state()
    lines = target.show("ctr1").lines
    assert lines[0] == "ctr1: Control Transfer Records 1.0, hart 1" and value(lines, "mctrctl") == 1 << 11 | 1
    assert hart.user_state() == before and target.session.live is None


def test_a_hart_that_runs(target: Target) -> None:
    target.start(depth=64)
    target.harts[0].runs = target.harts[1].runs = True
    lines = target.show().lines
    assert lines[0] == "ctr0: Control Transfer Records 1.0, hart 0, when last read"
    assert lines[-1] == "  warning: the hart runs: stop it first (`interrupt` or Ctrl-C)"
    with pytest.raises(HartRuns):
        target.show("ctr1")


def test_after_recording_was_stopped(target: Target) -> None:
    target.start(depth=64)
    ctr_commands.stop(target.session)
    lines = target.show().lines
    assert lines[0] == "ctr0: Control Transfer Records 1.0, hart 0, when they were read"
    assert value(lines, "mctrctl") == 7 and target.harts[0].control == 0


def test_without_a_target() -> None:
    with pytest.raises(NoWay, match="gdb has no target"):
        registers.show(Session(absent, NOBODY), Context(), RegisterRequest(("ctr0",)), silent, absent, NOBODY)


def test_components_beside_harts(target: Target, tmp_path: Path) -> None:
    """All there are, unless some are named; harts record without OpenOCD, too."""
    context = described(tmp_path, "encoder e 0x1000", 'ram_sink r 0x2000 mode="SRAM"')
    context = replace(context, elf=str(DEMO), thread_hart=0)

    def titles(*names: str) -> list[str]:
        wish = RegisterRequest(names, access=WAY)
        shown = registers.show(target.session, context, wish, silent, Registers({}).connect, NOBODY)
        return [line.split()[0] for line in shown.lines if line and line[0] != " "]

    assert titles() == ["e", "r"] and titles("r", "ctr1") == ["ctr1:", "r"]
    target.start()
    assert titles() == ["ctr0:", "e", "r"] and titles("e") == ["e"] and titles("ctr0") == ["ctr0:"]

    def no_openocd(host: str, port: int) -> Registers:
        raise OpenOcdAbsent(host, port, "Connection refused")

    shown = registers.show(target.session, context, RegisterRequest(), silent, no_openocd, NOBODY)
    assert shown.lines[0].startswith("ctr0: ") and shown.lines[-1].startswith("warning: ")
    with pytest.raises(OpenOcdAbsent):
        registers.show(target.session, context, RegisterRequest(("ctr0", "e"), access=WAY), silent, no_openocd, NOBODY)


def test_components_need_a_description(target: Target) -> None:
    target.start()
    with pytest.raises(DescriptionError, match="no target description"):
        target.show("ctr0", "encoder0")


def test_info_tells_who_records(target: Target) -> None:
    target.start(depth=64)
    lines = info.info(target.session, Context(str(DEMO)), connect=absent, environ=NOBODY)
    assert lines[0] == "ctr0:     CTR 1.0, 64 entries, records M-mode, S-mode and U-mode, all kinds of transfers"
