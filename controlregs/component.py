"""One trace component: registers by name, every write read back, and polling with a time-out.

Nearly all fields are WARL, so what counts is the value that a register holds after a write: `set` returns it. A
configured register is written from a shadow copy, never by read-modify-write: between the read and the write a trigger
may have changed trTeInstTracing, and a sticky RW1C flag that was read as 1 would be cleared by writing it back.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on accessing trace components and on enabling.
"""

import time

from rvtrace_gdb.controlregs.errors import ComponentAccess, ComponentTimeout, NoAnswer
from rvtrace_gdb.controlregs.fields import FieldAccess, Register, RegisterBlock
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

POLL_PAUSE = 0.0005  # seconds; doubled with each poll up to the maximum
POLL_PAUSE_MAX = 0.05
UNANSWERED_READ = 0xFFFF_FFFF  # the value that some buses return where no device answers


class Component:
    """The component of kind *block* at address *base*, called *name* in messages. *timeout* (seconds) limits a poll."""

    def __init__(
        self, target: Target, base: int, block: RegisterBlock, name: str | None = None, timeout: float = 1.0
    ) -> None:
        self.target, self.base, self.block, self.timeout = target, base, block, timeout
        self.name = name or block.name
        self._shadow: dict[Register, int] = {}

    def read(self, register: Register) -> int:
        """Return the register's present value. Raises ComponentAccess when the access is refused."""
        try:
            return self.target.read32(self.base + register.offset)
        except RvtraceError as error:
            raise self._refused(register, "read", error) from error

    def read_control(self) -> int:
        """Return the present value of tr??Control. Raises NoAnswer, ComponentAccess."""
        control = self.block.control
        value = self.read(control)
        if value == UNANSWERED_READ:
            raise NoAnswer(self.name, self.base, control, value)
        return value

    def write(self, register: Register, value: int) -> int:
        """Write *value* and return what the register then holds. Raises ComponentAccess."""
        try:
            self.target.write32(self.base + register.offset, value)
        except RvtraceError as error:
            raise self._refused(register, "written", error) from error
        in_force = self.read(register)
        # Active and Enable (RW) may take some time to change, but will become what was written.
        granted = in_force & register.mask_of(FieldAccess.WARL)
        self._shadow[register] = value & register.mask_of(FieldAccess.RW) | granted
        return in_force

    def get(self, register: Register, field: str) -> int:
        """Read the register and return one field of it."""
        return register.get(self.read(register), field)

    def set(self, register: Register, **fields: int) -> int:
        """Write these fields, leave the others as last configured, and return the value that the register then holds.

        Sticky flags (RW1C) and actions (W1) that are not named are written as 0. Raises FieldRange, ComponentAccess.
        """
        if register not in self._shadow:
            self._shadow[register] = self.read(register) & register.mask_of(FieldAccess.RW, FieldAccess.WARL)
        value = self._shadow[register]
        for name, field_value in fields.items():
            value = register.put(value, name, field_value)
        return self.write(register, value)

    def forget(self) -> None:
        """Drop the shadow copies, because the component was reset."""
        self._shadow.clear()

    def wait(self, register: Register, progress: Progress = silent, **fields: int) -> int:
        """Poll until all named fields have these values; return the register's value. Raises ComponentTimeout."""
        wanted, mask = register.pack(**fields), register.mask(*fields)
        waited_for = " ".join(f"{name}={value}" for name, value in fields.items())
        deadline = time.monotonic() + self.timeout
        pause = POLL_PAUSE
        while True:
            late = time.monotonic() > deadline
            value = self.read(register)
            if value & mask == wanted:
                return value
            if late:
                raise ComponentTimeout(self.name, self.base, register, waited_for, value, self.timeout)
            progress(f"waiting for {self.name} ({waited_for})", 0)
            time.sleep(pause)
            pause = min(2 * pause, POLL_PAUSE_MAX)

    def _refused(self, register: Register, verb: str, error: RvtraceError) -> RvtraceError:
        """Return an error that names the register, or *error* itself if the target cannot be reached at all."""
        if getattr(error, "address", None) is None:
            return error
        return ComponentAccess(self.name, self.base, register, verb, error)
