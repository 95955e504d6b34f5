"""What can go wrong with Control Transfer Records, each a line the user can act on. *way*: the `CsrAccess`'s name."""

from collections.abc import Mapping, Sequence

from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.support.errors import RvtraceError

MODES: Mapping[int, str] = {0: "U", 1: "S", 3: "M", 4: "VU", 5: "VS"}


def mode_name(mode: int) -> str:
    """Of the value of `priv`."""
    return MODES.get(mode, f"unknown ({mode})")


def register_name(register: Csr | str) -> str:
    return register if isinstance(register, str) else f"{register.name} ({register.number:#x})"


class CtrError(RvtraceError):
    """Root of what concerns Control Transfer Records."""


class UnknownVersion(CtrError):
    def __init__(self, version: str, known: Sequence[str]) -> None:
        self.version = version
        super().__init__(f"no Control Transfer Records version {version}: choose one of {', '.join(known)}")


class NoCtr(CtrError):
    """No control register answers. *refusals*: why, by register; *other*: the version that does answer."""

    def __init__(self, way: str, wanted: str | None, refusals: Mapping[str, str], other: str | None = None) -> None:
        self.wanted, self.refusals, self.other = wanted, refusals, other
        version = f" {wanted}" if wanted else ""
        if other:
            super().__init__(f"this hart has no Control Transfer Records{version}, but {other}: choose that version")
            return
        asked = "; ".join(f"{name}: {why}" for name, why in _joined(refusals).items())
        super().__init__(f"this hart has no Control Transfer Records{version} ({way}: {asked})")


def _joined(refusals: Mapping[str, str]) -> dict[str, str]:
    """The same reason is said once: "mctrctl, sctrctl" -> why."""
    names: dict[str, list[str]] = {}
    for name, why in refusals.items():
        names.setdefault(why, []).append(name)
    return {", ".join(found): why for why, found in names.items()}


class CtrForbidden(CtrError):
    """The registers are closed in the hart's present privilege mode, and that cannot be raised.

    *why*: of the mode; *closed_by*: what closes them, where that is known. *sure*: there are such registers.
    """

    def __init__(
        self, way: str, register: Csr | str, mode: int, why: str, closed_by: Sequence[str] = (), *, sure: bool = True
    ) -> None:
        self.register, self.mode, self.closed_by, self.sure = register, mode, tuple(closed_by), sure
        by = f" ({' and '.join(closed_by)} is 0)" if closed_by else ""
        super().__init__(
            f"{register_name(register)} is closed in {mode_name(mode)} mode{by}{'' if sure else ', or not there'}, and "
            f"`priv` cannot be set to 3: {why} ({way}); stop the hart in M mode, or let M mode open it"
        )


class RegisterRefused(CtrError):
    """An access was refused."""

    def __init__(self, way: str, register: Csr | str, verb: str, why: str) -> None:
        self.register, self.verb, self.why = register, verb, why
        super().__init__(f"{register_name(register)} cannot be {verb} ({way}): {why}")


class WriteIneffective(CtrError):
    """An accepted write left another value than it should have. *entry*: the one that was selected."""

    def __init__(self, way: str, register: Csr | str, wanted: int, got: int, entry: int | None = None) -> None:
        self.register, self.wanted, self.got, self.entry = register, wanted, got, entry
        which = "" if entry is None else f" of entry {entry}"
        super().__init__(
            f"{register_name(register)}{which} reads {got:#x} after {wanted:#x} was written ({way}): the hart does not "
            "take it, or what is in between does not write; try another way to the registers"
        )


class NothingRecorded(CtrError):
    """None of the privilege modes that were asked for can be recorded."""

    def __init__(self, way: str, register: Csr, fields: Sequence[str], value: int) -> None:
        self.register, self.fields, self.value = register, tuple(fields), value
        super().__init__(
            f"{register_name(register)} reads {value:#x} ({way}): no mode would be recorded, of {', '.join(fields)} it "
            "takes none that was asked for"
        )


class DepthRefused(CtrError):
    """The hart does not have this depth. *supported*: those it has."""

    def __init__(self, register: Csr, wanted: int, supported: Sequence[int]) -> None:
        self.register, self.wanted, self.supported = register, wanted, tuple(supported)
        have = ", ".join(map(str, supported)) or "none"
        super().__init__(f"{register.name} does not take a depth of {wanted}; this hart has {have}")


class ReservedDepth(CtrError):
    def __init__(self, register: Csr, code: int) -> None:
        self.register, self.code = register, code
        super().__init__(f"{register.name}.DEPTH reads {code}, which is reserved: the depth is not known")


class StaleEntries(CtrError):
    """The alias CSRs show something else than what is selected."""

    def __init__(self, way: str, register: Csr, select: Csr) -> None:
        self.register, self.select = register, select
        super().__init__(
            f"{register_name(register)} does not follow {register_name(select)} ({way}): what is read is stale; "
            "try another way to the registers"
        )


class NotRestored(CtrError):
    """A register is not as it was found. *cause*: why; *first*: the error that made the work end before, if any."""

    def __init__(self, register: Csr | str, found: int, cause: RvtraceError, first: BaseException | None) -> None:
        self.register, self.found, self.cause, self.first = register, found, cause, first
        before = f"{first}; besides, " if first is not None else ""
        super().__init__(f"{before}{register_name(register)} could not be put back to {found:#x}: {cause}")
