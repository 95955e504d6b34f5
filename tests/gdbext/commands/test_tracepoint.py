"""gdb's own `trace LOCATION` still works when our prefix command of the same name is loaded, in the real gdb."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.gdbext.gdb_process import GDBS, SOURCE, gdb_environ, run_gdb
from tests.helpers.amounts import crossed
from tests.helpers.cross_compiler import demo

LOCATIONS = ["fib", "demo.c:20", "*0x80000056", "-function fib", "fib if n > 3", "nosuchfunction"]

INTERPRETERS = [
    pytest.param(*gdb.values, interpreter, id=f"{gdb.id}-{interpreter}")
    for gdb, interpreter in crossed(GDBS, ["mi2", "mi3"])
]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("tracepoints"))


@pytest.fixture(scope="module")
def builtin(elf: Path) -> dict[str, str]:
    """What stock gdb says: the expectation."""
    return run_gdb(elf, [f"trace {location}" for location in LOCATIONS] + ["info tracepoints"])


@pytest.fixture(scope="module")
def ours(elf: Path) -> dict[str, str]:
    return run_gdb(elf, [SOURCE] + [f"trace {location}" for location in LOCATIONS] + ["info tracepoints"])


@pytest.mark.parametrize("location", LOCATIONS)
def test_prints_what_the_builtin_prints(location: str, builtin: dict[str, str], ours: dict[str, str]) -> None:
    command = f"trace {location}"
    # stock gdb asks whether to make an unknown location pending; the machine interface does not
    expected = re.sub(r"Make tracepoint pending.*", "", builtin[command]).strip()
    assert ours[command].strip() == expected


def test_the_same_tracepoints_exist(builtin: dict[str, str], ours: dict[str, str]) -> None:
    assert ours["info tracepoints"] == builtin["info tracepoints"]


def test_aliases_lead_to_tracepoints_too(elf: Path) -> None:
    aliases = ["tp", "tr", "tra", "trac", "rvtrace"]
    out = run_gdb(elf, [SOURCE, *(f"{alias} fib" for alias in aliases)])
    for number, alias in enumerate(aliases, 1):
        assert f"Tracepoint {number} at 0x" in out[f"{alias} fib"]


def test_used_twice_in_one_session(elf: Path) -> None:
    """The second use of the machine interface is the one that crashes gdb when the first was captured wrongly."""
    out = run_gdb(elf, [SOURCE, "trace fib", "trace add", "trace mul", "info line fib"])
    assert out["trace mul"].startswith("Tracepoint 3 at")
    assert "starts at address" in out["info line fib"]


@pytest.mark.parametrize(("gdb", "interpreter"), INTERPRETERS)
def test_under_a_machine_interface(gdb: str, interpreter: str, elf: Path) -> None:
    """As IDEs have it. gdb 13 then answers the command within a command elsewhere."""
    commands = [SOURCE, '-interpreter-exec console "trace main"', '-interpreter-exec console "trace nonsens"']
    done = subprocess.run(
        [gdb, "-q", "-nx", f"--interpreter={interpreter}", str(elf)], input="\n".join([*commands, "-gdb-exit\n"]),
        capture_output=True, text=True, timeout=300, env=gdb_environ(), check=False,
    )  # fmt: skip
    assert re.search(r'~"Tracepoint 1( at .*)?\.\\n"', done.stdout)
    assert "Error" not in done.stdout + done.stderr
    refused = r'^\^error,msg="(There is no place \\"nonsens\\"|Function \\"nonsens\\" not defined)'
    assert re.search(refused, done.stdout, re.MULTILINE)
