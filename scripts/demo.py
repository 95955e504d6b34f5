"""`make demo`: a C program on the simulated target, the real OpenOCD and the real gdb with rvtrace.py sourced.

Prints a short session as the user would see it. With --interactive the user goes on at its gdb prompt.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.support.errors import RvtraceError

HOME = Path(__file__).resolve().parent.parent
EXAMPLES = HOME / "examples"
BUILD = HOME / "build" / "demo"

SESSION = [
    "source rvtrace.py",
    "trace connect :{port}",
    "trace start",
    "break finish",
    "continue",
    "trace history",
    "trace history /s -",
    "trace status",
    "reverse-step",
    "trace goto fib",
    "backtrace",
    "reverse-finish",
    "trace live",
    "trace who-wrote ticks",
    "trace goto -wrote ticks",
    "print ticks",
    "backtrace",
    "trace live",
]
NEXT = """
Go on:
  . .venv/bin/activate     # then `rvtrace` is a command of this shell; `rvtrace` alone lists what it can do
  make examples            # programs that each have a bug, in build/examples, for the tutorials in docs/README.md
  rvtrace console --elf build/examples/hang.elf --sim     # the first of them: docs/tutorials/it-hangs.md
"""


def build() -> Path:
    """Compile the demo program; its path."""
    BUILD.mkdir(parents=True, exist_ok=True)
    elf = BUILD / "demo.elf"
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany", "-Og", "-g"]
    command += ["-specs=picolibc.specs", "-nostartfiles", "-T", "link.ld", "start.S", "demo.c", "-o", str(elf)]
    subprocess.run(command, cwd=EXAMPLES, check=True)
    return elf


def gdb_script(rig: Rig) -> Path:
    """A gdb command file that shows each command of the session before it runs."""
    lines = ["set pagination off", "set confirm off", "set height 0"]
    for template in SESSION:
        command = template.format(port=rig.gdb_port)
        lines += [f"echo (gdb) {command}\\n", command]
    script = BUILD / "session.gdb"
    script.write_text("\n".join(lines) + "\n")
    return script


def run(interactive: bool) -> int:
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        raise RvtraceError("gdb-multiarch is not installed: run `make demo`, which installs it")
    elf = build()
    if not interactive:
        status = _shown(gdb, elf)
        print("" if status else NEXT, end="", flush=True)
        return status
    with Rig(elf, BUILD) as rig:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is gdb's
        command = [gdb, "-q", "-nx", str(elf), "-x", str(gdb_script(rig))]
        return subprocess.run(command, cwd=HOME, check=False).returncode


def _shown(gdb: str, elf: Path) -> int:
    """Run the session, and return gdb's exit status."""
    with Rig(elf, BUILD) as rig:
        command = [gdb, "-q", "-nx", "-batch", str(elf), "-x", str(gdb_script(rig))]
        return subprocess.run(command, cwd=HOME, stdin=subprocess.DEVNULL, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interactive", action="store_true", help="stay at the gdb prompt")
    arguments = parser.parse_args()
    os.chdir(HOME)
    try:
        return run(arguments.interactive)
    except RvtraceError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
