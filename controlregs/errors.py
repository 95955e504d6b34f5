"""The errors of trace components and of Control Transfer Records, each a line the user can act on.

In the errors of Control Transfer Records, *way* is the name of the `CsrAccess` that was used.
"""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.controlregs.fields import Csr, Register
from rvtrace_gdb.support.errors import Cancelled, RvtraceError


def place_of(component: str, base: int) -> str:
    return f"{component} at {base:#x}"


_ACCESS = "check the base address in the target description, and that the component has power and clock"
_ALIVE = "check the component's clock and power, and the base address"
_TAKEN = "check that the component it feeds accepts its trace, and has clock and power"


class ComponentError(RvtraceError):
    """Root of the errors that concern one component: its configured name and base address."""

    def __init__(self, component: str, base: int, text: str) -> None:
        self.component, self.base = component, base
        super().__init__(text)


class ComponentAccess(ComponentError):
    """The bus or the component refused an access to a register; *cause* is the transport's own error, which may know
    better what to do: its *advice*.
    """

    def __init__(self, component: str, base: int, register: Register, verb: str, cause: RvtraceError) -> None:
        self.register, self.cause = register, cause
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: {register.name} ({base + register.offset:#x}) cannot be {verb}: {cause}; "
            + (getattr(cause, "advice", "") or _ACCESS),
        )


class ComponentTimeout(ComponentError):
    """A component did not reach a state. *waited_for*: "trTeEnable=0 trTeEmpty=1"; *value*: the value that was read
    last.
    """

    def __init__(
        self, component: str, base: int, register: Register, waited_for: str, value: int, seconds: float
    ) -> None:
        self.register, self.waited_for, self.value, self.seconds = register, waited_for, value, seconds
        flushing = "Empty=1" in waited_for
        advice = _TAKEN if flushing and value not in (0, 0xFFFF_FFFF) else _ALIVE
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: {register.name} did not reach {waited_for} within {seconds:g} s "
            f"(it reads {value:#010x}); {advice}",
        )


class NoAnswer(ComponentError):
    """tr??Control reads as a value that no component can hold: all its reserved bits are ones."""

    def __init__(self, component: str, base: int, register: Register, value: int) -> None:
        self.register, self.value = register, value
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: nothing answers here ({register.name} reads {value:#010x}); "
            "check the component's clock and power, and the base address",
        )


class WasReset(ComponentError):
    """A component was reset by something other than rvtrace; *value* is its tr??Control."""

    def __init__(self, component: str, base: int, register: Register, value: int) -> None:
        self.register, self.value = register, value
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: was reset, its settings are lost ({register.name} reads {value:#010x}); "
            "start the trace again",
        )


def _a(noun: str) -> str:
    """Return the noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiouA' else 'a'} {noun}"


class WrongComponent(ComponentError):
    """The base address is that of another kind of component, or of none (*kind* None)."""

    def __init__(self, component: str, base: int, impl: int, expected: str, kind: str | None) -> None:
        self.impl, self.expected, self.kind = impl, expected, kind
        what = f"this is {_a(kind)}, not {_a(expected)}" if kind else f"no {expected} answers here"
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: {what} (tr??Impl reads {impl:#010x}); correct the target description",
        )


class UnsupportedVersion(ComponentError):
    """The component's register interface has a version whose registers have another meaning.

    The pre-ratification interface is supported, but has to be selected in the description.
    """

    def __init__(
        self, component: str, base: int, impl: int, version: tuple[int, int], supported: tuple[int, int]
    ) -> None:
        self.impl, self.version, self.supported = impl, version, supported
        old = version[0] < supported[0]
        kind = "pre-ratified and not what the target description says" if old else "newer and not supported"
        advice = "set `version = 0` there" if old else "use a version of rvtrace that knows this interface"
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: trace control interface {version[0]}.{version[1]}, {kind} "
            f"(rvtrace knows {supported[0]}.{supported[1]}; tr??Impl reads {impl:#010x}); "
            f"check the base address, or {advice}",
        )


class UnsupportedProtocol(ComponentError):
    """The encoder produces a protocol that rvtrace cannot decode."""

    def __init__(self, component: str, base: int, protocol: str, version: tuple[int, int], impl: int) -> None:
        self.protocol, self.version, self.impl = protocol, version, impl
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: produces {protocol} {version[0]}.{version[1]}, which rvtrace cannot decode "
            f"(trTeImpl reads {impl:#010x}); known are N-Trace 1.x and E-Trace 0.x as reported by trTeProtocolMajor",
        )


class SettingRefused(ComponentError):
    """A setting that is essential did not read back as needed."""

    def __init__(self, component: str, base: int, text: str) -> None:
        super().__init__(component, base, f"{place_of(component, base)}: {text}")


class BufferRefused(SettingRefused):
    """The RAM sink did not accept its buffer; tracing into other memory could overwrite the program."""

    def __init__(self, component: str, base: int, requested: tuple[int, int], granted: tuple[int, int]) -> None:
        self.requested, self.granted = requested, granted
        super().__init__(
            component,
            base,
            f"asked for the buffer {requested[0]:#x} to {requested[1]:#x}, it would use "
            f"{granted[0]:#x} to {granted[1]:#x}; "
            "give a buffer (start, size) the sink can address and align",
        )


class SettingsChanged(SettingRefused):
    """A register no longer holds the value that was set (*before*)."""

    def __init__(self, component: str, base: int, register: str, before: int, now: int) -> None:
        self.register, self.before, self.now = register, before, now
        super().__init__(
            component,
            base,
            f"{register} reads {now:#010x}, it was set to {before:#010x}: it was reset, or set by other software, or"
            " also answers at the address of another component; start the trace again",
        )


class SinkNotReadable(ComponentError):
    """According to the registers of a RAM sink there is no trace to read now."""

    def __init__(self, component: str, base: int, why: str) -> None:
        self.why = why
        super().__init__(component, base, f"{place_of(component, base)}: {why}")


class TraceInvalid(SinkNotReadable):
    """What a sink has stored is not valid, and reading it later would not help."""


class StopFailed(ComponentError):
    """Several components could not be stopped; *failures* has the reason for each of them. The others were stopped."""

    def __init__(self, failures: Sequence[ComponentError]) -> None:
        self.failures = tuple(failures)
        super().__init__(failures[0].component, failures[0].base, "; ".join(map(str, failures)))


class DrainFailed(ComponentError):
    """Reading the trace ended early. *partial*: the bytes that were read, oldest first, of *expected* bytes; *cause*:
    the reason.
    """

    def __init__(
        self, component: str, base: int, partial: bytes, expected: int, wrapped: bool, cause: RvtraceError
    ) -> None:
        self.partial, self.expected, self.wrapped, self.cause = partial, expected, wrapped, cause
        why = Exception.__str__(cause)  # a transport's own count is that of one piece
        super().__init__(
            component,
            base,
            f"{place_of(component, base)}: {len(partial)} of {expected} bytes of trace were read (and are kept), "
            f"then: {why}",
        )


class DrainCancelled(Cancelled):
    """The user interrupted the reading of a sink's trace. The fields are those of `DrainFailed`."""

    def __init__(self, component: str, partial: bytes, expected: int, wrapped: bool) -> None:
        self.component, self.partial, self.expected, self.wrapped = component, partial, expected, wrapped
        super().__init__()


class HartRuns(RvtraceError):
    """A hart's registers are accessible only while it is halted. *where*: the way that leads to it, or empty."""

    def __init__(self, where: str = "") -> None:
        self.where = where
        super().__init__(f"{where}{': ' if where else ''}the hart runs: stop it first (`interrupt` or Ctrl-C)")


MODES: Mapping[int, str] = {0: "U", 1: "S", 3: "M", 4: "VU", 5: "VS"}


def mode_name(mode: int) -> str:
    """Return the name of the privilege mode in a value of `priv`."""
    return MODES.get(mode, f"unknown ({mode})")


def register_name(register: Csr | str) -> str:
    return register if isinstance(register, str) else f"{register.name} ({register.number:#x})"


class CtrError(RvtraceError):
    """Root of the errors of Control Transfer Records."""


class UnknownVersion(CtrError):
    def __init__(self, version: str, versions: Sequence[str]) -> None:
        self.version = version
        super().__init__(f"no Control Transfer Records version {version}: choose one of {', '.join(versions)}")


class NoCtr(CtrError):
    """No control register answers. *refusals*: the reason for each register; *other*: the version that does answer."""

    def __init__(self, way: str, requested: str | None, refusals: Mapping[str, str], other: str | None = None) -> None:
        self.requested, self.refusals, self.other = requested, refusals, other
        version = f" {requested}" if requested else ""
        if other:
            super().__init__(f"this hart has no Control Transfer Records{version}, but {other}: choose that version")
            return
        asked = "; ".join(f"{name}: {why}" for name, why in _joined(refusals).items())
        super().__init__(f"this hart has no Control Transfer Records{version} ({way}: {asked})")


def _joined(refusals: Mapping[str, str]) -> dict[str, str]:
    """Join the names of registers that have the same reason: "mctrctl, sctrctl" -> reason."""
    names: dict[str, list[str]] = {}
    for name, why in refusals.items():
        names.setdefault(why, []).append(name)
    return {", ".join(found): why for why, found in names.items()}


class CtrForbidden(CtrError):
    """The registers are closed in the hart's present privilege mode, and that cannot be changed.

    *why*: why the mode cannot be changed; *closed_by*: the bits that close the registers, where they are known. *sure*:
    the registers exist.
    """

    def __init__(
        self, way: str, register: Csr | str, mode: int, why: str, closed_by: Sequence[str] = (), *, sure: bool = True
    ) -> None:
        self.register, self.mode, self.closed_by, self.sure = register, mode, tuple(closed_by), sure
        by = f" ({' and '.join(closed_by)} is 0)" if closed_by else ""
        super().__init__(
            f"{register_name(register)} is closed in {mode_name(mode)}"
            f" mode{by}{'' if sure else ', or does not exist'}, and "
            f"`priv` cannot be set to 3: {why} ({way}); stop the hart in M mode, or let M mode open it"
        )


class RegisterRefused(CtrError):
    """An access was refused."""

    def __init__(self, way: str, register: Csr | str, verb: str, why: str) -> None:
        self.register, self.verb, self.why = register, verb, why
        super().__init__(f"{register_name(register)} cannot be {verb} ({way}): {why}")


class WriteIneffective(CtrError):
    """A write that was accepted left another value than it should have. *entry*: the entry that was selected."""

    def __init__(self, way: str, register: Csr | str, expected: int, got: int, entry: int | None = None) -> None:
        self.register, self.expected, self.got, self.entry = register, expected, got, entry
        which = "" if entry is None else f" of entry {entry}"
        super().__init__(
            f"{register_name(register)}{which} reads {got:#x} after {expected:#x} was written ({way}): the hart does"
            " not accept it, or the debugger did not write it; try another way to access the registers"
        )


class NothingRecorded(CtrError):
    """The hart can record none of the privilege modes that were requested."""

    def __init__(self, way: str, register: Csr, fields: Sequence[str], value: int) -> None:
        self.register, self.fields, self.value = register, tuple(fields), value
        super().__init__(
            f"{register_name(register)} reads {value:#x} ({way}): no mode would be recorded: of {', '.join(fields)}"
            " it accepts none that was requested"
        )


class DepthRefused(CtrError):
    """The hart does not support this depth. *supported*: the depths it supports."""

    def __init__(self, register: Csr, requested: int, supported: Sequence[int]) -> None:
        self.register, self.requested, self.supported = register, requested, tuple(supported)
        have = ", ".join(map(str, supported)) or "none"
        super().__init__(f"{register.name} does not take a depth of {requested}; this hart has {have}")


class ReservedDepth(CtrError):
    def __init__(self, register: Csr, code: int) -> None:
        self.register, self.code = register, code
        super().__init__(f"{register.name}.DEPTH reads {code}, which is reserved: the depth is not known")


class StaleEntries(CtrError):
    """The alias CSRs show another entry than the one that is selected."""

    def __init__(self, way: str, register: Csr, select: Csr) -> None:
        self.register, self.select = register, select
        super().__init__(
            f"{register_name(register)} does not follow {register_name(select)} ({way}): the values read are stale;"
            " try another way to access the registers"
        )


class NotRestored(CtrError):
    """A register could not be restored. *cause*: the reason; *first*: the error that ended the work before, if any."""

    def __init__(self, register: Csr | str, saved: int, cause: RvtraceError, first: BaseException | None) -> None:
        self.register, self.saved, self.cause, self.first = register, saved, cause, first
        before = f"{first}; in addition, " if first is not None else ""
        super().__init__(f"{before}{register_name(register)} could not be restored to {saved:#x}: {cause}")
