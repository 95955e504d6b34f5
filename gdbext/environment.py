"""Which Python runs the session process.

gdb's own Python is not the one rvtrace was installed for: an activated virtual environment is not seen inside gdb, and
`sys.executable` there is a guess. So it is found from where the sourced file lies, or from environment variables.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping


def interpreter_of(environment: str) -> str:
    """Path of the Python of a virtual environment directory (it may not exist)."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python3")
    return os.path.join(environment, *parts)


def candidates(home: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(interpreter, why) in the order of preference; `home` is the directory of the sourced rvtrace.py."""
    if environ.get("RVTRACE_PYTHON"):
        yield environ["RVTRACE_PYTHON"], "$RVTRACE_PYTHON"
    if environ.get("RVTRACE_VENV"):
        yield interpreter_of(environ["RVTRACE_VENV"]), "$RVTRACE_VENV"
    if os.path.basename(home) in ("site-packages", "dist-packages"):
        # <env>/lib/python3.x/site-packages on POSIX, <env>/Lib/site-packages on Windows
        up = 2 if os.name == "nt" else 3
        environment = os.path.normpath(os.path.join(home, *[".."] * up))
        yield interpreter_of(environment), "the environment rvtrace is installed in"
    yield interpreter_of(os.path.join(home, ".venv")), "the .venv beside rvtrace.py"
    if environ.get("VIRTUAL_ENV"):
        yield interpreter_of(environ["VIRTUAL_ENV"]), "$VIRTUAL_ENV"


def find_interpreter(home: str, environ: Mapping[str, str]) -> str:
    """The Python to run the session with.

    Raises LookupError whose text is the line for the user. A variable that is set must lead somewhere: falling back
    silently to another environment would hide the mistake.
    """
    for path, why in candidates(home, environ):
        if os.path.exists(path):
            return path
        if why.startswith("$RVTRACE"):
            raise LookupError(f"{why} leads to {path}, which does not exist: correct it, or unset it")
    raise LookupError(
        f"no Python environment for rvtrace beside {os.path.join(home, 'rvtrace.py')}: run `make setup` in {home},"
        " or set RVTRACE_VENV to the virtual environment rvtrace is installed in"
    )


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child: gdb may have PYTHONHOME/PYTHONPATH set for its own Python."""
    return {key: value for key, value in environ.items() if not key.startswith("PYTHON")}


def explain_failure(interpreter: str, stderr: str, home: str) -> str:
    """One line for a session process that ended before it answered."""
    last = stderr.strip().splitlines()[-1] if stderr.strip() else "it ended without a word"
    if "No module named" in last:
        return (
            f"{interpreter} does not have rvtrace ({last}): run `make setup` in {home},"
            f" or `{interpreter} -m pip install -e {home}`"
        )
    return f"the rvtrace session ({interpreter} -m rvtrace_gdb.session) could not start: {last}"


def start_session(interpreter: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the session process. Its own session, so that Ctrl-C in gdb's terminal does not end it."""
    return subprocess.Popen(
        [interpreter, "-I", "-m", "rvtrace_gdb.session"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environ(environ),
        start_new_session=True,
    )
