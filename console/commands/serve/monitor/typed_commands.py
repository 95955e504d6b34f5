"""Commands that messages name, as somebody types them who has them through `monitor` alone.

Messages name the commands of gdb: `trace history`. In gdb without these, `trace` is another command.
"""

import re
from collections.abc import Callable, Container

_INSTEAD = {
    "trace connect HOST:PORT": "rvtrace serve --connect HOST:PORT",
    "trace connect": "target remote",
    "trace open": "rvtrace serve",
    "trace open FILE": "rvtrace serve FILE",
    "trace save FILE": "monitor trace save",
    "trace save FILE.rvt": "monitor trace save",
    "set trace target FILE": "rvtrace serve --target FILE",
    "set trace openocd-port PORT": "[openocd] tcl_port",
    "set trace hart N": "--hart N",
    "set trace values on": "rvtrace serve --values on",
    "set trace values registers": "rvtrace serve --values registers",
}
_QUOTED = re.compile(r"`((?:set )?trace ([a-z-]+)[^`]*)`")


def in_monitor(names: Container[str], file: str) -> Callable[[str], str]:
    """Return a function that returns a line with the commands as they are typed here.

    *names*: those of `monitor`; *file*: the trace that is served, as messages name it.
    """
    of_shell = re.compile(rf"\brvtrace ([a-z-]+) {re.escape(file)}(?!\.?[\w/-])")

    def typed(match: re.Match[str]) -> str:
        command, name = match[1], match[2]
        if command in _INSTEAD and (name != "save" or name in names):
            return f"`{_INSTEAD[command]}`"
        return f"`monitor {command}`" if name in names and command.startswith("trace") else match[0]

    def without_file(match: re.Match[str]) -> str:
        return f"monitor trace {match[1]}" if match[1] in names else match[0]

    return lambda line: of_shell.sub(without_file, _QUOTED.sub(typed, line))
