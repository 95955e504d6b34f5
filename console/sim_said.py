"""What `rvtrace sim` says on standard output: lines for people, or objects for programs."""

import argparse
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.views import json_rows


class Said(ABC):
    """*quiet*: only what the program itself prints."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    @abstractmethod
    def serving(
        self,
        args: argparse.Namespace,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        """It begins. *config*: of OpenOCD; *where*: it listens; *streams*: where what leaves the chip goes; *tandem*:
        files of tandem traces, by hart.
        """

    @abstractmethod
    def printed(self, text: bytes) -> None:
        """By the program."""

    @abstractmethod
    def exited(self, status: int) -> None:
        """The program."""

    @abstractmethod
    def fired(self, name: str, number: int) -> None:
        """A trigger output of a component."""


class Lines(Said):
    """For people."""

    def serving(
        self,
        args: argparse.Namespace,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        for name, target in streams.items():
            self._say(f"what {name} sends goes to {target}")
        for file in tandem:
            self._say(f"tandem trace: {file}")
        hart = machine.hart
        state = "runs" if args.run_at_once else "waits for the debugger"
        several = f"{len(machine.harts)} harts " if len(machine.harts) > 1 else ""
        self._say(f"{several}RV{hart.xlen}{hart.extensions}: {args.elf} {state} at {hart.pc:#x}")
        self._say("OpenOCD configuration" + (f", also in {args.write_openocd}" if args.write_openocd else "") + ":\n")
        self._say("".join(f"    {line}\n" for line in config.splitlines()))
        if args.side_door:
            self._say(f"the side door is {args.side_door} (transport/simulated/side_door.py tells how)")
        self._say(f"listening on {where}; end with Ctrl-C")
        sys.stdout.flush()

    def printed(self, text: bytes) -> None:
        sys.stdout.write(text.decode("utf-8", "replace"))
        sys.stdout.flush()

    def exited(self, status: int) -> None:
        self._say(f"program ended with status {status}")
        sys.stdout.flush()

    def fired(self, name: str, number: int) -> None:
        self._say(f"{name}: trigger output {number}")
        sys.stdout.flush()

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line)


class Objects(Said):
    """For programs: an object a line, its field `event` says what it is."""

    def serving(
        self,
        args: argparse.Namespace,
        machine: Machine,
        config: str,
        where: str,
        streams: Mapping[str, object],
        tandem: Sequence[str],
    ) -> None:
        hart = machine.hart
        self._say(
            "serving", listening=where, elf=args.elf, addr=f"{hart.pc:#x}", running=bool(args.run_at_once),
            xlen=hart.xlen, isa=f"RV{hart.xlen}{hart.extensions}", harts=len(machine.harts), openocd=config,
            streams={name: str(target) for name, target in streams.items()} or None,
            tandem=list(tandem) or None, **_files(args),
        )  # fmt: skip

    def printed(self, text: bytes) -> None:
        self._say("output", text=text.decode("utf-8", "replace"))

    def exited(self, status: int) -> None:
        self._say("exited", status=status)

    def fired(self, name: str, number: int) -> None:
        self._say("trigger", component=name, number=number)

    def _say(self, event: str, **facts: object) -> None:
        sys.stdout.write(json_rows.line({"event": event, **facts}) + "\n")
        sys.stdout.flush()


def _files(args: argparse.Namespace) -> dict[str, object]:
    names = {"target": "write_target", "openocd-file": "write_openocd", "side-door": "side_door"}
    return {name: getattr(args, given) for name, given in names.items()}
