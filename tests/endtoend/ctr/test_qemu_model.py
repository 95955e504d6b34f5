"""What QEMU 10 records, read by plain register packets, is what the documents say of what it executed.

QEMU's own records on one side, on the other tests.ctr_model.model, fed with the log of the same run: neither knows the
other, and nothing of rvtrace takes part. So the model can be trusted where other tests compare with it, and QEMU's CTR
where others read it.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ctr_model.model import Event, Model
from tests.ctr_model.packet_reads import Seen, expected, run_and_look
from tests.ctr_model.programs import build
from tests.helpers.amounts import long_only, sparse
from tests.helpers.qemu10 import CPU, RV32_CPU, running

EVERYTHING = f"rv64,{CPU},sscofpmf=true"
TABLES = f"rv64,{CPU},f=false,d=false,zfa=false,zca=true,zcmp=true,zcmt=true"
PROGRAMS = [
    pytest.param(("modes", "rv64imac_zicsr", EVERYTHING), id="modes"),
    pytest.param(("tables", "rv64imac_zicsr", TABLES), id="tables"),
    *long_only(
        pytest.param(("jumps", "rv64imac_zicsr", EVERYTHING), id="jumps"),
        pytest.param(("depths", "rv64imac_zicsr", EVERYTHING), id="depths"),
        pytest.param(("ras", "rv64imac_zicsr", EVERYTHING), id="ras"),
        pytest.param(("virtual", "rv64imac_zicsr", EVERYTHING), id="virtual"),
        pytest.param(("freeze", "rv64imac_zicsr", EVERYTHING), id="freeze"),
        pytest.param(("jumps", "rv64imac_zicsr", "max"), id="jumps-max"),
        pytest.param(("small", "rv32imac_zicsr", RV32_CPU), id="small-rv32"),
    ),
]

# Control Transfer Records 1.0, where QEMU 10.0 does something else with V=1:
QEMU_DIFFERS = (
    "vs_",  # "External Traps": from VS to HS sctrctl.STE is enough; QEMU asks for vsctrctl.STE, too
    "out_",  # "Virtualization Mode Transitions": filters and RASEMU of vsctrctl count; QEMU's are those of the target
)


class Logged(NamedTuple):
    """A run with a log: what was seen, and what ran."""

    elf: Path
    cpu: str
    found: dict[str, Seen]
    events: list[Event]


@pytest.fixture(scope="module", params=PROGRAMS)
def logged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Logged:
    name, march, cpu = request.param
    folder = tmp_path_factory.mktemp(name)
    elf = build(folder, name, march=march)
    with running(elf, folder, cpu=cpu, logged=True) as machine:
        return Logged(elf, cpu, run_and_look(elf, machine), machine.events())


def test_qemu_records_what_the_documents_say(logged: Logged) -> None:
    wanted = expected(logged.elf, logged.events, Model(logged.elf, "1.0", zcm=logged.elf.name.startswith("tables")))
    assert logged.found.keys() == wanted.keys()
    same = [look for look in wanted if not look.startswith(QEMU_DIFFERS)]
    assert [look for look in same if logged.found[look] != wanted[look]] == []
    assert any(seen.entries[0][0] & 1 for seen in logged.found.values())


def test_a_free_run_records_the_same_as_a_logged_one(logged: Logged, tmp_path: Path) -> None:
    """One instruction per block, as the log needs it, changes nothing."""
    with running(logged.elf, tmp_path, cpu=logged.cpu) as machine:
        found = run_and_look(logged.elf, machine, sparse(1))
    assert found and found == {look: logged.found[look] for look in found}
