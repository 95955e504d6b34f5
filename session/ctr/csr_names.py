"""What CSRs are called, by number, and what OpenOCD's configuration says to expose them."""

from collections.abc import Sequence

from rvtrace_gdb.controlregs.ctr.versions import VERSIONS

NAMES = {csr.number: csr.name for version in VERSIONS.values() for csr in version.csrs}
_OTHERS = {0x301: "misa", 0x30C: "mstateen0", 0x31C: "mstateen0h"}
"""What is read besides: debuggers know these by name anyhow."""
_DEFAULT = "1.0"


def names(number: int) -> Sequence[str]:
    """The names a CSR may have for a debugger; none where we do not know the CSR."""
    name = NAMES.get(number) or _OTHERS.get(number)
    return [name] if name else []


def spellings(number: int) -> list[str]:
    """As `names`, and as OpenOCD spells them for gdb."""
    return [*names(number), *(f"csr_{name}" for name in names(number)), f"csr{number}"]


def numbers(version: str | None) -> list[int]:
    """The CSRs of a version, None: of all."""
    chosen = VERSIONS.values() if version is None else (VERSIONS[version],)
    return sorted({csr.number for one in chosen for csr in one.csrs})


def expose_csrs(version: str | None) -> str:
    """The line of OpenOCD's configuration, with decimal numbers, as it wants them."""
    known = numbers(version or _DEFAULT)
    return "riscv expose_csrs " + ",".join(f"{number}={NAMES[number]}" for number in known)
