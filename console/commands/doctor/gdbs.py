"""Whether a gdb can be used: it is started once, loads rvtrace.py, and starts the session."""

import json
import os
import subprocess
from typing import NamedTuple

from rvtrace_gdb.console.commands.doctor.finding import Finding, Packages, Usability
from rvtrace_gdb.console.commands.doctor.programs import PATIENCE, VersionNumbers
from rvtrace_gdb.console.gdb_driver.mi import RVTRACE, GdbGone, find_gdb, gdb_environ
from rvtrace_gdb.support.text import printable

GIVES = "everything in gdb, `rvtrace console`, `rvtrace run`; at the shell the text of instructions as gdb writes it"
PACKAGES = Packages("gdb-multiarch", "gdb")
PYTHON_SINCE: VersionNumbers = (3, 9)
_MARK, _LOADED, _STARTED = "rvtrace-facts ", "rvtrace-loaded", "rvtrace-started"
_FACTS = (
    "python import gdb, importlib.util, json, sys",
    f"python print({_MARK!r} + json.dumps(dict(version=gdb.VERSION, python=list(sys.version_info[:3]),"
    " window=hasattr(gdb, 'register_window_type'), mi=hasattr(gdb, 'MICommand'),"
    " disassembler=importlib.util.find_spec('gdb.disassembler') is not None,"
    " dap=importlib.util.find_spec('gdb.dap') is not None)))",
)
_SCRIPT = (
    "set confirm off", "show version", "set architecture riscv:rv64", "show architecture", *_FACTS,
    f"source {RVTRACE}", f"echo {_LOADED}\\n", "trace status", f"echo {_STARTED}\\n",
)  # fmt: skip
_LIMITS = (
    ("window", "before gdb 10 there is no window with the history (`layout trace`)"),
    ("mi", "before gdb 12 there are no commands for IDEs, and `rvtrace console` and `rvtrace run` cannot use it"),
    ("disassembler", "before gdb 13 `disassemble` shows no counts"),
    ("dap", "before gdb 14 there is no server for editors (DAP), with buttons for going back"),
)
"""What gdb's Python may not have, by the names of the facts."""


class GdbOutput(NamedTuple):
    """What gdb printed on its two streams."""

    output: str
    errors: str

    def section(self, begin: str, end: str) -> str:
        """Return what was printed on standard output between two marks."""
        return self.output.partition(begin)[2].partition(end)[0].strip()


def found_gdb() -> Finding:
    """Look for the gdb that is started when none is named, and try it."""
    try:
        path = find_gdb()
    except GdbGone as error:
        note = (str(error),) if os.environ.get("RVTRACE_GDB") else ()
        return Finding("gdb", Usability.MISSING, GIVES, notes=note, packages=PACKAGES)
    try:
        answer = _script_output(path)
    except subprocess.TimeoutExpired:
        return _unusable(path, "", (), "it does not answer")
    except OSError as error:
        return _unusable(path, "", (), f"it cannot be started: {error.strerror}")
    return judged(path, answer)


def _script_output(path: str) -> GdbOutput:
    words = [word for line in _SCRIPT for word in ("-ex", line)]
    done = subprocess.run(
        [path, "-q", "-nx", "-batch", *words], stdin=subprocess.DEVNULL, capture_output=True, env=gdb_environ(),
        timeout=4 * PATIENCE, check=False,
    )  # fmt: skip
    return GdbOutput(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def judged(path: str, answer: GdbOutput) -> Finding:
    """Return what the answer of a gdb says of it."""
    version = next((line.split()[-1] for line in answer.output.splitlines() if line.startswith("GNU gdb")), "")
    knows = "riscv:rv64" in answer.output.partition(_MARK)[0].partition("The target architecture")[2]
    if _MARK not in answer.output:
        lacks = "it was built without Python, or its Python does not work: "
        return _unusable(path, version, (), lacks + _last_line(answer.errors, "it does not say more"))
    facts = json.loads(answer.section(_MARK, "\n"))
    python = ".".join(map(str, facts["python"]))
    said = (f"Python {python}", "knows RISC-V" if knows else "does not know RISC-V")
    if not knows:
        return _unusable(path, version, said, "it was built without RISC-V: a gdb for several architectures has it")
    if tuple(facts["python"]) < PYTHON_SINCE:
        return _unusable(path, version, said, f"its Python is {python}: rvtrace needs 3.9 or newer")
    if not answer.section(_LOADED, _STARTED):  # the session answers there, whatever there is to trace
        return _unusable(path, version, said, _last_line(answer.errors, f"it did not load {RVTRACE}"))
    limits = tuple(text for name, text in _LIMITS if not facts[name])
    return Finding("gdb", Usability.LIMITED if limits else Usability.OK, GIVES, version, path, said, limits, PACKAGES)


def _unusable(path: str, version: str, facts: tuple[str, ...], why: str) -> Finding:
    return Finding("gdb", Usability.UNUSABLE, GIVES, version, path, facts, (why,), PACKAGES)


def _last_line(text: str, otherwise: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return printable(lines[-1].strip()) if lines else otherwise
