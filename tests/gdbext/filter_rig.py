"""The simulated target with an encoder that has filters, for the real gdb and a real OpenOCD."""

from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig


class FilterRig(Rig):
    """*units*: how many filters, and how many comparators, the encoder has."""

    def __init__(self, elf: Path, folder: Path, *sim_options: str, units: int = 4) -> None:
        super().__init__(elf, folder, f"--filters={units}", f"--comparators={units}", *sim_options)
