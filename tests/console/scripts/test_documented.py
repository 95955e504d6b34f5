"""docs/console.md, docs/scripts.md and examples/scripts say what there is, and do what they say."""

import ast
import inspect
import json
import re
from pathlib import Path

import pytest

import rvtrace_gdb
from rvtrace_gdb.console.commands.console.shell import KEYS
from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.scripts import asserts
from rvtrace_gdb.console.scripts.language import BLOCKS, parse
from rvtrace_gdb.console.scripts.verbs import VERBS, read
from rvtrace_gdb.session.capture.file import load
from tests.console.scripts.script_runs import run_script
from tests.gdbext.gdb_process import HOME
from tests.helpers.cross_compiler import EXAMPLES, demo

SCRIPTS, CONSOLE = ((HOME / "docs" / f"{name}.md").read_text() for name in ("scripts", "console"))


def table(page: str, head: str) -> list[str]:
    """The first cells of the table under a head line."""
    lines = page[page.index(head) :].splitlines()
    rows = [line for line in lines[2:] if line.startswith("|") or not line][: len(lines)]
    cells = []
    for line in rows:
        if not line:
            break
        cells.append(re.split(r"(?<!\\)\|", line)[1].strip().replace("\\|", "|"))
    return cells


def quoted(cells: list[str]) -> set[str]:
    return {found for cell in cells for found in re.findall(r"`([^`]+)`", cell)}


def options_of(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The long options in a command's help, and -o, -ex."""
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    text = capsys.readouterr().out
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-ex|-o)\b", text)) - {"--help", "--output"}


@pytest.mark.parametrize(("command", "page"), [("run", SCRIPTS), ("console", CONSOLE)])
def test_each_option_is_documented(command: str, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = {word.split()[0] for word in quoted(table(page, "| option | |"))}
    assert told == options_of(command, capsys)


@pytest.mark.parametrize("command", ["run", "console"])
def test_the_help_fits_80_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parser().parse_args([command, "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_each_verb_is_documented() -> None:
    told = {usage.split()[0] for usage in quoted(table(SCRIPTS, "| verb | |"))}
    assert told == {*VERBS, *BLOCKS}


def test_each_assertion_is_documented() -> None:
    assert quoted(table(SCRIPTS, "| assertion | holds if |")) == {form.usage for form in asserts.FORMS}
    for form in asserts.FORMS:  # with something in the places of the words in capitals
        plain = re.sub(r"\[(?:[^]|]*\|)?([^]]*)\]", r"\1", form.usage).replace("...", "")
        parse("assert " + re.sub(r"\b[A-Z]{2,}\b", "main", plain), "x", read)


def test_each_field_of_the_report_is_documented(tmp_path: Path) -> None:
    done = run_script(tmp_path, "echo hello\n")
    assert quoted(table(SCRIPTS, "| field | |")) == set(done.report)
    row = next(line for line in SCRIPTS.splitlines() if line.startswith("| `steps`"))
    assert {*quoted([row]) - {"steps"}} == {*done.report["steps"][0], "data"}


def test_each_method_is_documented() -> None:
    told = {usage.partition("(")[0] for usage in quoted(table(SCRIPTS, "| method | |")) if "(" in usage}
    public = {name for name, _ in inspect.getmembers(rvtrace_gdb.Bench, inspect.isfunction) if not name.startswith("_")}
    assert told == public - {"close"}
    for usage in (it for it in quoted(table(SCRIPTS, "| method | |")) if "(" in it):
        name, _, given = usage.rstrip(")").partition("(")
        parameters = list(inspect.signature(getattr(rvtrace_gdb.Bench, name)).parameters)[1:]
        assert [it.lstrip("*") for it in given.split(", ") if it] == parameters, usage


def test_the_python_on_the_page_is_of_this_api() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SCRIPTS, re.S)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = {"rvtrace_gdb": rvtrace_gdb, "bench": rvtrace_gdb.Bench}[node.value.id]
            assert hasattr(owner, node.attr)
    assert set(re.findall(r"rvtrace_gdb\.([A-Z]\w+)", SCRIPTS)) <= set(rvtrace_gdb.__all__)


def test_commands_of_the_console_are_documented() -> None:
    told = quoted(table(CONSOLE, "| command | |"))
    assert told == {"help console", "help script", "script FILE.rvts", "shell COMMAND", "!COMMAND", "quit [STATUS]"}
    assert all(word in KEYS for word in told)


def test_the_session_on_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """examples/scripts/demo.rvts, as docs/scripts.md shows it, on a target of its own."""
    elf, script = demo(tmp_path), EXAMPLES / "scripts" / "demo.rvts"
    words = ["--sim", "--elf", str(elf), "-o", str(tmp_path / "demo.rvt"), "--report", str(tmp_path / "demo.json")]
    assert main(["run", str(script), *words]) == 0
    shown = capsys.readouterr().out
    page = re.findall(r"```\n\$ rvtrace run (.*?)```", SCRIPTS, re.S)[0].splitlines()[1:-1]
    for line in page:
        start = re.sub(r" \(\d+\.\d s\)$|\.\.\.$", "", line)
        if "stop:" in line:  # how many bytes is up to the encoder
            start = start.partition(", 1")[0]
        assert start in shown, line
    assert len(load(tmp_path / "demo.rvt").sinks) == 1
    assert json.loads((tmp_path / "demo.json").read_text())["status"] == "passed"


def test_the_example_with_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf, script = demo(tmp_path), EXAMPLES / "scripts" / "soak.rvts"
    assert main(["run", str(script), "--sim", "--elf", str(elf), "--set", "rounds=1"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^round .*", shown, re.M) == ["round 1: 2 interrupts"]
