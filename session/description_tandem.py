"""The tables [[tandem]] of a target description: where a hart's tandem trace arrives, and what it does not say itself.

[[tandem]]
name = "tandem0"
hart = 0                     # default 0
file = "hart0.tvt"           # what the hart does is appended to it; relative to the description's folder
socket = "tcp:localhost:9000" # in the place of file: tcp:HOST:PORT or unix:PATH, connected to by `trace start`
dialect = "flute"            # what the encoder does differently, docs/tandem.md; default "specification"
flen = 64                    # 32 or 64, 0: no floating-point registers; default: as the ELF has it
mlen = 34                    # 32, 34 or 64; default: XLEN
eaddr = 32                   # bits of an effective address; default: as the dialect has it
supervisor = false           # no S-mode: addresses are physical; default true
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rvtrace_gdb.decode.tandem.dialect import DIALECTS, SPECIFICATION
from rvtrace_gdb.decode.tandem.parameters import BadParameters, Parameters
from rvtrace_gdb.session.description import AnyComponent, Tandem
from rvtrace_gdb.session.description_tables import Table, Tables

_KEYS = ("name", "hart", "file", "socket", "dialect", "flen", "mlen", "eaddr", "supervisor")
_LENGTHS = ("flen", "mlen", "eaddr")
_TABLE = "[[tandem]]"


def read(tables: Tables, document: dict[str, Any], components: list[AnyComponent]) -> tuple[Tandem, ...]:
    """The ports, in the order of the file. Raises DescriptionError."""
    ports = tuple(_port(tables, table, number) for number, table in enumerate(tables.tables(document, "tandem"), 1))
    if ports and "qemu" in document:
        raise tables.error("there are none in QEMU: leave out either [qemu] or [[tandem]]", _TABLE)
    names = Counter([component.name for component in components] + [port.name for port in ports])
    harts = Counter(port.hart for port in ports)
    for port in ports:
        if names[port.name] > 1:
            raise tables.error(f'"{port.name}" is used {names[port.name]} times', _TABLE, "name")
        if harts[port.hart] > 1:
            raise tables.error(f"{port.hart} is used {harts[port.hart]} times", _TABLE, "hart")
    return ports


def _port(tables: Tables, table: Table, number: int) -> Tandem:
    name = tables.string(table, f"{_TABLE} {number}", "name")
    where = f'{_TABLE} "{name}"'
    tables.known(table, where, _KEYS)
    file, socket = _place(tables, table, where)
    dialect = tables.choice(table, where, "dialect", tuple(DIALECTS)) if "dialect" in table else SPECIFICATION.name
    lengths = {key: tables.integer(table, where, key) for key in _LENGTHS if key in table}
    try:
        Parameters(flen=lengths.get("flen", 64), mlen=lengths.get("mlen", 0), eaddr=lengths.get("eaddr", 0))
    except BadParameters as error:
        raise tables.error(f"is {error.value}: {error.allowed}", where, error.name) from None
    supervisor = tables.switch(table, where, "supervisor")
    return Tandem(
        name, tables.integer(table, where, "hart", 0), file, dialect, lengths.get("flen"), lengths.get("mlen", 0),
        lengths.get("eaddr", 0), supervisor is not False, socket,
    )  # fmt: skip


def _place(tables: Tables, table: Table, where: str) -> tuple[str, str]:
    """The file, or the socket."""
    if "socket" not in table:
        return _beside(tables, tables.string(table, where, "file")), ""
    socket = tables.string(table, where, "socket")
    if "file" in table:
        raise tables.error("there is a file, too: leave out one", where, "socket")
    if not socket.startswith(("tcp:", "unix:")):
        raise tables.error(f'is "{socket}", must be tcp:HOST:PORT or unix:PATH', where, "socket")
    if socket.startswith("unix:"):
        socket = "unix:" + _beside(tables, socket.removeprefix("unix:"))
    return "", socket


def _beside(tables: Tables, path: str) -> str:
    """A path is relative to the folder of the description."""
    return str(Path(tables.file).parent / os.path.expanduser(path))


def lines(port: Tandem) -> Iterator[tuple[str, str | int | bool]]:
    """Keys and values of a port's table; what is as it is without being said is left out."""
    yield from (("name", port.name), ("hart", port.hart))
    yield ("socket", port.socket) if port.socket else ("file", port.file)
    if port.dialect != SPECIFICATION.name:
        yield "dialect", port.dialect
    if port.flen is not None:
        yield "flen", port.flen
    yield from ((key, value) for key, value in (("mlen", port.mlen), ("eaddr", port.eaddr)) if value)
    if not port.supervisor:
        yield "supervisor", False
