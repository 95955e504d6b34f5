"""CSRs behind a real OpenOCD, on the simulated target with Control Transfer Records, in every way there is.

What is read was written by a Tcl client of the tests' own (tests.transport.simulated.openocd), and the other way round.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gdbext.csrs.csr_questions import (
    MCTRCTL,
    SCTRDEPTH,
    SIREG,
    SISELECT,
    Request,
    ask,
    asking_gdb,
    entries,
)
from tests.gdbext.gdb_process import AT_ONCE, GDB, SOME_GDBS, KeptGdb, newest_gdb
from tests.helpers.amounts import crossed, long_only, thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.openocd_crash import kill_openocd
from tests.transport.simulated.openocd import OpenOcd

CONNECTIONS = {"direct": "target extended-remote :{}", "proxy": "trace connect localhost:{}"}
WAYS = ("auto", "rpc", "packets", "named")
NAMES = {"auto": "OpenOCD", "packets": "gdb's register packets", "named": "gdb's registers"}
MCTRCONTROL, MCTRSTATUS, MISELECT, MIREG = 0x381, 0x383, 0x350, 0x351

every_way = pytest.mark.parametrize("way", WAYS)
in_pairs = pytest.mark.parametrize(("way", "connect"), crossed(WAYS, list(CONNECTIONS)))
in_other_pairs = pytest.mark.parametrize(("way", "connect"), crossed(WAYS, list(CONNECTIONS)[::-1]))
"""Each way is tried through each connection, in one of the tests; in all of them in the long run."""


class Configured(OpenOcd):
    """Its OpenOCD is configured as usual, but for the lines that have *without* in them."""

    def __init__(self, elf: Path, folder: Path, *options: str, without: str = "\0") -> None:
        super().__init__(elf, folder, *options)
        self.without = without
        self.openocd_commands = AT_ONCE

    def start_openocd(self) -> None:
        file = self.folder / "openocd.cfg"
        lines = file.read_text().splitlines()
        file.write_text("".join(f"{line}\n" for line in lines if self.without not in line))
        super().start_openocd()


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def target(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Configured]:
    with Configured(elf, tmp_path_factory.mktemp("target"), "--ctr", "1.0") as target:
        yield target


@pytest.fixture(scope="module", params=SOME_GDBS)
def kept(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptGdb]:
    """One gdb, which each test connects, and disconnects."""
    with asking_gdb(request.param, elf, tmp_path_factory.mktemp("gdb")) as kept:
        yield kept


def connection(target: Configured, connect: str = "direct") -> str:
    return CONNECTIONS[connect].format(target.gdb_port)


def steps(target: Configured, request: Request) -> list[Request | str]:
    """*request*, and before it what its way needs: rpc is OpenOCD's own server, which the user says the port of."""
    if request.way != "rpc":
        return [request]
    request.way = "openocd"
    return [f"set trace openocd-port {target.tcl_port}", request, "set trace openocd-port"]


@in_pairs
def test_every_way_leads_to_the_same(
    kept: KeptGdb, connect: str, way: str, target: Configured, elf: Path, tmp_path: Path
) -> None:
    target.tcl("halt")
    for entry in range(8):
        target.tcl.set_reg("csr_siselect", 0x200 + entry)
        target.tcl.set_reg("csr_sireg", 0x8000_0000 + 16 * entry + 1)
        target.tcl.set_reg("csr_sireg2", 0x8000_1000 + 16 * entry)
    write: list[list[object]] = [[SCTRDEPTH, 1], [SCTRDEPTH, None], ["priv", None]]
    request = Request(entries(range(8)), write, [[SISELECT, 0]], way=way)
    found = ask(kept, elf, tmp_path, connection(target, connect), *steps(target, request)).answer()
    read, written, _ = found["answers"]
    assert [read[5 * n + 2 : 5 * n + 4] for n in range(8)] == [
        [0x8000_0000 + 16 * n + 1, 0x8000_1000 + 16 * n] for n in range(8)
    ]
    assert written == [0, 1, 3]
    assert found["xlen"] == 64
    assert found["name"] == NAMES.get(way, f"OpenOCD 127.0.0.1:{target.tcl_port}")


@in_other_pairs
def test_a_refused_read_is_no_old_value(
    kept: KeptGdb, connect: str, way: str, target: Configured, elf: Path, tmp_path: Path
) -> None:
    """sireg holds something, then siselect leads nowhere; what is behind the refused read is not done."""
    target.tcl("halt")
    target.tcl.set_reg("csr_mctrctl", 1)
    before = [[SISELECT, 0x200], [SIREG, 0x1001], [SIREG, None]]
    refused = [[SISELECT, 0], [SIREG, None], [MCTRCTL, 7]]
    request = Request(before, refused, way=way)
    asked = ask(kept, elf, tmp_path, connection(target, connect), *steps(target, request))
    first, second = asked.answer()["answers"]
    assert first == [0, 0, 0x1001]
    assert second[0] == 0 and isinstance(second[1], str) and len(second) == 2
    assert target.tcl.reg("csr_mctrctl") == 1


@every_way
def test_what_openocd_does_not_expose_is_refused_and_the_connection_stays(
    kept: KeptGdb, way: str, target: Configured, elf: Path, tmp_path: Path
) -> None:
    request = Request([[MCTRCONTROL, None]], [[MCTRCTL, None]], way=way)
    asked = ask(kept, elf, tmp_path, connection(target), *steps(target, request), "output $pc")
    (refusal,), answered = asked.answer()["answers"]
    assert "not expose it" in refusal or refusal == "gdb has no such register"
    assert isinstance(answered[0], int)
    assert asked.printed("output $pc").startswith("(void (*)()) 0x")


@thorough("test_what_openocd_does_not_expose_is_refused_and_the_connection_stays")
def test_an_openocd_that_hides_errors_from_gdb_is_not_believed(elf: Path, tmp_path: Path) -> None:
    """By default it says an old value where a register cannot be read; through its interpreter it says why."""
    with Configured(elf, tmp_path / "target", "--ctr", "1.0", without="report_register_access_error") as target:
        requests = [Request([[SISELECT, 0], [SIREG, None]], way=way) for way in ("packets", "named", "auto")]
        asked = ask(GDB, elf, tmp_path, connection(target), *requests)
    assert "`gdb_report_register_access_error enable`" in asked.line(0)
    assert "`gdb_report_register_access_error enable`" in asked.line(1)
    assert asked.answer(2)["answers"] == [[0, "failed to read register 'csr_sireg'"]]


@pytest.mark.parametrize("version", [None, *long_only("0.1.4")])
def test_an_openocd_that_exposes_nothing(version: str | None, elf: Path, tmp_path: Path) -> None:
    """The line that it says is the one that helps."""
    with Configured(elf, tmp_path / "target", "--ctr", version or "1.0", without="expose_csrs") as target:
        setting = f"set trace ctr-version {version or 'auto'}"
        asked = ask(GDB, elf, tmp_path, connection(target), setting, Request([["pc", None]]))
        line = asked.line()
        assert line.startswith("OpenOCD has no registers for Control Transfer Records: put the line `riscv expose_csrs")
        command = line.split("`")[1]
        kill_openocd(target)
        target.openocd_commands = f"{command}; {target.openocd_commands}"
        target.start_openocd()
        control, select, alias = (MCTRCONTROL, MISELECT, MIREG) if version else (MCTRCTL, SISELECT, SIREG)
        batch = [[control, None], [select, 0x200], [alias, 9], [alias, None]]
        asked = ask(GDB, elf, tmp_path, connection(target), Request(batch))
    assert asked.answer()["answers"] == [[0, 0, 0, 9]]


@newest_gdb
def test_the_selected_frame_stays_and_gdb_shows_what_is_so_now(gdb: str, elf: Path, tmp_path: Path) -> None:
    asked_for: list[Request | str] = ["break classify", "continue", "up", "output/x $csr_mctrctl"]
    for value, way in enumerate(("auto", "named"), 5):
        asked_for += [Request([[MCTRCTL, value]], way=way), f"python csrs.flush_registers() # {way}"]
        asked_for += [f"output/x $csr_mctrctl + 0 * {value}", f"python print(gdb.selected_frame().level()) # {way}"]
    with Configured(elf, tmp_path / "target", "--ctr", "1.0") as target:
        asked = ask(gdb, elf, tmp_path, connection(target), *asked_for)
    assert asked.printed("output/x $csr_mctrctl") == "0x0"
    for value, way in enumerate(("auto", "named"), 5):
        assert asked.printed(f"output/x $csr_mctrctl + 0 * {value}") == f"{value:#x}"
        assert asked.printed(f"python print(gdb.selected_frame().level()) # {way}") == "1"
