"""What a user types in a debugger to connect it to `rvtrace serve`."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rvtrace_gdb
from rvtrace_gdb.support.text import printable

_GDB, _PROGRAM = "gdb-multiarch", "PROGRAM.elf"
_SCRIPT = Path(rvtrace_gdb.__file__).resolve().parent.parent / "rvtrace_lldb.py"


class ServedPlace(NamedTuple):
    """*where*: as gdb takes it. *port*: 0 for a socket. *program*: the path of the program, if it is known. *sources*:
    (folder, where its sources are) of a pack.
    """

    where: str
    port: int
    program: str | None
    sources: tuple[tuple[str, str], ...] = ()


def lines(place: ServedPlace) -> Iterator[str]:
    """Yield the lines that say what to type."""
    program = "" if place.program is None else f"{shlex.quote(printable(place.program))} "
    yield f"waiting:  at {printable(place.where)} (Ctrl-C ends it)"
    moved = "".join(f"-ex {shlex.quote(f'set substitute-path {_words(pair)}')} " for pair in place.sources)
    yield f"gdb:      {_GDB} {program}{moved}-ex {shlex.quote(f'target remote {place.where}')}"
    pairs = " ".join(map(_words, place.sources))
    moved = f"-o {shlex.quote(f'settings set target.source-map {pairs}')} " if pairs else ""
    script = shlex.quote(f"command script import {printable(str(_SCRIPT))}")
    yield f"LLDB:     lldb {program}{moved}-o {shlex.quote(_lldb(place))} -o {script}"
    if place.port:
        yield f"VS Code:  {json.dumps(_cppdbg(place))}"
        yield f"or:       {json.dumps(_gdbtarget(place))}"
    else:
        yield "VS Code:  takes a port: `rvtrace serve` without --unix"
    yield "then:     monitor trace help; in LLDB: rvtrace help; in VS Code's console with `-exec` or `>` in front"


def fields(place: ServedPlace) -> dict[str, object]:
    """Return the same for programs."""
    found: dict[str, object] = {"where": place.where, "port": place.port or None, "program": place.program}
    found["sources"] = dict(place.sources) or None
    return {name: value for name, value in found.items() if value is not None}


def _words(pair: tuple[str, str]) -> str:
    return " ".join(f'"{printable(path)}"' if " " in path else printable(path) for path in pair)


def _lldb(place: ServedPlace) -> str:
    return f"gdb-remote {place.port}" if place.port else f"process connect unix-connect://{place.where}"


def _cppdbg(place: ServedPlace) -> dict[str, object]:
    """Return a configuration of the extension C/C++. It is not to start the program, which is in the past."""
    return {
        "name": "rvtrace", "type": "cppdbg", "request": "launch", "MIMode": "gdb", "miDebuggerPath": _GDB,
        "program": place.program or _PROGRAM, "miDebuggerServerAddress": f"localhost:{place.port}",
        "stopAtConnect": True, "cwd": "${workspaceFolder}",
        **({"sourceFileMap": dict(place.sources)} if place.sources else {}),
    }  # fmt: skip


def _gdbtarget(place: ServedPlace) -> dict[str, object]:
    """Return a configuration of the extension CDT GDB Debug Adapter."""
    moved = [f"set substitute-path {_words(pair)}" for pair in place.sources]
    return {
        "name": "rvtrace", "type": "gdbtarget", "request": "attach", "gdb": _GDB,
        "program": place.program or _PROGRAM, "cwd": "${workspaceFolder}",
        "target": {"type": "remote", "host": "localhost", "port": str(place.port)},
        **({"preConnectCommands": moved} if moved else {}),
    }  # fmt: skip
