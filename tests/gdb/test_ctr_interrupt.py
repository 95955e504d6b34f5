"""Ctrl-C while the records are read through OpenOCD: the select register is put back, and they can be read again."""

import re
import time
from pathlib import Path

from console.rig import Rig
from tests.compiling import demo
from tests.gdb.running import SOURCE
from tests.gdb.test_interrupt import Gdb

SELECT = 0x242
DELAYS = (0.1, 0.4, 0.8)  # of some the records have been read before: that is right, too


def test_reading_is_interrupted(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig", "--ctr", "1.0") as rig:
        gdb = Gdb(elf)
        try:
            for command in (
                "set confirm off", SOURCE, f"trace connect :{rig.gdb_port}", f"set $csr_siselect = {SELECT}",
                "trace ctr start", "tbreak finish", "continue",
            ):  # fmt: skip
                gdb.run(command)
            for delay in DELAYS:
                gdb.type("trace ctr show")
                time.sleep(delay)
                gdb.interrupt()
                gdb.answer()
                assert f"= {SELECT:#x}\n" in gdb.run("print/x $csr_siselect")
            said = gdb.run("trace ctr show 0,999")
            assert [int(number) for number in re.findall(r"^(\d+)\t0x", said, re.M)] == list(range(256))
        finally:
            gdb.process.kill()
            gdb.process.communicate()
