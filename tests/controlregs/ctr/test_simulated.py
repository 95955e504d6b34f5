"""The procedures on the simulated hart's CTR, both versions: what they read is what the independent model has.

The model is told what was written to the registers and what the hart executed.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.controlregs.ctr.hart import detect
from rvtrace_gdb.controlregs.ctr.procedures import clear, read, start, status, stop
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import DepthRefused
from rvtrace_gdb.controlregs.target import Access, Answer, Register
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from tests.controlregs.ctr.plain_program import plain
from tests.ctr_model.model import Model
from tests.transport.simulated.ctr.program_run import CONTROL, SELECT, STATUS, Followed

VERSION = pytest.mark.parametrize("version", ["1.0", "0.1.4"])
LONG = 150  # instructions, more than the program has before it stands in its last loop
IN_F = 4  # instructions until it stands in the function it calls
REQUESTS = {
    "all": CtrRequest(),
    "depth-16": CtrRequest(depth=16, modes=frozenset({"m"})),
    "calls": CtrRequest(inhibit=frozenset(TransferType(n) for n in (1, 2, 3, 5, 10, 11, 12, 13, 14, 15))),
    "not-taken": CtrRequest(not_taken=True, inhibit=frozenset({TransferType.FUNCTION_RETURN})),
    "ras": CtrRequest(ras=True),
    "external": CtrRequest(modes=frozenset({"u"}), external=frozenset({"m"}), freeze_breakpoint=True),
}


class InProcess:
    """A `CsrAccess` to the hart of a `Followed`, as its debug module would do it."""

    name = "simulated"
    xlen = 64

    def __init__(self, followed: Followed) -> None:
        self.followed = followed

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        answers: list[Answer] = []
        for register, value in accesses:
            try:
                answers.append(self._access(register, value))
            except IllegalCsr:
                answers.append("no such CSR")
                break
        return answers

    def _access(self, register: Register, value: int | None) -> int:
        hart = self.followed.hart
        if isinstance(register, str):
            assert value is None, "Debug Mode may do everything: the mode need not be changed"
            return hart.pc if register == "pc" else hart.privilege
        if value is None:
            return hart.csr_read(register, debug=True)
        self.followed.write(register, value)
        return 0


def begin(folder: Path, build: CtrBuild) -> tuple[Followed, InProcess]:
    followed = Followed(plain(folder), build)
    return followed, InProcess(followed)


def registers(followed: Followed, version: str) -> list[int]:
    numbers = [CONTROL[version], SELECT[version], *([0x15F] if version == "1.0" else [])]
    return [followed.hart.csr_read(number, debug=True) for number in numbers]


@VERSION
@pytest.mark.parametrize("name", REQUESTS)
def test_record_and_read(tmp_path: Path, version: str, name: str) -> None:
    followed, access = begin(tmp_path, CtrBuild(version))
    before = registers(followed, version)
    started = start(access, detect(access), REQUESTS[name], "ctr0")
    assert not [note for note in started.notes if "external traps" not in note]
    followed.run(IN_F if name == "ras" else LONG)
    in_force, entries = read(access, VERSIONS[version], "ctr0")
    model = Model(plain(tmp_path), version, exponent_bits=4)
    expected = [words for words in followed.compare(model) if words[0] & 1]
    assert [tuple(entry) for entry in entries] == expected
    assert bool(expected) == (name != "external")
    assert in_force.status == followed.hart.csr_read(STATUS[version], debug=True)
    assert status(access, VERSIONS[version], "ctr0").recorded == len(expected)
    assert in_force.pc == followed.hart.pc and in_force.privilege == 3
    stop(access, VERSIONS[version], started.found)
    assert registers(followed, version) == before


@VERSION
def test_cycles_are_counted_from_the_start_on(tmp_path: Path, version: str) -> None:
    """A write of a control register resets the counter, so the first record has no count; all others do."""
    followed, access = begin(tmp_path, CtrBuild(version))
    followed.run(7)
    start(access, detect(access), CtrRequest(), "ctr0")
    followed.run(20)
    first = read(access, VERSIONS[version], "ctr0")[1]
    followed.run(20)
    entries = read(access, VERSIONS[version], "ctr0")[1]
    assert entries[-1].cycles is None and None not in [entry.cycles for entry in entries[:-1]]
    assert len(entries) > len(first) > 1, "reading in between has changed nothing"


@VERSION
def test_clearing_while_recording(tmp_path: Path, version: str) -> None:
    followed, access = begin(tmp_path, CtrBuild(version))
    start(access, detect(access), CtrRequest(depth=16), "ctr0")
    followed.run(40)
    clear(access, VERSIONS[version])
    assert read(access, VERSIONS[version], "ctr0")[1] == []
    followed.run(12)
    model = Model(plain(tmp_path), version, exponent_bits=4)
    expected = [words for words in followed.compare(model) if words[0] & 1]
    entries = read(access, VERSIONS[version], "ctr0")[1]
    assert [tuple(entry) for entry in entries] == expected and entries[-1].cycles is None


@VERSION
def test_a_hart_that_has_little(tmp_path: Path, version: str) -> None:
    """No filters, no RAS emulation, no cycle counts, two depths: a line for each wish, and what is there is used."""
    optional = CtrBuild(version).optional - {"TYPE"}
    followed, access = begin(tmp_path, CtrBuild(version, (32, 64), frozenset(optional), None))
    wish = CtrRequest(ras=True, freeze_lcofi=True, inhibit=frozenset({TransferType.DIRECT_CALL}))
    started = start(access, detect(access), wish, "ctr0")
    name = "mctrctl" if version == "1.0" else "mctrcontrol"
    assert [note.partition(":")[0] for note in started.notes] == [
        f"this hart has no {name}.RASEMU", f"this hart has no {name}.LCOFIFRZ", f"this hart has no {name}.DIRCALLINH"
    ]  # fmt: skip
    assert started.in_force.depth == 64
    followed.run(LONG)
    entries = read(access, VERSIONS[version], "ctr0")[1]
    assert len(entries) > 40 and {entry.cycles for entry in entries} == {None}
    with pytest.raises(DepthRefused, match="a depth of 16; this hart has 32, 64"):
        start(access, VERSIONS[version], CtrRequest(depth=16), "ctr0")
