"""The real gdb-multiarch through the real OpenOCD: what somebody does in a first session."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.compiling import compile_program
from tests.simulated.openocd import OpenOcd

PROGRAM = Path(__file__).resolve().parent.parent / "programs" / "sim_debug.c"


def gdb(elf: Path, port: int, *commands: str) -> str:
    """What gdb prints; each command is announced by a line `>>> command`."""
    prepare = ["set confirm off", "set pagination off", "set osabi none", "set remotetimeout 20"]
    prepare += [f"target extended-remote 127.0.0.1:{port}"]
    arguments = ["gdb-multiarch", "-nx", "-q", "-batch", str(elf)]
    for command in prepare:
        arguments += ["-ex", command]
    for command in commands:
        arguments += ["-ex", f"echo >>> {command}\\n", "-ex", command]
    return subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60).stdout


def answers(output: str) -> list[tuple[str, str]]:
    """(command, what it printed)."""
    parts = re.split(r"^>>> (.*)\n", output, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("march", ["rv64gc", "rv32imac_zicsr"])
def test_a_session(tmp_path: Path, march: str) -> None:
    elf = compile_program(tmp_path, PROGRAM, march=march, options=("-O0",))
    isa = "IMAFDC" if march.endswith("gc") else "IMAC"
    script = {
        "load": r"Loading section \.text(.|\n)*Transfer rate",
        "info registers pc": r"0x0*80000000",
        "break outer": r"Breakpoint 1 at",
        "continue": r"Breakpoint 1, outer \(n=3\)",
        "next": r"^\d+\s+unsigned b = inner\(n \+ 1\);$",  # over the first call
        "step": r"^inner \(n=4\)",
        "backtrace": r"#0  inner(.|\n)*#1 .* outer(.|\n)*#2 .* work(.|\n)*#3 .* main",
        "finish": r"outer \(n=3\)(.|\n)*Value returned is \$1 = 24$",
        "stepi": r"return a \+ b;|0x",
        "print counter": r" = 0$",
        "set var counter = 41": r"^$",
        "print counter + 0": r" = 41$",
        "delete": r"^$",
        "thbreak work": r"Temporary hardware breakpoint|Hardware assisted breakpoint",
        "continue 1": r"Temporary breakpoint 2, work \(round=1\)",
        "print/x $mstatus & 0": r" = 0x0$",
        # OpenOCD 0.12 names the watched address only for uncompressed stores; it stops before the store in any case.
        "watch counter": r"Hardware watchpoint 3: counter",
        "continue 2": r"SIGTRAP(.|\n)*work \(round=1\)|Hardware watchpoint 3",
        "print counter + 1": r" = (75|42)$",
        "x/2xw 0x80000000": r"0x80000000.*:\s+0x[0-9a-f]{8}\s+0x[0-9a-f]{8}",
        "x/2xw 0x20000000": r"0x20000000:\s+0x00000008\s+0x00000000",  # an inactive trace encoder
    }
    with OpenOcd(elf, tmp_path / "rig", "--isa", isa) as rig:
        printed = answers(gdb(elf, rig.gdb_port, *script))
    assert [command for command, _ in printed] == list(script)
    for command, text in printed:
        assert re.search(script[command], text.strip(), re.M), f"{command}: {text}"
