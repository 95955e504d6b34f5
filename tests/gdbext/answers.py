"""Inside gdb: asks what rvtrace says with each of many settings, and writes where an answer differs from the default.

Sourced by test_user_settings.py, after `trace replay`, or while gdb is connected to a target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase

import gdb

PAST = (
    "trace history 1,20", "trace history /s 500,+5", "trace history /r 500,+3", "trace find fib 1,3",
    "trace find demo.c:50", "trace find 0x80000056 1,2", "trace find *fib 1,2", "trace find &fib 1,2",
    "trace find 0x80000056,0x80000080 1,2", "trace functions /ilc 1,10", "trace calls", "trace calls /n 3",
    "trace check", "trace coverage", "trace coverage fib", "trace coverage demo.c:18,20", "trace coverage -all",
    "trace events",
    "trace gaps", "trace dump 1,3", "trace status", "trace info", "trace who-wrote ticks", "trace who-wrote $sp",
    "trace who-wrote $ra", "trace who-wrote 0x80001000 0x8", "trace who-wrote &ticks,4", "trace print ticks",
    "trace print /x $pc", "trace data", "trace data ticks", "trace regs", "trace save /nonsense/x",
    "trace goto fib", "trace position", "trace here", "backtrace", "reverse-stepi", "trace goto event 4",
    "trace goto 700", "up", "trace who-wrote $s0", "trace goto -wrote ticks", "trace goto -next fib", "reverse-next",
    "complete trace find fi", "complete trace start -function fi", "interpreter-exec console \"trace history 1,2\"",
    "trace ctr show", "trace ctr stack", "trace goto begin",
)  # fmt: skip
"""In a tandem trace of the demo program, which has values."""
LIVE = (
    "trace start -function fib", "trace start -range main,+0x10", "trace start -range 0x80000000,0x80000010",
    "trace info", "trace status", "trace stop", "trace close", "trace ctr start -depth 16", "tbreak fib", "continue",
    "trace ctr status", "trace ctr show", "trace ctr stack", "trace ctr stop", "trace start", *["stepi"] * 5,
    "trace history", *["reverse-stepi"] * 3, "trace position", "backtrace", "trace live", "trace stop", "trace close",
    "monitor reset halt", "maintenance flush register-cache", "delete",
)  # fmt: skip
"""On the simulated target. It is reset at the end. gdb's own commands have no numbers, which some languages write
otherwise, or do not know.
"""
UNRELATED = re.compile(
    r"(?:trace|debug|remote|record|mips|mipsfpu|powerpc|arm|sh|ada|riscv|ravenscar|mpx|architecture|endian|osabi|cp-abi"
    r"|struct-conv|tdesc|sysroot|solib|libthread|serial|tcp|remoteaddresssize|non-stop|observer|may-|schedule|stop-on"
    r"|args|cwd|environment|exec-|inferior-tty|startup|disable-rand|displaced|detach|follow|unwind|write$|watchdog"
    r"|auto-load|data-directory|debug-file|basenames|debuginfod|index|logging|history (?:file|save|size$)"
    r"|annotate|complaints|exec-done|mi-async|prompt|extended-prompt|editing|interactive-mode|python (?:ignore|dont)"
    r"|style \w+(?: \w+)? (?:background|foreground|intensity)|dcache|circular|coerce|backtrace|disassembler-options"
    r"|host-charset|language|(?:input-|output-)?radix|breakpoint pending|tui tab|pagination|varsize-limit)"
)
"""Settings that say what the target or the program is and how gdb reaches it, which files gdb reads and writes, for
whom it marks its output, and the form of instructions; and those whose values `gdb.parameter` has in another form.
"""
RELATED = ("debug remote", "trace-commands", "backtrace past-main", "remotetimeout", "record instruction-history-size")
MEANT = {
    "filename-display": "", "max-completions": "complete ", "print frame-info": "backtrace",
    "print address": "tbreak|backtrace",
    "record instruction-history-size": "trace data",
    "language": "trace (?:who-wrote|print [^/])", "output-radix": "trace (?:who-wrote|print [^/])",
}  # fmt: skip
"""Settings that are about the output of commands, which begin like this: a form for values or names of files."""
_VALUES = re.compile(r"\((?:\w+ ?=[^)]*|)\)")
"""Arguments of a function, which gdb prints in the user's language."""
_CHATTER = re.compile(
    r"^(?:\++[a-z].*| *\[remote\].*| *\[.*\] (?:Sending|Received).*|Warning: the current language.*"
    r"|Current language: .*|The current source language is .*|)\n", re.M
)  # fmt: skip
"""What gdb prints because of a setting that has it print more."""


_CHANGES = re.compile(
    r"^(?: *\$_(?:tlb|siginfo|thread|probe|exit|_?_|hit|inferior)|\+|trace |history |(?:convenience: +)?\$bpnum).*",
    re.M,
)
"""Lines of `show` that are about the program, not settings."""


def answers(commands: tuple[str, ...]) -> list[str]:
    return [_answer(command) for command in commands]


def _answer(command: str) -> str:
    try:
        text = gdb.execute(command, to_string=True)
    except gdb.error as error:
        text = f"error: {error}"
    return re.sub(r"(?<=^Temporary breakpoint )\d+", "N", _VALUES.sub("()", _CHATTER.sub("", text)), flags=re.M)


def values() -> str:
    """The value of every setting that gdb lists."""
    return _CHANGES.sub("", gdb.execute("show", to_string=True)) + str(gdb.parameter("input-radix"))


def languages() -> list[tuple[str, str, str]]:
    """All languages that this gdb knows."""
    return [("language", name, "auto") for name in _completions("language") if name not in ("auto", "local")]


def _completions(name: str) -> list[str]:
    """Return the values of a setting that has a few words for values. (gdb.execute strips the blank behind a name.)"""
    asked = [gdb.execute(f"complete set {name} {letter}", to_string=True) for letter in ascii_lowercase]
    return re.findall(rf"^set {re.escape(name)} (\S+)$", "".join(asked), re.M)


def settings() -> list[tuple[str, str, str]]:
    """Every setting of this gdb that may be related, with each of a few values: (name, value, value of now)."""
    names = dict.fromkeys(re.findall(r"^([a-z][\w +-]*?):  ", gdb.execute("show", to_string=True), re.M))
    related = [name for name in names if name in RELATED or UNRELATED.match(name) is None]
    return [(name, value, now) for name in related for now, value in _values(name)]


def _values(name: str) -> Iterator[tuple[str, str]]:
    try:
        now = gdb.parameter(name)
    except RuntimeError:  # a table beside the settings
        return
    if isinstance(now, bool):
        yield _switch(now), _switch(not now)
    elif now is None or isinstance(now, int):
        yield _unset(name) if now is None else str(now), "1" if name != "max-value-size" else "16"
    elif isinstance(now, str):
        for value in _completions(name)[:12]:
            if value != now:
                yield now, value


def _unset(name: str) -> str:
    """How a setting is set to what Python has as None: a number without a limit, or a switch that gdb decides on."""
    return "auto" if "auto" in gdb.execute(f"show {name}", to_string=True) else "unlimited"


def _switch(value: bool) -> str:
    return "on" if value else "off"


def compare(table: list[tuple[str, str, str]], commands: tuple[str, ...], file: str) -> None:
    """Write what differs with each (name, value, value of now) into a file."""
    answers(commands)  # so that all begin where this ends
    default, lines, tried = answers(commands), [], 0
    for name, value, back in table:
        try:
            gdb.execute(f"set {name} {value}", to_string=True)
        except gdb.error:  # a value that this gdb does not take
            continue
        tried += 1
        before = values()
        found = answers(commands)
        if values() != before:
            lines.append(f"{name} {value} changed {sorted(set(values().splitlines()) ^ set(before.splitlines()))}")
        gdb.execute(f"set {name} {back}", to_string=True)
        for command, one, other in zip(commands, default, found):  # noqa: B905 (Python 3.9)
            if one != other and not (name in MEANT and re.match(MEANT[name], command)):
                lines.append(f"{command!r} with {name} {value}:\n{other}instead of\n{one}")
    with open(file, "w") as out:
        out.write("\n".join(lines))
    size = sum(map(len, default))
    gdb.write(f"compared {tried} of {len(table)} settings, {len(commands)} commands, {size} characters\n")
