"""Reads a profile of Callgrind by the rules of its format, valgrind's callgrind/docs/cl-format.xml.

Names are numbered for each kind: `ob` and `cob`; `fl`, `fi`, `fe`, `cfi`, `cfl` and `jfi`; `fn`, `cfn` and `jfn`.
"""

import re
from collections import Counter
from typing import NamedTuple

_KINDS = {
    **dict.fromkeys(("ob", "cob"), "ob"),
    **dict.fromkeys(("fl", "fi", "fe", "cfi", "cfl", "jfi"), "fl"),
    **dict.fromkeys(("fn", "cfn", "jfn"), "fn"),
}
_PLACE = re.compile(r"0x([0-9a-f]+) (\d+)")


class Callgrind(NamedTuple):
    """own: by (function, file, address, line); calls, inclusive: by (caller, site, callee), the place of the callee is
    in *targets*; branches: (followed, executed) by (address, target); jumps: by (address, target)."""

    descriptions: list[str]
    own: Counter[tuple[str, str, int, int]]
    calls: Counter[tuple[str, int, str]]
    inclusive: Counter[tuple[str, int, str]]
    targets: dict[str, int]
    branches: dict[tuple[int, int], tuple[int, int]]
    jumps: Counter[tuple[int, int]]
    total: int


def callgrind_of(data: bytes) -> Callgrind:
    head, _, body = data.decode().partition("\nevents: Ir\n")
    lines = head.splitlines()
    assert lines[:2] == ["# callgrind format", "version: 1"] and "positions: instr line" in lines
    found = Callgrind(
        [line.removeprefix("desc: ") for line in lines if line.startswith("desc: ")],
        Counter(), Counter(), Counter(), {}, {}, Counter(), int(body.splitlines()[-1].removeprefix("totals: ")),
    )  # fmt: skip
    names: dict[tuple[str, str], str] = {}
    now: dict[str, str] = {}
    waiting: tuple[str, ...] = ()
    for line in filter(None, body.splitlines()[:-1]):
        key, is_set, value = line.partition("=")
        if is_set and key in _KINDS:
            number, _, name = value.partition(" ")
            if name:
                assert (_KINDS[key], number) not in names
                names[_KINDS[key], number] = name
            now["fl" if key in ("fi", "fe") else key] = names[_KINDS[key], number]
        elif is_set:
            waiting = (key, *value.split())
        else:
            _line(found, now, waiting, line)
            waiting = ()
    assert not waiting
    return found


def _line(found: Callgrind, now: dict[str, str], waiting: tuple[str, ...], line: str) -> None:
    match = _PLACE.match(line)
    assert match is not None, line
    at, number, rest = int(match[1], 16), int(match[2]), line[match.end() :]
    if not waiting:
        place = now["fn"], now["fl"], at, number
        assert place not in found.own
        found.own[place] = int(rest)
        return
    key, counts, target = waiting[0], waiting[1], int(waiting[2], 16)
    if key == "calls":
        arc = now["fn"], at, now["cfn"]
        assert arc not in found.calls and int(counts) > 0
        found.calls[arc], found.inclusive[arc] = int(counts), int(rest)
        assert found.targets.setdefault(now["cfn"], target) == target
    elif key == "jcnd":
        followed, executed = counts.split("/")
        found.branches[at, target] = int(followed), int(executed)
    else:
        assert key == "jump" and not rest
        found.jumps[at, target] += int(counts)
