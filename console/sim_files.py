"""The files `rvtrace sim` writes: the OpenOCD configuration and the target description."""

import socket
from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.console import sim_ctr, sim_target
from rvtrace_gdb.session.description import Description, Tandem
from rvtrace_gdb.session.description_text import text
from rvtrace_gdb.transport.simulated.hart import Hart
from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.simulated.tap import IDCODE, IR_LENGTH

_KNOWS = """# Without this, memory cannot be read while the hart runs.
riscv set_enable_virt2phys off
"""


def openocd_config(
    listener: socket.socket,
    gdb_port: int = 3333,
    tcl_port: int = 6666,
    hart: Hart | None = None,
    harts: int = 1,
    separate: bool = False,
) -> str:
    """What OpenOCD 0.12 needs to debug the target that is served at *listener*.

    *hart*: one like all others. *separate*: several harts have a gdb server each, from *gdb_port* on; else there is one
    for all, in which each is a thread.
    """
    if listener.family == socket.AF_UNIX:
        where = f"remote_bitbang host {listener.getsockname()}"
    else:
        host, port = listener.getsockname()
        where = f"remote_bitbang host {host}\nremote_bitbang port {port}"
    exposed = "" if hart is None or hart.ctr is None else sim_ctr.openocd_lines(hart.ctr)
    names = [f"sim.cpu{number}" for number in range(harts)]
    alone = f"target create sim.cpu riscv -chain-position sim.cpu\n{_KNOWS}"
    targets = alone if harts == 1 else _several(names, exposed, separate)
    return f"""adapter driver remote_bitbang
{where}
adapter speed 10000
jtag newtap sim cpu -irlen {IR_LENGTH} -expected-id {IDCODE:#010x}
{targets}gdb_report_data_abort enable
gdb_report_register_access_error enable
# Milliseconds; the default of 100 makes every breakpoint wait.
poll_period 5
gdb_port {gdb_port}
tcl_port {tcl_port}
telnet_port disabled
{exposed if harts == 1 else ""}"""


def _several(names: Sequence[str], exposed: str, separate: bool) -> str:
    """The targets of several harts; each is told by itself what the only one is told otherwise."""
    text = ""
    for number, name in enumerate(names):
        threads = "" if separate else " -rtos hwthread"
        text += f"target create {name} riscv -chain-position sim.cpu -coreid {number}{threads}\n{_KNOWS}{exposed}"
    return text + ("" if separate else f"target smp {' '.join(names)}\n") + f"targets {names[0]}\n"


_HEADER = "Written by rvtrace sim: where the trace components of the simulated target are."


def target_description(
    machine: Machine,
    name: str,
    tcl_port: int = 6666,
    described: Description | None = None,
    tandem: tuple[Tandem, ...] = (),
) -> str:
    """The rvtrace.toml of the simulated target. *described*: what it was made from; *tandem*: ports it has besides."""
    name = f"{name} on the simulated target"
    found = sim_target.description_of(machine, name, tcl_port, described)
    return text(replace(found, tandem=tandem), _HEADER)
