"""Inside gdb: asks what rvtrace says with each of many settings, and prints where an answer differs from the default.

Sourced by test_user_settings.py, after `trace open` and `trace replay`.
"""

from __future__ import annotations

import re

import gdb

COMMANDS = (
    "trace history 1,20", "trace history /s 500,+5", "trace history /r 500,+3", "trace find fib 1,3",
    "trace find demo.c:50", "trace find 0x80000056 1,2", "trace find *fib 1,2", "trace find &fib 1,2",
    "trace find 0x80000056,0x80000080 1,2", "trace functions /ilc 1,10", "trace calls", "trace coverage",
    "trace coverage fib", "trace coverage demo.c:18,20", "trace events", "trace gaps", "trace dump 1,3",
    "trace status", "trace info", "trace who-wrote ticks", "trace who-wrote $sp", "trace who-wrote $ra",
    "trace goto fib", "trace position", "backtrace", "reverse-stepi", "trace goto event 4", "trace goto 700",
    "up", "trace who-wrote $s0", "trace goto -wrote ticks", "reverse-next", "trace goto begin",
)  # fmt: skip
_VALUES = re.compile(r"\((?:\w+ ?=[^)]*|)\)")
"""Arguments of a function, which gdb prints in the user's language."""


def answers() -> list[str]:
    return [_answer(command) for command in COMMANDS]


def _answer(command: str) -> str:
    try:
        text = gdb.execute(command, to_string=True)
    except gdb.error as error:
        text = f"error: {error}"
    return _VALUES.sub("()", re.sub(r"^(Warning: the current language does not.*\n|\n)", "", text, flags=re.M))


def values() -> str:
    """The value of every setting that gdb lists."""
    text = re.sub(r"^ *\$_(?:tlb|siginfo|thread_name).*", "", gdb.execute("show", to_string=True), flags=re.M)
    return re.sub(r"^(?:trace|history) .*", "", text, flags=re.M) + str(gdb.parameter("input-radix"))


def compare(settings: list[tuple[str, str, str]], file: str) -> None:
    """Write what differs with each (name, value, gdb's default) into a file."""
    answers()  # so that all begin where this ends
    default, lines = answers(), []
    for name, value, back in settings:
        gdb.execute(f"set {name} {value}", to_string=True)
        before = values()
        found = answers()
        if values() != before:
            lines.append(f"{name} {value} changed {sorted(set(values().splitlines()) ^ set(before.splitlines()))}")
        gdb.execute(f"set {name} {back}", to_string=True)
        for command, one, other in zip(COMMANDS, default, found):  # noqa: B905 (Python 3.9)
            if one != other and not (name == "output-radix" and "who-wrote" in command):
                lines.append(f"{command!r} with {name} {value}:\n{other}instead of\n{one}")
    with open(file, "w") as out:
        out.write("\n".join(lines))
    size = sum(map(len, default))
    gdb.write(f"compared {len(settings)} settings, {len(COMMANDS)} commands, {size} characters\n")
