"""A Trace Memory Controller from its configuration until it has stopped.

A sink stores frames in a ring: in its own memory (ETB, ETF), or in system memory (ETR). A link is an ETF that keeps
what the next component does not take yet. To stop one, it is told to flush what feeds it, and to stop then; senders
have to be off before. The ring begins anew whenever capture is switched on.

Ref: tmc_etb_enable_hw, tmc_etf_enable_hw, tmc_etr_enable_hw and tmc_flush_and_stop of Linux 6.1,
drivers/hwtracing/coresight/coresight-tmc-etf.c, coresight-tmc-etr.c, coresight-tmc-core.c.
"""

from rvtrace_gdb.controlregs.coresight import pages
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import (
    AUTHSTATUS,
    AXICTL,
    BUFWM,
    CTL,
    DBAHI,
    DBALO,
    DEVID,
    FFCR,
    MODE,
    PIDR0,
    PIDR1,
    RRP,
    RRPHI,
    RSZ,
    RWP,
    RWPHI,
    SOC_600,
    STS,
    TRG,
    TmcMode,
    TmcType,
)
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import (
    BufferRefused,
    ComponentTimeout,
    SettingRefused,
    place_of,
)
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control.request import SinkBuffer
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

FRAME = 16
WORD = 4
STORE = FFCR.pack(EnFt=1, EnTI=1, FOnFlIn=1, FOnTrigEvt=1, TrigOnTrigIn=1)
PASS_ON = FFCR.pack(EnFt=1, EnTI=1)
_LOW = 0xFFFF_FFFF
_BURST = 15
_NON_SECURE = 2
_ALLOWED = 3  # AUTHSTATUS.NSID


class TmcNotReady(ComponentTimeout):
    """A TMC did not stop. *value*: what *register* read last."""

    def __init__(self, tmc: CoresightComponent, register: Register, waited_for: str, value: int) -> None:
        super().__init__(tmc.name, tmc.base, register, waited_for, value, tmc.timeout)
        next_one = "what it feeds takes its trace" if tmc.is_link else "its clock and power"
        RvtraceError.__init__(
            self,
            f"{place_of(tmc.name, tmc.base)}: did not stop: {register.name} did not reach {waited_for} within"
            f" {tmc.timeout:g} s (it reads {value:#x}); its capture was left on; check {next_one}, and that what feeds"
            " it is off",
        )


def memory_width(devid: int) -> int:
    """Return the width in bytes of a TMC's memory."""
    return WORD << max(DEVID.get(devid, "MEMWIDTH") - 2, 0)


def switch_off(tmc: CoresightComponent, progress: Progress = silent) -> None:
    """Stop what may be running, and switch capture off; what it stored is no longer readable from its own memory.

    Raises TmcNotReady, ComponentAccess.
    """
    stop(tmc, progress)
    if tmc.read(CTL):
        tmc.write(CTL, 0)
    _wait(tmc, STS, progress, TMCReady=1)


def stop(tmc: CoresightComponent, progress: Progress = silent) -> None:
    """Flush, and stop; capture stays on, so that what is stored can be read. Raises TmcNotReady, ComponentAccess."""
    if not CTL.get(tmc.read(CTL), "TraceCaptEn"):
        return
    control = tmc.read(FFCR) & ~FFCR.mask("FlushMan")
    tmc.write(FFCR, FFCR.put(control, "StopOnFl", 1))
    tmc.write(FFCR, FFCR.put(FFCR.put(control, "StopOnFl", 1), "FlushMan", 1))
    _wait(tmc, FFCR, progress, FlushMan=0)
    _wait(tmc, STS, progress, TMCReady=1)


def _wait(tmc: CoresightComponent, register: Register, progress: Progress, **fields: int) -> None:
    try:
        tmc.wait(register, progress, **fields)
    except ComponentTimeout as error:
        raise TmcNotReady(tmc, register, error.waited_for, error.value) from None


def configure_link(tmc: CoresightComponent) -> None:
    """Let an ETF pass trace on, once it is switched on. Raises SettingRefused, ComponentAccess."""
    _check_type(tmc, (TmcType.ETF,), 'mode = "FIFO"')
    _set(tmc, MODE, TmcMode.HARDWARE_FIFO)
    tmc.write(BUFWM, 0)


def configure_sink(tmc: CoresightComponent, buffer: SinkBuffer) -> tuple[TmcSettings, list[str]]:
    """Set a TMC up that is off, to store in *buffer*: its own memory, system memory, or the pages of a table.

    Return its settings, and notes on what was not granted. Raises SettingRefused, BufferRefused, ComponentAccess.
    """
    in_memory = buffer.start is not None or buffer.scattered
    what = ("SG" if buffer.scattered else "SMEM") if in_memory else "SRAM"
    devid = _check_type(tmc, (TmcType.ETR,) if in_memory else (TmcType.ETB, TmcType.ETF), f'mode = "{what}"')
    _set(tmc, MODE, TmcMode.CIRCULAR_BUFFER)
    tmc.write(TRG, 0)
    control = tmc.write(FFCR, STORE)
    if not FFCR.get(control, "EnFt"):
        text = f"stores trace without frames (FFCR reads {control:#x}), so that traces cannot be told apart"
        raise SettingRefused(tmc.name, tmc.base, text)
    if not in_memory:
        size = WORD * RSZ.get(tmc.read(RSZ), "RSZ")
        return TmcSettings(tmc.name, tmc.base, control, devid, 0, size - WORD, WORD), []
    axictl = _set_bus(tmc, devid, scattered=buffer.scattered)
    start, size = _set_pages(tmc, buffer) if buffer.scattered else _set_buffer(tmc, buffer, memory_width(devid))
    return TmcSettings(tmc.name, tmc.base, control, devid, start, start + size - WORD, WORD, axictl), []


def _check_type(tmc: CoresightComponent, types: tuple[TmcType, ...], described: str) -> int:
    """Return DEVID. Raises SettingRefused for a TMC that is built as something else."""
    devid = tmc.read(DEVID)
    built = DEVID.get(devid, "CONFIGTYPE")
    if built not in types:
        name = TmcType(built).name if built in list(TmcType) else "TMC of an unknown type"
        needed = " or ".join(kind.name for kind in types)
        text = f"is an {name} (DEVID reads {devid:#x}), and {described} needs an {needed}"
        raise SettingRefused(tmc.name, tmc.base, f"{text}; correct the target description")
    return devid


def _set(tmc: CoresightComponent, register: Register, value: int) -> None:
    got = tmc.write(register, value)
    if got != value:
        text = f"{register.name} reads {got:#x} after {value:#x} was written"
        raise SettingRefused(tmc.name, tmc.base, f"{text}: is it locked, or does something else use it?")


def _set_bus(tmc: CoresightComponent, devid: int, *, scattered: bool) -> int:
    """Set how an ETR writes, past the caches: the debugger reads memory. Return AXICTL."""
    if scattered:
        allowed = tmc.read(AUTHSTATUS)
        if DEVID.get(devid, "NOSCAT"):
            raise SettingRefused(tmc.name, tmc.base, f"has no scatter-gather mode (DEVID reads {devid:#x})")
        if AUTHSTATUS.get(allowed, "NSID") != _ALLOWED:
            text = f"is not allowed to read its table (AUTHSTATUS reads {allowed:#x})"
            raise SettingRefused(tmc.name, tmc.base, f"{text}; enable non-secure invasive debug, or use mode SMEM")
    wanted = {
        "ProtCtrl": _NON_SECURE, "WrCache": 0, "RdCache": 0, "WrBurstLen": _BURST, "ScatterGatherMode": int(scattered),
    }  # fmt: skip
    value = tmc.set(AXICTL, **wanted)
    if AXICTL.get(value, "ScatterGatherMode") != scattered:
        text = f"AXICTL.ScatterGatherMode stays {int(not scattered)} (AXICTL reads {value:#x})"
        raise SettingRefused(tmc.name, tmc.base, text)
    return value


def _set_buffer(tmc: CoresightComponent, buffer: SinkBuffer, width: int) -> tuple[int, int]:
    """Set address and size of the memory; nothing outside of it is ever written. Return them as read back."""
    assert buffer.start is not None and buffer.size is not None
    asked, grain = (buffer.start, buffer.start + buffer.size), max(width, FRAME)
    if (asked[0] | asked[1]) % grain:
        raise BufferRefused(tmc.name, tmc.base, asked, (-(-asked[0] // grain) * grain, asked[1] // grain * grain))
    size = WORD * RSZ.get(tmc.write(RSZ, buffer.size // WORD), "RSZ")
    start = write_address(tmc, DBALO, DBAHI, asked[0])
    if start != asked[0] or not 0 < size <= buffer.size:
        raise BufferRefused(tmc.name, tmc.base, asked, (start, start + size))
    return start, size


def _set_pages(tmc: CoresightComponent, buffer: SinkBuffer) -> tuple[int, int]:
    """Use the table in memory. Return its address, and the size of all its pages in bytes."""
    table = read_address(tmc, DBALO, DBAHI) if buffer.start is None else buffer.start
    got = write_address(tmc, DBALO, DBAHI, table)
    if got != table:
        text = f"cannot reach its scatter-gather table: DBA reads {got:#x} after {table:#x} was written"
        raise SettingRefused(tmc.name, tmc.base, text)
    tmc.pages = pages.read_table(tmc, table)
    size = pages.PAGE * len(tmc.pages)
    _set(tmc, RSZ, size // WORD)
    return table, size


def switch_on(tmc: CoresightComponent, progress: Progress = silent) -> None:
    """Switch capture on. A sink begins at the start of its buffer. Raises TmcNotReady, ComponentAccess, SettingRefused.
    """
    if CTL.get(tmc.read(CTL), "TraceCaptEn"):
        switch_off(tmc, progress)
    tmc.readout.clear()
    if not tmc.is_link:
        _begin_ring(tmc)
    tmc.write(FFCR, PASS_ON if tmc.is_link else STORE)
    tmc.write(CTL, 1)
    if not CTL.get(tmc.read(CTL), "TraceCaptEn"):
        raise SettingRefused(tmc.name, tmc.base, "stays off (CTL reads 0 after 1 was written)")


def _begin_ring(tmc: CoresightComponent) -> None:
    """Empty the buffer. ETRs older than SoC-600 do that themselves, and their pointers cannot be written."""
    if DEVID.get(tmc.read(DEVID), "CONFIGTYPE") != TmcType.ETR:
        _set(tmc, RRP, 0)
        _set(tmc, RWP, 0)
    elif part_number(tmc) in SOC_600:
        table = read_address(tmc, DBALO, DBAHI)
        write_address(tmc, RRP, RRPHI, table)
        write_address(tmc, RWP, RWPHI, table)
        status = tmc.read(STS)
        tmc.target.write32(tmc.base + STS.offset, status & ~STS.mask("Full"))


def part_number(component: CoresightComponent) -> int:
    """Return Arm's number of the part."""
    return PIDR1.get(component.read(PIDR1), "PART_1") << 8 | PIDR0.get(component.read(PIDR0), "PIDR0")


def read_address(tmc: CoresightComponent, low: Register, high: Register) -> int:
    """Return an address of 40 bits."""
    return tmc.read(high) << 32 | tmc.read(low)


def write_address(tmc: CoresightComponent, low: Register, high: Register, address: int) -> int:
    """Write an address, and return the one that the registers then hold."""
    upper = tmc.write(high, address >> 32 & 0xFF)
    return upper << 32 | tmc.write(low, address & _LOW)
