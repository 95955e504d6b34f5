"""What commands that gdb sends with `monitor` do to a target: nothing, or nobody knows what.

Source: OpenOCD User's Guide 0.12.0, "General Commands", "CPU Configuration", "Flash Commands"; QEMU's documentation,
"QEMU Monitor".
"""

import re
from enum import Enum, auto


class Effect(Enum):
    """What a command may have done.

    NONE    it has written nothing, and no hart has run
    WRITES  it may have written registers and memory
    ANY     harts may also have run
    """

    NONE = auto()
    WRITES = auto()
    ANY = auto()


_LOOK = """
    help usage version echo puts sleep uptime debug_level log_output target targets scan_chain transport bindto
    md mdb mdh mdw mdd read_memory get_reg dump_image info x xp print
"""
_FIRST = frozenset(_LOOK.split())
_LOOK_AT = re.compile(r"(?:flash (?:banks|list)|adapter (?:speed|name|list|serial)|riscv info|gdb_\w+)\b")
_WHOLE = re.compile(r"reg(?: \w+(?: force)?)?|poll(?: on| off)?")
_WRITES = re.compile(
    r"(?:mwb|mwh|mww|mwd|write_memory|load_image|fast_load|set_reg|reg|riscv (?:set_\w+|authdata_write))\b"
)
_COMPOSED = re.compile(r"[\[\];${}\n\"\\]")
OURS = "_rvtrace"
"""Scripts of rvtrace's own have variables of such names: they look, and write CSRs of trace components alone."""


def effect_of(command: str) -> Effect:
    """Return what a command may have done. What is not known may have done anything."""
    if OURS in command:
        return Effect.NONE
    words = command.strip()
    if _COMPOSED.search(words):
        return Effect.ANY
    first = words.partition(" ")[0]
    if not words or first in _FIRST or _LOOK_AT.match(words) or _WHOLE.fullmatch(words):
        return Effect.NONE
    return Effect.WRITES if _WRITES.match(words) else Effect.ANY


def effect_of_packet(body: bytes) -> Effect:
    """Return what a qRcmd packet may have done."""
    try:
        return effect_of(bytes.fromhex(body.partition(b",")[2].decode()).decode())
    except ValueError:
        return Effect.ANY
