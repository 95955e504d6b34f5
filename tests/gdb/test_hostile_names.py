"""Names of a hostile program in gdb's own lists of rvtrace: one row each, and nothing there that a terminal obeys."""

from pathlib import Path

import pytest

from tests.console.test_hostile_names import captured
from tests.gdb.running import SOURCE, every_gdb, run_gdb
from tests.hostile import SHOWN, hostile, unfit

LISTS = (
    "trace history 1,2021", "trace history /m 1,2021", "trace history /r 1,2021", "trace functions 1,200",
    "trace functions /cli 1,200", "trace calls /n 0", "trace coverage", "trace coverage -all", "trace info",
    "trace events", "trace find *0x80000088", "trace status",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    hostile(made)
    for name in ("hostile", "demo-rv64imac_zicsr"):
        captured(made, made / f"{name}.elf")
    return made


@every_gdb
def test_lists(gdb: str, folder: Path) -> None:
    said = {}
    for name in ("hostile", "demo-rv64imac_zicsr"):
        commands = [SOURCE, "set record instruction-history-size unlimited", f"trace open {folder / name}.rvt", *LISTS]
        said[name] = run_gdb(folder / f"{name}.elf", commands, gdb=gdb)
    for command in LISTS:
        odd, plain = said["hostile"][command], said["demo-rv64imac_zicsr"][command]
        assert unfit(odd) == set(), command
        assert "Python Exception" not in odd and "Traceback" not in odd, (command, odd)
        assert len(odd.splitlines()) == len(plain.splitlines()), command
    for name in SHOWN:
        assert f"<{name}+0>" in said["hostile"]["trace history 1,2021"]
    assert all(name in said["hostile"]["trace functions 1,200"] for name in SHOWN[:2])
