"""gdb's `record btrace`: what the proxy answers, put together by a naive gdb: it must then have what ran."""

import random
import xml.etree.ElementTree as ElementTree
from typing import Any

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import GAP, Path
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.replay.record_btrace import Btrace, BtraceRequest, configuration
from tests.helpers.amounts import each_seed
from tests.session.replay.naive_btrace import (
    BASE,
    BEQ_8,
    C_NOP,
    C_RET,
    ECALL,
    GAP_TEXT,
    J_16,
    NOP,
    Code,
    NaiveGdb,
    Target,
    run,
    soup,
)


def with_gaps(pcs: list[int]) -> list[int | str]:
    return [GAP_TEXT if pc == GAP else pc for pc in pcs]


@each_seed(range(60))
def test_gdb_has_what_ran(seed: int) -> None:
    """All of it up to the limit, then where the hart stands; in pieces of any size, with gaps where there are any."""
    rng = random.Random(seed)
    code = soup(rng, 30)
    pcs: list[int] = []
    for _ in range(rng.choice((1, 1, 3))):
        ran, pc = run(rng, code, rng.choice(code.at), rng.randint(1, 200))
        pcs += [GAP, *ran] if pcs else ran
    limit = rng.choice((1, 7, 50, 1000))
    gdb = NaiveGdb(Target(code, pcs, pc), limit, rng.choice((16, 100, 0x1000)))
    gdb.fetch()
    expected = with_gaps(pcs[-limit:])
    assert gdb.insns == [*(expected[1:] if expected[0] == GAP_TEXT else expected), pc]
    assert gdb.asked == ["delta", "new"]
    gdb.fetch()
    assert gdb.insns[-1] == pc and gdb.asked == ["delta", "new", "delta"]


@each_seed(range(60))
def test_what_runs_later_is_added(seed: int) -> None:
    """While the trace's beginning stays, only what is new is asked for."""
    rng = random.Random(seed)
    code = soup(rng, 30)
    pcs, pc = run(rng, code, code.at[0], rng.randint(1, 50))
    target = Target(code, pcs, pc)
    gdb = NaiveGdb(target)
    gdb.fetch()
    for _ in range(10):
        ran, target.pc = run(rng, code, target.pc, rng.randint(1, 30))
        target.pcs, target.resumes = target.pcs + ran, target.resumes + 1
        gdb.fetch()
        assert gdb.insns == [*target.pcs, target.pc]
    assert gdb.asked.count("new") == 1 and not gdb.warned and not target.said


@each_seed(range(60))
def test_whatever_becomes_of_the_trace_nothing_else_is_said_to_have_run(seed: int) -> None:
    """Reading out fails, the buffer wraps, the program counter is set, too much runs: gaps, or everything anew."""
    rng = random.Random(seed)
    code = soup(rng, 30)
    ran, pc = run(rng, code, code.at[0], 20)
    target, everything = Target(code, ran, pc), list(ran)
    gdb = NaiveGdb(target, limit := rng.choice((5, 100)))
    for _ in range(25):
        what = rng.choice(("run", "run", "broken", "wrap", "set pc", "nothing", "begin"))
        target.broken = what == "broken"
        if what == "begin":
            gdb.begin(limit)
        elif what == "set pc":
            target.pc = rng.choice(code.at)
        elif what != "nothing":
            ran, target.pc = run(rng, code, target.pc, rng.randint(1, 12))
            target.pcs, target.resumes = target.pcs + ran, target.resumes + 1
            everything += ran
        if what == "wrap":
            target.wrapped, target.pcs = True, target.pcs[rng.randint(1, 10) :]
        gdb.fetch()
        assert gdb.insns[-1] == target.pc
        stretches = "".join(" gap " if insn == GAP_TEXT else f"<{insn:x}>" for insn in gdb.insns[:-1]).split(" gap ")
        text, at = "".join(f"<{pc:x}>" for pc in everything), 0
        for stretch in stretches:
            found = text.find(stretch, at)
            assert found >= 0, f"{stretch} did not run there"
            at = found + len(stretch)
        assert len(gdb.insns) > min(limit, 5) or len(gdb.insns) > len(target.pcs)


def test_not_read_out_is_a_gap_that_is_told() -> None:
    """Once, and it is not tried again before `trace native`: gdb would wait in vain each time."""
    code = Code(*[C_NOP] * 8)
    target = Target(code, code.at[:3], code.at[3])
    gdb = NaiveGdb(target)
    gdb.fetch()
    target.broken, target.resumes, target.pcs, target.pc = True, 1, code.at[:6], code.at[6]
    gdb.fetch()
    assert gdb.insns == [*code.at[:4], GAP_TEXT, code.at[6]]
    [said] = target.said
    assert said == (
        "record btrace: what runs from here on is missing (reading out takes longer than gdb waits);"
        " `trace native` starts again"
    )
    target.broken, target.resumes, target.pcs, target.pc = False, 2, code.at[:7], code.at[7]
    gdb.fetch()
    assert gdb.insns == [*code.at[:4], GAP_TEXT, code.at[6], GAP_TEXT, code.at[7]]
    gdb.begin(10)
    gdb.fetch()
    assert gdb.insns == code.at and target.said == [said]


def test_an_instruction_that_did_not_run_after_all() -> None:
    """An interrupt came first: gdb's last instruction, which had not run yet, is not part of the history."""
    code = Code(*[C_NOP] * 9)
    target = Target(code, code.at[:2], code.at[2])
    gdb = NaiveGdb(target)
    gdb.fetch()
    target.resumes, target.pcs, target.pc = 1, code.at[:2] + code.at[5:7], code.at[7]
    gdb.fetch()
    assert gdb.insns == [*code.at[:2], *code.at[5:8]]


def test_a_gap_at_the_end() -> None:
    """Nothing is known to lead to where the hart stands, address 0 included."""
    code = Code(NOP, C_NOP, NOP)
    for pc in (code.at[2], 0):
        gdb = NaiveGdb(Target(code, [code.at[0], GAP], pc))
        gdb.fetch()
        assert gdb.insns == [code.at[0], GAP_TEXT, pc]


def test_another_place_than_where_the_trace_leads_is_behind_a_gap() -> None:
    """By what the last instruction is: one can follow a nop, two a branch, any a return or an ecall."""
    code = Code(NOP, C_NOP, BEQ_8, NOP, NOP, J_16, NOP, NOP, NOP, ECALL, C_RET)
    anywhere = tuple(range(11))
    leads = {0: (1,), 1: (2,), 2: (3, 4), 5: (9,), 9: anywhere, 10: anywhere}
    for last, following in leads.items():
        for now in range(11):
            gdb = NaiveGdb(Target(code, [code.at[last]], code.at[now]))
            gdb.fetch()
            between = [] if now in following else [GAP_TEXT]
            assert gdb.insns == [code.at[last], *between, code.at[now]], (last, now)


def test_a_million_loops_are_cut_to_the_limit_in_time() -> None:
    """A billion instructions in the history cost what the limit allows."""
    code = Code(*[NOP] * 5, C_RET)
    builder, loop = HistoryBuilder(), Path([tuple(code.at)])
    for _ in range(1_000_000):
        builder.append(loop)
    target = Target(code, [], code.at[0])
    target._read = (target.pcs, builder.finish(Accounting(0, 0, 0, 0)))
    gdb = NaiveGdb(target, 100_000)
    gdb.fetch()
    assert len(gdb.insns) == 100_001 and gdb.insns[-7:] == [*code.at, code.at[0]]


def test_code_that_is_not_there_makes_no_block() -> None:
    """gdb cannot read it either: each instruction is a block, so that it need not know where it ends."""
    code = Code(NOP, C_NOP)
    pcs = [code.at[0], 0x1000, 0x1002, 0x1004]
    target = Target(code, pcs, code.at[1])
    gdb = NaiveGdb(target)
    assert gdb.read("new") == [
        (code.at[1],) * 2,
        (code.at[1], 0),
        (0x1004,) * 2,
        (0x1002,) * 2,
        (0x1000,) * 2,
        (BASE, BASE),
    ]


def test_refusals() -> None:
    code = Code(*[NOP] * 4)
    target = Target(code, [code.at[0]], code.at[1])
    btrace: Any = Btrace(target)  # type: ignore[arg-type]
    use = b"use `trace native`, which decodes the trace first and then records"
    assert btrace.answer(b"Qbtrace:bts", target) == b"E." + use
    assert btrace.answer(b"qXfer:btrace:read:new::0,1000", target) is None
    assert btrace.answer(b"qXfer:btrace:read:new:0,1000", target) == b"E01"
    btrace.prepare(BtraceRequest(Context(), 10, 1))
    target.in_past = True
    assert btrace.answer(b"Qbtrace:bts", target) == b"E.gdb is in the past: `trace live` first"
    target.in_past, target.broken = False, True
    assert btrace.answer(b"Qbtrace:bts", target) == b"E.reading out takes longer than gdb waits; " + use
    target.broken = False
    assert btrace.answer(b"Qbtrace:bts", target) == b"OK"
    assert btrace.answer(b"qXfer:btrace:read:old:0,1000", target) == b"E01"
    assert btrace.answer(b"Qbtrace:pt", target) is None
    assert btrace.answer(b"Qbtrace:off", target) == b"OK"
    assert btrace.answer(b"Qbtrace:off", target) == b"E.nothing is recorded"
    assert btrace.answer(b"qXfer:btrace:read:all:0,1000", target) == b"E01"


def test_configuration_by_its_dtd() -> None:
    """gdb takes a connection that says it records for one that did before: it must not when it connects anew."""
    code = Code(*[NOP] * 4)
    target = Target(code, [code.at[0]], code.at[1])
    gdb = NaiveGdb(target)
    assert gdb.ask(b"Qbtrace-conf:bts:size=0x10000") == b"OK"
    ask = b"qXfer:btrace-conf:read::0,1000"
    assert gdb.ask(ask) == b"l" + configuration(on=True)
    root = ElementTree.fromstring(configuration(on=True).decode())
    assert [root.tag, root.attrib] == ["btrace-conf", {"version": "1.0"}]
    assert [(it.tag, it.attrib) for it in root] == [("bts", {"size": "0x0"})]
    features = gdb.btrace.features().split(";")
    assert {"Qbtrace:bts+", "Qbtrace:off+", "qXfer:btrace:read+", "qXfer:btrace-conf:read+"} <= set(features)
    assert gdb.ask(ask) == b"l" + configuration(on=False)
    assert not len(ElementTree.fromstring(configuration(on=False).decode()))


def test_harts_are_recorded_each_by_itself() -> None:
    """A hart that was not traced stands where it stands, and has nothing of another one."""
    code = Code(*[NOP] * 4)
    target = Target(code, [code.at[0]], code.at[1])
    gdb = NaiveGdb(target)
    target.hart, target.pc = 1, code.at[3]
    assert gdb.read("delta") is None
    assert gdb.ask(b"Qbtrace:bts") == b"OK"
    assert gdb.read("delta") is None and gdb.read("new") == [(code.at[3], code.at[3])]
    target.hart, target.pc = 0, code.at[1]
    gdb.fetch()
    assert gdb.insns == code.at[:2]
    assert gdb.ask(b"Qbtrace:off") == b"OK"
    assert gdb.read("all") is None
    target.hart = 1
    assert gdb.read("all") == [(code.at[1], code.at[1])]
