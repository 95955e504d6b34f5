"""Finding out what a field can hold: it is written, read back, and in the end its register is as it was.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery": with the component not enabled.
"""

from collections.abc import Sequence
from types import TracebackType

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError, NoAnswer, WasReset
from rvtrace_gdb.controlregs.fields import Access, Register
from rvtrace_gdb.controlregs.switching import check_active

_WRITTEN = (Access.RW, Access.WARL, Access.R_OR_RW, Access.RW0C)  # 1 to RW0C leaves it as it is


class Probe:
    """Tries fields of a component that is active and not enabled; leaving the context puts its registers back."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self._before: dict[Register, int] = {}
        self._beside: dict[Register, int] = {}  # what the other fields hold while one is tried

    def __enter__(self) -> "Probe":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Registers come back in the order in which they were tried: what others depend on is tried first.

        One that cannot be written any more keeps no other from coming back; it is told of if nothing else is wrong.
        A component that was reset meanwhile stays in reset.
        """
        try:
            check_active(self.component)
        except (WasReset, NoAnswer):
            return  # who has looked at it will see that, too
        except ComponentError:
            pass  # some of it may answer
        failure: ComponentError | None = None
        for register, value in self._before.items():
            try:
                # A sticky flag that was read as 1 would be cleared by writing it back.
                self.component.write(register, value & register.mask_of(*_WRITTEN))
            except ComponentError as refused:
                failure = failure or refused
        if failure is not None and error is None:
            raise failure

    def read(self, register: Register, field: str) -> int:
        """A field that says itself what there is."""
        return self.component.get(register, field)

    def held(self, register: Register, field: str, value: int) -> int:
        """What the field holds after *value* was written to it. Raises WasReset, ComponentAccess."""
        tried = register.put(self._others(register), field, value)
        value = self.component.write(register, tried)
        control = self.component.block.control
        if register is control and not control.get(value, self.component.block.prefix + "Active"):
            raise WasReset(self.component.name, self.component.base, control, value)
        return register.get(value, field)

    def settle(self, register: Register, field: str, value: int = 1) -> int:
        """As `held`, and while other fields of the register are tried the field holds it, too."""
        self._beside[register] = register.put(self._others(register), field, value)
        return self.held(register, field, value)

    def can(self, register: Register, field: str, value: int = 1) -> bool:
        """The field can hold *value*."""
        return self.held(register, field, value) == value

    def fixed(self, register: Register, field: str) -> bool:
        """The field holds the same whatever is written."""
        ones = (1 << register.by_name[field].width) - 1
        return self.held(register, field, ones) == self.held(register, field, 0)

    def values(self, register: Register, field: str, candidates: Sequence[int] | None = None) -> tuple[int, ...]:
        """Those of *candidates*, of all values if there are none, that the field can hold."""
        tried = range(1 << register.by_name[field].width) if candidates is None else candidates
        return tuple(value for value in tried if self.can(register, field, value))

    def ones(self, register: Register, field: str) -> int:
        """What the field holds after ones were written to all of it."""
        return self.held(register, field, (1 << register.by_name[field].width) - 1)

    def _others(self, register: Register) -> int:
        if register not in self._before:
            self._before[register] = self.component.read(register)
            self._beside[register] = self._before[register] & register.mask_of(*_WRITTEN)
        return self._beside[register]
