"""The CSRs of Control Transfer Records in words: of a hart as it is now, or as it was when its records were read."""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.controlregs.ctr import procedures
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.dump import in_words
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.session.ctr.access import Way, open_access
from rvtrace_gdb.session.ctr.live import CtrTrace, Recorder
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

PREFIX = "ctr"
"""Before the number of a hart: what its records are called."""
_H_EXTENSION = 1 << 7  # of misa: VS and VU mode


def hart_of(name: str) -> int | None:
    """The hart whose CSRs are called *name*: "ctr0", "ctr1", ..."""
    number = name.removeprefix(PREFIX)
    return int(number) if name.startswith(PREFIX) and number.isascii() and number.isdigit() else None


def lines(made: CtrInForce, hart: int, more: str = "", *, everything: bool = False) -> list[str]:
    """Its registers below a title; *more* is the end of that. What is 0 and optional only if *everything* is wanted."""
    title = f"{made.name}: Control Transfer Records {made.version}, hart {hart}{more}"
    return [title, *(f"  {_words(csr, value)}" for csr, value in _registers(made, everything))]


def of_recorder(recorder: Recorder, *, tracing: bool, everything: bool = False) -> list[str]:
    """As `lines`, of a hart that records, or recorded: as it is now, or if it cannot be asked, as it was last."""
    made = recorder.captured.in_force
    if not tracing:
        return lines(made, recorder.hart, ", when they were read", everything=everything)
    try:
        now = procedures.status(recorder.access, recorder.version, made.name)
    except Cancelled:
        raise
    except RvtraceError as error:
        last = lines(made, recorder.hart, ", when last read", everything=everything)
        return [*last, f"  warning: {error}"]
    return lines(now.in_force, recorder.hart, everything=everything)


def of_hart(session: Session, hart: int, way: Way | None, *, everything: bool = False) -> list[str]:
    """As `lines`, of any hart that stands still. Raises what the access and the procedures raise."""
    access = open_access(way, session, hart)
    version = procedures.detect(access, way.get("version") if way else None)
    return lines(procedures.status(access, version, f"{PREFIX}{hart}").in_force, hart, everything=everything)


def recorders(session: Session) -> Sequence[Recorder]:
    """The harts that record, or recorded last."""
    return session.live.recorders if isinstance(session.live, CtrTrace) else ()


def _registers(made: CtrInForce, everything: bool) -> Iterator[tuple[Csr, int]]:
    """What is known of each, in the order of their numbers."""
    version = VERSIONS[made.version]
    found = {version.machine.control.csr: made.control, version.machine.status: made.status}
    guest = made.misa is not None and made.misa & _H_EXTENSION
    if made.vs_control or guest or everything:
        found[version.virtual.csr] = made.vs_control
    if version.depth is not None:
        found[version.depth] = int(version.depth_codes[made.depth])
    yield from sorted(found.items(), key=lambda it: it[0].number)


def _words(csr: Csr, value: int) -> str:
    digits = csr.bits // 4 + 2
    return f"{csr.name} {value:#0{digits}x}: {' '.join(in_words(csr, value))}"
