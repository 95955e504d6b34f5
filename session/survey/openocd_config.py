"""Where OpenOCD's Tcl server is: HOST:PORT, or what OpenOCD's configuration files say of it.

Only `tcl_port` and `bindto` are looked for, in the files that are named: what they `source` is not followed.

Ref: OpenOCD User's Guide 0.12.0, "Server Configuration".
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.session.survey.questions import Unfit
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem
from rvtrace_gdb.transport.openocd.target import DEFAULT_HOST, DEFAULT_PORT

_SETTING = re.compile(r'(?:^|[;{"])[ \t]*(tcl_port|tcl port|bindto)[ \t]+([^\s;}"#]+)', re.MULTILINE)
_EVERYWHERE = ("0.0.0.0", "::", "*")
DEFAULT = f"{DEFAULT_HOST}:{DEFAULT_PORT}"


class ConfiguredServer(NamedTuple):
    """The Tcl server, and where host and port come from. *files*: the configuration, if it was given."""

    host: str
    port: int
    host_source: str
    port_source: str
    files: tuple[str, ...] = ()

    @property
    def start(self) -> str:
        """How OpenOCD is started with this configuration."""
        return " ".join(["openocd", *(f"-f {file}" for file in self.files)])


def server(words: Sequence[str], source: str) -> ConfiguredServer:
    """Return the server that *words* mean: HOST:PORT, or names of configuration files. Raises Unfit.

    *source*: of the words, for comments.
    """
    if len(words) == 1 and not Path(words[0]).exists():
        host, colon, port = words[0].rpartition(":")
        if port.isdecimal() and (colon or not host):
            return ConfiguredServer(host.strip("[]") or DEFAULT_HOST, _port(port, words[0]), source, source)
    return _of_files(words)


def _of_files(files: Sequence[str]) -> ConfiguredServer:
    found: dict[str, tuple[str, str]] = {}
    for file in files:
        try:
            text = read_input(file).decode(errors="replace")
        except (OSError, ValueError) as error:
            problem = f"{file}: is neither HOST:PORT nor an OpenOCD configuration: {open_problem(error)}"
            raise Unfit(problem) from None
        for name, value in _SETTING.findall(text):
            found[name.replace(" ", "_")] = value, f"{name} in {file}"
    host, host_source = found.get("bindto", (DEFAULT_HOST, f"default: no bindto in {', '.join(files)}"))
    port, port_source = found.get("tcl_port", (str(DEFAULT_PORT), f"default: no tcl_port in {', '.join(files)}"))
    if host in _EVERYWHERE:
        host = DEFAULT_HOST
    return ConfiguredServer(host, _port(port, port_source), host_source, port_source, tuple(files))


def _port(text: str, where: str) -> int:
    if text == "disabled":
        raise Unfit(f"{where} is disabled: rvtrace needs OpenOCD's Tcl server; set tcl_port 6666 there")
    if not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise Unfit(f"{where}: {text} is not a TCP port that can be read from the text; give --openocd HOST:PORT")
    return int(text)
