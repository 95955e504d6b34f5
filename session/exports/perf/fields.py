"""The fields that `perf script -F` chooses, of those that a trace has. Source: Linux, perf-script(1)."""

from rvtrace_gdb.support.errors import RvtraceError

FIELDS = {
    "comm": "the name of the process, of the task, or of the hart",
    "pid": "the number of the process",
    "tid": "that of its thread: a task",
    "cpu": "the hart",
    "time": "the time of the trace, where a tick is a nanosecond; without times: instructions",
    "event": "instructions, ticks or branches",
    "period": "instructions, or ticks, since the sample before",
    "flags": "the kind of a transfer: call, return, jcc (branch), jmp, syscall, int, hw int, iret",
    "callindent": "the name of a function that is called or left, indented by its callers",
    "ip": "the address; with g the call chain",
    "sym": "the symbol there",
    "symoff": "how far behind the symbol",
    "dso": "the program there",
    "addr": "where a transfer leads to",
    "srcline": "the source line",
    "insn": "the bytes of the instruction",
    "insnlen": "how many bytes these are",
    "disasm": "the text of the instruction",
    "brstack": "the last transfers, newest first: from/to/P/-/-/0",
    "brstacksym": "the same with symbols",
}
"""The fields, in perf's order of printing, and what each says."""
_DEFAULT = frozenset(["comm", "tid", "cpu", "time", "event", "period", "ip", "sym", "symoff", "dso", "addr"])
INSN_TRACE, CALL_TRACE, CALL_RETURN_TRACE = (
    "+disasm,-event,-period", "-ip,-addr,-event,-period,+callindent", "-ip,-addr,-event,-period,+callindent,+flags"
)  # fmt: skip
"""What perf's options --insn-trace, --call-trace and --call-ret-trace choose."""


class BadFields(RvtraceError):
    """A list of fields that is none. *why*: what is wrong."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"-F {text}: {why}")


def fields_of(*texts: str) -> frozenset[str]:
    """Return the fields that lists choose, one after the other: NAME,NAME, or +NAME,-NAME to add and to leave out.
    Raises BadFields.
    """
    found = _DEFAULT
    for text in texts:
        words = [word.strip() for word in text.split(",")]
        changes = [word[:1] in ("+", "-") for word in words]
        for word in words:
            name = word.lstrip("+-")
            if name not in FIELDS:
                raise BadFields(text, f"there is no field {name or 'without a name'}: {', '.join(FIELDS)}")
        if any(changes) and not all(changes):
            raise BadFields(text, "either each field has + or - in front, or none")
        if not any(changes):
            found = frozenset(words)
        for word in words if any(changes) else ():
            found = found | {word[1:]} if word[0] == "+" else found - {word[1:]}
    return found
