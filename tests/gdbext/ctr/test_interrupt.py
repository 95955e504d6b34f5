"""Ctrl-C while the records are read through OpenOCD: the select register is put back, and they can be read again."""

import re
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE
from tests.gdbext.test_interrupt import Gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo

SELECT = 0x242
ROW = "0\t0x"  # of the youngest record
REPORTS = (1, 2, 4)  # of how far it is: then it is interrupted, unless the records have been read before


@thorough("gdbext/csrs/test_csr_access.py::test_ctrl_c_while_records_are_read")
def test_reading_is_interrupted(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig", "--ctr", "1.0") as rig:
        gdb = Gdb(elf)
        try:
            for command in (
                "set confirm off", SOURCE, f"trace connect :{rig.gdb_port}", f"set $csr_siselect = {SELECT}",
                "trace ctr start -depth 128", "tbreak finish", "continue",
            ):  # fmt: skip
                gdb.run(command)
            gdb.reports()
            for report in REPORTS:
                gdb.type("trace ctr show")
                reading = gdb.until(f", report {report}]", ROW) != ROW
                if reading:
                    gdb.interrupt()
                said = gdb.answer()  # with the last report they may all have been read before gdb is interrupted
                assert "Quit" in said or (report > 1 and ROW in said)
                assert f"= {SELECT:#x}\n" in gdb.run("print/x $csr_siselect")
            said = gdb.run("trace ctr show 0,999")
            assert [int(number) for number in re.findall(r"^(\d+)\t0x", said, re.M)] == list(range(128))
        finally:
            gdb.process.kill()
            gdb.process.communicate()
