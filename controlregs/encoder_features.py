"""The optional features of a trace encoder that change what its trace looks like, in one table.

Each feature is one bit of trTeInstFeatures. From a row follow the register's field, the option of `trace start`, the
request, notes and status lines, the options for raw bytes, how these are imported, which options are tried where bytes
do not fit their program, the simulated encoder's registers, and the tables of the documentation
(`scripts/option_tables.py`). What a feature means for messages is in the decoders and encoders of its formats, which
have a field of the same name in their options.

gdb's Python also loads this module (`gdbext/start_options.py`): it imports the standard library alone, in the syntax of
Python 3.9.

Ref: RISC-V Trace Control Interface 1.0, trTeInstFeatures; N-Trace 1.0, "N-Trace Specific Trace Controls"; E-Trace 2.0,
"Optional and run-time configurable modes"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class EncoderFeature(NamedTuple):
    """A feature of trace encoders.

    field, bit   the bit of trTeInstFeatures that switches it on
    name         what notes and status lines call it, in the plural or as a name: "encoder0 has no ..."
    option       the option of `trace start`; *help*: the lines that explain it; *words*: its values, () for a switch
    meaning      what the encoder then does, for registers and for the options of raw bytes
    ntrace       the field of N-Trace's `EncoderOptions` and `Options`, "" if N-Trace does not have the feature
    etrace       the field of E-Trace's `Modes`, "" if E-Trace does not have the feature
    wrong        what a decoder of N-Trace makes of a trace if it does not know that the feature is on
    in_messages  N-Trace messages show it themselves, so `Options` has no field and raw bytes have no option for it
    needs        further settings of E-Trace with which it is tried where a trace does not fit its program
    """

    field: str
    bit: int
    name: str
    option: str
    help: tuple[str, ...]
    meaning: str
    ntrace: str = ""
    etrace: str = ""
    words: tuple[str, ...] = ()
    wrong: str = ""
    in_messages: bool = False
    needs: tuple[Mapping[str, int | bool], ...] = ({},)

    @property
    def request(self) -> str:
        """The option's name in the request to the session."""
        return self.option[1:].replace("-", "_")

    @property
    def doc(self) -> str:
        """The meaning, after the format if only one has the feature."""
        return self.meaning if self.ntrace and self.etrace else f"{'N' if self.ntrace else 'E'}-Trace: {self.meaning}"


FEATURES = (
    EncoderFeature(
        "trTeInstNoAddrDiff", 0, "full addresses", "-full-addresses",
        ("E-Trace: send addresses in full, not differences",),
        "addresses are always sent in full", etrace="full_address",
    ),
    EncoderFeature(
        "trTeInstNoTrapAddr", 1, "omission of trap addresses", "-implicit-exceptions",
        ("E-Trace: omit the addresses of trap handlers",),
        "trap packets omit the handler's address", etrace="implicit_exception",
    ),
    EncoderFeature(
        "trTeInstEnSequentialJump", 2, "sequential jumps", "-sequential-jumps",
        ("omit jumps whose target is set by the instruction", "before them"),
        "jumps whose target is set by the instruction before are not reported",
        ntrace="sequential_jump", etrace="sijump", wrong="a mismatch at the first such jump",
    ),
    EncoderFeature(
        "trTeInstEnImplicitReturn", 3, "implicit return", "-implicit-return",
        ("omit returns to where the call came from. The encoder", "tracks calls in its own way (on: E-Trace has only",
         "this), with a counter (any changed return address", "makes the trace wrong), or with a stack of partial or",
         "full addresses"),
        "returns whose target the decoder can infer are not reported",
        ntrace="implicit_return", etrace="implicit_return", words=("off", "on", "counter", "partial", "full"),
        wrong="a mismatch at the first return that was not reported",
        needs=({"return_stack_size": 4}, {"return_stack_size": 5, "iret_ext": True}),
    ),
    EncoderFeature(
        "trTeInstEnBranchPrediction", 4, "branch prediction", "-branch-prediction",
        ("E-Trace: count correctly predicted branches",),
        "branches are predicted", etrace="branch_prediction", needs=({"bpred_size": 7},),
    ),
    EncoderFeature(
        "trTeInstEnJumpTargetCache", 5, "jump target cache", "-jump-target-cache",
        ("E-Trace: short numbers for recent jump targets",),
        "targets of jumps are looked up in a cache", etrace="jump_target_cache", needs=({"cache_size": 5},),
    ),
    EncoderFeature(
        "trTeInstEnRepeatedHistory", 8, "repeated history", "-repeated-history",
        ("count repeated branches of loops",),
        "equal HISTs are counted (RCODE 2; sifive: RCODE 8 and 9)",
        ntrace="repeated_history", wrong="nothing: RCODE 2 shows it", in_messages=True,
    ),
    EncoderFeature(
        "trTeInstEnAllJumps", 9, "messages for all jumps", "-all-jumps",
        ("report direct jumps and calls, too: longer, but", "with more points in time"),
        "direct jumps and calls are reported as taken branches are",
        ntrace="all_jumps", wrong="HIST bits are assigned to the wrong branches",
    ),
    EncoderFeature(
        "trTeInstExtendAddrMSB", 10, "address compression", "-address-compression",
        ("omit high bits of addresses that are all equal",),
        "high bits of addresses that are all equal are omitted",
        ntrace="extend_addr_msb", wrong="addresses with leading ones are cut",
    ),
)  # fmt: skip
"""All features, in the order of their bits."""

NAMES = {feature.field: feature.name for feature in FEATURES}
"""The names of the features by field."""
SWITCHES = tuple(feature for feature in FEATURES if not feature.words)
"""The features that are on or off."""
NTRACE = tuple(feature for feature in FEATURES if feature.ntrace)
NTRACE_SWITCHES = tuple(feature for feature in NTRACE if not feature.words)
ETRACE = tuple(feature for feature in FEATURES if feature.etrace)
RAW_NTRACE = tuple(feature for feature in NTRACE_SWITCHES if not feature.in_messages)
"""The switches without which N-Trace cannot be read: fields of `decode.ntrace.options.Options`."""
