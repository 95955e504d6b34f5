"""The commands of `monitor trace` that the shell has not, or has in another form: about the debugger's place."""

from collections.abc import Mapping

from rvtrace_gdb.console.commands.serve.monitor import forks, notes, printed_values
from rvtrace_gdb.console.commands.serve.monitor.places import REVERSE_STEPS
from rvtrace_gdb.console.commands.serve.monitor.request import OwnCommand


def _reverse(kind: str, line: str) -> OwnCommand:
    """Return the command of a step backward."""
    return OwnCommand(
        line,
        f"monitor trace reverse-{kind}\n\n"
        "For debuggers that lack it: `command script import` of rvtrace_lldb.py makes it a command of LLDB.\n"
        "It ends at a breakpoint on the way. As after `goto`, the next step goes there.",
        lambda request, words: request.places.reverse(kind, request.breakpoints),
    )


OWN: Mapping[str, OwnCommand] = {
    "history": OwnCommand(
        "list the instructions that ran",
        "monitor trace history [/rf] [RANGE]\n\nRANGE: nothing, the next ones; - those before; N; A,B; A,+N; A,-N.",
        lambda request, words: request.places.history(words, request.size),
    ),
    "goto": OwnCommand(
        "go to a place in the past",
        "monitor trace goto NUMBER | begin | end | live\n"
        "       monitor trace goto [-next] FUNCTION | FILE:LINE | *ADDRESS\n"
        "       monitor trace goto [-next] event [KIND ...] [NUMBER]\n"
        "       monitor trace goto first | last KIND | event\n"
        "       monitor trace goto -wrote $REGISTER | SYMBOL | ADDRESS[,SIZE]\n"
        "       monitor trace goto worst [FUNCTION | trap | FROM TO]\n\n"
        "The debugger is there after the next command that runs the program, such as\n"
        "`stepi` (LLDB: `thread step-inst`), which stops there.\n"
        "worst: where the longest interval begins, of those that `monitor trace\n"
        "intervals` measured last, or of what it takes.",
        lambda request, words: request.places.goto(words),
    ),
    "live": OwnCommand(
        "return to the present",
        "monitor trace live\n\nThe next step goes there, as after `monitor trace goto live`.",
        lambda request, words: request.places.goto(["live"]),
    ),
    "fork": OwnCommand("go on live from a place of the past, on a simulated hart", forks.USAGE, forks.fork_lines),
    "position": OwnCommand(
        "say where the debugger is in the past",
        "monitor trace position",
        lambda request, words: [request.places.position()],
    ),
    **{f"reverse-{kind}": _reverse(kind, line) for kind, line in REVERSE_STEPS.items()},
    "print": OwnCommand("print values there", printed_values.USAGE, printed_values.print_values),
    "note": OwnCommand("note something at a place, or list the notes", notes.USAGE, notes.note),
}
"""The commands, by their names."""
