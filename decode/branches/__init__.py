"""Traces in which each entry is a transfer of control: the pairs of NEORV32's TRACER, and TACIT's packets.

`walk` has what both decoders need of the program, `items` what an entry is to those that list it. `READERS` has the
modules by name: each cuts a trace into entries (`items_of`), makes a history of it (`history_of`), and has an encoder.
"""

READERS = ("neorv32", "tacit")
"""The kinds of such traces, which are modules of this package."""
