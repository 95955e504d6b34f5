"""`trace save` and `trace close`, and sub-commands of `trace` that are mistyped."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.exports.export import EXPORTS
from rvtrace_gdb.session.exports.pgo.profile import HELP
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import SOURCE, ask_gdb
from tests.helpers.amounts import thorough


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("capture"), STREAM)


@thorough("test_exports_are_those_of_the_shell")
def test_a_trace_is_closed_once(capture: Path) -> None:
    commands = [f"trace open {capture}", "trace close", "trace status", "trace history", "trace close "]
    out = {command: text.strip() for command, text in ask_gdb(ELF, [SOURCE, *commands]).items()}
    assert out["trace close"] == "The trace is closed."
    assert out["trace status"].startswith("Nothing is being traced.") and str(capture) not in out["trace status"]
    assert out["trace history"].startswith("there is no trace: `trace start` makes one")
    assert out["trace close "] == "there is no trace to close"


def test_a_file_that_is_replaced_is_mentioned(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.rvt"
    out = ask_gdb(ELF, [SOURCE, f"trace open {capture}", f"trace save {path}", f"trace save  {path}"])
    first, second = out[f"trace save {path}"].strip(), out[f"trace save  {path}"].strip()
    assert first.endswith(f" to {path}.") and second == f"{first[:-1]}, in place of the file that was there."


@pytest.mark.parametrize(
    ("typed", "meant"), [("hisotry", "history"), ("gto 5", "goto"), ("stauts", "status"), ("xyzzy", None)]
)
def test_a_mistyped_command_is_no_tracepoint(typed: str, meant: str | None) -> None:
    said = ask_gdb(ELF, [SOURCE, f"trace {typed}"])[f"trace {typed}"].strip()
    assert said.startswith("Function ") and " not defined" in said
    assert said.endswith(f" Did you mean `trace {meant}`?") if meant else "Did you mean" not in said


def test_exports_are_those_of_the_shell(capture: Path, tmp_path: Path) -> None:
    """Their files are compared in tests/console/commands/test_export.py; profiles for compilers here."""
    file = tmp_path / "x y"
    order, shell = tmp_path / "z", tmp_path / "shell"
    written = f"trace pgo symbol-order {order} -hart 0"
    pgo = ["trace pgo", "complete trace pgo symb", "complete trace pgo llvm x -p", written,
           "trace pgo spike", "trace pgo none x", "trace pgo llvm x -hart x", "trace pgo llvm x -gcno y"]
    words = ["trace export", "complete trace export ", "complete trace export ri", f"trace export riscv-dv '{file}'"]
    wrong = ["trace export spike", "trace export none x", f"trace export spike {capture}"]
    said = ask_gdb(ELF, [SOURCE, f"trace open {capture}", *words, *wrong, *pgo])
    out = {command: text.strip() for command, text in said.items()}
    names = [row.name for row in EXPORTS]
    assert [line.split()[0] for line in out["trace export"].splitlines()] == names
    assert out["complete trace export "].splitlines() == [f"trace export {name}" for name in sorted(names)]
    assert out["complete trace export ri"] == "trace export riscv-dv"
    lines = len(file.read_bytes().splitlines())
    assert out[words[-1]].splitlines()[-1] == f"{file}: riscv-dv, {lines} lines" and lines > 10_000
    assert out["trace export spike"].endswith("Usage: trace export NAME FILE [OPTION ...]")
    assert out["trace export none x"] == f"there is no export none: the exports are {', '.join(names)}"
    assert out[wrong[-1]].endswith("it is one of the files that are read")
    assert [line.split()[0] for line in out["trace pgo"].splitlines()] == list(HELP)
    assert out[pgo[1]] == "trace pgo symbol-order" and out[pgo[2]] == "trace pgo llvm x -program"
    assert main(["pgo", str(capture), "--elf", str(ELF), "--to", "symbol-order", "-o", str(shell), "--quiet"]) == 0
    assert order.read_bytes() == shell.read_bytes() != b"" and "symbol-order" in out[pgo[3]].splitlines()[-1]
    assert out[pgo[4]].endswith("Usage: trace pgo NAME FILE [OPTION ...]")
    assert out[pgo[5]] == f"there is no form none: the forms are {', '.join(HELP)}"
    assert out[pgo[6]].startswith("trace pgo: ") and "belong together" in out[pgo[7]]
