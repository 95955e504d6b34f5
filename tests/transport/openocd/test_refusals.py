"""An access to memory that OpenOCD refuses: why it did, as far as it can be seen, and what can be tried.

The real OpenOCD against the simulated target, whose hart has no program buffer; and answers of an OpenOCD before 0.12.
"""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentAccess
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER, ENCODER_CONTROL
from rvtrace_gdb.transport.openocd.csrs import OpenOcdCsrs
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused, OpenOcdTooOld
from rvtrace_gdb.transport.openocd.memory_ways import outcomes
from rvtrace_gdb.transport.openocd.target import OpenOcd
from tests.transport.openocd.fake_server import FakeOpenOcd
from tests.transport.openocd.live_target import LOOP_FOREVER, Live

BASE, TRACE_RAM, NOWHERE = 0x2000_0000, 0x3000_0000, 0x9000_0000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("live"), LOOP_FOREVER) as rig:
        yield rig


@pytest.fixture
def openocd(live: Live) -> Iterator[OpenOcd]:
    with live.connect() as connection:
        connection.command("halt")
        connection.command("riscv set_mem_access progbuf sysbus abstract")
        yield connection


def test_the_reason_in_openocds_log_is_said(openocd: OpenOcd) -> None:
    with pytest.raises(OpenOcdRefused) as caught:
        openocd.read32(NOWHERE)
    assert str(caught.value) == (
        "OpenOCD cannot access address 0x90000000: read_memory: failed to read memory (the hart is halted; progbuf:"
        " skipped (insufficient progbuf), sysbus: failed, abstract: failed); its log may say more"
    )


def test_the_reason_is_said_of_a_data_port_that_cannot_be_read(openocd: OpenOcd) -> None:
    """It is not read again for that: each read takes a word from it."""
    with pytest.raises(OpenOcdRefused) as caught:
        openocd.read_data_port(NOWHERE + 0x40, 4)
    assert str(caught.value).startswith("OpenOCD cannot access address 0x90000040: ")
    assert "(the hart is halted; progbuf: skipped (insufficient progbuf), sysbus: failed, abstract" in str(caught.value)


def test_while_the_hart_runs_it_is_proposed_to_halt_it(openocd: OpenOcd) -> None:
    openocd.command("resume")
    with pytest.raises(ComponentAccess) as caught:
        Component(openocd, NOWHERE, ENCODER).read(ENCODER_CONTROL)
    text = str(caught.value)
    assert "the hart is running; progbuf: skipped (insufficient progbuf), sysbus: failed, abstract: " in text
    assert "halt it (`interrupt`) and repeat the command; otherwise check the base address" in text


@pytest.mark.parametrize("allowed", ["progbuf", "abstract", "abstract progbuf"])
def test_ways_to_memory_that_were_not_allowed_are_tried(openocd: OpenOcd, allowed: str) -> None:
    openocd.command(f"riscv set_mem_access {allowed}")
    with pytest.raises(OpenOcdRefused):
        openocd.command(f"read_memory {TRACE_RAM:#x} 32 1 phys")
    openocd.write32(TRACE_RAM, 0x12345678)
    assert openocd.read32(TRACE_RAM) == 0x12345678
    [note] = openocd.notes
    assert note.startswith("OpenOCD could not reach 0x30000000 by ") and ": from now on it may also use " in note
    assert "sysbus" in note


def test_where_all_ways_fail_openocd_is_left_as_it_was(openocd: OpenOcd) -> None:
    openocd.command("riscv set_mem_access abstract")
    with pytest.raises(OpenOcdRefused, match="progbuf: disabled, sysbus: disabled, abstract: failed"):
        openocd.read32(NOWHERE)
    assert openocd.notes == []
    with pytest.raises(OpenOcdRefused):
        openocd.command(f"read_memory {BASE:#x} 32 1 phys")


def test_what_became_of_each_way() -> None:
    line = "  progbuf=skipped (target not halted), sysbus=disabled, abstract=failed\nsysbus"
    assert outcomes(line) == {"progbuf": "skipped (target not halted)", "sysbus": "disabled", "abstract": "failed"}
    assert outcomes("Failed to read memory at 0x10") == {}


class Old(FakeOpenOcd):
    """As 0.11. *says*: what it answers to a command that it does not have: nothing, if a target is named."""

    def __init__(self, says: str) -> None:
        super().__init__(greeting="rvtrace\nOpen On-Chip Debugger 0.11.0\nriscv.cpu0\n")
        self._says = says

    def _answer(self, request: str) -> str:
        answer = super()._answer(request)
        if "info commands read_memory" in request:
            return "0 " if "error" not in request else "1 invalid command name read_memory"
        return f"1 {self._says}" if "read_memory" in request or "get_reg" in request else answer


@pytest.mark.parametrize("says", ["", 'invalid command name "read_memory"'])
def test_an_openocd_before_0_12_is_named(says: str) -> None:
    with Old(says) as fake, OpenOcd(port=fake.port, target="riscv.cpu0") as openocd:
        with pytest.raises(OpenOcdTooOld) as caught:
            openocd.read32(BASE)
        assert str(caught.value) == (
            "OpenOCD 0.11.0 is too old, it has no read_memory: rvtrace needs OpenOCD 0.12 or newer"
        )
        with pytest.raises(OpenOcdTooOld):
            OpenOcdCsrs(openocd.command, "riscv.cpu0", lambda number: ["mstatus"]).run([(0x300, None)])


def test_the_check_for_an_old_openocd_accepts_this_one(openocd: OpenOcd) -> None:
    assert OpenOcdCsrs(openocd.command, None, lambda number: ["misa"]).run([(0x301, None)]) != []
