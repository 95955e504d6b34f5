"""The real gdb-multiarch through the real OpenOCD: what somebody does in a first session."""

import re
from pathlib import Path

import pytest

from tests.gdbext.gdb_process import run_gdb
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import compile_program
from tests.transport.simulated.openocd import OpenOcd

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "sim_debug.c"


@pytest.mark.parametrize("march", ["rv32imac_zicsr", *long_only("rv64gc")])
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
        connect = f"target extended-remote 127.0.0.1:{rig.gdb_port}"
        printed = run_gdb(elf, ["set osabi none", connect, *script])
    assert [command for command in printed if command in script] == list(script)
    for command, expected in script.items():
        text = printed[command]
        assert re.search(expected, text.strip(), re.M), f"{command}: {text}"
