"""gdb where there is no locale, and paths that are not ASCII: nothing that is printed depends on it."""

import os
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, gdb_environ, newest_gdb, run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import compile_program

CODE = """
static const char text[] = "gr\\303\\274n";
volatile char sum;
__attribute__((noinline)) void gr\u00fc\u00df(int i) { sum += text[i & 3]; }
int main(void) { for (int i = 0; i < 4; i++) gr\u00fc\u00df(i); return 0; }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program whose path, source and function have umlauts, and a trace of it beside it."""
    folder = tmp_path_factory.mktemp("locale") / "\u00fc"
    folder.mkdir()
    source, script = folder / "b\u00f6.c", folder / "x.rvts"
    source.write_text(CODE, encoding="utf-8")
    script.write_text("start\nrun until main\nrun for 5ms\nstop\n")
    elf = compile_program(folder, source)
    words = ["--sim", "--elf", str(elf), "-o", str(folder / "\u00e4.rvt"), "--quiet"]
    assert main(["run", str(script), *words]) == 0
    return elf, folder / "\u00e4.rvt"


@newest_gdb
@pytest.mark.parametrize("locale", ["C", *long_only("POSIX", "nowhere.UTF-8")])
def test_paths_and_names_with_umlauts(made: tuple[Path, Path], locale: str, gdb: str, tmp_path: Path) -> None:
    elf, capture = made
    saved = tmp_path / "\u00f6.rvt"
    commands = [
        SOURCE, f"trace open {capture}", "trace history /s 1,40", "trace find gr\u00fc\u00df", "trace functions",
        "trace coverage", "trace coverage b\u00f6.c", "trace calls", "trace status", f"trace save {saved}",
        "trace open /nowhere/\u00fc.rvt", "trace replay", "trace goto gr\u00fc\u00df", "backtrace", "print text",
        "disconnect", "trace close", f"set trace target {elf.parent}/\u00fc.toml", "trace info",
    ]  # fmt: skip
    expected = run_gdb(elf, commands, gdb=gdb, LC_ALL="C.UTF-8")
    saved.unlink()
    assert "gr\u00fc\u00df" in expected["trace functions"] and "/\u00fc/b\u00f6.c:" in expected["trace history /s 1,40"]
    said = run_gdb(elf, commands, gdb=gdb, LC_ALL=locale)
    assert said.pop("print text").replace("\\303\\274", "\u00fc") == expected.pop("print text")
    assert said == expected and saved.exists()


@newest_gdb
@pytest.mark.parametrize("locale", ["C", *long_only("C.UTF-8")])
def test_a_path_that_is_not_utf_8(made: tuple[Path, Path], locale: str, gdb: str, tmp_path: Path) -> None:
    elf = bytes(tmp_path) + b"/b\xfcd.elf"
    Path(os.fsdecode(elf)).write_bytes(made[0].read_bytes())
    asked = [SOURCE, f"trace open {made[1]}", "trace history 1,2", "trace status", "trace coverage"]
    words: list[str | bytes] = [gdb, "-q", "-nx", "-batch", elf]
    words += [word for command in asked for word in ("-ex", command)]
    done = subprocess.run(words, capture_output=True, env=gdb_environ(LC_ALL=locale), check=False, timeout=120)
    said = done.stdout + done.stderr
    assert b"Python Exception" not in said and b"2\t   0x0000000080000004 <_start+4>" in said, said


@newest_gdb
def test_the_charset_that_the_user_chose_stays(gdb: str) -> None:
    for name in ("host-charset", "target-charset"):
        command = f"show {name}"
        said = run_gdb(None, [f"set {name} ISO-8859-15", SOURCE, command], gdb=gdb, LC_ALL="C")
        assert '"ISO-8859-15"' in said[command]
        assert '"auto; currently UTF-8"' in run_gdb(None, [SOURCE, command], gdb=gdb, LC_ALL="C.UTF-8")[command]

