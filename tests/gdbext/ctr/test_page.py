"""The sessions in docs/ctr.md are what the real gdb prints on the simulated target; and its lists lack nothing."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.gdbext import start_options
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, demo
from tests.helpers.page_sessions import Exchange, sessions, shown

PAGE = HOME / "docs" / "ctr.md"
PORT = ":3333"
SESSIONS = sessions("ctr.md")


@pytest.fixture(scope="module", params=range(len(SESSIONS)), ids=["records", "stack", "process"])
def exchanges(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Exchange, str]]:
    """Those of a session, and what gdb really printed."""
    folder: Path = tmp_path_factory.mktemp("page")
    elf = demo(folder)
    with Rig(elf, folder / "rig", "--ctr", "1.0") as rig:
        here = [command.replace(PORT, f":{rig.gdb_port}") for command, _ in SESSIONS[request.param]]
        said = run_gdb(elf, [SOURCE, f"set trace target {rig.target_file}", *here])
    return [(exchange, said[command]) for exchange, command in zip(SESSIONS[request.param], here, strict=True)]


def test_gdb_prints_what_the_page_says(exchanges: list[tuple[Exchange, str]]) -> None:
    assert [(command, shown(text)) for (command, _), text in exchanges] == [exchange for exchange, _ in exchanges]


def test_the_page_has_all_options_and_types() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for option in start_options.CTR_OPTIONS:
        assert re.search(rf"`{option.name}\b", text), option.name
    for name in (*start_options.TRANSFER_TYPES, *start_options.TRANSFER_GROUPS):
        assert f"`{name}`" in text, name


def test_the_page_has_the_csrs_of_each_version() -> None:
    """As OpenOCD wants them: decimal numbers."""
    lines = re.findall(r"^    riscv expose_csrs (\S+)$", PAGE.read_text(encoding="utf-8"), re.M)
    exposed = [dict(entry.split("=") for entry in line.split(",")) for line in lines]
    assert exposed == [{str(csr.number): csr.name for csr in VERSIONS[key].csrs} for key in ("1.0", "0.1.4")]
