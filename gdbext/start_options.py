"""The options of `trace start`: one table from which they are parsed, explained, completed and documented.

gdb, the console and docs/trace-start.md have them from here; it runs with and without gdb.
"""

from __future__ import annotations

from typing import NamedTuple

from rvtrace_gdb.gdbext.options import BadOption, Option, Table

__all__ = ["GROUPS", "OPTIONS", "BadOption", "Group", "complete", "explained", "option", "parse", "usage"]


class Group(NamedTuple):
    """Options that belong together."""

    title: str
    options: tuple[Option, ...]


GROUPS = (
    Group("Where the trace comes from and goes to", (
        Option("-format", ("the protocol, where the encoder has more than one",), words=("ntrace", "etrace")),
        Option("-hart", ("trace these harts alone, with commas in between;",
                         "without it, all that have an encoder"),
               number="hart", several="numbers of harts", shown="N,...", sent="harts"),
        Option("-to", ("trace into these sinks of the target description,",
                       "with commas in between; without it, of each encoder",
                       "into the nearest RAM sink"),
               several="names of sinks", shown="SINK,..."),
        Option("-stop-on-wrap", ("stop when the buffer is full, and keep the beginning",)),
        Option("-ring", ("go on when the buffer is full, and keep the newest",
                         "part; so it is without either of these"), value=False, sent="stop_on_wrap"),
        Option("-stall", ("stall the hart rather than lose trace",)),
        Option("-drop", ("lose trace rather than stall the hart; so it is",
                         "without either of these"), value=False, sent="stall"),
    )),
    Group("How the trace is made", (
        Option("-sync-period", ("full address about every N halfwords of code",
                                "(rounded up to a power of two)"), number="halfwords"),
        Option("-btm", ("report each taken branch in a message of its own,",
                        "instead of all outcomes as a history of bits (HTM)")),
        Option("-implicit-return", ("leave out returns to where the call came from; the",
                                    "encoder follows calls in its own way (on: all that",
                                    "E-Trace has), or with a counter (any changed return",
                                    "address makes the trace wrong), or a stack of",
                                    "partial or full addresses"),
               words=("off", "on", "counter", "partial", "full")),
        Option("-repeated-history", ("count repeated branches of loops",)),
        Option("-sequential-jumps", ("leave out jumps to an address that the instruction",
                                     "before them loads")),
        Option("-address-compression", ("leave out high bits of addresses that are all alike",)),
        Option("-all-jumps", ("report direct jumps and calls, too: longer, but",
                              "with more points in time")),
        Option("-context", ("tell privilege mode and context (scontext, hcontext)",)),
        Option("-full-addresses", ("E-Trace: send addresses in full, not differences",)),
        Option("-implicit-exceptions", ("E-Trace: leave out the addresses of trap handlers",)),
        Option("-branch-prediction", ("E-Trace: count branches that go as predicted",)),
        Option("-jump-target-cache", ("E-Trace: short numbers for recent jump targets",)),
    )),
    Group("Time", (
        Option("-timestamps", ("tell the time with each message",)),
        Option("-timestamp-source", ("the same, with time from: a counter of the system",
                                     "(so it is without this) or of the core, from outside",
                                     "of the trace components, or from the funnel above"),
               words=("system", "core", "external", "shared")),
        Option("-timestamp-prescale", ("the same, with the counter's clock divided by this",),
               words=("1", "4", "16", "64"), number="clocks"),
    )),
    Group("Loads and stores", (
        Option("-data", ("E-Trace: trace loads and stores, too; `trace data`",
                         "shows them",)),
        Option("-no-data-values", ("... without values",)),
        Option("-no-data-addresses", ("... without addresses",)),
        Option("-full-data-addresses", ("... with addresses in full, not differences",)),
    )),
    Group("A part of the program", (
        Option("-range", ("trace only instructions from FROM to before TO; or",
                          "FROM,+SIZE in bytes. More than once: any of them.",
                          "FROM and TO: functions, FILE:LINE, or expressions"),
               text="FROM,TO or FROM,+SIZE", shown="FROM,TO", symbols=True),
        Option("-function", ("trace only these functions, with commas in between;",
                             "what they call is not part of them. All that have the",
                             "name; FILE:FUNCTION is one of them"),
               text="names of functions", shown="NAME,...", symbols=True),
        Option("-priv", ("trace only these privilege modes, with commas in",
                         "between: u, s, m, and vu, vs of a guest"),
               words=("u", "s", "m", "vu", "vs"), several="privilege modes", shown="MODE,..."),
    )),
    Group("Triggers", (
        Option("-trigger-on", ("begin to trace when one of these places is reached,",
                               "with commas in between: functions, FILE:LINE, or",
                               "expressions. Each takes a debug trigger of each hart"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-off", ("end before the instruction at one of these places,",
                                "and begin again with the next -trigger-on"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-notify", ("mark in the trace when one of these places is",
                                   "reached: `trace events` shows the marks"),
               text="places in the program", shown="PLACE,...", symbols=True),
        Option("-trigger-control", ("what the vendor of the encoder wants in its register",
                                    "trTeTrigDbgControl, for debug triggers to be heard"),
               number="the register's value", least=0),
        Option("-trigger-input", ("what external trigger inputs of the encoder do: N=on,",
                                  "N=off, N=notify, with commas in between"),
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
