"""Control Transfer Records of the simulated target through the real OpenOCD.

What OpenOCD reads is what the independent model says, told what the same program retires to the same place in-process.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import ElfFile
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from tests.ctr_model.model import Entry, Model
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo
from tests.transport.simulated.ctr.program_run import CONTROL, HIGH, Followed
from tests.transport.simulated.openocd import OpenOcd, Tcl, TclError

SCTRDEPTH = 0x15F
NAMES = {  # of the control, status, select and first alias registers
    "1.0": ("mctrctl", "sctrstatus", "siselect", "sireg"),
    "0.1.4": ("mctrcontrol", "mctrstatus", "miselect", "mireg"),
}
M = {"1.0": 1 << 2, "0.1.4": 1 << 0}
RASEMU = {"1.0": 1 << 7, "0.1.4": 1 << 10}
NTBREN = 1 << 36
DEPTH_64 = {"1.0": 2, "0.1.4": 0b0011 << 16}


class Target:
    """A program in the rig, and in-process; what is written is written to both."""

    def __init__(self, rig: OpenOcd, elf: Path, version: str) -> None:
        self.tcl: Tcl = rig.tcl
        self.version = version
        self.model = Model(elf, version, exponent_bits=4)
        self._follow = Followed(elf, CtrBuild(version))
        self._xlen = self._follow.hart.xlen
        self._elf = ElfFile(elf)

    def configure(self, control: int) -> None:
        """And 64 entries."""
        if self.version == "1.0":
            self._write(SCTRDEPTH, "sctrdepth", DEPTH_64["1.0"])
        else:
            control |= DEPTH_64["0.1.4"]
        self._write(CONTROL[self.version], NAMES[self.version][0], control & (1 << self._xlen) - 1)
        if self.version == "0.1.4" and self._xlen == 32:
            self._write(HIGH, "mctrcontrolh", control >> 32)

    def _write(self, number: int, name: str, value: int) -> None:
        self.tcl.set_reg(f"csr_{name}", value)
        self._follow.write(number, value)

    def run_to(self, symbol: str) -> None:
        address = self._elf.symbol(symbol)
        assert address is not None
        self.tcl(f"bp {address:#x} 2 hw; resume")
        deadline = time.monotonic() + 60
        while self.tcl.state != "halted":
            assert time.monotonic() < deadline, "the hart does not halt"
            time.sleep(0.005)
        self.tcl(f"rbp {address:#x}")
        assert self.tcl.reg("pc") == address
        self._follow.run_to(address)

    def step(self) -> None:
        """The instruction is recorded as any; that the hart halts is not."""
        self.tcl("step")
        self._follow.step()

    def entries(self) -> list[Entry]:
        """All 64, in one request."""
        _, _, select, ireg = NAMES[self.version]
        names = f"csr_{ireg} csr_{ireg}2 csr_{ireg}3"
        one = f"set_reg [list csr_{select} [expr {{0x200+$i}}]]; lappend l [dict values [get_reg -force {{{names}}}]]"
        words = self.tcl(f"set l {{}}; for {{set i 0}} {{$i < 64}} {{incr i}} {{{one}}}; join $l").split()
        values = [int(word, 0) for word in words]
        return [(values[n], values[n + 1], values[n + 2]) for n in range(0, len(values), 3)]

    def check(self) -> int:
        """Returns how many valid entries there are."""
        expected = self._follow.compare(self.model)
        assert self.entries() == expected
        assert self.tcl.reg(f"csr_{NAMES[self.version][1]}") == self.model.status
        return sum(source & 1 for source, _, _ in expected)


@pytest.fixture(
    scope="module",
    params=["1.0-rv64imac_zicsr", "0.1.4-rv32imac_zicsr", *long_only("1.0-rv32imac_zicsr", "0.1.4-rv64imac_zicsr")],
)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    version, march = request.param.split("-")
    folder = tmp_path_factory.mktemp("ctr")
    elf = demo(folder, march)
    with OpenOcd(elf, folder / "rig", "--ctr", version) as rig:
        yield Target(rig, elf, version)


def test_what_openocd_reads_is_what_the_model_says(target: Target) -> None:
    target.configure(M[target.version] | RASEMU[target.version])
    target.run_to("fib")
    assert target.check() > 0
    target.configure(M[target.version] | NTBREN)
    target.step()
    target.run_to("finish")
    assert target.check() == 64


def test_openocd_knows_the_csrs_and_no_others(target: Target) -> None:
    other = {"1.0": "mctrcontrol", "0.1.4": "mctrctl"}[target.version]
    with pytest.raises(TclError):
        target.tcl.reg(f"csr_{other}")
    with pytest.raises(TclError):  # nothing is selected
        target.tcl.set_reg(f"csr_{NAMES[target.version][2]}", 0)
        target.tcl.reg(f"csr_{NAMES[target.version][3]}")
