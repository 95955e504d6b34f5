"""How a simulated trace component of version 0 is made where its documents leave a choice, and what is wrong with it.

Sources: see `controlregs.sifive_v0`.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild


@dataclass(frozen=True)
class V0Build(ComponentBuild):
    """Fields are named as in `controlregs.sifive_v0`.

    version     another one than 0: te- or tfImpl is as that of the ratified interface, *comp_type* and *vendor* count
    plain_flag  teStallOrOverflow becomes what is written to it (P550: "RW"); else only 0 can be written
    """

    version: tuple[int, int] = (0, 0)
    plain_flag: bool = False

    def impl(self, block: RegisterBlock, value: int) -> int:
        """te- or tfImpl, *value* as it is in version 0."""
        if self.version == (0, 0):
            return value
        return self.version[0] | self.version[1] << 4 | (self.comp_type or 0) << 8 | self.vendor << 24
