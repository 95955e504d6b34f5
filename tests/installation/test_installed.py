"""rvtrace installed from its wheel and its source distribution, among packages and modules of the same names.

The console's libraries come from PyPI, and so do three packages that are called as rooms of ours are; a user's own
modules lie first on the path. None may be taken for ours, and ours for none of them. All of that is there once: one
environment has rvtrace of its wheel, then of its source distribution, then of the checkout.
"""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.decode.kernel.test_build import can_compile
from tests.gdbext.gdb_process import GDB, gdb_environ
from tests.helpers.amounts import long_only
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


class User(NamedTuple):
    """*folder* has the user's own modules and the demo program, *environment* what is needed beside rvtrace."""

    environment: Environment
    folder: Path
    elf: Path

    def installed(self, name: str) -> str:
        """What pip has written down of rvtrace in a file of this name."""
        (found,) = self.environment.folder.glob(f"lib/python*/site-packages/rvtrace_gdb-*.dist-info/{name}")
        return found.read_text(encoding="utf-8")

    def rvtrace(self, *words: object) -> str:
        return done(self.environment.program("rvtrace"), *words, cwd=self.folder, PYTHONPATH=str(self.folder))


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(*built(tmp_path_factory.mktemp("built")))


@pytest.fixture(scope="module")
def user(distributions: Built, tmp_path_factory: pytest.TempPathFactory) -> User:
    folder = tmp_path_factory.mktemp("user")
    environment = Environment.made(folder / "environment")
    environment.install(f"{distributions.wheel}[console]")
    environment.install("--no-deps", *STRANGERS)
    (folder / "support").mkdir()
    for name in ("session.py", "decode.py", "support/__init__.py"):
        (folder / name).write_text(MINE)
    return User(environment, folder, demo(folder))


@pytest.fixture(scope="module")
def installed(request: pytest.FixtureRequest, user: User, distributions: Built) -> User:
    """With rvtrace made from *param*, in place of what was there before. It needs what the wheel needs."""
    what = HOME if request.param == "editable" else getattr(distributions, request.param)
    if what.as_uri() not in user.installed("direct_url.json"):
        words = ["--editable", what] if request.param == "editable" else [f"rvtrace-gdb @ {what.as_uri()}"]
        user.environment.install("--no-deps", "--force-reinstall", *words)
    assert what.as_uri() in user.installed("direct_url.json")
    with zipfile.ZipFile(distributions.wheel) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        assert user.installed("METADATA") == wheel.read(metadata).decode()
    return user


def test_one_package_and_the_file_to_source_are_installed(distributions: Built) -> None:
    with zipfile.ZipFile(distributions.wheel) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
        skill = wheel.read("rvtrace_gdb/console/commands/SKILL.md")
    data, names = [name for name in names if ".data/" in name], [name for name in names if ".data/" not in name]
    assert skill == (HOME / "share" / "agents" / "SKILL.md").read_bytes()
    shared = {name for name in tracked() if name.startswith("share/") and not name.startswith("share/agents/")}
    assert {name.partition(".data/data/")[2] for name in data} == shared and len(shared) == 4
    assert {name.partition("/")[0] for name in names} == {"rvtrace.py", "rvtrace_lldb.py", "rvtrace_gdb"}
    assert {name.split("/")[1] for name in names if name.count("/") > 1} == set(ROOMS)
    of_rooms = [name for name in tracked() if name.partition("/")[0] in ROOMS]
    modules = {name for name in of_rooms if name.endswith((".py", ".c", ".h", ".toml"))}
    assert modules == {name.removeprefix("rvtrace_gdb/") for name in names} & modules


def test_the_source_distribution_has_all_files(distributions: Built) -> None:
    """Those of the rooms in the package, where the links of a checkout lead to."""
    with tarfile.open(distributions.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    links = {f"rvtrace_gdb/{room}" for room in ROOMS}
    wanted = {f"rvtrace_gdb/{name}" if name.partition("/")[0] in ROOMS else name for name in tracked()} - links
    assert wanted - names == set()


@pytest.mark.parametrize("installed", ["wheel", *long_only("sdist")], indirect=True)
def test_a_trace_is_recorded_decoded_and_opened_in_gdb(installed: User) -> None:
    """Every process is started as a user would: the program, the session for gdb, the simulated target."""
    script = HOME / "examples" / "scripts" / "demo.rvts"
    ran = installed.rvtrace("run", script, "--sim", "--elf", installed.elf, "-o", "demo.rvt")
    assert ", 4 assertions, 0 failed, " in ran
    listed = installed.rvtrace("decode", "demo.rvt", "--elf", installed.elf)
    assert "<classify" in listed
    file = installed.rvtrace("gdb-script").strip()
    assert Path(file).parent.name == "site-packages"
    words = [GDB, "-q", "-nx", "-batch", str(installed.elf), "-ex", f"source {file}", "-ex", "trace open demo.rvt"]
    environ = gdb_environ(PYTHONPATH=str(installed.folder), RVTRACE_PYTHON="")  # its session is the installed one's
    gdb = subprocess.run(
        [*words, "-ex", "trace history 1,5"], cwd=installed.folder, env=environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert gdb.stderr == ""
    rows = [line for line in listed.splitlines() if line[:1].isdigit()]
    assert gdb.stdout.splitlines()[-5:] == rows[:5]
    told = installed.rvtrace("--version")
    assert told.startswith("rvtrace ") and (told.endswith(", with the compiled kernel\n") or not can_compile())
    shown = installed.rvtrace("demo")
    assert "36\t    ticks++;" in shown and "$1 = 1\n" in shown, "the program and its source go along"
    facts = installed.rvtrace("doctor", "rvtrace", "gdb", "--json").splitlines()
    found = [json.loads(row) for row in facts]
    assert [row["state"] in ("ok", "limited") for row in found] == [True] * 2
    assert Path(found[0]["file"]).parent == Path(file).parent
    page = installed.environment.folder / "share" / "man" / "man1" / "rvtrace.1"
    assert page.read_text() == installed.rvtrace("man")


@pytest.mark.parametrize("installed", ["sdist"], indirect=True)
def test_of_the_source_distribution_the_files_of_the_wheel_are_installed(installed: User, distributions: Built) -> None:
    """Byte by byte: what works of one works of the other."""
    with zipfile.ZipFile(distributions.wheel) as wheel:
        (record,) = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
        made = wheel.read(record).decode()
    assert _hashes(made) == _hashes(installed.installed("RECORD")) != set()


def _hashes(record: str) -> set[str]:
    """Of a RECORD, the lines of rvtrace's files: name, hash, size."""
    ours = ("rvtrace.py,", "rvtrace_lldb.py,", "rvtrace_gdb/")
    return {line for line in record.splitlines() if line.startswith(ours)}


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy knows of Python's own modules; those of rvtrace are in another place each time."""
    return tmp_path_factory.mktemp("mypy")


CHECKED = [("wheel", "mypy"), *long_only(("editable", "pyright"), ("editable", "mypy"), ("wheel", "pyright"))]


@pytest.mark.parametrize(("installed", "checker"), CHECKED, indirect=["installed"])
def test_type_checkers_find_the_one_mistake(checker: str, installed: User, mypy_cache: Path, tmp_path: Path) -> None:
    python = installed.environment.program("python")
    (tmp_path / "used.py").write_text(USED)
    words = {
        "mypy": ["--strict", "--cache-dir", mypy_cache, "--python-executable", python],
        "pyright": ["--pythonpath", python],
    }[checker]
    checked = subprocess.run(
        [str(word) for word in (Path(sys.executable).with_name(checker), *words, "used.py")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (error,) = [line for line in checked.stdout.splitlines() if " error: " in line]
    assert "used.py:9:" in error
