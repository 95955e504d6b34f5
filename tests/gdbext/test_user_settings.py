"""Nothing that rvtrace answers depends on what the user has set in gdb, or on the language of the program; and nothing
that the user has set is changed by it.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, every_gdb, run_gdb
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import demo

ANSWERS = Path(__file__).with_name("answers.py")
SETTINGS = [
    ("input-radix", "16", "0xa"), ("input-radix", "8", "012"), ("output-radix", "16", "10"),
    ("case-sensitive", "off", "auto"), ("print symbol", "off", "on"), ("print symbol-filename", "on", "off"),
    ("print max-symbolic-offset", "1", "unlimited"), ("print address", "off", "on"), ("print elements", "1", "200"),
    ("print asm-demangle", "on", "off"), ("print demangle", "off", "on"), ("print pretty", "on", "off"),
    ("print frame-arguments", "none", "scalars"), ("print type hex", "on", "off"), ("listsize", "1", "10"),
    ("max-value-size", "16", "65536"), ("style enabled", "off", "on"),
    ("print entry-values", "both", "default"), ("stack-cache", "off", "on"), ("code-cache", "off", "on"),
    ("opaque-type-resolution", "off", "on"),
    ("breakpoint pending", "off", "auto"), ("multiple-symbols", "cancel", "all"),
    ("trust-readonly-sections", "on", "off"), ("print thread-events", "off", "on"), ("history expansion", "on", "off"),
]  # fmt: skip
"""Name, value, and gdb's default in hexadecimal or octal where it is a number that is read in that radix."""
LANGUAGES = (
    "ada", "asm", "c", "c++", "d", "fortran", "go", "minimal", "modula-2", "objective-c", "opencl", "pascal", "rust",
    "unknown",
)  # fmt: skip


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The demo program, and a tandem trace of it, which has values."""
    folder = tmp_path_factory.mktemp("settings")
    elf, script = demo(folder), folder / "x.rvts"
    script.write_text("start\nrun until finish\nstop\n")
    words = ["--sim", "--tandem", "--elf", str(elf), "-o", str(folder / "x.rvt"), "--quiet"]
    assert main(["run", str(script), *words]) == 0
    return elf, folder / "x.rvt"


@every_gdb
@pytest.mark.parametrize("what", ["settings", "languages"])
def test_answers_are_the_same(capture: tuple[Path, Path], what: str, gdb: str, tmp_path: Path) -> None:
    elf, file = capture
    differences = tmp_path / "differences"
    table = SETTINGS if what == "settings" else [("language", language, "auto") for language in LANGUAGES]
    if not LONG and gdb != "gdb-multiarch":
        table = table[:: 3 if what == "languages" else 6]
    commands = [SOURCE, f"trace open {file}", "trace replay", f"source {ANSWERS}"]
    commands.append(f"python compare({table!r}, {str(differences)!r})")
    said = run_gdb(elf, commands, gdb=gdb)[commands[-1]]
    assert "Python Exception" not in said and "Traceback" not in said, said
    assert re.search(rf"^compared {len(table)} settings, \d\d commands, \d{{5}} characters$", said, re.M), said
    assert differences.read_text() == ""
