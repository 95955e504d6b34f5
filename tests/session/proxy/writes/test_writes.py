"""What gdb writes while a trace runs, halt by halt: packets as gdb sends them, to a fake stub; what is expected is what
they say (GDB manual, "Packets").
"""

from collections.abc import Iterator

import pytest

from rvtrace_gdb.session.capture.model import DebuggerWrites
from rvtrace_gdb.session.proxy.clients.monitor_commands import Effect, effect_of
from rvtrace_gdb.session.proxy.writes.write_log import WriteLog, joined
from rvtrace_gdb.support.extents import Extent
from tests.helpers.wait import until
from tests.session.proxy.conftest import Between
from tests.session.proxy.fakes import CPU, STOP, Client

A0, S1 = 0x100A, 0x1009


class Traced:
    """A gdb while a trace is recorded of hart 0, which is its thread 1."""

    def __init__(self, between: Between) -> None:
        self.stub, self.proxy, self.between = between.stub, between.proxy, between
        self.client: Client = between.client()
        self.log: WriteLog = between.proxy._state.target.writes
        self.log.begin(is_running=False)

    def stop_at(self, pc: int, resume: bytes = b"vCont;c") -> None:
        """Resume, and stop there; gdb reads the registers then."""
        assert self.client.ask(resume).startswith(STOP)
        self.stub.pc = pc
        self.client.ask(b"g")

    @property
    def written(self) -> list[DebuggerWrites]:
        return list(self.log.written([0]))


@pytest.fixture
def traced(between: Between) -> Iterator[Traced]:
    it = Traced(between)
    it.client.ask(b"g")
    yield it
    assert not any("internal" in line for line in it.proxy.take_lines())


def test_registers_and_memory(traced: Traced) -> None:
    traced.stop_at(0x2000)
    assert traced.client.ask(b"Pa=0500000000000000") == b"OK"
    assert traced.client.ask(b"X80000000,0:") == b"OK", "gdb tests whether the packet is known"
    assert traced.client.ask(b"X80000000,4:\x01}]\x03\x04") == b"OK"
    assert traced.client.ask(b"M80000002,2:aabb") == b"OK"
    assert traced.client.ask(b"M90000000,1:07") == b"OK"
    assert len(traced.written) == 1, "the halt has not ended"
    traced.stop_at(0x3000)
    traced.stop_at(0x4000, b"vCont;s:p1.1;c:p1.-1")
    memory = ((0x8000_0000, b"\x01\x7d\xaa\xbb"), (0x9000_0000, b"\x07"))
    assert traced.written == [
        DebuggerWrites(0, 0x1010), DebuggerWrites(0, 0x2000, {A0: 5}, memory), DebuggerWrites(0, 0x3000),
    ]  # fmt: skip


def test_all_registers_at_once(traced: Traced) -> None:
    values = b"".join(b"%02x00000000000000" % (number + 1) for number in range(32)) + b"0030000000000000"
    assert traced.client.ask(b"G" + values + b"00000000") == b"OK"
    traced.stop_at(0x2000)
    (halt,) = traced.written
    assert halt.pc == 0x3000 and halt.registers == {0x1000 + n: n + 1 for n in range(1, 32)}


def test_where_it_is_resumed(traced: Traced) -> None:
    """What gdb wrote into the pc; what it read; an address in the packet; else it is asked for."""
    assert traced.client.ask(b"P20=0020000000000000") == b"OK"
    traced.client.ask(b"vCont;c")
    traced.stub.pc = 0x3000
    traced.client.ask(b"p20")
    traced.client.ask(b"c")
    asked = traced.stub.got.count(b"p20")
    traced.client.ask(b"c5000")
    traced.stub.pc = 0x6000
    traced.client.ask(b"vCont;c")
    assert [it.pc for it in traced.written] == [0x2000, 0x3000, 0x5000, 0x6000]
    assert all(not it.registers for it in traced.written)
    assert traced.stub.got.count(b"p20") <= asked + 2


def test_steps_need_no_packets_of_ours(traced: Traced) -> None:
    traced.stop_at(0x2000)
    before = len(traced.stub.got)
    for n in range(10):
        traced.stop_at(0x2002 + n, b"vCont;s:p1.1")
    assert traced.stub.got[before:] == [b"vCont;s:p1.1", b"g"] * 10
    assert [it.pc for it in traced.written] == [0x1010, 0x2000, *range(0x2002, 0x200B)]


def test_a_csr_holds_what_it_is_read_as(traced: Traced) -> None:
    """It need not keep what is written; sstatus is a part of mstatus."""
    csrs = b'<reg name="mstatus" bitsize="64" regnum="0x341"/><reg name="sstatus" bitsize="64" regnum="0x141"/>'
    traced.stub.answers |= {b"p341": b"8018000000000000", b"qXfer:features:read:cpu.xml:0,ffb": b"l" + CPU[:-10] + csrs}
    traced.client.read_target()
    assert traced.client.ask(b"P141=ffffffffffffffff") == b"OK"
    traced.stop_at(0x2000)
    assert traced.written == [DebuggerWrites(0, 0x1010, {0x300: 0x1880})]


def test_registers_that_nothing_is_known_of(traced: Traced) -> None:
    assert traced.client.ask(b"P50=00000001") == b"OK"
    traced.stop_at(0x2000)
    assert traced.written == [DebuggerWrites(0, 0x1010, unknown=True)]


def test_what_the_stub_refuses(traced: Traced) -> None:
    traced.stub.answers |= {b"Pa=01": b"E01", b"M0,1:07": b"E14"}
    traced.client.ask(b"Pa=01")
    traced.stop_at(0x2000)
    traced.client.ask(b"M0,1:07")
    traced.stop_at(0x3000)
    assert [(it.registers, it.unknown) for it in traced.written] == [({}, False), ({}, True)]


def test_software_breakpoints_are_no_writes(traced: Traced) -> None:
    for body in (b"Z0,2002,2", b"Z1,3000,4", b"Z0,4000,4", b"Z2,8000,8"):
        assert traced.client.ask(body) == b"OK"
    traced.stop_at(0x2002)
    traced.client.ask(b"z0,2002,2")
    traced.stop_at(0x2004, b"vCont;s:p1.1")
    assert traced.written == [
        DebuggerWrites(0, 0x1010, breakpoints=(Extent(0x2002, 2), Extent(0x4000, 4))),
        DebuggerWrites(0, 0x2002, breakpoints=(Extent(0x4000, 4),)),
    ]  # fmt: skip


def monitor(traced: Traced, command: str) -> None:
    body = b"qRcmd," + command.encode().hex().encode()
    traced.stub.answers[body] = b"OK"
    assert traced.client.ask(body) == b"OK"


def test_monitor_commands(traced: Traced) -> None:
    monitor(traced, "mdw 0x80000000 4")
    traced.stop_at(0x2000)
    monitor(traced, "mww 0x80000000 4")
    traced.stop_at(0x3000)
    monitor(traced, "resume")
    traced.stop_at(0x4000)
    assert traced.written == [
        DebuggerWrites(0, 0x1010), DebuggerWrites(0, 0x2000, unknown=True),
        DebuggerWrites(0, None, unknown=True, halts=0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("reg", Effect.NONE), ("reg pc force", Effect.NONE), ("reg pc 0x10", Effect.WRITES), ("poll", Effect.NONE),
        ("md 0 4", Effect.NONE), ("mdx", Effect.ANY), ("echo hello", Effect.NONE), ("echo [mww 0 1]", Effect.ANY),
        ("targets", Effect.NONE), ("info registers", Effect.NONE), ("mwb 0 1", Effect.WRITES), ("halt", Effect.ANY),
        ("reset halt", Effect.ANY), ("targets; resume", Effect.ANY), ("flash banks", Effect.NONE), ("", Effect.NONE),
        ("flash erase_sector 0 0 1", Effect.ANY), ("set _rvtrace_out {}; foreach x {1 2} {}", Effect.NONE),
        ("load_image a.elf", Effect.WRITES), ("nonsense", Effect.ANY), ("poll off", Effect.NONE),
    ],
)  # fmt: skip
def test_what_commands_do(command: str, effect: Effect) -> None:
    assert effect_of(command) is effect


def test_calls_of_the_host_and_flash(traced: Traced) -> None:
    traced.stub.answers |= {b"vCont;c": b"Fwrite,1,80000000,4", b"F4": STOP, b"vFlashDone": b"OK", b"qCRC:0,4": b"C1"}
    assert traced.client.ask(b"vCont;c").startswith(b"Fwrite")
    assert traced.client.ask(b"F4").startswith(STOP)
    traced.client.ask(b"vFlashDone")
    traced.client.ask(b"s")
    traced.client.ask(b"qCRC:0,4")
    traced.client.ask(b"s")
    assert [(it.pc, it.unknown, it.halts) for it in traced.written] == [
        (0x1010, False, 1), (None, True, 1), (None, True, 0), (None, True, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"R00", b"vRun;", b"k", b"D"])
def test_what_ends_or_restarts_the_target(traced: Traced, body: bytes) -> None:
    traced.stub.answers[b"vRun;"] = STOP
    traced.client.ask(b"M0,1:07")
    traced.client.socket.sendall(b"$%b#%02x" % (body, sum(body) % 256))
    traced.stub.wait_for(body)
    traced.client.close()
    again = traced.between.client()
    again.ask(b"g")
    assert traced.written[0] == DebuggerWrites(0, None, unknown=True, halts=0)


def test_nobody_sees_a_target_that_gdb_has_left_or_lost(traced: Traced) -> None:
    """The halt of an ended program is not one of the next, and nothing is known of it."""
    gap = DebuggerWrites(0, None, unknown=True, halts=0)
    traced.client.ask(b"D")
    assert traced.written == [gap]
    traced.log.begin(is_running=False)
    traced.stub.hang_up()
    until(lambda: traced.written == [gap])


def test_another_connection_in_between(traced: Traced) -> None:
    traced.stop_at(0x2000)
    traced.client.close()
    traced.client = traced.between.client()
    traced.client.ask(b"g")
    traced.stop_at(0x3000)
    traced.stop_at(0x4000)
    gap = DebuggerWrites(0, None, unknown=True, halts=0)
    again = [DebuggerWrites(0, 0x2000, unknown=True), DebuggerWrites(0, 0x3000)]
    assert traced.written == [DebuggerWrites(0, 0x1010), gap, *again]


def test_several_harts(traced: Traced) -> None:
    """Memory is all harts', registers are one's; of a hart that a packet does not name nobody counts the halts."""
    traced.client.ask(b"Hgp1.2")
    traced.client.ask(b"P9=0700000000000000")
    traced.client.ask(b"Hgp1.1")
    traced.client.ask(b"M0,1:07")
    traced.stop_at(0x2000, b"vCont;s:p1.1;c")
    traced.stop_at(0x3000, b"vCont;s:p1.1")
    assert traced.log.written([0, 1]) == (
        DebuggerWrites(0, 0x1010, {}, ((0, b"\7"),)), DebuggerWrites(0, 0x2000),
        DebuggerWrites(1, 0x1010, {S1: 7}, ((0, b"\7"),)), DebuggerWrites(1, None, halts=0),
    )  # fmt: skip


def test_a_trace_that_begins_later(traced: Traced) -> None:
    log = WriteLog()
    log.begin(is_running=True)
    log.resumed({None: 0x10})
    assert log.written([3]) == (DebuggerWrites(3, None, unknown=True), DebuggerWrites(3, 0x10))
    log.begin(is_running=False, is_known=False)
    assert log.written([3]) == (DebuggerWrites(3, None, unknown=True, halts=0),)
    log.end()
    log.resumed({None: 0x10})
    assert len(log.written([3])) == 1


def test_many_halts() -> None:
    """Those at which nothing was written become one entry, beyond the nearest ones."""
    log = WriteLog()
    log.begin(is_running=False)
    for pc in range(5000):
        if pc == 2500:
            log.wrote_register(None, A0, 1)
        log.resumed({None: pc})
    written = log.written([0])
    assert sum(it.halts for it in written) == 5000 and len(written) < 300
    passed = 0
    for it in written:
        passed += it.halts
        assert it.pc == passed - 1
    (changed,) = [it for it in written if it.registers]
    at = written.index(changed)
    assert changed.pc == 2500 and {it.halts for it in written[at - 60 : at + 60]} == {1}


def test_much_is_unknown() -> None:
    log = WriteLog()
    log.begin(is_running=False)
    log.wrote_memory(0, bytes(1 << 20))
    log.wrote_memory(0, b"1")
    log.resumed({None: 0})
    assert log.written([0]) == (DebuggerWrites(0, 0, unknown=True),)
    for pc in range(5000):
        log.wrote_register(None, A0, pc)
        log.resumed({None: pc})
    written = log.written([0])
    assert len(written) <= 4097 and written[0] == DebuggerWrites(0, None, unknown=True, halts=0)
    assert [it.pc for it in written[1:]] == list(range(5001 - len(written), 5000))


def test_writes_over_writes() -> None:
    writes = [(0x10, b"abcd"), (0x20, b"x"), (0x12, b"CD"), (0x14, b"ef"), (0xF, b"_A")]
    assert joined(writes) == [(0xF, b"_AbCDef"), (0x20, b"x")]
    assert joined([(4, b"b"), (5, b"c"), (3, b"a"), (9, b"d")]) == [(3, b"abc"), (9, b"d")]
    assert joined([(0x1000 + n, b"x") for n in range(3)]) == [(0x1000, b"xxx")]
    assert joined([]) == []


def test_what_was_there_is_not_known_after_a_command_that_writes(traced: Traced) -> None:
    traced.client.ask(b"M80000000,2:aabb")
    assert traced.log.kept(0) is not None
    monitor(traced, "mww 0 1")
    assert traced.log.kept(0) is None


def test_what_was_there_is_kept_where_a_trace_ends(traced: Traced) -> None:
    """The stub has 11 everywhere, and the number of each register in it."""
    traced.stop_at(0x2000)
    traced.log.end()
    traced.client.ask(b"Pa=0500000000000000")
    traced.client.ask(b"Pa=0600000000000000")
    traced.client.ask(b"M80000000,2:aabb")
    traced.client.ask(b"M80000001,2:ccdd")
    traced.client.ask(b"Z0,7000,2")
    kept = traced.log.kept(0)
    assert kept is not None and kept.registers[A0] == 10 and kept.registers[-1] == 0x2000
    assert kept.memory == {0x7000: None, 0x7001: None, 0x8000_0000: 0x11, 0x8000_0001: 0x11, 0x8000_0002: 0x11}
    traced.client.ask(b"X90000000,%x:%b" % (2000, b"a" * 2000))
    traced.client.ask(b"z0,7000,2")
    kept = traced.log.kept(0)
    assert kept is not None and kept.memory[0x9000_0000] is None and 0x7000 not in kept.memory, "much is not read"
    for _ in range(5):
        traced.client.ask(b"X90010000,%x:%b" % (16000, b"a" * 16000))
    assert traced.log.kept(0) is None, "far more than is read"
    traced.stop_at(0x3000)
    assert traced.log.kept(0) == ({}, {}) and not traced.log.keeps
    before = len(traced.stub.got)
    traced.client.ask(b"M80000000,2:aabb")
    assert traced.stub.got[before:] == [b"M80000000,2:aabb"]
