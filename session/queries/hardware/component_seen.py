"""A trace component as it was found at its address."""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.component import Component


@dataclass(frozen=True)
class ComponentSeen:
    """What was found at a component's address.

    *component*: with the registers of the version that it reports. *control*: its tr??Control, None if it cannot be
    read. *impl*, *version*: of tr??Impl, None if it reports nothing. *notes*: notes for the user. *usable*: it is
    active and of the described kind, so that its other registers can be read. *passes*: of one without bits Active and
    Enable, whether it passes trace on or stores it.
    """

    component: Component
    control: int | None
    impl: int | None = None
    version: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    usable: bool = False
    passes: bool | None = None

    @property
    def active(self) -> bool:
        if self.control is None:
            return False
        return self.passes is not None or bool(self.control & 1)  # bit 0 in every version of the interface

    @property
    def can_be_tried(self) -> bool:
        """Whether its fields can be written to probe its capabilities: it is disabled, or in reset."""
        if self.control is None or self.passes is not None:
            return False
        return not self.active or (self.usable and not self.is_on)

    @property
    def is_on(self) -> bool:
        return self.flag("Enable") if self.passes is None else self.passes

    def flag(self, name: str) -> bool:
        """Return a bit of tr??Control, named without its prefix."""
        register, name = self.component.block.control, self.component.block.prefix + name
        return self.control is not None and name in register.by_name and bool(register.get(self.control, name))
