"""Registers of a trace encoder, one encoder per traced hart, with its filter and comparator units.

A filter (trTeFilter*) says which instructions and data accesses are traced. It matches when all its conditions hold;
filters are OR-ed. Values to match, and the comparators, are to be loaded before the bit that makes them a condition.
Values of priv, ecause, itype, impdef, dtype and dsize are those of the trace ingress port, which the E-Trace document
defines. A comparator unit (trTeComp*) has a primary and a secondary comparator. Comparisons are unsigned, over as many
bits as the input has; what a match value has above them is ignored. The summary of registers reserves 0x600 to 0x7FF
for these, the details 0x600 to 0x6FF: room for the eight a filter can name.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace encoder registers (trTe*), trace encoder filter registers (trTeFilter*, trTeComp*); the codes of
trTeInstMode are also in the N-Trace 1.0 and E-Trace 2.0 documents
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.encoder_features import FEATURES
from rvtrace_gdb.controlregs.fields import (
    Compliance,
    Field,
    FieldAccess,
    Register,
    RegisterBlock,
    Reset,
    bit_list,
    period,
    repeat_registers,
    reserved,
)
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import CompType, active, empty, vendor, version_and_type

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
FILTER_COUNT = 16
FILTER_FIRST, FILTER_STRIDE = 0x400, 0x20

PRIVILEGES = {0: "U", 1: "S", 3: "M", 4: "debug", 5: "VU", 6: "VS"}
"""The values of priv (E-Trace 2.0, table "Privilege level encoding"); 1 is also HS."""
SIZES = {n: str(1 << n) for n in range(8)}
"""The values of dsize: an access of 2**dsize bytes."""


class FilterTrapKind(IntEnum):
    EXCEPTION = 0
    INTERRUPT = 1


class FilterUnit(NamedTuple):
    """The registers of one filter."""

    control: Register
    match_inst: Register
    match_ecause_low: Register
    match_ecause_high: Register
    match_value_impdef: Register
    match_mask_impdef: Register
    match_data: Register


def _by_comparator(n: int) -> tuple[Field, Field]:
    return (
        Field(f"trTeFilterMatchComp{n}", 1, doc=f"condition: the comparator in trTeFilterComp{n} is true"),
        Field(f"trTeFilterComp{n}", 3, doc=f"number of the comparator for condition {n}"),
    )


_FILTER_CONTROL = Register(
    "trTeFilter{}Control", FILTER_FIRST + 0x00, OPTIONAL, "filter {}: on or off, and its conditions", (
    Field("trTeFilterEnable", 1, doc="filter on"),
    Field("trTeFilterMatchPrivilege", 1, doc="condition: a privilege in trTeFilterMatchChoicePrivilege"),
    Field("trTeFilterMatchEcause", 1, doc="condition: since an exception with a chosen cause, until its return"),
    Field("trTeFilterMatchInterrupt", 1, doc="condition: since a trap as trTeFilterMatchValueInterrupt, to its return"),
    *_by_comparator(1),
    *_by_comparator(2),
    *_by_comparator(3),
    Field("trTeFilterMatchImpdef", 1, doc="condition: impdef as the value, where the mask has ones"),
    reserved(7),
    Field("trTeFilterMatchDtype", 1, doc="condition: an access of a type in trTeFilterMatchChoiceDtype"),
    Field("trTeFilterMatchDsize", 1, doc="condition: an access of a size in trTeFilterMatchChoiceDsize"),
    reserved(6),
))
_MATCH_INST = Register(
    "trTeFilter{}MatchInst", FILTER_FIRST + 0x04, OPTIONAL, "filter {}: what instructions must match", (
    Field("trTeFilterMatchChoicePrivilege", 8, doc="bit n: priv n matches", describe=bit_list(names=PRIVILEGES)),
    Field("trTeFilterMatchValueInterrupt", 1, doc="kind of trap: itype 1 or 2", values=FilterTrapKind),
    reserved(23),
))
_MATCH_ECAUSE_LOW = Register("trTeFilter{}MatchEcauseLow", FILTER_FIRST + 0x08, OPTIONAL, "filter {}: causes 31:0", (
    Field("trTeFilterMatchChoiceEcauseLow", 32, doc="bit n: ecause n matches", describe=bit_list("cause")),
))
_MATCH_ECAUSE_HIGH = Register("trTeFilter{}MatchEcauseHigh", FILTER_FIRST + 0x0C, OPTIONAL, "filter {}: causes 63:32", (
    Field(
        "trTeFilterMatchChoiceEcauseHigh",
        32,
        doc="bit n: ecause n + 32 matches",
        describe=lambda value: bit_list("cause")(value << 32),
    ),
))
_MATCH_VALUE_IMPDEF = Register("trTeFilter{}MatchValueImpdef", FILTER_FIRST + 0x10, OPTIONAL, "filter {}: impdef", (
    Field("trTeFilterMatchValueImpdef", 32, doc="what impdef is compared with, under the mask"),
))
_MATCH_MASK_IMPDEF = Register(
    "trTeFilter{}MatchMaskImpdef", FILTER_FIRST + 0x14, OPTIONAL, "filter {}: mask of impdef", (
    Field("trTeFilterMatchMaskImpdef", 32, doc="ones: bits of impdef that are compared"),
))
_MATCH_DATA = Register(
    "trTeFilter{}MatchData", FILTER_FIRST + 0x18, OPTIONAL, "filter {}: what data accesses must match", (
    Field("trTeFilterMatchChoiceDtype", 16, doc="bit n: dtype n matches", describe=bit_list("type")),
    Field(
        "trTeFilterMatchChoiceDsize",
        8,
        doc="bit n: dsize n matches, accesses of 2**n bytes",
        describe=bit_list("size", SIZES),
    ),
    reserved(8),
))

FILTERS = tuple(
    FilterUnit(*registers)
    for registers in repeat_registers(FILTER_COUNT, FILTER_STRIDE, (
        _FILTER_CONTROL,
        _MATCH_INST,
        _MATCH_ECAUSE_LOW,
        _MATCH_ECAUSE_HIGH,
        _MATCH_VALUE_IMPDEF,
        _MATCH_MASK_IMPDEF,
        _MATCH_DATA,
    ))
)
"""The registers of filter n; its bit in trTeInstFilters and trTeDataFilters is bit n."""
FILTER_REGISTERS = tuple(register for unit in FILTERS for register in unit)


COMPARATOR_COUNT = 8
COMPARATOR_FIRST, COMPARATOR_STRIDE = 0x600, 0x20


class CompInput(IntEnum):
    """The signals of the ingress port that a comparator can use."""

    IADDR = 0
    CONTEXT = 1
    TVAL = 2
    DADDR = 3


class PFunction(IntEnum):
    """The relation of the input to PMatch; the last two ignore the input."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    ALWAYS_FALSE = 6  # with MatchMode LATCHED, the latch begins as 1
    ALWAYS_TRUE = 7


class SFunction(IntEnum):
    """The relation of the input to SMatch; the last two ignore the input."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    SMATCH_IS_A_MASK = 6  # true; the primary comparator looks only at the bits that are 1 in SMatch
    ALWAYS_TRUE = 7


class MatchMode(IntEnum):
    """How the unit combines the two results."""

    P = 0
    P_AND_S = 1
    NOT_P_AND_S = 2  # not both
    LATCHED = 3  # from P until the instruction after S


class ComparatorUnit(NamedTuple):
    """The registers of one comparator unit."""

    control: Register
    p_match_low: Register
    p_match_high: Register
    s_match_low: Register
    s_match_high: Register


_COMPARATOR_CONTROL = Register(
    "trTeComp{}Control", COMPARATOR_FIRST + 0x00, OPTIONAL, "comparator {}: inputs, functions, combination", (
    Field("trTeCompPInput", 2, doc="what the primary comparator compares", values=CompInput),
    Field("trTeCompSInput", 2, doc="what the secondary comparator compares", values=CompInput),
    Field("trTeCompPFunction", 3, doc="primary: how the input must relate to PMatch", values=PFunction),
    reserved(1),
    Field("trTeCompSFunction", 3, doc="secondary: how the input must relate to SMatch", values=SFunction),
    reserved(1),
    Field("trTeCompMatchMode", 2, doc="how the results are combined", values=MatchMode),
    Field("trTeCompPNotify", 1, doc="watchpoint: a primary match is reported; only for the input iaddr"),
    Field("trTeCompSNotify", 1, doc="watchpoint: a secondary match is reported; only for the input iaddr"),
    reserved(16),
))


def _match(letter: str, half: str, offset: int) -> Register:
    """Return one half of a match value. The document's summary spells the registers Pmatch and Smatch; its details
    spell them as here.
    """
    which = "primary" if letter == "P" else "secondary"
    bits = "31:0" if half == "Low" else "63:32"
    return Register(
        f"trTeComp{{}}{letter}Match{half}",
        COMPARATOR_FIRST + offset,
        OPTIONAL,
        f"comparator {{}}: {which} match value, {half.lower()} word",
        (Field(f"trTeComp{letter}Match{half}", 32, doc=f"bits {bits} of the {which} match value"),),
    )


COMPARATORS = tuple(
    ComparatorUnit(*registers)
    for registers in repeat_registers(COMPARATOR_COUNT, COMPARATOR_STRIDE, (
        _COMPARATOR_CONTROL,
        _match("P", "Low", 0x10),
        _match("P", "High", 0x14),
        _match("S", "Low", 0x18),
        _match("S", "High", 0x1C),
    ))
)
"""The registers of comparator unit n, as trTeFilterComp1 to 3 number them."""
COMPARATOR_REGISTERS = tuple(register for unit in COMPARATORS for register in unit)


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
    """The unit of the period of synchronisation."""

    OFF = 0
    MESSAGES = 1
    CLOCK_CYCLES = 2
    HALFWORDS = 3


SYNC_MAX_LOWEST_UNIT = 4
"""The period is 2**(trTeInstSyncMax + 4) of them."""


class TeFormat(IntEnum):
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
    return Field(name, FILTER_COUNT, doc=doc, describe=bit_list("filter", none="no filter: all is traced"))


ENCODER_CONTROL = Register(
    "trTeControl",
    0x000,
    REQUIRED,
    "main control; triggers may change trTeInstTracing at any time",
    (
        active("trTe"),
        Field(
            "trTeEnable",
            1,
            FieldAccess.RW,
            0,
            "encoder on, set after all other settings; writing 0 flushes what is queued",
        ),
        Field(
            "trTeInstTracing", 1, FieldAccess.RW, doc="instruction trace is produced; set after Enable, or by triggers"
        ),
        empty("trTe"),
        Field(
            "trTeInstMode",
            3,
            doc="instruction trace mode; an unsupported one becomes a supported one",
            values=InstMode,
            describe=lambda value: "vendor, or E-Trace" if value == InstMode.VENDOR else InstMode(value).name.lower(),
        ),
        reserved(2),
        Field("trTeContext", 1, doc="messages about context and privilege"),
        reserved(1),
        Field("trTeInstTrigEnable", 1, doc="trace-on and trace-off triggers act on trTeInstTracing"),
        Field(
            "trTeInstStallOrOverflow", 1, FieldAccess.RW1C, doc="trace was lost or the hart stalled; Enable clears it"
        ),
        Field("trTeInstStallEna", 1, doc="what happens when the path is full", values=StallEna),
        reserved(1),
        Field("trTeInhibitSrc", 1, doc="messages have no source field even where trTeSrcBits is not 0"),
        Field("trTeInstSyncMode", 2, doc="unit of the period of synchronisation", values=SyncMode),
        reserved(2),
        Field("trTeInstSyncMax", 4, doc="period of synchronisation: 2**(value + 4) units", describe=period(4)),
        Field("trTeFormat", 3, doc="protocol produced", values=TeFormat),
        reserved(5),
    ),
)
ENCODER_IMPL = Register(
    "trTeImpl",
    0x004,
    REQUIRED,
    "identification",
    (
        *version_and_type("trTe", CompType.ENCODER),
        reserved(4),
        Field(
            "trTeProtocolMajor",
            4,
            FieldAccess.RO,
            Reset.CONSTANT,
            "major version of the protocol: N-Trace 1, E-Trace 0",
        ),
        Field("trTeProtocolMinor", 4, FieldAccess.RO, Reset.CONSTANT, "minor version of the protocol"),
        vendor("trTe"),
    ),
)
_MODE_BIT, _SOURCE_BIT = 6, 16  # of trTeInstImplicitReturnMode and trTeSrcID


def _feature_bits() -> Iterator[Field]:
    """Yield the fields of trTeInstFeatures before trTeSrcID: a bit for each feature, and between them the mode."""
    mode = Field("trTeInstImplicitReturnMode", 2, doc="how calls are tracked for implicit returns",
                 values=ImplicitReturnMode)  # fmt: skip
    known = {feature.bit: Field(feature.field, 1, doc=feature.doc) for feature in FEATURES} | {_MODE_BIT: mode}
    bit = 0
    while bit < _SOURCE_BIT:
        following = known.get(bit) or reserved(min((it for it in known if it > bit), default=_SOURCE_BIT) - bit)
        yield following
        bit += following.width


_FEATURE_BITS = tuple(_feature_bits())
INST_FEATURES = Register("trTeInstFeatures", 0x008, OPTIONAL, "options a decoder must know, and the source ID", (
    *_FEATURE_BITS,
    Field("trTeSrcID", 12, doc="source ID of this encoder"),
    Field("trTeSrcBits", 4, doc="width of the source field in messages, 0 to 12 bits"),
))
INST_FILTERS = Register("trTeInstFilters", 0x00C, OPTIONAL, "which filters qualify instruction trace", (
    _filters("trTeInstFilters", "bit n: filter n, all set ones OR-ed; 0 traces everything"),
    reserved(16),
))
DATA_CONTROL = Register("trTeDataControl", 0x010, OPTIONAL, "data trace; triggers may change trTeDataTracing", (
    Field("trTeDataImplemented", 1, FieldAccess.RO, Reset.CONSTANT, "data trace exists"),
    Field("trTeDataTracing", 1, doc="data trace is being produced"),
    Field("trTeDataTrigEnable", 1, doc="triggers act on trTeDataTracing"),
    Field("trTeDataStallOrOverflow", 1, FieldAccess.RW1C, doc="data trace was lost or stalled the hart"),
    Field("trTeDataStallEna", 1, doc="what happens when the path is full", values=DataStallEna),
    Field("trTeDataDrop", 1, FieldAccess.RW1C, doc="a data packet was dropped"),
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
_TRIG_EVENTS = bit_list(names={0: "trace starts", 1: "trace stops", 2: "vendor event 2", 3: "vendor event 3"})
TRIG_EXT_OUT_CONTROL = Register("trTeTrigExtOutControl", 0x058, OPTIONAL, "trigger outputs; absent ones read 0", tuple(
    Field(
        f"trTeTrigExtOutEvent{n}", 4, doc=f"output {n}: bit 0 fires when tracing starts, 1 stops", describe=_TRIG_EVENTS
    )
    for n in range(8)
))

ENCODER = RegisterBlock("trace encoder", "trTe", CompType.ENCODER, (
    ENCODER_CONTROL,
    ENCODER_IMPL,
    INST_FEATURES,
    INST_FILTERS,
    DATA_CONTROL,
    DATA_FILTERS,
    *component_registers.TS_REGISTERS,
    TRIG_DBG_CONTROL,
    TRIG_EXT_IN_CONTROL,
    TRIG_EXT_OUT_CONTROL,
    *FILTER_REGISTERS,
    *COMPARATOR_REGISTERS,
))
