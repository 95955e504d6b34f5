"""The options of `trace start` and `trace ctr start`: tables from which they are parsed, explained and completed.

gdb, the console and docs/trace-start.md use the table of `trace start`; its options for features of the encoder come
from `controlregs.encoder_features`. The options of `trace ctr start` become a request to the session (`ctr_request`).
This module runs with and without gdb.

Ref: RISC-V Control Transfer Records 1.0, "Control Transfer Type Definitions"; draft 0.1.4, 3.3
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from rvtrace_gdb.controlregs.encoder_features import FEATURES
from rvtrace_gdb.gdbext.options import Option, OptionError, Table

__all__ = ["GROUPS", "OPTIONS", "OptionError", "OptionGroup", "complete", "explained", "option", "parse", "usage"]


class OptionGroup(NamedTuple):
    """A group of options, with its title in the documentation."""

    title: str
    options: tuple[Option, ...]


GROUPS = (
    OptionGroup("Source and destination", (
        Option("-format", ("the protocol, if the encoder has more than one",), words=("ntrace", "etrace")),
        Option("-hart", ("trace only these harts, separated by commas;",
                         "default: all that have an encoder"),
               number="hart", several="numbers of harts", shown="N,...", sent="harts"),
        Option("-to", ("trace into these sinks of the target description,",
                       "separated by commas; default: the nearest RAM sink",
                       "of each encoder"),
               several="names of sinks", shown="SINK,..."),
        Option("-stop-on-wrap", ("stop when the buffer is full, and keep the beginning",)),
        Option("-ring", ("continue when the buffer is full, and keep the newest",
                         "part (default)"), value=False, sent="stop_on_wrap"),
        Option("-stall", ("stall the hart rather than lose trace",)),
        Option("-drop", ("lose trace rather than stall the hart (default)",), value=False, sent="stall"),
        Option("-with-memory", ("also read the RAM of the target description, or what",
                                "`set trace save-memory` names, while the harts are",
                                "halted: values of the past follow from it")),
    )),
    OptionGroup("Encoding", (
        Option("-sync-period", ("full address about every N halfwords of code",
                                "(rounded up to a power of two)"), number="halfwords"),
        Option("-btm", ("report each taken branch in a message of its own,",
                        "instead of all outcomes as a history of bits (HTM)")),
        Option("-context", ("report privilege mode and context (scontext, hcontext)",)),
        *(Option(it.option, it.help, words=it.words)
          for it in sorted(FEATURES, key=lambda it: not it.ntrace)),  # what E-Trace alone has comes last
    )),
    OptionGroup("Time", (
        Option("-timestamps", ("send the time with each message",)),
        Option("-timestamp-source", ("the same, with time from: a counter of the system",
                                     "(default) or of the core, from outside of the trace",
                                     "components, or from the funnel above"),
               words=("system", "core", "external", "shared")),
        Option("-timestamp-prescale", ("the same, with the counter's clock divided by this",),
               words=("1", "4", "16", "64"), number="clocks"),
    )),
    OptionGroup("Loads and stores", (
        Option("-data", ("E-Trace: trace loads and stores, too; `trace data`",
                         "shows them",)),
        Option("-no-data-values", ("... without values",)),
        Option("-no-data-addresses", ("... without addresses",)),
        Option("-full-data-addresses", ("... with addresses in full, not differences",)),
    )),
    OptionGroup("A part of the program", (
        Option("-range", ("trace only instructions from FROM to before TO; or",
                          "FROM,+SIZE in bytes. May be given more than once.",
                          "FROM and TO: functions, FILE:LINE, or expressions"),
               text="FROM,TO or FROM,+SIZE", shown="FROM,TO", symbols=True),
        Option("-function", ("trace only these functions, separated by commas, not",
                             "what they call. NAME: all functions of that name;",
                             "FILE:FUNCTION: one of them"),
               text="names of functions", shown="NAME,...", symbols=True),
        Option("-priv", ("trace only these privilege modes, separated by commas:",
                         "u, s, m, and vu, vs of a guest"),
               words=("u", "s", "m", "vu", "vs"), several="privilege modes", shown="MODE,..."),
    )),
    OptionGroup("Triggers", (
        Option("-trigger-on", ("begin to trace when one of these places is reached,",
                               "separated by commas: functions, FILE:LINE, or",
                               "expressions. Each uses a debug trigger of each hart"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-off", ("end before the instruction at one of these places,",
                                "and begin again with the next -trigger-on"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-notify", ("mark in the trace when one of these places is",
                                   "reached: `trace events` shows the marks"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-control", ("value of the encoder's register trTeTrigDbgControl, as",
                                    "its vendor specifies it for debug triggers"),
               number="the register's value", least=0),
        Option("-trigger-input", ("what external trigger inputs of the encoder do: N=on,",
                                  "N=off, N=notify, separated by commas"),
               text="inputs and what they do: 0=on,1=off", shown="N=WHAT,..."),
        Option("-trigger-output", ("when external trigger outputs of the encoder fire:",
                                   "when tracing begins (N=start), ends (N=stop)"),
               text="outputs and when they fire: 0=start,1=stop", shown="N=WHEN,..."),
    )),
)  # fmt: skip
OPTIONS = tuple(option for group in GROUPS for option in group.options)

_TABLE = Table("trace start", OPTIONS)
parse, complete, usage, explained, option = (
    _TABLE.parse, _TABLE.complete, _TABLE.usage, _TABLE.explained, _TABLE.option,
)  # fmt: skip


NOT_TAKEN = "not-taken-branch"
TRANSFER_TYPES = {
    "exception": 1,
    "interrupt": 2,
    "trap-return": 3,
    NOT_TAKEN: 4,
    "taken-branch": 5,
    "indirect-call": 8,
    "direct-call": 9,
    "indirect-jump": 10,
    "direct-jump": 11,
    "co-routine-swap": 12,
    "function-return": 13,
    "other-indirect-jump": 14,
    "other-direct-jump": 15,
}
"""The values of ctrdata.TYPE, by the names that the specification gives to the transfers."""
TRANSFER_GROUPS = {
    "calls": ("indirect-call", "direct-call", "co-routine-swap"),
    "returns": ("function-return", "co-routine-swap"),
    "jumps": ("indirect-jump", "direct-jump", "other-indirect-jump", "other-direct-jump"),
    "branches": ("taken-branch",),
    "traps": ("exception", "interrupt", "trap-return"),
}
CTR_DEPTHS = ("16", "32", "64", "128", "256")
CTR_VERSIONS = ("1.0", "0.1.4")
_TYPE_WORDS = (*TRANSFER_GROUPS, *TRANSFER_TYPES)

CTR_OPTIONS = (
    Option("-modes", ("record in these privilege modes; default: in all",),
           words=("m", "s", "u", "vs", "vu"), several="privilege modes (m, s, u, vs, vu)", shown="MODE,..."),
    Option("-depth", ("number of transfers kept: 16, 32, 64, 128 or 256;",
                      "default: the most the hart can"), words=CTR_DEPTHS, shown="N"),
    Option("-only", ("record only transfers of these types",),
           words=_TYPE_WORDS, several="types of transfers", shown="TYPE,..."),
    Option("-without", ("record all but transfers of these types",),
           words=_TYPE_WORDS, several="types of transfers", shown="TYPE,..."),
    Option("-not-taken", ("record branches that are not taken, too",)),
    Option("-ras", ("keep only the calls under way: a return removes its",
                    "call (`trace ctr stack`)")),
    Option("-freeze", ("stop recording when the program runs into a",
                       "breakpoint exception (ebreak), or when a counter",
                       "overflows (lcofi)"),
           words=("breakpoint", "lcofi"), several="breakpoint, lcofi, or both", shown="AT,..."),
    Option("-external", ("also record traps from recorded modes to these modes,",
                         "which are not recorded themselves"),
           words=("m", "s", "vs"), several="privilege modes (m, s, vs)", shown="MODE,..."),
    Option("-ctr-version", ("the version of the specification that the hart has:",
                            "1.0, or the draft 0.1.4; default: what is found"), words=CTR_VERSIONS, shown="VERSION"),
    Option("-all", ("on all harts, not only that of the selected thread",)),
)  # fmt: skip
CTR_TABLE = Table("trace ctr start", CTR_OPTIONS)

TRANSFER_TYPES_HELP = """TYPE, with the names `trace ctr show` prints:
  calls     indirect-call, direct-call, co-routine-swap
  returns   function-return, co-routine-swap
  jumps     indirect-jump, direct-jump, other-indirect-jump,
            other-direct-jump (other: they keep a return address, but
            not in ra or t0)
  branches  taken-branch; not-taken-branch has to be given by name
  traps     exception, interrupt, trap-return"""


def ctr_request(words: Iterable[str], harts: Callable[[], Iterable[int]] = tuple) -> dict[str, Any]:
    """Return a request's options for the words of a command line; *harts* returns all harts. Raises OptionError."""
    found = CTR_TABLE.parse(words)
    _refuse_together(found)
    depth = found.get("depth")
    inhibited, not_taken = _filters(found)
    return {
        "modes": found.get("modes"),
        "inhibit": sorted(inhibited),
        "not_taken": not_taken,
        "depth": None if depth is None else int(depth),
        "ras": "ras" in found,
        "freeze": found.get("freeze", []),
        "external": found.get("external", []),
        "version": found.get("ctr_version"),
        "harts": list(harts()) if "all" in found else None,
    }


def _filters(options: dict[str, Any]) -> tuple[set[int], bool]:
    """Return (types that are not recorded, whether not-taken branches are, which must be requested by name)."""
    optional = {TRANSFER_TYPES[NOT_TAKEN]}
    only = _types(options.get("only", ()))
    inhibited = set(TRANSFER_TYPES.values()) - only if only else _types(options.get("without", ()))
    return inhibited - optional, "not_taken" in options or bool(only & optional)


def _types(words: Iterable[str]) -> set[int]:
    return {TRANSFER_TYPES[name] for word in words for name in TRANSFER_GROUPS.get(word, (word,))}


def _refuse_together(options: dict[str, Any]) -> None:
    if "only" in options and "without" in options:
        raise OptionError("-only and -without do not go together.")
    if "not-taken-branch" in options.get("without", ()) and "not_taken" in options:
        raise OptionError("-not-taken and -without not-taken-branch contradict each other.")
    for name in ("only", "without", "not_taken", "external"):
        if "ras" in options and name in options:
            conflict = f"-ras and -{name.replace('_', '-')} do not go together"
            raise OptionError(f"{conflict}: RAS emulation records only calls and returns.")
