"""The options of `rvtrace sim` for Control Transfer Records, and what the OpenOCD configuration says of them."""

import socket
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import CommandParser, sim
from rvtrace_gdb.console.commands.sim import encoder
from rvtrace_gdb.console.commands.sim.request import CtrBuildRequest, sim_request
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.cross_compiler import demo


def parsed(*arguments: str) -> CtrBuildRequest:
    parser = CommandParser()
    sim.add_arguments(parser)
    return sim_request(parser.parse_args(["--elf", "x", *arguments])).harts.ctr


def config(elf: Path, *arguments: str) -> list[str]:
    """What is said besides the configuration of a target without CTR."""
    machine = build(elf, ctr=encoder.built_ctr(parsed("--port", "0", *arguments)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plain = sim.openocd_config(listener).splitlines()
        lines = sim.openocd_config(listener, hart=machine.hart).splitlines()
    assert lines[: len(plain)] == plain
    return lines[len(plain) :]


@pytest.mark.parametrize(
    ("arguments", "built"),
    [
        ("", None),
        ("--ctr 1.0", CtrBuild("1.0")),
        ("--ctr 0.1.4", CtrBuild("0.1.4")),
        ("--ctr 1.0 --ctr-depths 64,0x10", CtrBuild("1.0", depths=(16, 64))),
        ("--ctr 0.1.4 --ctr-depths 32", CtrBuild("0.1.4", depths=(32,))),
        (
            "--ctr 1.0 --ctr-without RASEMU --ctr-without TYPE",
            CtrBuild("1.0", absent=frozenset({"MISP", "RASEMU", "TYPE"})),
        ),
        ("--ctr 0.1.4 --ctr-misp", CtrBuild("0.1.4", absent=frozenset())),
        ("--ctr 1.0 --ctr-exponent-bits 0", CtrBuild("1.0", exponent_bits=0)),
        ("--ctr 1.0 --ctr-exponent-bits none", CtrBuild("1.0", exponent_bits=None)),
    ],
)
def test_options(arguments: str, built: CtrBuild | None) -> None:
    assert encoder.built_ctr(parsed(*arguments.split())) == built


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--ctr-depths 16", "say which Control Transfer Records the hart has: --ctr 1.0 or 0.1.4"),
        ("--ctr-without TYPE", "say which Control Transfer Records the hart has: --ctr 1.0 or 0.1.4"),
        ("--ctr-misp", "say which Control Transfer Records the hart has: --ctr 1.0 or 0.1.4"),
        ("--ctr-exponent-bits 0", "say which Control Transfer Records the hart has: --ctr 1.0 or 0.1.4"),
        ("--ctr 1.0 --ctr-depths many", "--ctr-depths many: give numbers with commas between them"),
        ("--ctr 1.0 --ctr-depths 24", "--ctr 1.0: depths are some of 16, 32, 64, 128, 256, ascending"),
        ("--ctr 0.1.4 --ctr-depths 16,64", "--ctr 0.1.4: the depths of version 0.1.4 are consecutive"),
        ("--ctr 1.0 --ctr-without MTE", "--ctr 1.0: MTE, STE are there together or not at all"),
    ],
)
def test_what_cannot_be(arguments: str, said: str) -> None:
    with pytest.raises(encoder.BadCtrOption) as error:
        encoder.built_ctr(parsed(*arguments.split()))
    assert str(error.value) == said


def test_a_field_that_is_not_optional() -> None:
    with pytest.raises(encoder.BadCtrOption, match=r"^--ctr 1\.0: BPFRZ is not one of the fields it may lack: COR"):
        encoder.built_ctr(parsed("--ctr", "1.0", "--ctr-without", "BPFRZ"))


def test_other_versions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--ctr", "0.9")
    assert "invalid choice: '0.9'" in capsys.readouterr().err


def test_openocd_is_told_the_csrs(tmp_path: Path) -> None:
    """Decimal numbers: 1.0, "CSR Listing"; draft 0.1.4, 2.6; Smcsrind/Sscsrind for the others."""
    wide, narrow = demo(tmp_path, "rv64imac_zicsr"), demo(tmp_path, "rv32imac_zicsr")
    assert config(wide) == []
    supervisor = "336=siselect,337=sireg,338=sireg2,339=sireg3,341=sireg4,342=sireg5,343=sireg6"
    ratified = f"riscv expose_csrs 334=sctrctl,335=sctrstatus,{supervisor},351=sctrdepth,846=mctrctl"
    assert config(wide, "--ctr", "1.0") == config(narrow, "--ctr", "1.0") == [ratified]
    machine = "848=miselect,849=mireg,850=mireg2,851=mireg3,853=mireg4,854=mireg5,855=mireg6"
    draft = f"riscv expose_csrs {machine},897=mctrcontrol,{{}}899=mctrstatus"
    assert config(wide, "--ctr", "0.1.4") == [draft.format("")]
    assert config(narrow, "--ctr", "0.1.4") == [draft.format("898=mctrcontrolh,")]
