"""Real gdb and OpenOCD, simulated target: what is typed while a trace runs is known of its halts, and nothing else;
what is typed where it ends is not what the program left.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownState
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import SavedAt
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.halts import begins_as_saved, halt_writes
from rvtrace_gdb.session.past.live_stop import live_stop
from rvtrace_gdb.session.past.saved_facts import known_of
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.extents import Extent
from tests.endtoend.reverse.walk_model import Code
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import demo
from tests.session.proxy.fakes import Client

A0 = 0x100A
TYPED = [
    "print &result", "tbreak classify", "continue", "set var result = 5", "stepi", "stepi ", "print $a0 = 0x77",
    "tbreak finish", "continue ", "print fib(3)", "print $pc", "stepi  ", "reverse-stepi", "trace live",
]  # fmt: skip


@pytest.mark.parametrize("format", ["ntrace", *long_only("etrace")])
def test_what_is_typed_is_known(format: str, tmp_path: Path) -> None:
    elf, saved = demo(tmp_path), tmp_path / "x.rvt"
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC") as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        said = run_gdb(elf, [*begin, f"trace start -format {format}", *TYPED, "trace stop", f"trace save {saved}"])
    assert said["print fib(3)"].split()[-1] == "2"
    capture, symbols = load(str(saved)), Code(elf).symbols
    (result,) = (int(word, 16) for word in said["print &result"].split() if word.startswith("0x"))
    begun, classify, second, third, called, after = capture.written
    assert [it.pc for it in (begun, classify)] == [symbols["_start"], symbols["classify"]]
    assert (called.pc, after.pc) == (symbols["fib"], symbols["finish"])
    assert [it.halts for it in capture.written] == [1] * 6 and not any(it.unknown for it in capture.written)
    assert classify.memory == ((result, b"\5\0\0\0"),) and not classify.registers
    assert not (begun.memory or begun.registers or second.memory or second.registers)
    assert third.registers == {A0: 0x77} and not third.memory
    assert called.registers[A0] == 3
    session = Session()
    session.open(str(saved), None)
    history, _ = session.decoded()
    halts = halt_writes(history, capture.written, session.harts().sink_of(0))
    assert [history.pc(it.position) for it in halts] == [it.pc for it in capture.written]
    assert [(it.registers, it.memory) for it in halts] == [(it.registers, it.memory) for it in capture.written]
    assert ((symbols["finish"], 2) in halts[0].forgotten) or ((symbols["finish"], 4) in halts[0].forgotten)


RAM = Extent(0x8000_0000, 0x800_0000)


def test_what_the_program_left(tmp_path: Path) -> None:
    """Registers and memory where a trace ends, read beside gdb and then without it."""
    elf, saved = demo(tmp_path), tmp_path / "x.rvt"
    symbols = Code(elf).symbols
    where, classify = symbols["operations"], symbols["classify"]
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC") as rig:
        session, context = Session(environ={}), Context(str(elf), str(rig.target_file), save_memory=f"{where},+16")
        session.debugger = debugger = ProxyDebugger(session, context)
        debugger.listen(StubAddress("127.0.0.1", rig.gdb_port))
        client = Client(debugger.proxy.port, acknowledges=False)
        client.read_target()
        client.ask(b"?")
        session.start(context)
        client.ask(b"Z1,%x,2" % classify)
        assert client.ask(b"vCont;c").startswith(b"T05")
        g, memory = bytes.fromhex(client.ask(b"g").decode()), bytes.fromhex(client.ask(b"m%x,10" % where).decode())
        assert client.ask(b"M%x,8:%b" % (where, b"5a" * 8)) == b"OK" == client.ask(b"Pa=0700000000000000")
        session.harts(context)
        stop = live_stop(session, 0, [RAM], context)
        assert stop is not None and (stop.pc, stop.memory(where, 16)) == (classify, memory)
        assert _bytes(stop.x) == g[:256]
        assert client.ask(b"m%x,1" % where) == b"5a", "it is what gdb has made of it"
        session.stop(context=context)
        session.save(saved, context)
        client.close()
        session.close()
    (registers,) = (it for it in load(saved).registers if it.at is SavedAt.STOP)
    assert (registers.pc, registers.registers[A0]) == (classify, stop.x[10])
    assert [(it.address, it.data) for it in load(saved).memory if it.at is SavedAt.STOP] == [(where, memory)]


@thorough("test_what_is_typed_is_known")
def test_values_across_halts_at_which_gdb_has_written(tmp_path: Path) -> None:
    """From what was saved at the beginning and what was written follows what gdb reads at each stop."""
    elf = demo(tmp_path)
    symbols = Code(elf).symbols
    saved, result = f"{RAM[0]},+0x3000 0x8007f000,+0x1000", symbols["result"]
    after: list[tuple[int, bytes]] = []  # where it is resumed, and the registers then
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC") as rig:
        session, context = Session(environ={}), Context(str(elf), str(rig.target_file), save_memory=saved)
        session.debugger = debugger = ProxyDebugger(session, context)
        debugger.listen(StubAddress("127.0.0.1", rig.gdb_port))
        client = Client(debugger.proxy.port, acknowledges=False)
        client.read_target()
        client.ask(b"?")
        session.start(context, {"with_memory": True})
        client.ask(b"M%x,4:07000000" % result)
        for number, to in enumerate(["fib", *[""] * 9, "classify", *[""] * 4, "finish"]):
            point = b"1,%x,2" % symbols[to or "fib"]
            client.ask((b"Z" if to else b"z") + point)
            assert client.ask(b"vCont;c" if to else b"vCont;s").startswith(b"T05")
            client.ask(b"z" + point)
            assert client.ask(b"Pf=%02x00000000000000" % number) == b"OK"
            if number % 3 == 0:
                client.ask(b"M%x,4:%02x000000" % (result, number))
            g = bytes.fromhex(client.ask(b"g").decode())
            after.append((int.from_bytes(g[256:264], "little"), g[:256]))
        assert client.ask(b"vCont;s").startswith(b"T05")
        last, memory = bytes.fromhex(client.ask(b"g").decode()), client.ask(b"m%x,4" % result)
        history = session.harts(context).harts.histories[0]
        selected, capture = session.selected(context), session.capture()
        client.close()
        session.close()
    halts = halt_writes(history, capture.written, capture.sinks[0])
    assert begins_as_saved(halts, capture.written) and len(halts) == 1 + len(after)
    known = known_of(capture, selected, capture.sinks[0])
    assert known.beginning is not None and known.halts == halts
    first = replace(capture.written[0], unknown=True)  # as after `monitor mww`
    other = known_of(replace(capture, written=(first, *capture.written[1:])), selected, capture.sinks[0])
    assert other.beginning is None and other.halts == halts[1:]
    start = next(it for it in capture.registers if it.at is SavedAt.START)
    beginning = KnownState(
        0, (0, *(start.registers.get(0x1000 + n) for n in range(1, 32))), privilege=start.privilege,
        csrs={it: value for it, value in start.registers.items() if it < 0x1000},
        memory=[(it.address, it.data) for it in capture.memory if it.at is SavedAt.START],
    )  # fmt: skip
    forward = Forward(history, selected.program, HartMachine(64, "IMAC", [RAM]), beginning, halts=halts)
    for halt, (pc, registers) in zip(halts[1:], after, strict=True):
        assert (history.pc(halt.position), _bytes(forward.hart_at(halt.position).x)) == (pc, registers)
    hart = forward.hart_at(len(history))
    assert _bytes(hart.x) == last[:256]
    assert forward.memory.load(result, 4) == int.from_bytes(bytes.fromhex(memory.decode()), "little")


def _bytes(registers: Sequence[int | None]) -> bytes:
    assert None not in registers
    return b"".join((value or 0).to_bytes(8, "little") for value in registers)
