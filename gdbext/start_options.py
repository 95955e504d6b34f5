"""The options of `trace start`: one table from which they are parsed, explained and completed."""

from __future__ import annotations

from .options import BadOption, Option, Table

__all__ = ["OPTIONS", "BadOption", "complete", "explained", "parse", "usage"]

OPTIONS = (
    Option("-format", ("the protocol, where the encoder has more than one",), words=("ntrace", "etrace")),
    Option("-stop-on-wrap", ("stop when the buffer is full, and keep the beginning;",
                             "without it the buffer keeps the newest part")),
    Option("-stall", ("stall the hart rather than lose trace",)),
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
    Option("-timestamps", ("tell the time with each message",)),
    Option("-context", ("tell privilege mode and context (scontext, hcontext)",)),
    Option("-full-addresses", ("E-Trace: send addresses in full, not differences",)),
    Option("-implicit-exceptions", ("E-Trace: leave out the addresses of trap handlers",)),
    Option("-branch-prediction", ("E-Trace: count branches that go as predicted",)),
    Option("-jump-target-cache", ("E-Trace: short numbers for recent jump targets",)),
    Option("-data", ("E-Trace: trace loads and stores, too; `trace data`",
                     "shows them",)),
    Option("-no-data-values", ("... without values",)),
    Option("-no-data-addresses", ("... without addresses",)),
    Option("-full-data-addresses", ("... with addresses in full, not differences",)),
    Option("-range", ("trace only instructions from FROM to before TO; or",
                      "FROM,+SIZE in bytes. More than once: any of them.",
                      "FROM and TO: functions, FILE:LINE, or expressions"),
           text="FROM,TO or FROM,+SIZE", shown="FROM,TO"),
    Option("-function", ("trace only these functions, with commas in between;",
                         "what they call is not part of them"),
           text="names of functions", shown="NAME,..."),
    Option("-priv", ("trace only these privilege modes, with commas in",
                     "between: u, s, m, and vu, vs of a guest"),
           words=("u", "s", "m", "vu", "vs"), several="privilege modes", shown="MODE,..."),
)  # fmt: skip

_TABLE = Table("trace start", OPTIONS)
parse, complete, usage, explained = _TABLE.parse, _TABLE.complete, _TABLE.usage, _TABLE.explained
