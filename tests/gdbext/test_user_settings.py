"""Nothing that rvtrace answers depends on what the user has set in gdb, or on the language of the program; and nothing
that the user has set is changed by it.
"""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import SOURCE, run_gdb, some_gdbs
from tests.helpers.amounts import LONG, long_only, thorough
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
    ("trace-commands", "on", "off"), ("debug remote", "on", "off"), ("disassemble-next-line", "on", "auto"),
    ("print frame-info", "location", "auto"), ("verbose", "on", "off"), ("confirm", "on", "off"), ("width", "20", "0"),
    ("print finish", "off", "on"), ("style sources", "off", "on"), ("filename-display", "absolute", "relative"),
    ("may-call-functions", "off", "on"), ("print max-depth", "0", "20"), ("print entry-values", "no", "default"),
    ("breakpoint pending", "off", "auto"), ("multiple-symbols", "cancel", "all"),
    ("trust-readonly-sections", "on", "off"), ("print thread-events", "off", "on"), ("history expansion", "on", "off"),
]  # fmt: skip
"""Name, value, and gdb's default in hexadecimal or octal where it is a number that is read in that radix. In the long
run all settings of gdb that may be related, which are found in its own list, are tried, too.
"""
LIVE = [("language", "ada", "auto")]
LIVE_LONG = [
    *LIVE, ("input-radix", "16", "0xa"), ("output-radix", "16", "10"), ("trace-commands", "on", "off"),
    ("debug remote", "on", "off"), ("print address", "off", "on"), ("print symbol", "off", "on"), ("width", "20", "0"),
    ("may-call-functions", "off", "on"), ("case-sensitive", "off", "auto"), ("max-value-size", "16", "65536"),
    ("listsize", "1", "10"),
]  # fmt: skip


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The demo program, and a tandem trace of it, which has values."""
    folder = tmp_path_factory.mktemp("settings")
    elf, script = demo(folder), folder / "x.rvts"
    script.write_text("start\nrun until finish\nstop\n")
    words = ["--sim", "--tandem", "--elf", str(elf), "-o", str(folder / "x.rvt"), "--quiet"]
    assert main(["run", str(script), *words]) == 0
    return elf, folder / "x.rvt"


@some_gdbs
@pytest.mark.parametrize("what", ["settings", "languages"])
def test_answers_are_the_same(capture: tuple[Path, Path], what: str, gdb: str, tmp_path: Path) -> None:
    elf, file = capture
    tables = {"settings": repr(SETTINGS) + (" + settings()" if LONG else ""), "languages": "languages()"}
    table = tables[what]
    if not LONG:
        table = f"({table})[:: {6 if what == 'languages' else 4}]"
    commands = [SOURCE, f"trace open {file}", "trace replay"]
    assert differences(elf, commands, f"{table}, PAST", gdb, tmp_path) >= (2 if what == "languages" else 4)


@thorough("test_answers_are_the_same")
@some_gdbs
@pytest.mark.parametrize("what", ["settings", *long_only("languages")])
def test_answers_on_a_target_are_the_same(capture: tuple[Path, Path], what: str, gdb: str, tmp_path: Path) -> None:
    """In Ada the name of a function is a call of it, in the program."""
    with Rig(capture[0], tmp_path / "rig", "--filters=4", "--comparators=4", "--ctr", "1.0") as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        table = "languages()" if what == "languages" else repr(LIVE_LONG if LONG else LIVE)
        assert differences(capture[0], commands, f"{table}, LIVE", gdb, tmp_path) >= len(LIVE)


def differences(elf: Path, commands: list[str], asked: str, gdb: str, folder: Path) -> int:
    """Compare what is *asked*; return how many settings were tried."""
    file = folder / "differences"
    commands = [*commands, f"source {ANSWERS}", f"python compare({asked}, {str(file)!r})"]
    said = run_gdb(elf, commands, gdb=gdb)[commands[-1]]
    assert "Python Exception" not in said and "Traceback" not in said, said
    tried = re.search(r"^compared (\d+) of \d+ settings, \d\d commands, \d{4,5} characters$", said, re.M)
    assert tried is not None, said
    assert file.read_text() == ""
    return int(tried[1])
