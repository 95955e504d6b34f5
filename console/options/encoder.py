"""The options of encoders: one for each field of N-Trace's `EncoderOptions`, from one table of their meanings.

`rvtrace encode` and `rvtrace sim` have them.
"""

import argparse
import dataclasses
import re
from collections.abc import Callable, Container, Mapping
from enum import IntEnum
from typing import Any

from rvtrace_gdb.console.help_pages import ENCODER, group_of
from rvtrace_gdb.controlregs.encoder_features import NTRACE
from rvtrace_gdb.decode.ntrace.messages import Tcode
from rvtrace_gdb.decode.ntrace.options import (
    DIALECTS,
    RC7,
    SIFIVE,
    EncoderOptions,
    ImplicitReturn,
    InstSyncMode,
    SyncPlacement,
)
from rvtrace_gdb.support.errors import RvtraceError

FIELDS = {field.name: field for field in dataclasses.fields(EncoderOptions)}

# In quotation marks: sections of N-Trace 1.0. In parentheses: fields of the trace control interface.
HELP: Mapping[str, Mapping[str, str]] = {
    "mode and source": {
        "btm": "Branch Trace Messaging (trTeInstMode 3), not HTM (6)",
        "dialect": "generation of the encoder: the ratified 1.0, the draft rc7, sifive for SiFive's earlier encoders",
        "xlen": "XLEN of the hart; default: the ELF's",
        "src_bits": "width of SRC (trTeSrcBits), 0: no SRC",
        "src_id": "value of SRC (trTeSrcID)",
    },
    "synchronizing messages": {
        "sync_mode": "the unit of the period (trTeInstSyncMode)",
        "sync_max": "the period is 2**(N + 4) units (trTeInstSyncMax)",
        "sync_placement": "where one goes that is due: the next block boundary, merged with the message that goes out"
        ' there or separate, or merged with the next branch message ("Examples of Synchronizing Messages")',
        "linear_sync": "the synchronizing message where no branch message is due; default: prog-trace-sync in BTM,"
        " indirect-branch-hist-sync in HTM",
        "trap_return_sync": 'a trap right after a trap return: both places in messages with SYNC=2 ("Corner Cases")',
        "marks_keep_hist": "rc7: a message with SYNC 0, 4 or 6 and without HIST keeps the HIST register",
    },
    "sizes": {
        "icnt_limit": "I-CNT at which the counter is full, in halfwords",
        "hist_limit": 'bits of HIST with its stop bit ("Maximum Field Sizes": at most 32)',
        "return_depth": "entries of the return stack, or the highest value of the counter",
        "partial_bits": "low bits of a return address that the partial stack keeps",
        "hrepeat_limit": 'highest HREPEAT ("Maximum Field Sizes": 18 bits)',
        "bcnt_limit": 'highest B-CNT ("Maximum Field Sizes": 18 bits)',
    },
    "optimizations": {
        **{feature.ntrace: f"{feature.meaning} ({feature.field})" for feature in NTRACE},
        "repeat_branch": 'equal branch messages are counted in RepeatBranch ("RepeatBranch Message")',
    },
    "timestamps and context": {
        "timestamps": "messages end with TSTAMP (trTsEnable); the clock is the number of instructions",
        "timestamp_bits": "width of the clock (trTsWidth), 0: it does not wrap",
        "timestamp_sparse": "every N-th message has TSTAMP, synchronizing ones always",
        "context": "Ownership messages (trTeContext), where the log has privilege modes or context CSRs",
        "ownership_full": "a change of privilege alone is sent with scontext and hcontext, too (FORMAT 2, 3)",
        "exact_context": "I-CNT and HIST are reported before an Ownership that no address precedes",
        "context_by_sync": "a context is reported after synchronizing messages alone (SpacemiT K3)",
    },
    "what the rules leave open": {
        "full_at_once": "a full register is reported when the next instruction does not fit, not in the moment it is"
        ' full ("HIST Field Full")',
        "icnt_full_sync": 'a full I-CNT is reported with SYNC=4 ("I-CNT Details"; in HTM: rc7, 8.4.4)',
        "icnt_by_block": 'a full I-CNT is noticed at the end of a block, and may be bigger ("I-CNT Details")',
        "hist_full_first": "an I-CNT that becomes full at a branch or jump waits for the message of that branch or"
        " jump",
        "hist_chunks": 'HIST is reported after these numbers of branches, in turn ("ResourceFull Message": any number'
        ' of bits)',
        "repeat_trims": "a HIST that differs from the one before may still repeat it with this many bits fewer, tried"
        " in this order",
        "repeat_shortest": 'the shortest pattern in HIST is counted ("Repeated History Optimization", last example)',
        "repeat_broken_by_icnt": "a full I-CNT ends the count of a repeated HIST",
        "run_minimum": "sifive: so many branches in a row with one outcome are counted instead of sent in HIST",
        "b_type_extended": "exceptions and interrupts are both B-TYPE=1, not 2 and 3",
        "indirect_without_hist": "IndirectBranch while HIST is empty, in place of IndirectBranchHist"
        ' ("Rules of Generating Messages", rule 4)',
        "correlation_without_hist": "ProgTraceCorrelation with CDF=0 while HIST is empty, as the reference encoder"
        " sends it",
        "empty_fields": 'a field that is 0 may have 0 bits ("Fields in Messages")',
        "field_padding": "N bytes more than needed for each variable-length field",
        "idle_bytes": "N idle bytes after each message",
        "idle_before_sync": 'N idle bytes before each synchronizing message ("PIB Idle Cycles Explained")',
    },
}

_LONG = 50  # characters of choices, to be explained in the help and not shown in the usage

_SYNCS = (
    Tcode.PROG_TRACE_SYNC, Tcode.DIRECT_BRANCH_SYNC, Tcode.INDIRECT_BRANCH_SYNC, Tcode.INDIRECT_BRANCH_HIST_SYNC,
)  # fmt: skip


def dashed(name: str) -> str:
    """Return a name of the code as users write it."""
    return name.lower().replace("_", "-")


def named(members: Any) -> dict[str, Any]:
    """Return the members of an enumeration by the names that users choose them by."""
    return {dashed(member.name): member for member in members}


CHOICES: Mapping[str, Mapping[str, Any]] = {
    "dialect": DIALECTS,
    "sync_mode": named(InstSyncMode),
    "sync_placement": named(SyncPlacement),
    "linear_sync": named(_SYNCS),
    "implicit_return": {
        "off": ImplicitReturn.OFF, "counter": ImplicitReturn.COUNTER, "partial": ImplicitReturn.PARTIAL_STACK,
        "full": ImplicitReturn.FULL_STACK,
    },
}  # fmt: skip
"""The named values of fields."""


class BadOptions(RvtraceError):
    """Options that exclude each other."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add an option for each field; a switch that is on by default is turned off by --no-..."""
    for title, fields in HELP.items():
        group = group_of(parser, ENCODER, title)
        for name, text in fields.items():
            _add_option(group, name, text)


def _add_option(group: Any, name: str, text: str) -> None:
    default = FIELDS[name].default
    common: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
    if default is True:
        group.add_argument(f"--no-{dashed(name)}", action="store_false", help=text, **common)
    elif default is False:
        group.add_argument(f"--{dashed(name)}", action="store_true", help=text, **common)
    elif name in CHOICES:
        shown = next((word for word, value in CHOICES[name].items() if value is default), None)
        words = list(CHOICES[name])
        if len(",".join(words)) > _LONG:
            common["metavar"], text = "FORM", f"{text}. One of {', '.join(words)}"
        group.add_argument(f"--{dashed(name)}", choices=words, help=_with_default(text, shown), **common)
    elif isinstance(default, tuple):
        shown = ",".join(map(str, default)) or None
        group.add_argument(
            f"--{dashed(name)}", type=_numbers_argument, metavar="N,N", help=_with_default(text, shown), **common
        )
    else:
        shown = None if "default" in text else str(default)
        group.add_argument(
            f"--{dashed(name)}", type=_number_argument, metavar="N", help=_with_default(text, shown), **common
        )


def _with_default(text: str, shown: str | None) -> str:
    return text if shown is None else f"{text} (default {shown})"


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_arguments` that the command line has: values of fields of `EncoderOptions`."""
    given = {name: getattr(args, name) for name in FIELDS if hasattr(args, name)}
    return given | {name: CHOICES[name][value] for name, value in given.items() if name in CHOICES}


def options(arguments: Mapping[str, Any], xlen: int) -> EncoderOptions:
    """Return the options, those of `given_options` and defaults, for a program of *xlen* bits. Raises `BadOptions`."""
    given = dict(arguments)
    if given.setdefault("xlen", xlen) != xlen:
        raise BadOptions(f"--xlen {given['xlen']}: the ELF is an RV{xlen} program")
    try:
        return EncoderOptions(**given)
    except ValueError as error:
        raise BadOptions(in_their_words(str(error))) from None


def in_their_words(text: str, before: str = "--") -> str:
    """Replace field names in an error of EncoderOptions by those of the options, with the prefix *before*."""
    return in_words(text, FIELDS, before)


def in_words(text: str, names: Container[str], before: str = "--") -> str:
    """Replace field names, those of *names*, in an error by those of the options, with the prefix *before*."""
    return re.sub(
        r"\b\w+\b", lambda word: before + dashed(word[0]) if word[0] in names and "_" in word[0] else word[0], text
    )


_HTM = "HTM: leave out --btm"
_NEEDED: Mapping[str, tuple[str, Callable[[EncoderOptions], object]]] = {
    "sync_max": ("--sync-mode", lambda encoder: encoder.sync_mode is not InstSyncMode.OFF),
    "sync_placement": ("--sync-mode", lambda encoder: encoder.sync_mode is not InstSyncMode.OFF),
    "marks_keep_hist": ("--dialect rc7", lambda encoder: encoder.dialect is RC7),
    "return_depth": ("--implicit-return", lambda encoder: encoder.implicit_return),
    "partial_bits": (
        "--implicit-return partial", lambda encoder: encoder.implicit_return is ImplicitReturn.PARTIAL_STACK
    ),
    "hist_limit": (_HTM, lambda encoder: not encoder.btm),
    "hist_chunks": (_HTM, lambda encoder: not encoder.btm),
    "repeated_history": (_HTM, lambda encoder: not encoder.btm),
    "hrepeat_limit": ("--repeated-history", lambda encoder: encoder.repeated_history),
    "repeat_trims": ("--repeated-history", lambda encoder: encoder.repeated_history),
    "repeat_shortest": ("--repeated-history", lambda encoder: encoder.repeated_history),
    "repeat_broken_by_icnt": ("--repeated-history", lambda encoder: encoder.repeated_history),
    "bcnt_limit": ("--repeat-branch", lambda encoder: encoder.repeat_branch),
    "run_minimum": ("--dialect sifive", lambda encoder: encoder.dialect is SIFIVE),
    "timestamp_bits": ("--timestamps", lambda encoder: encoder.timestamps),
    "timestamp_sparse": ("--timestamps", lambda encoder: encoder.timestamps),
    "ownership_full": ("--context", lambda encoder: encoder.context),
    "exact_context": ("--context", lambda encoder: encoder.context),
    "context_by_sync": ("--context", lambda encoder: encoder.context),
    "indirect_without_hist": (_HTM, lambda encoder: not encoder.btm),
    "correlation_without_hist": (_HTM, lambda encoder: not encoder.btm),
}  # fmt: skip
"""For options without effect by themselves: the option they need, and a test for it."""


def without_effect(given: Mapping[str, Any], encoder: EncoderOptions) -> list[str]:
    """Return a line for each option that was given and has no effect with the others."""
    idle = [(name, wanted) for name, (wanted, there) in _NEEDED.items() if name in given and not there(encoder)]
    return [f"--{dashed(name)} has no effect, it needs {wanted}" for name, wanted in idle]


def _number_argument(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _numbers_argument(text: str) -> tuple[int, ...]:
    return tuple(_number_argument(part) for part in text.split(",") if part)


def one_of(members: type[IntEnum]) -> Callable[[str], Any]:
    """Return an argparse type: a member of an enumeration, by its name or its value."""
    names = named(members)

    def member(text: str) -> IntEnum:
        for name, value in names.items():
            if text in (name, str(int(value))):
                return value  # type: ignore[no-any-return]
        wanted = ", ".join(f"{name} ({int(value)})" for name, value in names.items())
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {wanted}")

    return member
