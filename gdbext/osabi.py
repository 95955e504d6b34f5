"""gdb's OS ABI while tracing a bare-metal program.

Debian's gdb-multiarch takes every RISC-V program for GNU/Linux and then single-steps in software, with breakpoints:
slow, and it steps over traps. While tracing, an OS ABI the user left on "auto" is set to "none" and
put back afterwards.
"""

from __future__ import annotations

import gdb

_before: str | None = None


def _guessed_linux() -> bool:
    return "GNU/Linux" in gdb.execute("show osabi", to_string=True)


def set_for_tracing(until: str = "`trace stop`") -> None:
    """Set `osabi none` unless the user chose one, and say so once."""
    global _before
    chosen = str(gdb.parameter("osabi"))
    if _before is not None or chosen != "auto" or not _guessed_linux():
        return
    _before = chosen
    gdb.execute("set osabi none", to_string=True)
    print(f"OS ABI set to none until {until} (gdb guessed GNU/Linux and would single-step in software).")


def restore() -> None:
    """Put back what `set_for_tracing` changed, unless the user has changed it since."""
    global _before
    before, _before = _before, None
    if before is None or str(gdb.parameter("osabi")) != "none":
        return
    for _ in range(2):
        try:
            gdb.execute(f"set osabi {before}", to_string=True)
            return
        except gdb.error:  # gdb notices only now that the connection is gone, and lets go of it, or the hart is dead
            continue  # with that, the setting is made all the same
