"""CSRs through the real OpenOCD, on the simulated target with Control Transfer Records 1.0."""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.transport.openocd.csrs import NOT_EXPOSED, HartNotHalted, OpenOcdCsrs
from rvtrace_gdb.transport.openocd.target import OpenOcd as Link
from tests.transport.openocd.live_target import LOOP_FOREVER, write_elf
from tests.transport.simulated.openocd import OpenOcd

SISELECT, SIREG, SIREG2, SIREG3, MCTRCTL, MSCRATCH = 0x150, 0x151, 0x152, 0x153, 0x34E, 0x340
NAMES = {0x150: "siselect", 0x151: "sireg", 0x152: "sireg2", 0x153: "sireg3", 0x34E: "mctrctl", 0x340: "mscratch"}
UNNAMED, UNEXPOSED = 0x7C0, 0x7C1


class Target(OpenOcd):
    openocd_commands = f"riscv expose_csrs {UNNAMED}; init; halt"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("csrs")
    with Target(write_elf(folder / "loop.elf", LOOP_FOREVER), folder, "--ctr", "1.0") as target:
        yield target


@pytest.fixture
def link(target: Target) -> Iterator[Link]:
    target.tcl("halt")
    with Link(port=target.tcl_port) as link:
        yield link


@pytest.fixture
def csrs(link: Link) -> OpenOcdCsrs:
    return OpenOcdCsrs(link.command, None, lambda number: [NAMES[number]] if number in NAMES else [])


def test_registers_are_found_as_openocd_spells_them(csrs: OpenOcdCsrs) -> None:
    wanted = [MSCRATCH, SIREG, UNNAMED, UNEXPOSED]
    assert csrs.exposed(wanted) == dict(zip(wanted, ["mscratch", "csr_sireg", "csr1984", None], strict=True))


def test_what_is_read_comes_from_the_hart_and_not_from_openocds_cache(csrs: OpenOcdCsrs, target: Target) -> None:
    """The same register again and again, behind a select: a cached one would stay what it was."""
    for entry in range(3):
        target.tcl.set_reg("csr_siselect", 0x200 + entry)
        target.tcl.set_reg("csr_sireg", 0x1000 * (entry + 1) | 1)
    batch = [one for entry in range(3) for one in ((SISELECT, 0x200 + entry), (SISELECT, None), (SIREG, None))]
    assert csrs.run(batch) == [0, 0x200, 0x1001, 0, 0x201, 0x2001, 0, 0x202, 0x3001]


def test_a_write_reaches_the_hart(csrs: OpenOcdCsrs, target: Target) -> None:
    assert csrs.run([(MSCRATCH, 0xDEAD_BEEF_CAFE_BABE)]) == [0]
    assert target.tcl.reg("mscratch") == 0xDEAD_BEEF_CAFE_BABE


def test_several_registers_with_one_command(csrs: OpenOcdCsrs, target: Target) -> None:
    target.tcl.set_reg("csr_siselect", 0x201)
    target.tcl.set_reg("mscratch", 77)
    values = {"csr_siselect": 0x201, "mscratch": 77, "pc": 0x8000_0000}
    assert csrs.read_all(list(values)) == values
    assert csrs.read_all(["mscratch", "csr1985"]) is None
    target.tcl("resume")
    try:
        assert csrs.read_all(["mscratch", "ra"]) is None, "the hart runs"
    finally:
        target.tcl("halt")


def test_pc_and_privilege_mode(csrs: OpenOcdCsrs, target: Target) -> None:
    assert csrs.run([("pc", None), ("priv", None)]) == [0x8000_0000, 3]
    assert csrs.run([("priv", 0), ("priv", None), ("priv", 3), ("priv", None)]) == [0, 0, 0, 3]


def test_a_refusal_ends_the_batch(csrs: OpenOcdCsrs, target: Target) -> None:
    batch: list[tuple[int | str, int | None]] = [(MSCRATCH, 1), (SISELECT, 0), (SIREG, None), (MSCRATCH, 2)]
    assert csrs.run(batch) == [0, 0, "failed to read register 'csr_sireg'"]
    assert csrs.run([(MSCRATCH, None), (UNNAMED, 3), (MSCRATCH, 2)])[:1] == [1]
    assert csrs.run([(UNEXPOSED, None), (MSCRATCH, 2)]) == [NOT_EXPOSED]
    assert target.tcl.reg("mscratch") == 1


def test_a_refusal_before_what_is_not_exposed_comes_first(csrs: OpenOcdCsrs) -> None:
    answers = csrs.run([(SISELECT, 0), (SIREG, None), (UNEXPOSED, None)])
    assert answers == [0, "failed to read register 'csr_sireg'"]


def test_batches_of_any_length(csrs: OpenOcdCsrs, target: Target) -> None:
    batch = [one for value in range(600) for one in ((MSCRATCH, value), (MSCRATCH, None))]
    assert csrs.run(batch) == [one for value in range(600) for one in (0, value)]
    assert csrs.run([]) == []


def test_a_whole_batch_is_one_request(link: Link, csrs: OpenOcdCsrs, target: Target) -> None:
    csrs.exposed(list(NAMES))
    requests: list[str] = []

    def evaluate(tcl: str) -> str:
        requests.append(tcl)
        return link.command(tcl)

    counted = OpenOcdCsrs(evaluate, None, csrs._names)
    counted.exposed(list(NAMES))
    requests.clear()
    entry = [(SISELECT, 0x200), (SISELECT, None), (SIREG, None), (SIREG2, None), (SIREG3, None)]
    assert len(counted.run(entry * 16)) == 80
    assert len(requests) == 1


def test_a_hart_that_runs(csrs: OpenOcdCsrs, target: Target) -> None:
    target.tcl("resume")
    with pytest.raises(HartNotHalted, match="the hart is running, not halted"):
        csrs.run([(MSCRATCH, None)])


def test_an_answer_that_is_no_number_is_a_refusal() -> None:
    said = iter(["mscratch x", "what is this"])
    csrs = OpenOcdCsrs(lambda tcl: next(said), "a.cpu", lambda number: ["mscratch"])
    assert csrs.run([(MSCRATCH, None)]) == ["OpenOCD answered 'what is this'"]
