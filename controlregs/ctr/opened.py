"""A hart's CTR registers, made accessible: some stubs apply the rules of the hart's present mode to a debugger, too.

`priv` is written only when registers are closed or show their VS versions (V=1), and is put back: writing it can cost
the program the reservation of its lr/sc.

Ref: RISC-V Control Transfer Records 1.0 and draft 0.1.4, "State Enable Access Control"; Privileged Architecture,
Smstateen for mstateen0
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.ctr.errors import CtrForbidden, NoCtr, RegisterRefused, UnknownVersion, mode_name
from rvtrace_gdb.controlregs.ctr.hart import Hart, refusal
from rvtrace_gdb.controlregs.ctr.versions import RV32, VERSIONS, CtrVersion, Level
from rvtrace_gdb.controlregs.fields import Csr

M_MODE = 3
V = 1 << 2
MSTATEEN0, MSTATEEN0H = 0x30C, 0x31C
CSRIND_BIT = 60  # of mstateen0: access to the select and alias CSRs
XLEN_64 = 64


def detect(access: CsrAccess, wanted: str | None = None) -> CtrVersion:
    """The version whose control register answers, 1.0 first; or *wanted*, if it does.

    Raises UnknownVersion, NoCtr, CtrForbidden, HartRuns.
    """
    if wanted is not None and wanted not in VERSIONS:
        raise UnknownVersion(wanted, tuple(VERSIONS))
    candidates = [VERSIONS[wanted]] if wanted else list(VERSIONS.values())
    hart = Hart(access, candidates[0])
    found, why = _answering(access, candidates), None
    if found is None and hart.mode not in (None, M_MODE):
        with _raised(hart) as why:
            found = _answering(access, candidates)
    if found is not None:
        return found
    refusals = _refusals(access, candidates)
    if why is not None and hart.mode is not None:
        csr = hart.version.machine.control.csr
        raise CtrForbidden(hart.way, csr, hart.mode, why, _closed_by(hart), sure=False)
    other = _answering(access, [version for version in VERSIONS.values() if version not in candidates])
    raise NoCtr(hart.way, wanted, refusals, other.key if other else None)


def _answering(access: CsrAccess, versions: list[CtrVersion]) -> CtrVersion | None:
    return next((version for version in versions if len(_refusals(access, [version])) < len(version.levels)), None)


def _refusals(access: CsrAccess, versions: list[CtrVersion]) -> dict[str, str]:
    """Why the control registers cannot be read, by name; without those that can."""
    found = {}
    for version in versions:
        for level in version.levels:
            why = refusal(access, level.control.csr)
            if why is not None:
                found[level.control.csr.name] = why
    return found


@contextmanager
def opened(access: CsrAccess, version: CtrVersion) -> Iterator[Hart]:
    """The registers of *version*: M mode's where they can be reached, else S mode's.

    Raises RegisterRefused, CtrForbidden, NotRestored, HartRuns.
    """
    hart = Hart(access, version)
    mode = hart.mode
    if mode is None or mode == M_MODE or (not mode & V and _closed(hart, version.machine) is None):
        _choose(hart)
        yield hart
        return
    with _raised(hart) as why:
        if why is not None and mode & V:
            raise CtrForbidden(hart.way, version.machine.indirect.select, mode, f"{mode_name(mode)} has its own; {why}")
        try:
            _choose(hart)
        except RegisterRefused as error:
            if why is None:
                raise
            raise CtrForbidden(hart.way, error.register, mode, why, _closed_by(hart)) from error
        yield hart


@contextmanager
def _raised(hart: Hart) -> Iterator[str | None]:
    """`priv` set to M mode, put back in the end; and why it could not be set, if so."""
    assert hart.mode is not None
    refused = hart.why_not("priv", M_MODE)
    now = hart.ask("priv")
    if refused is None and now != M_MODE:
        refused = f"it reads {now} after that"
    if now == hart.mode:
        yield refused
        return
    with hart.keeping("priv", hart.mode):
        yield refused


def _choose(hart: Hart) -> None:
    """Use the registers of the highest level that is open. Raises RegisterRefused."""
    closed: list[RegisterRefused] = []
    for level in hart.version.levels:
        refused = _closed(hart, level)
        if refused is None:
            hart.level = level
            return
        closed.append(refused)
    # The level that got further than its control register is the one that is there.
    controls = [level.control.csr for level in hart.version.levels]
    raise next((error for error in closed if error.register not in controls), closed[0])


def _closed(hart: Hart, level: Level) -> RegisterRefused | None:
    """What cannot be read of a level's registers."""
    wanted: list[Csr] = [level.control.csr]
    if hart.access.xlen == RV32 and level.control.high is not None:
        wanted.append(level.control.high)
    wanted += [level.status, level.indirect.select]
    if hart.version.depth is not None:
        wanted.append(hart.version.depth)
    try:
        hart.run([(csr, None) for csr in wanted])
    except RegisterRefused as error:
        return error
    return None


def _closed_by(hart: Hart) -> tuple[str, ...]:
    """The bits of mstateen0 that are 0, if it can be read."""
    bits = {hart.version.stateen_bit: "CTR", CSRIND_BIT: "CSRIND"}
    numbers = [MSTATEEN0] if hart.access.xlen >= XLEN_64 else [MSTATEEN0, MSTATEEN0H]
    answers = hart.access.run([(number, None) for number in numbers])
    values = [answer for answer in answers if isinstance(answer, int)]
    if len(values) < len(numbers):
        return ()
    value = sum(word << 32 * index for index, word in enumerate(values))
    return tuple(f"mstateen0.{name}, bit {bit}," for bit, name in bits.items() if not value >> bit & 1)
