"""Registers of the CoreSight components between an ATB bridge and the memory that keeps the trace.

First what every component has: the lock, the claim tags and what identifies it. Then the programmable funnel, which
merges up to eight trace buses; the programmable replicator, which copies one to two; and the Trace Memory Controller
(TMC), which keeps trace in its own memory (built as an ETB, or as an ETF, which can also pass trace on), or writes it
to system memory (an ETR).

Unlike components of the Trace Control Interface these have no bits Active, Enable and Empty, no tr??Impl, and registers
that cannot be written while they are locked. Addresses and pointers are in bytes, sizes in words of 32 bits.

Names are those of Arm's manuals: CoreSight Architecture Specification (IHI 0029, management registers), CoreSight
SoC-400 (DDI 0480, funnel and replicator), CoreSight Trace Memory Controller (DDI 0461). Ref: what Linux 6.1 programs in
drivers/hwtracing/coresight: coresight-priv.h, coresight-tmc.h, coresight-funnel.c, coresight-replicator.c.
"""

from dataclasses import dataclass
from enum import IntEnum

from rvtrace_gdb.controlregs.fields import (
    Compliance,
    Field,
    FieldAccess,
    Register,
    RegisterBlock,
    Reset,
    bit_list,
    reserved,
)

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
RO, RW, WARL = FieldAccess.RO, FieldAccess.RW, FieldAccess.WARL

UNLOCK = 0xC5AC_CE55
"""Written to LAR it opens the lock; anything else closes it."""
BY_DEBUGGER, BY_TARGET = 1 << 0, 1 << 1
"""Claim tags, as Arm's and Linux's software uses them: an external debugger, and software on the target."""


class DevType(IntEnum):
    """DEVTYPE: the sub type in bits 7:4, the major type in bits 3:0 (IHI 0029, B2.3)."""

    FUNNEL = 0x12
    REPLICATOR = 0x22
    BUFFER = 0x21
    """A TMC that is an ETB or an ETR."""
    FIFO = 0x32
    """A TMC that is an ETF."""


class TmcType(IntEnum):
    """TMC, DEVID.CONFIGTYPE."""

    ETB = 0
    ETR = 1
    ETF = 2


class TmcMode(IntEnum):
    """TMC, MODE."""

    CIRCULAR_BUFFER = 0
    SOFTWARE_FIFO = 1
    HARDWARE_FIFO = 2


ITCTRL = Register("ITCTRL", 0xF00, OPTIONAL, "integration mode", (
    Field("IME", 1, WARL, 0, "1: pins and trace bus are driven by test registers"),
    reserved(31),
))
_CLAIM_TAGS = bit_list(names={0: "debugger", 1: "software on the target"}, none="nobody")
CLAIMSET = Register("CLAIMSET", 0xFA0, REQUIRED, "claim tags: reads the tags there are", (
    Field("SET", 8, WARL, Reset.CONSTANT, "writing a 1 sets the tag; reads 1 for each tag there is"),
    reserved(24),
))
CLAIMCLR = Register("CLAIMCLR", 0xFA4, REQUIRED, "claim tags: reads those that are set", (
    Field("CLR", 8, WARL, 0, "writing a 1 clears the tag", describe=_CLAIM_TAGS),
    reserved(24),
))
LAR = Register("LAR", 0xFB0, OPTIONAL, "lock access: opens and closes the lock, cannot be read", (
    Field("KEY", 32, FieldAccess.W1, Reset.NONE, "0xc5acce55 opens the lock, anything else closes it"),
), port=True)
LSR = Register("LSR", 0xFB4, OPTIONAL, "lock status", (
    Field("SLI", 1, RO, Reset.CONSTANT, "there is a lock for this way to the registers"),
    Field("SLK", 1, RO, Reset.CONSTANT, "it is closed: writes are ignored"),
    Field("nTT", 1, RO, 0, "LAR has 8 bits"),
    reserved(29),
))
AUTHSTATUS = Register("AUTHSTATUS", 0xFB8, REQUIRED, "what the debugger may do", (
    Field("NSID", 2, RO, Reset.CONSTANT, "non-secure invasive debug: 2 forbidden, 3 allowed"),
    Field("NSNID", 2, RO, Reset.CONSTANT, "non-secure non-invasive debug"),
    Field("SID", 2, RO, Reset.CONSTANT, "secure invasive debug"),
    Field("SNID", 2, RO, Reset.CONSTANT, "secure non-invasive debug"),
    reserved(24),
))
DEVTYPE = Register("DEVTYPE", 0xFCC, REQUIRED, "kind of component", (
    Field("TYPE", 8, RO, Reset.CONSTANT, "kind of component", DevType),
    reserved(24),
))


def _byte(name: str, offset: int, doc: str) -> Register:
    return Register(name, offset, OPTIONAL, doc, (Field(name, 8, RO, Reset.CONSTANT, doc), reserved(24)))


PIDR0 = _byte("PIDR0", 0xFE0, "part number 7:0")
PIDR1 = Register("PIDR1", 0xFE4, OPTIONAL, "part number 11:8, designer", (
    Field("PART_1", 4, RO, Reset.CONSTANT, "part number 11:8"),
    Field("DES_0", 4, RO, Reset.CONSTANT, "JEP106 code of the designer, 3:0"),
    reserved(24),
))
PIDR2 = Register("PIDR2", 0xFE8, OPTIONAL, "designer, revision", (
    Field("DES_1", 3, RO, Reset.CONSTANT, "JEP106 code of the designer, 6:4"),
    Field("JEDEC", 1, RO, 1, "always 1"),
    Field("REVISION", 4, RO, Reset.CONSTANT, "revision of the component"),
    reserved(24),
))
PIDR4 = Register("PIDR4", 0xFD0, OPTIONAL, "designer, size", (
    Field("DES_2", 4, RO, Reset.CONSTANT, "JEP106 continuation code of the designer"),
    Field("SIZE", 4, RO, 0, "blocks of 4 KiB, as a power of two"),
    reserved(24),
))
_MANAGEMENT = (ITCTRL, CLAIMSET, CLAIMCLR, LAR, LSR, AUTHSTATUS)
_IDENTITY = (DEVTYPE, PIDR4, PIDR0, PIDR1, PIDR2)


@dataclass(frozen=True, eq=False)
class CoresightBlock(RegisterBlock):
    """The registers of one kind of CoreSight component. *control_name*: the register with its most important setting.

    It has no component type and no prefix; *devtypes*: what DEVTYPE can be.
    """

    control_name: str = ""
    devtypes: tuple[DevType, ...] = ()

    @property
    def control(self) -> Register:
        return self.by_name[self.control_name]

    @property
    def impl(self) -> Register:
        return self.by_name[DEVTYPE.name]


FUNNEL_PORTS = 8
MIN_HOLD_TIME = 7
"""FUNCTL.HT: transfers of one input before another one has its turn, less one; as Linux sets it."""

FUNCTL = Register("FUNCTL", 0x000, REQUIRED, "funnel control", (
    Field("EnS", FUNNEL_PORTS, WARL, 0, "bit n: input n is on", describe=bit_list("input", none="all off")),
    Field("HT", 4, WARL, 3, "minimum hold time: transfers of an input before another one has its turn, less one"),
    reserved(20),
))
PRICTL = Register("PRICTL", 0x004, REQUIRED, "priority of the inputs", (
    Field("PriPort", 24, WARL, Reset.UNDEFINED, "three bits for each input, 0 is served first"),
    reserved(8),
))
FUNNEL = CoresightBlock(
    "CoreSight funnel", "", 0, (FUNCTL, PRICTL, *_MANAGEMENT, *_IDENTITY),
    control_name="FUNCTL", devtypes=(DevType.FUNNEL,),
)  # fmt: skip


def _id_filter(output: int) -> Register:
    what = f"what output {output} does not get"
    ids = bit_list("IDs with bits 6:4 =", none="it gets everything")
    return Register(f"IDFILTER{output}", 4 * output, REQUIRED, what, (
        Field(f"FILTER{output}", 8, WARL, 0, "bit n: IDs 0xn0 to 0xnf are kept back", describe=ids),
        reserved(24),
    ))  # fmt: skip


IDFILTER0, IDFILTER1 = _id_filter(0), _id_filter(1)
ID_FILTERS = (IDFILTER0, IDFILTER1)
NOTHING_PASSES, ALL_PASSES = 0xFF, 0x00
REPLICATOR = CoresightBlock(
    "CoreSight replicator", "", 0, (*ID_FILTERS, *_MANAGEMENT, *_IDENTITY),
    control_name="IDFILTER0", devtypes=(DevType.REPLICATOR,),
)  # fmt: skip


def _one_field(name: str, offset: int, doc: str, *, access: FieldAccess = WARL, port: bool = False) -> Register:
    return Register(name, offset, REQUIRED, doc, (Field(name, 32, access, Reset.UNDEFINED, doc),), port=port)


def _high(name: str, offset: int, doc: str) -> Register:
    return Register(name, offset, OPTIONAL, doc, (Field(name, 8, WARL, Reset.UNDEFINED, doc), reserved(24)))


RSZ = Register("RSZ", 0x004, REQUIRED, "size of the buffer in words; settable in an ETR alone", (
    Field("RSZ", 31, WARL, Reset.UNDEFINED, "words of 32 bits"),
    reserved(1),
))
STS = Register("STS", 0x00C, REQUIRED, "status", (
    Field("Full", 1, RO, Reset.UNDEFINED, "the write pointer has wrapped; kept until capture is switched on again"),
    Field("Triggered", 1, RO, 0, "a trigger has arrived"),
    Field("TMCReady", 1, RO, 1, "capture is off, or has stopped and everything is stored"),
    Field("FtEmpty", 1, RO, 1, "nothing is left in the formatter"),
    Field("Empty", 1, RO, 1, "nothing is stored, or it was passed on"),
    Field("MemErr", 1, RO, 0, "ETR: the bus refused a write, what is in memory is not valid"),
    reserved(26),
))
RRD = _one_field("RRD", 0x010, "the word at the read pointer, which advances; 0xffffffff: none", access=RO, port=True)
RRP = _one_field("RRP", 0x014, "read pointer, byte offset; of an ETR byte address")
RWP = _one_field("RWP", 0x018, "write pointer, byte offset; of an ETR byte address")
TRG = _one_field("TRG", 0x01C, "words that are stored after a trigger")
CTL = Register("CTL", 0x020, REQUIRED, "control", (
    Field("TraceCaptEn", 1, RW, 0, "capture is on"),
    reserved(31),
))
RWD = _one_field("RWD", 0x024, "writes the memory, for tests", access=FieldAccess.W1, port=True)
MODE = Register("MODE", 0x028, REQUIRED, "what is done with trace", (
    Field("MODE", 2, WARL, Reset.UNDEFINED, "what is done with trace", TmcMode),
    reserved(30),
))
LBUFLEVEL = _one_field("LBUFLEVEL", 0x02C, "the largest fill in words since it was read last", access=RO, port=True)
CBUFLEVEL = _one_field("CBUFLEVEL", 0x030, "the fill in words", access=RO)
BUFWM = _one_field("BUFWM", 0x034, "free words at which the FIFO counts as full")
RRPHI = _high("RRPHI", 0x038, "read pointer, bits 39:32")
RWPHI = _high("RWPHI", 0x03C, "write pointer, bits 39:32")
AXICTL = Register("AXICTL", 0x110, OPTIONAL, "ETR: how it writes to memory", (
    Field("ProtCtrl", 2, WARL, Reset.UNDEFINED, "bit 0: privileged, bit 1: non-secure"),
    Field("WrCache", 4, WARL, Reset.UNDEFINED, "AxCACHE; 0: past the caches"),
    reserved(1),
    Field("ScatterGatherMode", 1, WARL, Reset.UNDEFINED, "DBA is the address of a table of pages"),
    Field("WrBurstLen", 4, WARL, Reset.UNDEFINED, "transfers in a burst, less one"),
    reserved(4),
    Field("RdCache", 4, WARL, Reset.UNDEFINED, "SoC-600: AxCACHE of reads"),
    reserved(12),
))
DBALO = _one_field("DBALO", 0x118, "ETR: address of the buffer or of its table, bits 31:0")
DBAHI = _high("DBAHI", 0x11C, "ETR: address of the buffer or of its table, bits 39:32")
FFSR = Register("FFSR", 0x300, REQUIRED, "formatter status", (
    Field("FlInProg", 1, RO, 0, "a flush is in progress"),
    Field("FtStopped", 1, RO, 0, "the formatter has stopped"),
    reserved(30),
))
FFCR = Register("FFCR", 0x304, REQUIRED, "formatter control", (
    Field("EnFt", 1, WARL, 0, "trace is stored in frames with its IDs"),
    Field("EnTI", 1, WARL, 0, "triggers are marked in the trace"),
    reserved(2),
    Field("FOnFlIn", 1, WARL, 0, "flush when the input FLUSHIN asks for it"),
    Field("FOnTrigEvt", 1, WARL, 0, "flush when a trigger has arrived"),
    Field("FlushMan", 1, WARL, 0, "writing 1 flushes; reads 1 until that is done"),
    reserved(1),
    Field("TrigOnTrigIn", 1, WARL, 0, "mark the input TRIGIN"),
    Field("TrigOnTrigEvt", 1, WARL, 0, "mark the end of TRG"),
    Field("TrigOnFl", 1, WARL, 0, "mark the end of a flush"),
    reserved(1),
    Field("StopOnFl", 1, WARL, 0, "stop when a flush is done"),
    Field("StopOnTrigEvt", 1, WARL, 0, "stop when a trigger has arrived"),
    Field("DrainBuffer", 1, WARL, 0, "ETF: send what is stored"),
    reserved(17),
))
PSCR = Register("PSCR", 0x308, OPTIONAL, "how often synchronization frames come", (
    Field("PSCount", 5, WARL, Reset.UNDEFINED, "a power of two of frames, 0: never"),
    reserved(27),
))
DEVID = Register("DEVID", 0xFC8, REQUIRED, "how the TMC is built", (
    Field("ATBINPORTCOUNT", 6, RO, Reset.CONSTANT, "0: one trace bus"),
    Field("CONFIGTYPE", 2, RO, Reset.CONSTANT, "kind of TMC", TmcType),
    Field("MEMWIDTH", 3, RO, Reset.CONSTANT, "width of its memory: 2 is 32 bits, each more doubles it"),
    Field("WBUF_DEPTH", 5, RO, Reset.CONSTANT, "depth of the write buffer"),
    Field("AXIAWVALID", 1, RO, Reset.CONSTANT, "AXIAW is valid"),
    Field("AXIAW", 7, RO, Reset.CONSTANT, "width of addresses in bits"),
    Field("NOSCAT", 1, RO, Reset.CONSTANT, "no scatter-gather"),
    reserved(7),
))
TMC = CoresightBlock(
    "CoreSight TMC", "", 0,
    (
        RSZ, STS, RRD, RRP, RWP, TRG, CTL, RWD, MODE, LBUFLEVEL, CBUFLEVEL, BUFWM, RRPHI, RWPHI, AXICTL, DBALO, DBAHI,
        FFSR, FFCR, PSCR, *_MANAGEMENT, DEVID, *_IDENTITY,
    ),
    control_name="CTL", devtypes=(DevType.BUFFER, DevType.FIFO),
)  # fmt: skip

BLOCKS = {"coresight_funnel": FUNNEL, "coresight_replicator": REPLICATOR, "coresight_tmc": TMC}
"""The registers of each type of component, as target descriptions name it."""
EMPTY_READ = 0xFFFF_FFFF
"""What RRD reads when nothing is left; it cannot occur in frames."""
SOC_600 = (0x9E8, 0x9E9, 0x9EA)
"""Part numbers (PIDR0, PIDR1) of the TMCs of CoreSight SoC-600: ETR, ETB, ETF."""
