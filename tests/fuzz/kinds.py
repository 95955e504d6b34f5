"""The kinds of input there are, by name. Each is a class in a module of its own family (docs/architecture.md)."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from tests.fuzz.exercise import Exercise


class Kind(NamedTuple):
    """*process*: an input takes sockets, threads or a whole command, so fewer are tried."""

    name: str
    module: str
    of: str
    process: bool = False

    def factory(self) -> type[Exercise]:
        """The class."""
        found: type[Exercise] = getattr(import_module(f"tests.fuzz.{self.module}"), self.of)
        return found


KINDS = (
    Kind("ntrace", "of_ntrace", "NTrace"),
    Kind("etrace", "of_etrace", "ETracePackets"),
    Kind("etrace-encapsulation", "of_etrace", "Encapsulated"),
    Kind("etrace-data", "of_etrace", "DataTrace"),
    Kind("tandem", "of_tandem", "TandemTrace"),
    Kind("ctr", "of_ctr", "Records"),
    Kind("capture", "of_captures", "CaptureFile"),
    Kind("elf", "of_files", "ElfFile"),
    Kind("maps", "of_files", "Maps"),
    Kind("core-dump", "of_files", "CoreDump"),
    Kind("chip-memory", "of_files", "ChipMemory"),
    Kind("device-tree", "of_devicetrees", "DeviceTree"),
    Kind("description", "of_texts", "DescriptionFile"),
    Kind("sim-devices", "of_texts", "DevicesFile"),
    Kind("log", "of_texts", "ExecutionLog"),
    Kind("script", "of_texts", "Script"),
    Kind("parameters", "of_texts", "ParameterFile"),
    Kind("typed", "of_texts", "Typed"),
    Kind("request", "of_requests", "Requests"),
    Kind("request-on-damage", "of_requests", "RequestsOnDamage"),
    Kind("session", "of_sessions", "SessionLines", process=True),
    Kind("proxy", "of_connections", "ProxyConnection", process=True),
    Kind("jtag", "of_connections", "JtagConnection", process=True),
    Kind("command", "of_commands", "Commands", process=True),
    Kind("follow", "of_commands", "Followed", process=True),
    Kind("run", "of_runs", "ScriptRun", process=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}
PROCESS_SHARE = 40
"""So many times fewer inputs are tried of a kind that takes a process."""


def chosen(names: list[str]) -> list[Kind]:
    """Kinds by their names, or by what these begin with. Raises SystemExit."""
    found = [kind for kind in KINDS if not names or any(kind.name.startswith(name) for name in names)]
    if not found or any(not any(kind.name.startswith(name) for kind in KINDS) for name in names):
        raise SystemExit(f"{' '.join(names)}: there are {' '.join(BY_NAME)}")
    return found
