"""Running the real gdb-multiarch in tests: this machine's, and gdb 16 and 18 where they are
(scripts/setup-gdb16, scripts/setup-gdb18).

    @every_gdb
    def test_something(gdb: str, ...) -> None:
        outputs = run_gdb(elf, commands, gdb=gdb)

or, for a fixture of a module: `@pytest.fixture(scope="module", params=GDBS)`, `run_gdb(..., gdb=request.param)`.

`KeptGdb` is one gdb, with its session, for the questions of many tests: where none leaves anything that another one
notices.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from threading import Timer
from types import TracebackType

import pytest

from tests.helpers.amounts import LONG
from tests.helpers.started_python import python_stub

HOME = Path(__file__).resolve().parent.parent.parent
SOURCE = f"source {HOME / 'rvtrace.py'}"

GDB = "gdb-multiarch"
_TOOLS = HOME / ".tools"


def _beside(variable: str, unpacked: Path) -> str | None:
    """The program that an environment variable names, else what a script of scripts/ fetched, else None.

    Raises ValueError if the one that is named is not there: a second run was asked for.
    """
    named = os.environ.get(variable)
    if not named:
        return str(unpacked) if unpacked.exists() else None
    if shutil.which(named) is None:
        raise ValueError(f"{variable}: there is no program {named}")
    return named


GDB16 = _beside("RVTRACE_GDB16", _TOOLS / "gdb16" / "gdb")
GDB18 = _beside("RVTRACE_GDB18", _TOOLS / "gdb18" / "bin" / "gdb")
NEWEST = GDB18 or GDB16 or GDB
_OLD = [pytest.param(GDB, id="gdb"), *([pytest.param(GDB16, id="gdb16")] if GDB16 else [])]
ALL_GDBS = [*_OLD, *([pytest.param(GDB18, id="gdb18")] if GDB18 else [])]
GDBS = ALL_GDBS if LONG else _OLD
"""The programs that tests of what differs between versions of gdb run with; the newest one in the long run alone."""
all_gdbs = pytest.mark.parametrize("gdb", ALL_GDBS)
every_gdb = pytest.mark.parametrize("gdb", GDBS)
SOME_GDBS, NEWEST_GDB = (GDBS, GDBS) if LONG else (GDBS[:1], ALL_GDBS[-1:])
"""One for what is the same in all versions: what each of them is asked for has both in the long run."""
some_gdbs = pytest.mark.parametrize("gdb", SOME_GDBS)
newest_gdb = pytest.mark.parametrize("gdb", NEWEST_GDB)

LOCALE = "C" if os.environ.get("LC_ALL") == "C" else "C.UTF-8"
"""`make test-long` runs all tests once more in the C locale."""
PATIENT = "set remotetimeout 60"
"""With gdb's own two seconds for an answer, a machine that stands still for them would be an error of the target's."""
AT_ONCE = "sim.cpu configure -gdb-max-connections 2; init; halt"
"""For OpenOCD where a gdb connects again at once: it may take the new connection before it has seen the old one end."""
INTERRUPT = (
    "python import threading, os, signal; interrupt = lambda event: (gdb.events.cont.disconnect(interrupt), "
    "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()); gdb.events.cont.connect(interrupt)"
)
"""Ctrl-C when the target has been running for half a second, whenever gdb comes to have it run."""
SETTINGS = ("set height 0", "set width 0", "set confirm off", PATIENT)


def gdb_environ(**more: str) -> dict[str, str]:
    """The environment for gdb: none of the variables that would point it to another rvtrace or target, and no indexes.

    Its sessions are started from one that has all modules loaded.
    """
    keep = {k: v for k, v in os.environ.items() if not k.startswith("RVTRACE_") and k != "VIRTUAL_ENV"}
    return {**keep, "TERM": "dumb", "LC_ALL": LOCALE, "RVTRACE_PYTHON": python_stub(), "RVTRACE_CACHE": "", **more}


_LONGEST = 540
"""Seconds for one gdb, less than pytest allows a test: the longest, with a target, take five minutes where four run on
two processors that others use, too.
"""
_LATE = re.compile(r"keep_alive\(\) was not invoked in the .*\n")
"""What OpenOCD says while the program runs, and gdb prints, when the machine stood still for a second."""


def in_time(printed: str) -> str:
    """What was printed, as on a machine that has nothing else to do."""
    return _LATE.sub("", printed)


def killed(process: int, signal: str) -> str:
    """The command of gdb that ends a process of the test's: it is over then, though its parent has not asked for it."""
    over = f"grep -qs '^State:[^Z]*$' /proc/{process}/status"
    return f"shell kill -{signal} {process}; while {over}; do sleep 0.02; done"


def _marked(commands: list[str]) -> list[tuple[str, str]]:
    """Each command, after another one that prints where its output begins."""
    return [(f"echo \\n\x01{command}\x02\\n", command) for command in commands]


def _by_command(printed: str) -> dict[str, str]:
    return dict(part.partition("\x02\n")[::2] for part in printed.split("\n\x01")[1:])


def run_gdb(elf: Path | None, commands: list[str], gdb: str = GDB, **environ: str) -> dict[str, str]:
    """What each command printed (both streams), in a gdb that goes on after errors: {command: output}.

    A command given twice has its last output under its own text; use distinct spellings to tell them apart.
    """
    words = [gdb, "-q", "-nx", "-batch"] + ([str(elf)] if elf else [])
    for marked in _marked([*SETTINGS, *commands]):
        words += [word for command in marked for word in ("-ex", command)]
    words += ["-ex", f"echo {_END}"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LONGEST,
        env=gdb_environ(**environ), check=False,
    )  # fmt: skip
    text = in_time(done.stdout.decode(errors="replace"))
    assert _ENDED in text, f"gdb ended early ({done.returncode}): {text[-2000:]}"
    return _by_command(text)


_END, _ENDED = "\\n\x01end\x02\\n", "\n\x01end\x02\n"


class KeptGdb:
    """`with KeptGdb(elf) as gdb:` - a gdb that `run` asks again and again."""

    def __init__(self, elf: Path | None, gdb: str = GDB, **environ: str) -> None:
        words = [gdb, "-q", "-nx", "-ex", "set prompt", *([str(elf)] if elf else [])]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=gdb_environ(**environ)
        )
        self.run(list(SETTINGS))

    def run(self, commands: list[str]) -> dict[str, str]:
        """What each command printed, as `run_gdb`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        lines = [line for marked in _marked(commands) for line in marked]
        limit = Timer(_LONGEST, self._process.kill)
        limit.start()
        self._process.stdin.write("".join(f"{line}\n" for line in [*lines, f"echo {_END}"]).encode())
        self._process.stdin.flush()
        printed = b""
        while _ENDED.encode() not in printed:  # a target that is gone may have gdb say more after it
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            assert piece, f"gdb ended early: {printed[-2000:]!r}"
            printed += piece
        limit.cancel()
        return _by_command(in_time(printed.decode(errors="replace")))

    def __enter__(self) -> "KeptGdb":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End gdb, and with it its session."""
        self._process.communicate(b"quit\n", timeout=60)


_KEPT_AT_MOST = 3
_kept: dict[tuple[str, Path | None], KeptGdb] = {}


def ask_gdb(elf: Path | None, commands: list[str], gdb: str = GDB) -> dict[str, str]:
    """What `run_gdb` returns, from a gdb that has been asked before by other tests of the module.

    It has rvtrace, the session of the others, and no settings of rvtrace's: what commands set is unset after them. For
    commands that begin with a capture, or need none, and do not depend on what else was set or printed before.
    A target that goes away would leave its breakpoints, and a trace that is being recorded.
    """
    assert not any(command.startswith(("trace connect", "target ")) for command in commands), "use run_gdb"
    key = gdb, elf
    if key not in _kept:
        if len(_kept) == _KEPT_AT_MOST:
            _kept.pop(next(iter(_kept))).close()
        _kept[key] = KeptGdb(elf, gdb)
        _kept[key].run([SOURCE])
    assert not any(command.startswith("set ") and not command.startswith("set trace ") for command in commands)
    assert not any(re.fullmatch("set trace .* (on|off)", command) for command in commands), "switches stay"
    unset = [" ".join(command.split()[:3]) for command in commands if command.startswith("set trace ")]
    kept = _kept.pop(key)  # if it ends early, it is kept no longer
    outputs = kept.run([command for command in commands if command != SOURCE] + [f"{command} " for command in unset])
    _kept[key] = kept
    return outputs


def end_kept() -> None:
    """End all that `ask_gdb` has kept."""
    while _kept:
        _kept.popitem()[1].close()
