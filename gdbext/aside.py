"""gdb's settings that would make it print what is not so in the past; put aside there, and put back afterwards.

- `finish` prints a return value: gdb takes a register that is not known for 0.
- each frame would have its arguments' values at the call looked for: an error text for each of them.
- with only pc known, each argument of a frame would be `<error reading variable ...>`.
  A tandem trace tells registers and memory: these three are then as the user has them, where the value is known.
- each hart has its own place: where another one has stopped at a breakpoint, gdb would move that first, to step over
  it. This is what gdb's own mode "replay" does where it knows that it replays.
"""

from __future__ import annotations

import contextlib

import gdb

_LOCKING = "scheduler-locking"
_FINISH = ("print finish", "off")
WITHOUT_REGISTERS = (_FINISH, ("print entry-values", "no"), ("print frame-arguments", "none"))
IN_THE_PAST = (*WITHOUT_REGISTERS, (_LOCKING, "on"))

_before: dict[str, str] = {}


def put(*, registers: bool = False) -> None:
    """Set them for the past, unless they are. *registers*: they are known there."""
    for name, value in IN_THE_PAST:
        if not registers or (name, value) not in WITHOUT_REGISTERS:
            _put(name, value)


def show_result(*, known: bool) -> None:
    """`finish` that comes prints its value, if the user wants it to and it is known."""
    name, value = _FINISH
    if not known:
        _put(name, value)
    elif name in _before and _setting(name) == value:
        gdb.execute(f"set {name} {_before.pop(name)}", to_string=True)


def _put(name: str, value: str) -> None:
    if name not in _before:
        before = _setting(name)
        if before is not None and before != value:
            _before[name] = before
            gdb.execute(f"set {name} {value}", to_string=True)


def put_back(*, still_there: bool = False) -> None:
    """What `put` changed, unless the user has changed it since. *still_there*: but what keeps harts where they are."""
    for name, value in IN_THE_PAST:
        if still_there and name == _LOCKING:
            continue
        before = _before.pop(name, None)
        if before is not None and _setting(name) == value:
            with contextlib.suppress(gdb.error):  # without a target gdb has no scheduler-locking
                gdb.execute(f"set {name} {before}", to_string=True)


def _setting(name: str) -> str | None:
    """As it is written; None where this gdb does not have it."""
    try:
        value = gdb.parameter(name)
    except RuntimeError:
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
