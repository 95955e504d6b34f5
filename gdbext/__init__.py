"""The part of rvtrace that runs inside gdb: commands, parameters and their formatting.

Standard library and `gdb` only, Python 3.9 syntax: it runs in whatever Python gdb was built with. Everything that needs
more (OpenOCD, decoding, ELF files) happens in the session process, reached through `client`.
"""
