"""rvtrace installed from its wheel and its source distribution, among packages and modules of the same names.

The console's libraries come from PyPI, and so do three packages that are called as rooms of ours are; a user's own
modules lie first on the path. None may be taken for ours, and ours for none of them.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gdbext.gdb_process import GDB, gdb_environ
from tests.helpers.cross_compiler import demo
from tests.installation.installing import HOME, ROOMS, STRANGERS, Environment, built, done, tracked

MINE = 'raise SystemExit("a module of the user was taken for one of rvtrace")\n'
USED = """import rvtrace_gdb


def instructions(history: rvtrace_gdb.History) -> int:
    return len(history)


capture: rvtrace_gdb.Capture = rvtrace_gdb.load_capture("demo.rvt")
wrong: str = rvtrace_gdb.load_capture("demo.rvt")
"""


class Built(NamedTuple):
    wheel: Path
    sdist: Path


class Installed(NamedTuple):
    """*folder* has the user's own modules and the demo program."""

    environment: Environment
    folder: Path
    elf: Path

    def rvtrace(self, *words: object) -> str:
        return done(self.environment.program("rvtrace"), *words, cwd=self.folder, PYTHONPATH=str(self.folder))


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(*built(tmp_path_factory.mktemp("built")))


@pytest.fixture(scope="module", params=Built._fields)
def installed(
    request: pytest.FixtureRequest, distributions: Built, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    folder = tmp_path_factory.mktemp("user")
    environment = Environment.made(folder / "environment")
    environment.install(f"{getattr(distributions, request.param)}[console]")
    environment.install("--no-deps", "--no-compile", *STRANGERS)
    (folder / "support").mkdir()
    for name in ("session.py", "decode.py", "support/__init__.py"):
        (folder / name).write_text(MINE)
    return Installed(environment, folder, demo(folder))


def test_one_package_and_the_file_to_source_are_installed(distributions: Built) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in names} == {"rvtrace.py", "rvtrace_gdb"}
    assert {name.split("/")[1] for name in names if name.count("/") > 1} == set(ROOMS)
    modules = {name for name in tracked() if name.partition("/")[0] in ROOMS and name.endswith((".py", ".c", ".h"))}
    assert modules == {name.removeprefix("rvtrace_gdb/") for name in names} & modules


def test_the_source_distribution_has_all_files(distributions: Built) -> None:
    """Those of the rooms in the package, where the links of a checkout lead to."""
    with tarfile.open(distributions.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    links = {f"rvtrace_gdb/{room}" for room in ROOMS}
    wanted = {f"rvtrace_gdb/{name}" if name.partition("/")[0] in ROOMS else name for name in tracked()} - links
    assert wanted - names == set()


def test_a_trace_is_recorded_decoded_and_opened_in_gdb(installed: Installed) -> None:
    """Every process is started as a user would: the program, the session for gdb, the simulated target."""
    script = HOME / "examples" / "scripts" / "demo.rvts"
    ran = installed.rvtrace("run", script, "--sim", "--elf", installed.elf, "-o", "demo.rvt")
    assert ", 4 assertions, 0 failed, " in ran
    listed = installed.rvtrace("decode", "demo.rvt", "--elf", installed.elf)
    assert "<classify" in listed
    file = installed.rvtrace("gdb-script").strip()
    assert Path(file).parent.name == "site-packages"
    words = [GDB, "-q", "-nx", "-batch", str(installed.elf), "-ex", f"source {file}", "-ex", "trace open demo.rvt"]
    gdb = subprocess.run(
        [*words, "-ex", "trace history 1,5"], cwd=installed.folder, env=gdb_environ(PYTHONPATH=str(installed.folder)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert gdb.stderr == ""
    rows = [line for line in listed.splitlines() if line[:1].isdigit()]
    assert gdb.stdout.splitlines()[-5:] == rows[:5]
    assert installed.rvtrace("--version").startswith("rvtrace ")


@pytest.fixture(scope="module", params=[False, True], ids=["installed", "editable"])
def for_checkers(
    request: pytest.FixtureRequest, distributions: Built, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    environment = Environment.made(tmp_path_factory.mktemp("checked") / "environment")
    what = ("--editable", HOME) if request.param else ("--no-compile", distributions.wheel)
    environment.install("--no-deps", *what)
    return environment


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_find_the_one_mistake(checker: str, for_checkers: Environment, tmp_path: Path) -> None:
    python = for_checkers.program("python")
    (tmp_path / "used.py").write_text(USED)
    words = {
        "mypy": ["--strict", "--cache-dir", tmp_path / "cache", "--python-executable", python],
        "pyright": ["--pythonpath", python],
    }[checker]
    checked = subprocess.run(
        [str(word) for word in (Path(sys.executable).with_name(checker), *words, "used.py")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (error,) = [line for line in checked.stdout.splitlines() if " error: " in line]
    assert "used.py:9:" in error
