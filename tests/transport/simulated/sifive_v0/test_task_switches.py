"""Task switches on the HiFive Premier P550, whose encoders count calls of whatever task, with real gdb and OpenOCD.

The history is the list of what retired where a trace-notify trigger clears the count at the function that switches, and
goes elsewhere where nothing does.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

P550 = "hifive-premier-p550"
TASKS = PROGRAMS.parent / "tasks"
HART_0 = "\nint main(unsigned hart)\n{\n    while (hart)\n        ;\n    return tasks();\n}\n"
"""What the four harts begin with: the tasks are those of hart 0."""
START = "trace start -hart 0 -implicit-return counter"
LIST = "trace history /a 1,1000000"


class Traced(NamedTuple):
    said: dict[str, str]
    retired: list[int]

    @property
    def listed(self) -> list[int]:
        return listed_pcs(re.sub(r"^(warning|note|hint): .*\n", "", self.said[LIST], flags=re.M))


def traced(folder: Path, *options: str, start: str = START, again: bool = False) -> Traced:
    """The tasks, compiled with *options*, up to the 30th switch. *again*: and `trace start` after `trace stop`."""
    source, log = folder / "tasks.c", folder / "log"
    source.write_text(f'#define main tasks\n#include "{TASKS / "tasks.c"}"\n#undef main{HART_0}')
    elf = compiled(folder, source, options=(*options, "-DAFTER=30", str(TASKS / "switch.S")))
    with Rig(elf, folder / "rig", "--target", P550, "--log-retired", str(log)) as rig:
        said = run_gdb(elf, [
            SOURCE, f"set trace target {P550}", f"set trace openocd-port {rig.tcl_port}",
            f"target extended-remote :{rig.gdb_port}", start, "break came", "continue", LIST,
            *(["trace stop", start + " ", "trace stop"] if again else []),
        ])  # fmt: skip
    return Traced(said, retired_pcs(Path(f"{log}.0")))


SWITCHES = {
    "Linux": ("__switch_to", "-Dswap_to=__switch_to"),
    "FreeRTOS": ("vTaskSwitchContext", "-DMRET", "-Dturn=vTaskSwitchContext"),
}
"""The function that switches as a system calls it, and how to compile that: by ret, and by mret of a trap handler."""


@pytest.mark.parametrize("system", SWITCHES)
def test_a_trigger_at_the_function_that_switches(tmp_path: Path, system: str) -> None:
    switch, *options = SWITCHES[system]
    found = traced(tmp_path, *options, again=True)
    line = f"hart 0: trace-notify trigger at <{switch}> (1 of 4 free triggers): there the encoder's count of calls"
    assert f"note:     {line} begins anew, since tasks switch\n" in found.said[START]
    assert "warning" not in found.said[START]
    assert found.listed == found.retired
    assert line in found.said[START + " "] and "still set" not in found.said[START + " "]


def test_without_a_trigger_the_history_goes_elsewhere(tmp_path: Path) -> None:
    """The function has a name that no system has: what the warning says comes true."""
    found = traced(tmp_path)
    assert "warning: hart 0: its encoder counts calls, of whatever task: behind a task switch the" in found.said[START]
    assert "warning: trace does not match" in found.said[LIST]


def test_the_function_that_the_user_names(tmp_path: Path) -> None:
    """What the warning proposes is enough."""
    start = f"{START} -trigger-notify swap_to"
    found = traced(tmp_path, start=start)
    assert "warning" not in found.said[start]
    assert found.listed == found.retired
