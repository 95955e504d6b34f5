"""The part of rvtrace that runs inside gdb: commands, parameters, and what they print.

It uses the standard library and `gdb` only, in Python 3.9 syntax, because it runs in whatever Python gdb was built
with. Everything that needs more (OpenOCD, decoding, ELF files) happens in the session process, which `client` talks to.
"""
