"""What is said of Control Transfer Records, the last 256 transfers at most: no alarm for what is not wrong."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.amounts import crossed
from tests.session.questions.explain.control_transfers import of_records
from tests.session.questions.explain.corpus import observed
from tests.session.questions.explain.mutants import Mutant, mutants
from tests.session.questions.explain.test_mutants import kind_of
from tests.session.questions.explain.test_sane import captured

VERSIONS = (("1.0", 256), ("0.1.4", 32))
RUN = 6000
SANE_RUN = 2000


def mutant(name: str) -> Mutant:
    return next(it for it in mutants(11, 40) if it.name.startswith(name))


@pytest.mark.parametrize(("case", "version", "calls"), crossed([1, 3, 4, 9, 11, 12, 13], VERSIONS, [False, True]))
def test_nothing_is_said_of_what_is_not_wrong(
    tmp_path: Path, case: int, version: tuple[str, int], calls: bool
) -> None:
    whole = captured(tmp_path, case, run=SANE_RUN)
    [elf] = tmp_path.glob("*.elf")
    assert kind_of(of_records(whole, elf, SANE_RUN, *version, calls=calls)) == "sane"


def test_a_recursion_that_returns_is_no_loop_without_a_way_out(tmp_path: Path) -> None:
    """Of its calls there is no record any more, of its returns there are."""
    whole = captured(tmp_path, 9, run=SANE_RUN)
    [elf] = tmp_path.glob("*.elf")
    assert kind_of(of_records(whole, elf, SANE_RUN, *VERSIONS[0])) == "sane"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("services:4 small: #define SERVICES 2", "wild-jump", "the program ran into 0x0: address 0"),
        ("sorted:66 one more", "fault", "Its handler, on_trap(), never returns"),
    ],
)
def test_a_fault_that_the_records_do_not_reach_back_to(
    tmp_path: Path, name: str, kind: str, said: str, version: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its handler jumps to itself, and fills the records; the registers of the hart have the cause, if they were saved.
    """
    seen = observed(tmp_path, mutant(name), run=RUN)
    assert seen is not None and seen.truth == kind
    file = of_records(seen.capture, seen.elf, RUN, *version)
    assert kind_of(file) == kind
    assert main(["explain", str(file), "--quiet"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    hart = build(seen.elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 12)).hart  # which knows it
    hart.run(RUN)
    assert said in printed and f"exception {hart.csr.trap.mcause} (" in printed
    assert "the trace does not reach back to it" in printed
    assert kind_of(of_records(seen.capture, seen.elf, RUN, *version, registers=False)) == "sane"
