"""What all tests have in common."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from rvtrace_gdb.console.bench import rig
from rvtrace_gdb.support.system import frozen_startup
from tests.helpers.amounts import LONG, some_of
from tests.helpers.started_python import python_stub

# How long an example takes, and to draw it, is up to the machine, and no test asserts a speed. The examples are the
# same each time, so that no change is refused for what was there before; `make fuzz SEED=...` looks for new ones.
settings.register_profile(
    "rvtrace", deadline=None, derandomize=True, max_examples=some_of(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rvtrace")

# Nor do constants in those of our modules that happen to be loaded become examples: then one that changes would change
# those of all tests, and to find them takes each of pytest's workers five seconds in a new clone.
_providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
if hasattr(_providers, "_local_constants"):
    _providers._get_local_constants = lambda: _providers._local_constants

# Where Python must not keep what it compiles, each of the many processes that tests start compiles all modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No test leaves an index of a trace in the user's folder for caches.
os.environ["RVTRACE_CACHE"] = ""

# Who starts the tests in the background, or with nohup, has them ignore the keys that tests press.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL),
                        (signal.SIGHUP, signal.SIG_DFL)):  # fmt: skip
    if signal.getsignal(number) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def quick_start() -> None:
    """Have a Rig start its simulated target from a process that has the modules loaded, and each gdb its session."""
    rig.PYTHON = os.environ["RVTRACE_PYTHON"] = python_stub()


_LOGS, _LAST_BYTES = 4, 1000


@pytest.fixture
def short_path() -> Iterator[Path]:
    """An empty folder, as tmp_path is, whose name leaves room for more: that of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: two for each processor, because a test with gdb and OpenOCD waits for half of its time: for a timer, a
    start, an answer, an end.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * processors


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough(smaller): for the long run alone; see tests/helpers/amounts.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for the long run, unless the command line names a test."""
    if LONG or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what OpenOCD, QEMU and the others it ran said last: their logs may be gone by then."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and folder is not None:
        for log in sorted(Path(folder).glob("**/*.log"))[:_LOGS]:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - _LAST_BYTES))
                report.sections.append((f"end of {log.name}", file.read().decode(errors="replace")))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All tests there are, with their modules, are not searched for garbage at every turn of those that run."""
    with frozen_startup():
        return (yield)
