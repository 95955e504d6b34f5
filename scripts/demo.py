"""Compile the program of `rvtrace demo` into the package, where those who have no compiler take it from.

usage: scripts/demo.py     Run it after a change to examples/demo.c, start.S or link.ld. The path of this folder is not
in the program.
"""

import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
EXAMPLES = HOME / "examples"
BUILD = HOME / "build" / "demo"
PACKAGED = HOME / "console" / "commands" / "demo" / "program" / "demo.elf"


def build(folder: Path = BUILD) -> Path:
    """Compile the demo program; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    elf = folder / "demo.elf"
    command = ["riscv64-unknown-elf-gcc", "-march=rv64imac_zicsr", "-mabi=lp64", "-mcmodel=medany", "-Og", "-g"]
    command += ["-specs=picolibc.specs", "-nostartfiles", f"-ffile-prefix-map={EXAMPLES}=/demo"]
    command += [f"-Wa,--debug-prefix-map={EXAMPLES}=/demo", "-T", "link.ld", "start.S", "demo.c", "-o", str(elf)]
    subprocess.run(command, cwd=EXAMPLES, check=True)
    return elf


if __name__ == "__main__":
    print(build(PACKAGED.parent))
    sys.exit(0)
