"""Finding the Python of the session process, and what is said when it cannot be found - in the real gdb."""

import shutil
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.gdbext import client
from tests.gdbext.gdb_process import HOME, SOURCE, every_gdb, run_gdb


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what gdb loads, without an environment beside it."""
    facts = tmp_path / "rvtrace_gdb" / "controlregs"
    shutil.copy(HOME / "rvtrace.py", tmp_path)
    for room in ("gdbext", "rows"):
        shutil.copytree(HOME / "rvtrace_gdb" / room, tmp_path / "rvtrace_gdb" / room)
    shutil.copy(HOME / "rvtrace_gdb" / "__init__.py", tmp_path / "rvtrace_gdb")
    facts.mkdir()
    for name in ("__init__.py", "encoder_features.py"):
        shutil.copy(HOME / "rvtrace_gdb" / "controlregs" / name, facts)
    return tmp_path


def answer(copy: Path, **environ: str) -> str:
    out = run_gdb(None, [f"source {copy / 'rvtrace.py'}", "trace status"], **{"RVTRACE_PYTHON": "", **environ})
    return out["trace status"].strip()


def test_without_an_environment_says_what_to_do(copy: Path) -> None:
    assert answer(copy) == (
        f"no Python environment for rvtrace beside {copy / 'rvtrace.py'}: run `make setup` in {copy},"
        " or set RVTRACE_VENV to the virtual environment rvtrace is installed in"
    )


def test_a_variable_that_leads_nowhere_is_named(copy: Path) -> None:
    assert answer(copy, RVTRACE_VENV="/nowhere") == (
        "$RVTRACE_VENV leads to /nowhere/bin/python3, which does not exist: correct it, or unset it"
    )


def test_a_python_without_the_package_is_named(copy: Path) -> None:
    base = Path(sys.base_prefix) / "bin" / "python3"
    line = answer(copy, RVTRACE_PYTHON=str(base))
    assert line.startswith(f"{base} does not have rvtrace (")
    assert f"run `make setup` in {copy}" in line
    assert "\n" not in line


def test_the_gdbext_folder_is_missing(copy: Path) -> None:
    shutil.rmtree(copy / "rvtrace_gdb")
    command = f"source {copy / 'rvtrace.py'}"
    assert run_gdb(None, [command])[command].strip() == (
        f"rvtrace: the folder rvtrace_gdb is missing in {copy}: source the rvtrace.py of a complete copy."
    )


def test_works_through_a_symbolic_link(tmp_path: Path) -> None:
    link = tmp_path / "rvtrace.py"
    link.symlink_to(HOME / "rvtrace.py")
    out = run_gdb(None, [f"source {link}", "help trace start"])
    assert "Usage: trace start" in out["help trace start"]


@every_gdb
@pytest.mark.parametrize("command", ["gdb.execute('source {0}')", "exec(compile(open('{0}').read(), '{0}', 'exec'))"])
def test_sourced_from_another_python_file(gdb: str, command: str, tmp_path: Path) -> None:
    """In a file that another one sources, `__file__` is the outer one's."""
    outer = tmp_path / "init.py"
    outer.write_text(f"import gdb\n{command.format(HOME / 'rvtrace.py')}\n")
    out = run_gdb(None, [f"source {outer}", "help trace start"], gdb=gdb)
    assert "Usage: trace start" in out["help trace start"], out[f"source {outer}"]


def test_text_that_is_executed_says_nothing_of_its_file(tmp_path: Path) -> None:
    """What runs it is asked then: a file that lies beside the folder gdbext."""
    command = f"python __file__ = '{HOME / 'rvtrace.py'}'; exec(open(__file__).read())"
    assert "Usage: trace start" in run_gdb(None, [command, "help trace start"])["help trace start"]


def test_sourcing_twice_is_harmless() -> None:
    out = run_gdb(None, [SOURCE, SOURCE, "help trace start", "show trace target"])
    assert "Usage: trace start" in out["help trace start"]
    assert out[SOURCE] == ""


def test_a_second_source_ends_the_first_session() -> None:
    children = "open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read().split()"
    sessions = f"python import os; print(sum('session' in open(f'/proc/{{pid}}/cmdline').read() for pid in {children}))"
    commands = [SOURCE, "trace status", sessions, f"{SOURCE} ", "trace  status", f"{sessions} "]
    out = run_gdb(None, commands)
    assert out[sessions].strip() == "1"
    assert out[f"{sessions} "].strip() == "1"


def test_installed_in_site_packages_finds_its_own_environment() -> None:
    home = "/opt/env/lib/python3.11/site-packages"
    assert next(client.candidates(home, {}))[0] == "/opt/env/bin/python3"


def test_gdbs_own_python_variables_do_not_reach_the_child() -> None:
    assert client.clean_environ({"PYTHONHOME": "/x", "PYTHONPATH": "/y", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_start_loads_no_more_than_it_needs() -> None:
    """What gdb itself does not load, and few commands need, is loaded by those commands: every start waits for it."""
    before, loaded = "python import sys; before = {*sys.modules}", "python print(*sorted({*sys.modules} - before))"
    words = run_gdb(None, [before, SOURCE, loaded])[loaded].split()
    assert "rvtrace_gdb.gdbext.commands" in words
    assert not {"socket", "secrets", "hashlib", "random", "tempfile", "difflib", "base64"} & {*words}
