"""The options of `trace ctr start`: how they are typed, and the request they become.

Ref: RISC-V Control Transfer Records 1.0, "Control Transfer Type Definitions"; draft 0.1.4, 3.3
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from rvtrace_gdb.gdbext.options import BadOption, Option, Table

NOT_TAKEN = "not-taken-branch"
TYPES = {
    "exception": 1,
    "interrupt": 2,
    "trap-return": 3,
    NOT_TAKEN: 4,
    "taken-branch": 5,
    "indirect-call": 8,
    "direct-call": 9,
    "indirect-jump": 10,
    "direct-jump": 11,
    "co-routine-swap": 12,
    "function-return": 13,
    "other-indirect-jump": 14,
    "other-direct-jump": 15,
}
"""ctrdata.TYPE by the name of the transfer, as the document has it."""
GROUPS = {
    "calls": ("indirect-call", "direct-call", "co-routine-swap"),
    "returns": ("function-return", "co-routine-swap"),
    "jumps": ("indirect-jump", "direct-jump", "other-indirect-jump", "other-direct-jump"),
    "branches": ("taken-branch",),
    "traps": ("exception", "interrupt", "trap-return"),
}
DEPTHS = ("16", "32", "64", "128", "256")
VERSIONS = ("1.0", "0.1.4")
_TYPE_WORDS = (*GROUPS, *TYPES)

OPTIONS = (
    Option("-modes", ("record in these privilege modes; without it, in all",),
           words=("m", "s", "u", "vs", "vu"), several="privilege modes (m, s, u, vs, vu)", shown="MODE,..."),
    Option("-depth", ("how many transfers are kept: 16, 32, 64, 128 or 256;",
                      "without it, the most the hart can"), words=DEPTHS, shown="N"),
    Option("-only", ("record transfers of these types and no others",),
           words=_TYPE_WORDS, several="types of transfers", shown="TYPE,..."),
    Option("-without", ("record all but transfers of these types",),
           words=_TYPE_WORDS, several="types of transfers", shown="TYPE,..."),
    Option("-not-taken", ("record branches that are not taken, too",)),
    Option("-ras", ("keep the calls under way, and nothing else: a return",
                    "takes its call away (`trace ctr stack`)")),
    Option("-freeze", ("keep what there is when the program runs into a",
                       "breakpoint exception (ebreak), or when a counter",
                       "overflows (lcofi)"),
           words=("breakpoint", "lcofi"), several="breakpoint, lcofi, or both", shown="AT,..."),
    Option("-external", ("record traps that lead to these modes from recorded",
                         "ones, although they are not recorded themselves"),
           words=("m", "s", "vs"), several="privilege modes (m, s, vs)", shown="MODE,..."),
    Option("-ctr-version", ("the document the hart is made by, if it is not to",
                            "be found out: 1.0, or the draft 0.1.4"), words=VERSIONS, shown="VERSION"),
    Option("-all", ("on all harts, not on that of the selected thread alone",)),
)  # fmt: skip
TABLE = Table("trace ctr start", OPTIONS)

TYPES_HELP = """TYPE, with the names `trace ctr show` prints:
  calls     indirect-call, direct-call, co-routine-swap
  returns   function-return, co-routine-swap
  jumps     indirect-jump, direct-jump, other-indirect-jump,
            other-direct-jump (other: they keep a return address, but
            not in ra or t0)
  branches  taken-branch; not-taken-branch has to be asked for by name
  traps     exception, interrupt, trap-return"""


def request(words: Iterable[str], harts: Callable[[], Iterable[int]] = tuple) -> dict[str, Any]:
    """The options of a request from the words of a command line; *harts*: all there are. Raises BadOption."""
    found = TABLE.parse(words)
    _refuse_together(found)
    depth = found.get("depth")
    inhibited, not_taken = _filters(found)
    return {
        "modes": found.get("modes"),
        "inhibit": sorted(inhibited),
        "not_taken": not_taken,
        "depth": None if depth is None else int(depth),
        "ras": "ras" in found,
        "freeze": found.get("freeze", []),
        "external": found.get("external", []),
        "version": found.get("ctr_version"),
        "harts": list(harts()) if "all" in found else None,
    }


def _filters(found: dict[str, Any]) -> tuple[set[int], bool]:
    """(types that are not recorded, whether not-taken branches are): these alone have to be asked for."""
    optional = {TYPES[NOT_TAKEN]}
    only = _types(found.get("only", ()))
    inhibited = set(TYPES.values()) - only if only else _types(found.get("without", ()))
    return inhibited - optional, "not_taken" in found or bool(only & optional)


def _types(words: Iterable[str]) -> set[int]:
    return {TYPES[name] for word in words for name in GROUPS.get(word, (word,))}


def _refuse_together(found: dict[str, Any]) -> None:
    if "only" in found and "without" in found:
        raise BadOption("-only and -without do not go together.")
    if "not-taken-branch" in found.get("without", ()) and "not_taken" in found:
        raise BadOption("-not-taken and -without not-taken-branch contradict each other.")
    for name in ("only", "without", "not_taken", "external"):
        if "ras" in found and name in found:
            said = f"-ras and -{name.replace('_', '-')} do not go together"
            raise BadOption(f"{said}: with RAS emulation calls and returns alone count.")

