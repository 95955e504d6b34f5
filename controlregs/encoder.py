"""Registers of a trace encoder, one per traced hart. Those of its filters and comparators are declared in `filters` and
`comparators`.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace encoder registers (trTe*); the codes of trTeInstMode also in the N-Trace 1.0 and E-Trace 2.0 documents
"""

from enum import IntEnum

from rvtrace_gdb.controlregs import comparators, filters, timestamp
from rvtrace_gdb.controlregs.common import CompType, active, empty, vendor, version_and_type
from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, Reset, reserved
from rvtrace_gdb.controlregs.readings import every, listed

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL


class InstMode(IntEnum):
    """Instruction trace modes. N-Trace has BTM and HTM; an E-Trace encoder has one mode, whatever is written: 7 as of
    E-Trace 2.0, 6 as of 2.0.5."""

    OFF = 0
    PROTOCOL1 = 1
    PROTOCOL2 = 2
    BTM = 3
    PROTOCOL4 = 4
    PROTOCOL5 = 5
    HTM = 6
    VENDOR = 7


class StallEna(IntEnum):
    DROP_AND_RESYNC = 0
    STALL_HART = 1


class SyncMode(IntEnum):
    """Unit of the periodic synchronisation."""

    OFF = 0
    MESSAGES = 1
    CLOCK_CYCLES = 2
    HALFWORDS = 3


class Format(IntEnum):
    E_TRACE = 0
    N_TRACE = 1
    VENDOR = 7


class ImplicitReturnMode(IntEnum):
    UNREPORTED = 0
    DEPTH_COUNTER = 1
    PARTIAL_ADDRESS_STACK = 2
    FULL_ADDRESS_STACK = 3


class DataStallEna(IntEnum):
    OVERFLOW_MESSAGE = 0
    STALL_HART = 1


class DataAddrCompress(IntEnum):
    FULL = 0
    XOR = 1
    DIFFERENTIAL = 2
    PROTOCOL_DEFINED = 3


class TrigAction(IntEnum):
    NONE = 0
    TRACE_ON = 2
    TRACE_OFF = 3
    TRACE_NOTIFY = 4


def _filters(name: str, doc: str) -> Field:
    return Field(name, filters.COUNT, doc=doc, reading=listed("filter", none="no filter: all is traced"))


CONTROL = Register("trTeControl", 0x000, REQUIRED, "main control; triggers may change trTeInstTracing at any time", (
    active("trTe"),
    Field("trTeEnable", 1, Access.RW, 0, "encoder on, set after all other settings; writing 0 flushes what is queued"),
    Field("trTeInstTracing", 1, Access.RW, doc="instruction trace is produced; set after Enable, or by triggers"),
    empty("trTe"),
    Field(
        "trTeInstMode",
        3,
        doc="instruction trace mode; an unsupported one becomes a supported one",
        values=InstMode,
        reading=lambda value: "vendor, or E-Trace" if value == InstMode.VENDOR else InstMode(value).name.lower(),
    ),
    reserved(2),
    Field("trTeContext", 1, doc="messages about context and privilege"),
    reserved(1),
    Field("trTeInstTrigEnable", 1, doc="trace-on and trace-off triggers act on trTeInstTracing"),
    Field("trTeInstStallOrOverflow", 1, Access.RW1C, doc="trace was lost or the hart stalled; Enable clears it"),
    Field("trTeInstStallEna", 1, doc="what happens when the path is full", values=StallEna),
    reserved(1),
    Field("trTeInhibitSrc", 1, doc="messages have no source field even where trTeSrcBits is not 0"),
    Field("trTeInstSyncMode", 2, doc="unit of the period of synchronisation", values=SyncMode),
    reserved(2),
    Field("trTeInstSyncMax", 4, doc="period of synchronisation: 2**(value + 4) units", reading=every(4)),
    Field("trTeFormat", 3, doc="protocol produced", values=Format),
    reserved(5),
))
IMPL = Register("trTeImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trTe", CompType.ENCODER),
    reserved(4),
    Field("trTeProtocolMajor", 4, Access.RO, Reset.CONSTANT, "major version of the protocol: N-Trace 1, E-Trace 0"),
    Field("trTeProtocolMinor", 4, Access.RO, Reset.CONSTANT, "minor version of the protocol"),
    vendor("trTe"),
))
INST_FEATURES = Register("trTeInstFeatures", 0x008, OPTIONAL, "options a decoder must know, and the source ID", (
    Field("trTeInstNoAddrDiff", 1, doc="E-Trace: addresses are always sent in full"),
    Field("trTeInstNoTrapAddr", 1, doc="E-Trace: trap packets omit the handler's address"),
    Field("trTeInstEnSequentialJump", 1, doc="lui or auipc followed by jalr counts as inferable"),
    Field("trTeInstEnImplicitReturn", 1, doc="a return to where a recent call came from counts as inferable"),
    Field("trTeInstEnBranchPrediction", 1, doc="E-Trace: compression by branch predictor"),
    Field("trTeInstEnJumpTargetCache", 1, doc="E-Trace: compression by jump target cache"),
    Field("trTeInstImplicitReturnMode", 2, doc="how calls are tracked for implicit returns", values=ImplicitReturnMode),
    Field("trTeInstEnRepeatedHistory", 1, doc="N-Trace: repeated branch history is counted"),
    Field("trTeInstEnAllJumps", 1, doc="inferable unconditional jumps and calls are reported as well"),
    Field("trTeInstExtendAddrMSB", 1, doc="most significant address bits are compressed (protocol-specific)"),
    reserved(5),
    Field("trTeSrcID", 12, doc="source ID of this encoder"),
    Field("trTeSrcBits", 4, doc="width of the source field in messages, 0 to 12 bits"),
))
INST_FILTERS = Register("trTeInstFilters", 0x00C, OPTIONAL, "which filters qualify instruction trace", (
    _filters("trTeInstFilters", "bit n: filter n, all set ones OR-ed; 0 traces everything"),
    reserved(16),
))
DATA_CONTROL = Register("trTeDataControl", 0x010, OPTIONAL, "data trace; triggers may change trTeDataTracing", (
    Field("trTeDataImplemented", 1, Access.RO, Reset.CONSTANT, "data trace exists"),
    Field("trTeDataTracing", 1, doc="data trace is being produced"),
    Field("trTeDataTrigEnable", 1, doc="triggers act on trTeDataTracing"),
    Field("trTeDataStallOrOverflow", 1, Access.RW1C, doc="data trace was lost or stalled the hart"),
    Field("trTeDataStallEna", 1, doc="what happens when the path is full", values=DataStallEna),
    Field("trTeDataDrop", 1, Access.RW1C, doc="a data packet was dropped"),
    Field("trTeDataDropEna", 1, doc="data packets may be dropped to protect instruction trace"),
    reserved(9),
    Field("trTeDataNoValue", 1, doc="no data values"),
    Field("trTeDataNoAddr", 1, doc="no data addresses"),
    Field("trTeDataAddrCompress", 2, doc="compression of data addresses", values=DataAddrCompress),
    reserved(12),
))
DATA_FILTERS = Register("trTeDataFilters", 0x01C, OPTIONAL, "which filters qualify data trace", (
    _filters("trTeDataFilters", "bit n: filter n, all set ones OR-ed; 0 traces all accesses"),
    reserved(16),
))
TRIG_DBG_CONTROL = Register("trTeTrigDbgControl", 0x050, OPTIONAL, "debug triggers", (
    Field("trTeTrigDbgControl", 32, doc="vendor-defined"),
))
TRIG_EXT_IN_CONTROL = Register("trTeTrigExtInControl", 0x054, OPTIONAL, "trigger inputs; absent ones read 0", tuple(
    Field(f"trTeTrigExtInAction{n}", 4, doc=f"what trigger input {n} does", values=TrigAction) for n in range(8)
))
_TRIG_EVENTS = listed(names={0: "trace starts", 1: "trace stops", 2: "vendor event 2", 3: "vendor event 3"})
TRIG_EXT_OUT_CONTROL = Register("trTeTrigExtOutControl", 0x058, OPTIONAL, "trigger outputs; absent ones read 0", tuple(
    Field(
        f"trTeTrigExtOutEvent{n}", 4, doc=f"output {n}: bit 0 fires when tracing starts, 1 stops", reading=_TRIG_EVENTS
    )
    for n in range(8)
))

ENCODER = RegisterBlock("trace encoder", "trTe", CompType.ENCODER, (
    CONTROL,
    IMPL,
    INST_FEATURES,
    INST_FILTERS,
    DATA_CONTROL,
    DATA_FILTERS,
    *timestamp.REGISTERS,
    TRIG_DBG_CONTROL,
    TRIG_EXT_IN_CONTROL,
    TRIG_EXT_OUT_CONTROL,
    *filters.REGISTERS,
    *comparators.REGISTERS,
))
