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
    Kind("ntrace", "kinds.ntrace", "NTrace"),
    Kind("hart-events", "kinds.hart_events", "HartEvents"),
    Kind("etrace", "kinds.etrace", "ETracePackets"),
    Kind("etrace-encapsulation", "kinds.etrace", "Encapsulated"),
    Kind("etrace-data", "kinds.etrace", "DataTrace"),
    Kind("kernel", "kinds.kernels", "WithAndWithoutKernel"),
    Kind("tandem", "kinds.tandem", "TandemTrace"),
    Kind("ctr", "kinds.ctr", "Records"),
    Kind("branches", "kinds.branches", "Branches"),
    Kind("frames", "kinds.coresight_frames", "CoresightFrames"),
    Kind("capture", "kinds.captures", "CaptureFile"),
    Kind("pack", "kinds.packs", "PackFile"),
    Kind("elf", "kinds.program_files", "ElfFile"),
    Kind("maps", "kinds.program_files", "Maps"),
    Kind("kernel-symbols", "kinds.program_files", "KernelSymbols"),
    Kind("perf-data", "kinds.perf_data", "PerfData"),
    Kind("core-dump", "kinds.program_files", "CoreDump"),
    Kind("chip-memory", "kinds.program_files", "ChipMemory"),
    Kind("device-tree", "kinds.device_trees", "DeviceTree"),
    Kind("description", "kinds.text_files", "DescriptionFile"),
    Kind("sim-devices", "kinds.text_files", "DevicesFile"),
    Kind("log", "kinds.text_files", "ExecutionLog"),
    Kind("script", "kinds.text_files", "Script"),
    Kind("parameters", "kinds.text_files", "ParameterFile"),
    Kind("typed", "kinds.text_files", "Typed"),
    Kind("request", "kinds.requests", "Requests"),
    Kind("request-on-damage", "kinds.requests", "RequestsOnDamage"),
    Kind("session", "kinds.sessions", "SessionLines", process=True),
    Kind("proxy", "kinds.connections", "ProxyConnection", process=True),
    Kind("jtag", "kinds.connections", "JtagConnection", process=True),
    Kind("command", "kinds.commands", "Commands", process=True),
    Kind("follow", "kinds.commands", "Followed", process=True),
    Kind("run", "kinds.script_runs", "ScriptRun", process=True),
    Kind("gdb-text", "kinds.gdb_texts", "GdbTexts", process=True),
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
