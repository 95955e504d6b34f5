"""OpenOCD's end in the middle of something."""

from rvtrace_gdb.console.bench.rig import Rig


def kill_openocd(rig: Rig) -> None:
    """Kill OpenOCD, as if it crashed: the simulated target stays, and `start_openocd` starts another."""
    rig.openocd.kill()
    rig.openocd.wait()
