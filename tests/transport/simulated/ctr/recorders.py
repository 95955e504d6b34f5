"""Recorders of both versions and their control bits, as numbers of the documents: 1.0, "CSRs"; draft 0.1.4, 2.1."""

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild, Mode, Recorder, Transfer

ALL_MODES = frozenset(Mode)
VERSIONS = ("1.0", "0.1.4")

# The enable of a mode, in the control register of its V.
ENABLE = {
    "1.0": {Mode.U: 1 << 0, Mode.S: 1 << 1, Mode.M: 1 << 2, Mode.VU: 1 << 0, Mode.VS: 1 << 1},
    "0.1.4": {Mode.M: 1 << 0, Mode.S: 1 << 1, Mode.U: 1 << 2, Mode.VS: 1 << 1, Mode.VU: 1 << 2},
}
XTE = {
    "1.0": {Mode.M: 1 << 9, Mode.S: 1 << 8, Mode.VS: 1 << 8},
    "0.1.4": {Mode.M: 1 << 8, Mode.S: 1 << 9, Mode.VS: 1 << 9},
}
RASEMU = {"1.0": 1 << 7, "0.1.4": 1 << 10}
BPFRZ, LCOFIFRZ = 1 << 11, 1 << 12
EXCINH, INTRINH, TRETINH, NTBREN, TKBRINH, ETEN = 1 << 33, 1 << 34, 1 << 35, 1 << 36, 1 << 37, 1 << 38
INDCALLINH, DIRCALLINH, INDJMPINH, DIRJMPINH = 1 << 40, 1 << 41, 1 << 42, 1 << 43
CORSWAPINH, RETINH, INDLJMPINH, DIRLJMPINH = 1 << 44, 1 << 45, 1 << 46, 1 << 47

CALL, RETURN, SWAP = TransferType.DIRECT_CALL, TransferType.FUNCTION_RETURN, TransferType.COROUTINE_SWAP
JUMP = TransferType.DIRECT_JUMP
SOURCE, TARGET = 0x8000_0010, 0x8000_0200


def recorder(version: str, *enabled: Mode, control: int = 0, vs_control: int = 0, **built: object) -> Recorder:
    """With these modes enabled, besides what the control registers say."""
    made = Recorder(CtrBuild(version, modes=ALL_MODES, **built))  # type: ignore[arg-type]
    for mode in enabled:
        if mode.virtual:
            vs_control |= ENABLE[version][mode]
        else:
            control |= ENABLE[version][mode]
    made.control, made.vs_control = control, vs_control
    return made


def jump(
    type: TransferType = JUMP, source: int = SOURCE, target: int = TARGET, mode: Mode = Mode.M, now: int = 0
) -> Transfer:
    """A transfer within a mode."""
    return Transfer(type, source, target, mode, mode, now)


def trap(source_mode: Mode, target_mode: Mode, *, interrupt: bool = False, cause: int = 2, now: int = 0) -> Transfer:
    type = TransferType.INTERRUPT if interrupt else TransferType.EXCEPTION
    return Transfer(type, SOURCE, TARGET, source_mode, target_mode, now, cause=cause)


def trap_return(source_mode: Mode, target_mode: Mode) -> Transfer:
    return Transfer(TransferType.TRAP_RETURN, SOURCE, TARGET, source_mode, target_mode, 0)


def records(made: Recorder) -> list[tuple[int, int, int]]:
    """Source, target and type of the valid entries, youngest first: V is cut off."""
    entries = [made.buffer.read(n) for n in range(made.buffer.depth)]
    return [(e.source - 1, e.target, e.data & 0xF) for e in entries if e.source & 1]
