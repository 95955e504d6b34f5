"""The simulated target with an encoder that has filters, for the real gdb and a real OpenOCD."""

import subprocess
from pathlib import Path

from console.rig import Rig

_LAUNCHER = """
import sys
from functools import partial
from console.main import main
from transport.simulated import machine
from transport.simulated.trace_encoder import TraceEncoder
from transport.simulated.trace_filter_registers import FilterUnits

machine.TraceEncoder = partial(TraceEncoder, filters=FilterUnits(filters={0}, comparators={0}))
sys.exit(main(sys.argv[1:]))
"""


class FilterRig(Rig):
    """*units*: how many filters, and how many comparators, the encoder has."""

    def __init__(self, elf: Path, folder: Path, *sim_options: str, units: int = 4) -> None:
        super().__init__(elf, folder, *sim_options)
        self._units = units

    def _start(self, command: list[str], log: Path) -> "subprocess.Popen[bytes]":
        if "console.main" in command:
            at = command.index("-m")
            command = [*command[:at], "-c", _LAUNCHER.format(self._units), *command[at + 2 :]]
        return super()._start(command, log)
