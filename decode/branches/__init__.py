"""Traces in which each entry is a transfer of control: NEORV32's TRACER, TACIT, CTXP, E-Trace of gem5.

`walk` has what both decoders need of the program, `items` what an entry is to those that list it. `READERS` has the
modules by name: each cuts a trace into entries (`items_of`), and makes a history of it (`history_of`).
"""

READERS = ("neorv32", "tacit", "ctxp", "gem5")
"""The kinds of such traces, which are modules of this package."""
