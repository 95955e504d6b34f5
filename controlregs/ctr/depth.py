"""How many entries are used.

Ref: RISC-V Control Transfer Records 1.0, "Supervisor Control Transfer Records Depth Register"; draft 0.1.4, 2.1 and 6
"""

from rvtrace_gdb.controlregs.ctr.errors import DepthRefused
from rvtrace_gdb.controlregs.ctr.hart import Hart


def set_depth(hart: Hart, wanted: int | None) -> int:
    """Use *wanted* entries, or with None as many as the hart has; returns how many. Raises DepthRefused.

    In 0.1.4 recording must be off: this writes the control register.
    """
    codes = hart.version.depth_codes
    for entries in sorted(codes, reverse=True) if wanted is None else [wanted]:
        if entries in codes and _take(hart, codes[entries]):
            return entries
    supported = [entries for entries in codes if _take(hart, codes[entries])]
    if wanted is None:
        return hart.depth()  # raises, should it be reserved
    raise DepthRefused(hart.depth_register(), wanted, supported)


def _take(hart: Hart, code: int) -> bool:
    """Write this code; whether the hart took it. What an unsupported one becomes is the hart's choice."""
    register = hart.depth_register()
    if hart.version.depth is not None:
        hart.run([(register, register.put(hart.read(register), "DEPTH", code))])
    else:
        control = hart.level.control
        hart.write_control(control, register.put(hart.read_control(control), "DEPTH", code), ())
    return register.get(hart.read(register), "DEPTH") == code
