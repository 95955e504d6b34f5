"""What QEMU 10 records, read by plain register packets, is what the documents say of what it executed.

QEMU's own records on one side, on the other tests.ctr_model.model, fed with the log of the same run: neither knows the
other, and nothing of rvtrace takes part. So the model can be trusted where other tests compare with it, and QEMU's CTR
where others read it.
"""

from pathlib import Path

import pytest

from tests.ctr_model.model import Model
from tests.ctr_model.packet_reads import Seen, expected, run_and_look
from tests.ctr_model.programs import build
from tests.helpers.qemu10 import CPU, RV32_CPU, running

EVERYTHING = f"rv64,{CPU},sscofpmf=true"
TABLES = f"rv64,{CPU},f=false,d=false,zfa=false,zca=true,zcmp=true,zcmt=true"
PROGRAMS = [
    pytest.param("jumps", "rv64imac_zicsr", EVERYTHING, id="jumps"),
    pytest.param("depths", "rv64imac_zicsr", EVERYTHING, id="depths"),
    pytest.param("ras", "rv64imac_zicsr", EVERYTHING, id="ras"),
    pytest.param("modes", "rv64imac_zicsr", EVERYTHING, id="modes"),
    pytest.param("virtual", "rv64imac_zicsr", EVERYTHING, id="virtual"),
    pytest.param("freeze", "rv64imac_zicsr", EVERYTHING, id="freeze"),
    pytest.param("tables", "rv64imac_zicsr", TABLES, id="tables"),
    pytest.param("jumps", "rv64imac_zicsr", "max", id="jumps-max"),
    pytest.param("small", "rv32imac_zicsr", RV32_CPU, id="small-rv32"),
]
every_program = pytest.mark.parametrize(("name", "march", "cpu"), PROGRAMS)

# Control Transfer Records 1.0, where QEMU 10.0 does something else with V=1:
QEMU_DIFFERS = (
    "vs_",  # "External Traps": from VS to HS sctrctl.STE is enough; QEMU asks for vsctrctl.STE, too
    "out_",  # "Virtualization Mode Transitions": filters and RASEMU of vsctrctl count; QEMU's are those of the target
)


@every_program
def test_qemu_records_what_the_documents_say(tmp_path: Path, name: str, march: str, cpu: str) -> None:
    elf = build(tmp_path, name, march=march)
    with running(elf, tmp_path, cpu=cpu, logged=True) as machine:
        found = run_and_look(elf, machine)
        events = machine.events()
    wanted = expected(elf, events, Model(elf, "1.0", zcm=name == "tables"))
    assert found.keys() == wanted.keys()
    same = [look for look in found if not look.startswith(QEMU_DIFFERS)]
    assert [look for look in same if found[look] != wanted[look]] == []
    assert any(seen.entries[0][0] & 1 for seen in found.values())


@every_program
def test_a_free_run_records_the_same_as_a_logged_one(tmp_path: Path, name: str, march: str, cpu: str) -> None:
    """One instruction per block, as the log needs it, changes nothing."""
    elf = build(tmp_path, name, march=march)
    runs: list[dict[str, Seen]] = []
    for logged in (False, True):
        with running(elf, tmp_path, cpu=cpu, logged=logged) as machine:
            runs.append(run_and_look(elf, machine))
    assert runs[0] == runs[1]
