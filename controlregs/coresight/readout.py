"""What a Trace Memory Controller holds: its state, and its trace, oldest first.

Only the part that holds trace is read. A TMC must have stopped before; of an ETR that does not stop, what is in memory
already can still be read.

Ref: tmc_etb_dump_hw, tmc_etr_sync_flat_buf and tmc_etr_sync_sg_buf of Linux 6.1, drivers/hwtracing/coresight.
"""

from functools import partial

from rvtrace_gdb.controlregs.coresight import pages
from rvtrace_gdb.controlregs.coresight.access import check_claim
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import (
    AXICTL,
    CTL,
    DBAHI,
    DBALO,
    DEVID,
    EMPTY_READ,
    RRD,
    RRP,
    RSZ,
    RWP,
    RWPHI,
    STS,
    TmcType,
)
from rvtrace_gdb.controlregs.coresight.tmc import WORD, read_address
from rvtrace_gdb.controlregs.errors import DrainCancelled, DrainFailed, SinkNotReadable, TraceInvalid
from rvtrace_gdb.controlregs.target import BurstPort
from rvtrace_gdb.controlregs.trace_control.buffer_readout import (
    DrainedBuffer,
    SramUnreadable,
    read_pieces,
    read_port,
)
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

PIECE_WORDS = 256
"""Words that are read from RRD between two calls of the progress callback; a word that is read is gone."""
_EMPTY = EMPTY_READ.to_bytes(WORD, "little")


class TmcFill:
    """Where in its buffer a TMC has stored. *size*: of the buffer; *end*: one past the newest byte, as an offset.

    *wrapped*: all of the buffer holds trace, the oldest at *end*.
    """

    def __init__(self, size: int, end: int, *, wrapped: bool) -> None:
        self.size, self.end, self.wrapped = size, end, wrapped

    @property
    def used(self) -> int:
        """How many bytes hold trace."""
        return self.size if self.wrapped else self.end


def fill_of(tmc: CoresightComponent) -> TmcFill:
    """Return where the TMC has stored, by its registers. Raises SinkNotReadable, ComponentAccess."""
    size = WORD * RSZ.get(tmc.read(RSZ), "RSZ")
    wrapped = bool(STS.get(tmc.read(STS), "Full"))
    if not is_etr(tmc):
        end = tmc.read(RWP)
    else:
        address = read_address(tmc, RWP, RWPHI)
        if AXICTL.get(tmc.read(AXICTL), "ScatterGatherMode"):
            tmc.pages = tmc.pages or pages.read_table(tmc, read_address(tmc, DBALO, DBAHI))
            end = _offset_in_pages(tmc, address)
        else:
            end = address - read_address(tmc, DBALO, DBAHI)
    if not 0 <= end <= size:
        text = f"its write pointer is outside of its buffer (RWP {end:#x} from its start, RSZ {size:#x} bytes)"
        raise SinkNotReadable(tmc.name, tmc.base, f"{text}: was it reset while tracing? start the trace again")
    return TmcFill(size, 0 if wrapped and end == size else end, wrapped=wrapped)


def _offset_in_pages(tmc: CoresightComponent, address: int) -> int:
    offset = pages.offset_of(tmc.pages, address)
    if offset is None and address - pages.PAGE == tmc.pages[-1]:
        return pages.PAGE * len(tmc.pages)  # behind the last page, before the pointer returns to the first
    if offset is None and address == read_address(tmc, DBALO, DBAHI):
        return 0  # nothing was stored yet
    if offset is None:
        text = f"its write pointer {address:#x} is in none of the pages of its table"
        raise SinkNotReadable(tmc.name, tmc.base, f"{text}: was the table changed? start the trace again")
    return offset


def is_etr(tmc: CoresightComponent) -> bool:
    return DEVID.get(tmc.read(DEVID), "CONFIGTYPE") == TmcType.ETR


def drain(tmc: CoresightComponent, in_force: SinkSettings | None = None, progress: Progress = silent) -> DrainedBuffer:
    """Return all trace in the buffer, oldest first. The call may be repeated.

    *in_force*: the settings from the start of the trace, None: it is not known who set it up. Raises SinkNotReadable,
    TraceInvalid, DrainFailed (with the bytes read so far), ComponentAccess, Cancelled.
    """
    if in_force is not None:
        check_claim(tmc)
    status = STS.unpack(value := tmc.read(STS))
    if status["MemErr"]:
        text = f"the bus refused to store its trace (MemErr, STS reads {value:#x}), what is in its buffer is not valid"
        raise TraceInvalid(tmc.name, tmc.base, f"{text}; correct start and size in the target description")
    in_memory = is_etr(tmc)
    if not in_memory and not (CTL.get(tmc.read(CTL), "TraceCaptEn") and status["TMCReady"]):
        why = "is still storing trace; stop the trace first" if not status["TMCReady"] else "is off, its trace is lost"
        raise SinkNotReadable(tmc.name, tmc.base, f"{why} (STS reads {value:#x})")
    now = fill_of(tmc)
    if in_memory:
        return DrainedBuffer(_read_memory(tmc, now, progress), now.wrapped)
    read = partial(_read_own_memory, tmc, now)
    pieces = [(0, now.used)] if now.used else []
    return DrainedBuffer(read_pieces(tmc, read, pieces, wrapped=now.wrapped, progress=progress), now.wrapped)


def _stretches(tmc: CoresightComponent, now: TmcFill) -> list[tuple[int, int]]:
    """Return where in memory the trace is, oldest first."""
    parts = [(now.end, now.size), (0, now.end)] if now.wrapped else [(0, now.end)]
    if tmc.pages:
        return [piece for begin, end in parts for piece in pages.pieces(tmc.pages, begin, end)]
    start = read_address(tmc, DBALO, DBAHI)
    return [(start + begin, start + end) for begin, end in parts if begin < end]


def _read_memory(tmc: CoresightComponent, now: TmcFill, progress: Progress) -> bytes:
    """Read an ETR's buffer, behind what was read before a reading was interrupted: it has not changed since."""
    before = bytes(tmc.readout[: now.used])
    places = _behind(_stretches(tmc, now), len(before))

    def watch(label: str, done: int, total: int | None = None) -> None:
        progress(label, len(before) + done, now.used)

    try:
        data = before + read_pieces(tmc, tmc.target.read_block, places, wrapped=now.wrapped, progress=watch)
    except DrainCancelled as error:
        tmc.readout[:] = before + error.partial
        raise DrainCancelled(tmc.name, bytes(tmc.readout), now.used, now.wrapped) from error
    except DrainFailed as error:
        tmc.readout[:] = before + error.partial
        raise DrainFailed(tmc.name, tmc.base, bytes(tmc.readout), now.used, now.wrapped, error.cause) from error
    tmc.readout.clear()
    return data


def _behind(places: list[tuple[int, int]], nbytes: int) -> list[tuple[int, int]]:
    """Return what is left of *places*, (first address, end), behind their first *nbytes*."""
    left = []
    for begin, end in places:
        known = min(nbytes, end - begin)
        nbytes -= known
        if begin + known < end:
            left.append((begin + known, end))
    return left


def _read_own_memory(tmc: CoresightComponent, now: TmcFill, _offset: int, nbytes: int, progress: Progress) -> bytes:
    """Read what was not read before through RRD. The read pointer shows whether a word was read that did not arrive."""
    oldest = now.end if now.wrapped else 0
    taken = (tmc.read(RRP) - oldest) % now.size if tmc.readout else 0
    if taken % now.size != len(tmc.readout) % now.size:
        text = f"RRP shows that {taken} bytes were read, and {len(tmc.readout)} arrived: the connection lost the others"
        raise SramUnreadable(text, bytes(tmc.readout))
    in_bursts = len(tmc.readout) < nbytes and _bursts_are_exact(tmc)
    while len(tmc.readout) < nbytes:
        progress("reading trace", len(tmc.readout), nbytes)
        size = min(PIECE_WORDS * WORD, nbytes - len(tmc.readout))
        piece = _read_burst(tmc, size, now.size) if in_bursts else _read_words(tmc, size)
        tmc.readout += piece
        if piece.endswith(_EMPTY):
            _cut_empty(tmc)
            text = f"RRD had no more after {len(tmc.readout)} of {nbytes} bytes"
            raise SramUnreadable(f"{text}: did something else read it?", bytes(tmc.readout))
    return bytes(tmc.readout)


def _bursts_are_exact(tmc: CoresightComponent) -> bool:
    """Return whether the target reads a register many times in a burst, tried with one that can be read at will.

    A word of RRD that is read and does not arrive is lost, so a bus on which bursts fail is not asked for any.
    """
    if not isinstance(tmc.target, BurstPort):
        return False
    expected = tmc.read(RSZ).to_bytes(WORD, "little") * PIECE_WORDS
    return tmc.target.read_port_burst(tmc.base + RSZ.offset, PIECE_WORDS, silent) == expected


def _read_burst(tmc: CoresightComponent, nbytes: int, ring: int) -> bytes:
    """Read words in a burst, and check by the read pointer that each was read once. Raises SramUnreadable."""
    assert isinstance(tmc.target, BurstPort)
    before = tmc.read(RRP)
    data = tmc.target.read_port_burst(tmc.base + RRD.offset, nbytes // WORD, silent)
    taken = (tmc.read(RRP) - before) % ring
    if data is None and not taken:
        return _read_words(tmc, nbytes)
    if data is None or taken != nbytes % ring:
        text = f"RRP shows that {taken} bytes were read, and {len(data or b'')} arrived: the bus failed in a burst"
        raise SramUnreadable(text, bytes(tmc.readout))
    return data


def _read_words(tmc: CoresightComponent, nbytes: int) -> bytes:
    try:
        return read_port(tmc, tmc.base + RRD.offset, nbytes, silent)
    except RvtraceError as error:
        tmc.readout += getattr(error, "partial", b"")
        raise SramUnreadable(Exception.__str__(error), bytes(tmc.readout)) from error


def _cut_empty(tmc: CoresightComponent) -> None:
    while tmc.readout.endswith(_EMPTY):
        del tmc.readout[-WORD:]
