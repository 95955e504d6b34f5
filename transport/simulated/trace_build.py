"""How a simulated trace component is made where its document leaves a choice, and what may be wrong with it.

Source: RISC-V Trace Control Interface Specification 1.0: "Some WARL fields may be hard coded to any value"; "Versioning
of Components"; "Reset and Discovery" (a component may take its time).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.common import VERSION
from rvtrace_gdb.controlregs.fields import Register, RegisterBlock
from rvtrace_gdb.transport.simulated.bus import BusError


@dataclass(frozen=True)
class ComponentBuild:
    """Fields are named as in the document.

    fixed        fields that are hard-wired, and to what
    allowed      the values a field can have; another one becomes the nearest of these above it, or else the highest,
                 and if it is not 0 it does not become 0
    version      tr??VerMajor and tr??VerMinor
    comp_type    tr??CompType, None: the right one
    vendor       bits 31:24 of tr??Impl
    flush_polls  for so many reads of tr??Control tr??Enable reads 0 already, and tr??Empty does not read 1 yet
    stuck        bits of tr??Control that always read the same: "Active", "Enable", "Empty" and their values
    faults       offsets of registers whose accesses are bus errors
    powered_down while Active is 0 accesses to other registers are bus errors
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    allowed: Mapping[str, Collection[int]] = field(default_factory=dict)
    version: tuple[int, int] = VERSION
    comp_type: int | None = None
    vendor: int = 0
    flush_polls: int = 0
    stuck: Mapping[str, int] = field(default_factory=dict)
    faults: Collection[int] = ()
    powered_down: bool = False

    def legal(self, register: Register, value: int) -> int:
        """What becomes of a register's *value* for the fields that are limited."""
        for name in register.by_name.keys() & self.allowed.keys():
            value = register.put(value, name, _nearest(register.get(value, name), self.allowed[name]))
        for name in register.by_name.keys() & self.fixed.keys():
            value = register.put(value, name, self.fixed[name])
        return value

    def impl(self, block: RegisterBlock, value: int) -> int:
        """tr??Impl as this component has it, *value* as the document has it."""
        comp_type = block.comp_type if self.comp_type is None else self.comp_type
        for name, number in (("VerMajor", self.version[0]), ("VerMinor", self.version[1]), ("CompType", comp_type)):
            value = block.impl.put(value, block.prefix + name, number)
        return value & 0x00FF_FFFF | self.vendor << 24

    def stuck_bits(self, block: RegisterBlock) -> tuple[int, int]:
        """Masks of tr??Control: what always reads 0, and what always reads 1."""
        masks = dict.fromkeys((0, 1), 0)
        for name, level in self.stuck.items():
            masks[level] |= block.control.mask(block.prefix + name)
        return masks[0], masks[1]

    def check_access(self, offset: int, nbytes: int, *, active: bool, control: int) -> None:
        """Raises BusError for an access that nothing answers. *control*: the offset of tr??Control."""
        if offset in self.faults or (self.powered_down and not active and offset != control):
            raise BusError(offset, nbytes)


def _nearest(wanted: int, allowed: Collection[int]) -> int:
    """WARL: a non-zero value becomes a non-zero one, if there is any."""
    values = sorted(allowed)
    if wanted not in values:
        values = [value for value in values if value] or values
    return next((value for value in values if value >= wanted), values[-1])
