"""What can go wrong with a trace component, each a line the user can act on."""

from collections.abc import Sequence

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.support.errors import RvtraceError


def at(component: str, base: int) -> str:
    return f"{component} at {base:#x}"


_ALIVE = "check the component's clock and power, and the base address"
_TAKEN = "check that what it sends to takes its trace, and has clock and power"


class ComponentError(RvtraceError):
    """Root of what concerns one component: its configured name and base address."""

    def __init__(self, component: str, base: int, text: str) -> None:
        self.component, self.base = component, base
        super().__init__(text)


class ComponentAccess(ComponentError):
    """The bus or the component refused an access to a register; *cause* is the transport's own error."""

    def __init__(self, component: str, base: int, register: Register, verb: str, cause: RvtraceError) -> None:
        self.register, self.cause = register, cause
        super().__init__(
            component,
            base,
            f"{at(component, base)}: {register.name} ({base + register.offset:#x}) cannot be {verb}: {cause}; "
            "check the base address in the target description, and that the component has power and clock",
        )


class ComponentTimeout(ComponentError):
    """A component did not reach a state. *waited_for*: "trTeEnable=0 trTeEmpty=1"; *value* was read last."""

    def __init__(
        self, component: str, base: int, register: Register, waited_for: str, value: int, seconds: float
    ) -> None:
        self.register, self.waited_for, self.value, self.seconds = register, waited_for, value, seconds
        flushing = "Empty=1" in waited_for
        advice = _TAKEN if flushing and value not in (0, 0xFFFF_FFFF) else _ALIVE
        super().__init__(
            component,
            base,
            f"{at(component, base)}: {register.name} did not come to {waited_for} within {seconds:g} s "
            f"(it reads {value:#010x}); {advice}",
        )


class NoAnswer(ComponentError):
    """tr??Control reads what no component can hold, all its reserved bits as ones."""

    def __init__(self, component: str, base: int, register: Register, value: int) -> None:
        self.register, self.value = register, value
        super().__init__(
            component,
            base,
            f"{at(component, base)}: nothing answers here ({register.name} reads {value:#010x}); "
            "check the component's clock and power, and the base address",
        )


class WasReset(ComponentError):
    """A component was reset by somebody else; *value* is its tr??Control."""

    def __init__(self, component: str, base: int, register: Register, value: int) -> None:
        self.register, self.value = register, value
        super().__init__(
            component,
            base,
            f"{at(component, base)}: was reset, its settings are lost ({register.name} reads {value:#010x}); "
            "start the trace anew",
        )


def _a(noun: str) -> str:
    """With its article."""
    return f"{'an' if noun[0] in 'aeiouA' else 'a'} {noun}"


class WrongComponent(ComponentError):
    """At the base address is a component of another kind, or none (*found* None)."""

    def __init__(self, component: str, base: int, impl: int, expected: str, found: str | None) -> None:
        self.impl, self.expected, self.found = impl, expected, found
        what = f"this is {_a(found)}, not {_a(expected)}" if found else f"no {expected} answers here"
        super().__init__(
            component,
            base,
            f"{at(component, base)}: {what} (tr??Impl reads {impl:#010x}); correct the target description",
        )


class UnsupportedVersion(ComponentError):
    """The component's register interface is of a version whose registers mean something else.

    That of before 1.0 is known, and has to be asked for.
    """

    def __init__(
        self, component: str, base: int, impl: int, version: tuple[int, int], supported: tuple[int, int]
    ) -> None:
        self.impl, self.version, self.supported = impl, version, supported
        old = version[0] < supported[0]
        kind = "pre-ratified and not what the target description says" if old else "newer and not supported"
        advice = "say `version = 0` there" if old else "use a version of rvtrace that knows this interface"
        super().__init__(
            component,
            base,
            f"{at(component, base)}: trace control interface {version[0]}.{version[1]}, {kind} "
            f"(rvtrace knows {supported[0]}.{supported[1]}; tr??Impl reads {impl:#010x}); "
            f"check the base address, or {advice}",
        )


class UnsupportedProtocol(ComponentError):
    """The encoder produces a protocol nobody here can decode."""

    def __init__(self, component: str, base: int, protocol: str, version: tuple[int, int], impl: int) -> None:
        self.protocol, self.version, self.impl = protocol, version, impl
        super().__init__(
            component,
            base,
            f"{at(component, base)}: produces {protocol} {version[0]}.{version[1]}, which rvtrace cannot decode "
            f"(trTeImpl reads {impl:#010x}); known are N-Trace 1.x and E-Trace 0.x as reported by trTeProtocolMajor",
        )


class SettingRefused(ComponentError):
    """A setting nothing works without did not read back as needed."""

    def __init__(self, component: str, base: int, text: str) -> None:
        super().__init__(component, base, f"{at(component, base)}: {text}")


class BufferRefused(SettingRefused):
    """The RAM sink would not keep to its buffer; tracing into anything else could overwrite the program."""

    def __init__(self, component: str, base: int, asked: tuple[int, int], granted: tuple[int, int]) -> None:
        self.asked, self.granted = asked, granted
        super().__init__(
            component,
            base,
            f"asked for the buffer {asked[0]:#x} to {asked[1]:#x}, it would use {granted[0]:#x} to {granted[1]:#x}; "
            "give a buffer (start, size) the sink can address and align",
        )


class SettingsChanged(SettingRefused):
    """A register no longer holds what it was set to (*before*)."""

    def __init__(self, component: str, base: int, register: str, before: int, now: int) -> None:
        self.register, self.before, self.now = register, before, now
        super().__init__(
            component,
            base,
            f"{register} reads {now:#010x}, it was set to {before:#010x}: it was reset, or set by somebody else, or "
            "answers at the address of another component as well; start the trace anew",
        )


class SinkNotReadable(ComponentError):
    """The registers of a RAM sink say that there is no trace to read now."""

    def __init__(self, component: str, base: int, why: str) -> None:
        self.why = why
        super().__init__(component, base, f"{at(component, base)}: {why}")


class StopFailed(ComponentError):
    """Several components did not come to an end; *failures* says of each one why. The others were stopped."""

    def __init__(self, failures: Sequence[ComponentError]) -> None:
        self.failures = tuple(failures)
        super().__init__(failures[0].component, failures[0].base, "; ".join(map(str, failures)))


class DrainFailed(ComponentError):
    """Reading the trace ended early. *partial* is what was read, oldest first, of *wanted* bytes; *cause* says why."""

    def __init__(
        self, component: str, base: int, partial: bytes, wanted: int, wrapped: bool, cause: RvtraceError
    ) -> None:
        self.partial, self.wanted, self.wrapped, self.cause = partial, wanted, wrapped, cause
        why = Exception.__str__(cause)  # a transport's own count is that of one piece
        super().__init__(
            component,
            base,
            f"{at(component, base)}: {len(partial)} of {wanted} bytes of trace were read (and are kept), then: {why}",
        )


class HartRuns(RvtraceError):
    """A hart's registers can be reached only while it stands still. *where*: the way that leads to it, or empty."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        super().__init__(f"{where}{': ' if where else ''}the hart runs: stop it first (`interrupt` or Ctrl-C)")
