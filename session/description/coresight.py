"""The CoreSight components of a target description: read from their tables, and written into them.

    [[component]]
    name = "main"
    type = "coresight_funnel"
    base = 0xd9042000
    to = ["etf0"]
    inputs = {cluster0 = 0, cluster1 = 1}    # the port, 0 to 7, of each component that feeds it

    [[component]]
    name = "etf0"
    type = "coresight_tmc"
    base = 0xd9043000
    mode = "FIFO"                # passes trace on; "SRAM": it stores trace in its own memory
    to = ["etr0"]

    [[component]]
    name = "etr0"
    type = "coresight_tmc"
    base = 0xd9044000
    mode = "SMEM"                # a buffer in system memory; "SG": a scatter-gather table that is in memory already
    start = 0x170000000
    size = 0x1000000

A `coresight_replicator` has `to` alone: what its outputs 0 and 1 feed.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.description.connections import CORESIGHT_PORTS
from rvtrace_gdb.session.description.model import (
    CoresightFunnelDescription,
    CoresightReplicatorDescription,
    TmcLinkDescription,
    TmcSinkDescription,
)
from rvtrace_gdb.session.description.tables import Tables, TomlTable

KEYS: Mapping[str, tuple[str, ...]] = {
    "coresight_funnel": ("name", "type", "base", "to", "inputs"),
    "coresight_replicator": ("name", "type", "base", "to"),
    "coresight_tmc": ("name", "type", "base", "mode", "start", "size", "to"),
}
TMC_MODES = ("FIFO", "SRAM", "SMEM", "SG")
FRAME = 16
"""Bytes of a frame, in which a TMC stores trace."""
_PAGE = 0x1000  # of a scatter-gather table


def _funnel(read: Tables, table: TomlTable, where: str, name: str) -> CoresightFunnelDescription:
    inputs = read.numbered(table, where, "inputs", CORESIGHT_PORTS)
    return CoresightFunnelDescription(name, read.base(table, where), read.names(table, where, "to"), inputs)


def _replicator(read: Tables, table: TomlTable, where: str, name: str) -> CoresightReplicatorDescription:
    return CoresightReplicatorDescription(name, read.base(table, where), read.names(table, where, "to"))


def _tmc(read: Tables, table: TomlTable, where: str, name: str) -> TmcLinkDescription | TmcSinkDescription:
    base, mode = read.base(table, where), read.choice(table, where, "mode", TMC_MODES)
    to = read.names(table, where, "to")
    for key in ("start", "size"):
        if key in table and (mode in ("FIFO", "SRAM") or (mode, key) == ("SG", "size")):
            raise read.error(f'with mode = "{mode}" it has none: leave it out', where, key)
        if key not in table and mode == "SMEM":
            raise read.error("missing: an ETR writes to memory that must be reserved for it", where, key)
    if mode == "FIFO":
        return TmcLinkDescription(name, base, to)
    if to:
        raise read.error(f'with mode = "{mode}" it stores trace and feeds nothing', where, "to")
    start, size = read.words(table, where, "start"), read.words(table, where, "size")
    if start is not None and start % (_PAGE if mode == "SG" else FRAME):
        raise read.error(f"{start:#x} is not a multiple of {_PAGE if mode == 'SG' else FRAME:#x}", where, "start")
    if size is not None and size % FRAME:
        raise read.error(f"{size:#x} is not a multiple of {FRAME:#x}, a frame of trace", where, "size")
    return TmcSinkDescription(name, base, mode, start, size)


CoresightReader = Callable[
    [Tables, TomlTable, str, str],
    CoresightFunnelDescription | CoresightReplicatorDescription | TmcLinkDescription | TmcSinkDescription,
]
READERS: Mapping[str, CoresightReader] = {
    "coresight_funnel": _funnel,
    "coresight_replicator": _replicator,
    "coresight_tmc": _tmc,
}
"""What reads the table of a component, by its type."""
