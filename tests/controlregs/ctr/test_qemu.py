"""The procedures on QEMU 10's CTR, by plain register packets: what they read is what those read one by one.

What QEMU records is right by tests/endtoend/ctr/test_qemu_model.py. Its stub accepts writes that the hart's mode
forbids and does nothing, refuses reads, and shows a guest's registers where V=1.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.controlregs.ctr.hart import detect
from rvtrace_gdb.controlregs.ctr.procedures import clear, read, start, status, stop
from rvtrace_gdb.controlregs.ctr.settings import CtrRequest, settings
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS
from rvtrace_gdb.controlregs.errors import CtrForbidden, DepthRefused, NoCtr
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.support.errors import Progress, silent
from tests.controlregs.ctr.plain_program import plain
from tests.ctr_model.model import Model, Write
from tests.ctr_model.packet_reads import seen
from tests.ctr_model.programs import build, looks, symbols
from tests.helpers.amounts import LONG, long_only
from tests.helpers.qemu10 import CPU, Qemu10, running
from tests.helpers.remote_protocol import Refused, Rsp

V_1_0 = VERSIONS["1.0"]
USUAL = f"rv64,{CPU}"
VSISELECT, VSCTRCTL = 0x250, 0x24E


class Packets:
    """A `CsrAccess` that sends one packet after the other."""

    name = "QEMU"

    def __init__(self, stub: Rsp) -> None:
        self.stub, self.xlen = stub, stub.bytes * 8
        self.writes: list[tuple[CsrName, int]] = []

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        answers: list[CsrAnswer] = []
        for register, value in accesses:
            try:
                answers.append(self._access(register, value))
            except Refused as refused:
                answers.append(str(refused))
                break
        return answers

    def _access(self, register: CsrName, value: int | None) -> int:
        special = {"pc": 32, "priv": self.stub.csr_base - 1}
        number = special[register] if isinstance(register, str) else self.stub.csr_base + register
        if value is None:
            return self.stub.read(number)
        self.writes.append((register, value))
        self.stub.write(number, value)
        return 0


@contextmanager
def machine_at(elf: Path, folder: Path, cpu: str, *addresses: int) -> Iterator[tuple[Packets, Rsp, Qemu10]]:
    with running(elf, folder, cpu=cpu, logged=True) as machine, Rsp(machine.port) as stub:
        for address in addresses:
            stub.go(address)
        yield Packets(stub), stub, machine


@pytest.mark.parametrize("cpu", [USUAL, *long_only("max")])
def test_reading_is_what_plain_packets_read(tmp_path: Path, cpu: str) -> None:
    elf = build(tmp_path, "jumps")
    left = looks(elf)
    with machine_at(elf, tmp_path, cpu) as (access, stub, _):
        while left:
            left.pop(stub.go(*left))
            if not LONG and len(left) % 3:  # in every third place
                continue
            expected, selected = seen(stub), stub.csr(0x150)
            in_force, entries = read(access, detect(access), "ctr0")
            assert [tuple(entry) for entry in entries] == [words for words in expected.entries if words[0] & 1]
            assert (in_force.status, in_force.control, in_force.depth) == expected[:3]
            assert status(access, V_1_0, "ctr0").recorded == len(entries)
            assert (seen(stub), stub.csr(0x150)) == (expected, selected)
    assert {register for register, _ in access.writes} == {0x150}


BELOW = {"u": ("modes", "user", 0), "s": ("modes", "supervisor", 1), "vu": ("virtual", "guest_user", 4)}


@pytest.mark.parametrize(
    ("below", "cpu"), [("u", "max"), ("s", USUAL), ("vu", USUAL), *long_only(("u", USUAL), ("s", "max"), ("vu", "max"))]
)
def test_below_m_mode(tmp_path: Path, cpu: str, below: str) -> None:
    """`max` has Smstateen: CTR is closed below M mode. `priv` is as before afterwards, so are the guest's selects."""
    program, where, mode = BELOW[below]
    elf = build(tmp_path, program)
    with machine_at(elf, tmp_path, cpu, symbols(elf)[where]) as (access, stub, _):
        assert stub.mode == mode
        stub.mode = 3
        stub.set_csr(0x150, 0x123)
        stub.set_csr(VSISELECT, 0x234)
        stub.set_csr(0x34E, 0x305)
        before = [stub.csr(number) for number in (0x150, VSISELECT, VSCTRCTL, 0x34E, 0x15F)]
        expected = [words for words in seen(stub).entries if words[0] & 1]
        stub.mode = mode
        in_force, entries = read(access, detect(access), "ctr0")
        assert ([tuple(entry) for entry in entries], in_force.privilege) == (expected, mode)
        started = start(access, V_1_0, CtrRequest(depth=16, ras=True), "ctr0")
        assert stub.mode == mode and [note[:17] for note in started.notes] == ["mctrctl was 0x305"]
        assert settings(started.in_force).modes == {"m", "s", "u", "vs", "vu"} and started.in_force.depth == 16
        stop(access, V_1_0, started.saved)
        assert stub.mode == mode
        raised = ("priv", 3) in access.writes
        assert raised == (cpu == "max" or mode == 4), "writing it kills the reservation of an lr/sc"
        stub.mode = 3
        assert [stub.csr(number) for number in (0x150, VSISELECT, VSCTRCTL, 0x34E, 0x15F)] == before


@pytest.mark.parametrize(
    "request_",
    [
        CtrRequest(depth=64),
        CtrRequest(depth=32, modes=frozenset({"m"}), inhibit=frozenset({TransferType.DIRECT_CALL})),
        CtrRequest(not_taken=True, inhibit=frozenset({TransferType.FUNCTION_RETURN, TransferType.DIRECT_JUMP})),
        CtrRequest(ras=True),
        CtrRequest(modes=frozenset({"u"})),
    ],
    ids=["all", "no-direct-calls", "not-taken", "ras", "other-mode"],
)
def test_a_program_that_knows_nothing_of_it(tmp_path: Path, request_: CtrRequest) -> None:
    """A debugger starts it: what is recorded is what the model says of what QEMU executed."""
    elf = plain(tmp_path)
    at = symbols(elf)
    with machine_at(elf, tmp_path, USUAL, at["_start"]) as (access, stub, machine):
        stub.set_csr(0x14F, 0x8000_0003)
        before = [stub.csr(number) for number in (0x150, VSCTRCTL, 0x34E, 0x15F, 0x14F)]
        started = start(access, detect(access), request_, "ctr0")
        assert not started.notes
        stub.go(at["done"])
        _, entries = read(access, V_1_0, "ctr0")
        ran = stub.csr(0x14F)
        stop(access, V_1_0, started.saved)
        after = [stub.csr(number) for number in (0x150, VSCTRCTL, 0x34E, 0x15F, 0x14F)]
        machine_events = machine.events()
    model = Model(elf, "1.0")
    code = {16: 0, 32: 1, 64: 2, 128: 3, 256: 4}[request_.depth or 256]
    model.run([Write(0x15F, code), Write(0x14F, 3), Write(0x34E, started.in_force.control)])
    model.run(machine_events)
    model.reach(at["done"], 3)
    assert [tuple(entry) for entry in entries] == [words for words in model.entries() if words[0] & 1]
    assert ran == model.status
    assert before[:4] == after[:4] and after[4] >> 31 == 1


def test_clear(tmp_path: Path) -> None:
    elf = build(tmp_path, "jumps")
    with machine_at(elf, tmp_path, USUAL, *list(looks(elf))[:1]) as (access, stub, _):
        before = seen(stub)
        assert before.entries[0][0] & 1
        clear(access, detect(access))
        after = seen(stub)
        assert after[:3] == before[:3] and set(after.entries) == {(0, 0, 0)}


def test_no_ctr(tmp_path: Path) -> None:
    elf = plain(tmp_path)
    with machine_at(elf, tmp_path, "rv64") as (access, _, _):
        with pytest.raises(NoCtr, match=r"^this hart has no Control Transfer Records \(QEMU: mctrctl: p.*: E14"):
            detect(access)
        with pytest.raises(NoCtr, match=r"no Control Transfer Records 0\.1\.4"):
            detect(access, "0.1.4")
    assert access.writes == []


def test_the_draft_is_asked_for_and_1_0_is_there(tmp_path: Path) -> None:
    with machine_at(plain(tmp_path), tmp_path, USUAL) as (access, _, _):
        with pytest.raises(NoCtr, match=r"no Control Transfer Records 0\.1\.4, but 1\.0: choose that version"):
            detect(access, "0.1.4")
        with pytest.raises(DepthRefused, match="take a depth of 24; this hart has 16, 32, 64, 128, 256"):
            start(access, V_1_0, CtrRequest(depth=24), "ctr0")


def test_privilege_forbids(tmp_path: Path) -> None:
    """The stub's `priv` is kept from being written: what remains is one line that says so."""

    class Kept(Packets):
        def _access(self, register: CsrName, value: int | None) -> int:
            return 0 if register == "priv" and value is not None else super()._access(register, value)

    elf = build(tmp_path, "modes")
    with machine_at(elf, tmp_path, "max", symbols(elf)["user"]) as (_, stub, _):
        with pytest.raises(CtrForbidden) as error:
            read(Kept(stub), V_1_0, "ctr0")
        assert " is closed in U mode" in str(error.value) and "cannot be set to 3" in str(error.value)


def test_rv32(tmp_path: Path) -> None:
    """Filters are out of reach there: said, not guessed."""
    elf = build(tmp_path, "small", march="rv32imac_zicsr")
    with machine_at(elf, tmp_path, f"rv32,{CPU}", *list(looks(elf))[:1]) as (access, stub, _):
        expected = [words for words in seen(stub).entries if words[0] & 1]
        assert [tuple(entry) for entry in read(access, detect(access), "ctr0")[1]] == expected != []
        started = start(access, V_1_0, CtrRequest(depth=16, inhibit=frozenset({TransferType.DIRECT_JUMP})), "ctr0")
        assert started.notes[1:] == ("version 1.0 has on RV32 no mctrctl.DIRJMPINH: it cannot omit direct jumps",)
        stop(access, V_1_0, started.saved)
