"""`trace regs` and `trace info` in the real gdb, with OpenOCD and the simulated target, and of a capture file.

Which bits mean what is in tests/controlregs/trace_control/ and tests/session/queries/hardware/test_registers.py.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import SOME_GDBS, SOURCE, ask_gdb, newest_gdb, run_gdb
from tests.helpers.cross_compiler import demo

LINE = re.compile(r"^  (\w+) 0x([0-9a-f]+)", re.M)
BOTH = ["trace regs encoder0", "trace regs ram0"]


def registers(text: str) -> dict[str, int]:
    return {name: int(value, 16) for name, value in LINE.findall(text)}


def names(text: str) -> list[str]:
    """The components whose registers are shown."""
    return re.findall(r"^(\w+)(?: at 0x[0-9a-f]+)?: ", text, re.M)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("elf"))


@pytest.fixture(scope="module", params=SOME_GDBS)
def said(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A session: before it is connected, while it traces and runs, stopped, in the past, in a capture."""
    folder = tmp_path_factory.mktemp("regs")
    with Rig(elf, folder / "rig") as rig:
        commands = [
            "trace info", f"trace connect :{rig.gdb_port}", "trace start -timestamps", "tbreak finish", "continue",
            "trace regs", "trace info ", *BOTH, "trace regs -all ram0", "monitor mdw phys 0x20000004 1",
            "trace history", "reverse-stepi", "trace regs ram0 ", "trace info   ", "trace live", "continue&",
            "trace regs ", "trace regs ctr0", "set width 60", "trace regs encoder0 ", "set width 0",
            "trace regs ram0 nix", "trace regs -fast", "trace info ram0", "complete trace regs ",
            "complete trace regs r", "complete trace regs encoder0 -", "complete trace info ", "complete trace inf",
            "trace stop", "trace regs  ", f"trace save {folder / 'it.rvt'}", "disconnect",
            f"trace open {folder / 'it.rvt'}", "trace regs   ", "trace info  ", "trace regs -live ram0",
        ]  # fmt: skip
        return run_gdb(elf, [SOURCE, f"set trace target {rig.target_file}", *commands], gdb=request.param)


def test_the_hardware_is_known_before_gdb_is_connected(said: dict[str, str]) -> None:
    lines = said["trace info"].splitlines()
    assert lines[1] == ("encoder0: trace encoder at 0x20000000, interface 1.0, hart 0 (sim.cpu, halted): in reset")
    assert lines[2].startswith("          has N-Trace 1.0, ") and ", HTM, " in lines[2]
    assert "ram0:     RAM sink at 0x20001000, interface 1.0: in reset" in lines
    assert "          to ram0" in lines and "          from encoder0" in lines


def test_while_tracing(said: dict[str, str]) -> None:
    """trTeControl: Active, Enable, InstTracing; trTsControl: Enable; trRamStartLow: where the sim's buffer is."""
    text = said["trace regs"]
    assert names(text) == ["encoder0", "ram0"]
    found = registers(text)
    assert found["trTeControl"] & 7 == 7 and found["trTsControl"] >> 15 & 1 and found["trRamStartLow"] == 0x3000_0000
    assert "trTeInstMode=6 (htm)" in text and "cannot be read" not in text
    assert f"{found['trTeImpl']:08x}" in said["monitor mdw phys 0x20000004 1"]
    assert registers(said[BOTH[0]]) | registers(said[BOTH[1]]) == found
    assert "encoder0: trace encoder at 0x20000000, interface 1.0, hart 0 (sim.cpu, halted): tracing" in said[
        "trace info "
    ]  # fmt: skip
    assert "trRamStartHigh" not in text and "trRamStartHigh 0x00000000" in said["trace regs -all ram0"]
    assert "trRamData" not in said["trace regs -all ram0"]


def test_the_trace_is_whole_after_looking(said: dict[str, str]) -> None:
    assert re.search(r"<finish\+\d+>", said["trace history"]) is None
    assert said["trace history"].count("\n") >= 10 and "gap" not in said["trace history"]


def test_in_the_past_registers_are_those_of_the_present(said: dict[str, str]) -> None:
    for command in ("trace regs ram0 ", "trace info   "):
        assert said[command].startswith("In the present:\n"), command
    assert not said["trace regs"].startswith("In")


def test_while_the_program_runs(said: dict[str, str]) -> None:
    found = registers(said["trace regs "])
    assert found["trTeControl"] & 7 == 7 and found["trRamWPLow"] > 0x3000_0000
    assert said["trace regs ctr0"].strip() == "the hart runs: stop it first (`interrupt` or Ctrl-C)"


def test_lines_are_as_wide_as_the_terminal(said: dict[str, str]) -> None:
    lines = said["trace regs encoder0 "].splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.startswith("    trTe") for line in lines)  # what continues stands deeper
    whole = said["trace regs "].partition("\n\n")[0]
    fields = r"(\w+)="  # whose values are of another moment: the hart runs
    assert re.findall(fields, " ".join(lines)) == re.findall(fields, whole) != []


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("trace regs ram0 nix", r"there is no component 'nix' in \S+rvtrace.toml: there are encoder0, ram0"),
        ("trace regs -fast", r"trace regs: unknown option -fast. See `help trace regs`."),
        (
            "trace info ram0",
            r"trace info takes no names: `trace regs NAME` shows a component. See `help trace info`.",
        ),
    ],
)
def test_errors_are_one_line(command: str, line: str, said: dict[str, str]) -> None:
    assert re.fullmatch(line, said[command].strip())


def test_completion(said: dict[str, str]) -> None:
    assert said["complete trace regs "].split("\n")[:2] == ["trace regs encoder0", "trace regs ram0"]
    assert said["complete trace regs r"].strip() == "trace regs ram0"
    lines = said["complete trace regs encoder0 -"].strip().splitlines()
    assert lines == ["trace regs encoder0 -all", "trace regs encoder0 -live"]
    assert said["complete trace info "].strip() == "trace info -live"
    assert said["complete trace inf"].strip() == "trace info"


def test_after_it_was_stopped(said: dict[str, str]) -> None:
    assert registers(said["trace regs  "])["trTeControl"] & 7 == 1


def test_a_capture_has_what_was_read_back(said: dict[str, str]) -> None:
    captured, live = registers(said["trace regs   "]), registers(said["trace regs"])
    assert names(said["trace regs   "]) == ["encoder0", "ram0"]
    for name in ("trTeControl", "trTeImpl", "trTsControl", "trRamStartLow", "trRamLimitLow"):
        assert captured[name] == live[name], name
    assert said["trace info  "].startswith("capture: ") and "\nencoder0: trace encoder at " in said["trace info  "]
    assert registers(said["trace regs -live ram0"])["trRamWPLow"] > 0x3000_0000


@newest_gdb
def test_records_of_a_hart(gdb: str, elf: Path, tmp_path: Path) -> None:
    """CSRs as gdb reads them: OpenOCD exposes them by name; what gdb knows is not made out of date."""
    with Rig(elf, tmp_path / "rig", "--ctr", "1.0") as rig:
        commands = [
            f"trace connect :{rig.gdb_port}", "trace regs ctr0", "trace ctr start -depth 32 -ras", "tbreak finish",
            "continue", "trace regs ctr0 ", "print/x $csr_mctrctl", "print/x $csr_sctrdepth", "trace regs",
            "complete trace regs c", "bt 1", "trace regs ctr7",
        ]  # fmt: skip
        said = run_gdb(elf, [SOURCE, f"set trace target {rig.target_file}", *commands], gdb=gdb)
    before, after = registers(said["trace regs ctr0"]), registers(said["trace regs ctr0 "])
    assert before["mctrctl"] == 0
    assert after["mctrctl"] == int(said["print/x $csr_mctrctl"].split()[-1], 16)
    assert after["sctrdepth"] == int(said["print/x $csr_sctrdepth"].split()[-1], 16) == 1
    assert "RASEMU=1" in said["trace regs ctr0 "]
    assert names(said["trace regs"]) == ["ctr0", "encoder0", "ram0"]
    assert said["complete trace regs c"].strip() == "trace regs ctr0"
    assert said["bt 1"].startswith("#0  finish ")


def test_without_a_description(elf: Path) -> None:
    said = ask_gdb(elf, [SOURCE, "trace regs", "trace info", "complete trace regs "])
    for command in ("trace regs", "trace info"):
        assert re.fullmatch(r"no target description: name one with `set trace target FILE` .*", said[command].strip())
    assert said["complete trace regs "].strip() == ""


def test_without_openocd(elf: Path, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        "[openocd]\ntcl_port = 1\n"
        '[[component]]\nname = "e"\ntype = "encoder"\nbase = 0x1000\n'
        '[[component]]\nname = "r"\ntype = "ram_sink"\nmode = "SRAM"\nbase = 0x2000\n'
    )
    said = ask_gdb(elf, [SOURCE, f"set trace target {tmp_path / 'a.toml'}", "trace regs", "trace info"])
    assert len(said["trace regs"].strip().splitlines()) == 1 and "OpenOCD" in said["trace regs"]
    assert "\ne:        trace encoder at 0x1000, hart 0\n" in said["trace info"]
    assert said["trace info"].strip().splitlines()[-1].startswith("warning:  the target cannot be reached: ")


@pytest.mark.parametrize("name", ["regs", "info"])
def test_help_fits_the_terminal(name: str) -> None:
    text = ask_gdb(None, [SOURCE, f"help trace {name}"])
    assert f"Usage: trace {name} [" in text[f"help trace {name}"]
    assert max(map(len, text[f"help trace {name}"].splitlines())) <= 80


def test_a_file_has_no_present(tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM, "--ntrace")
    commands = [f"trace open {capture}", "trace info", "trace replay", "trace goto begin", "trace info "]
    found = run_gdb(ELF, [SOURCE, *commands])
    assert found["trace info "] == found["trace info"]
    assert "encoder0" in found["trace info"] and "In the present" not in found["trace info"]
