"""The ways to a hart's CSRs, as the session chooses and uses them: gdb, the stub and OpenOCD are played by the test."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import ErrorsHidden, HartUnreachable, NoNumbers, NoWay
from rvtrace_gdb.session.proxy.backend import ExtensionContext, RegisterBatches
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.rpc.protocol import BadRequest, CannotAsk, ClientFailed
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.csr_access import OpenOcdAccess, open_access
from rvtrace_gdb.session.target.gdb_csrs import expose_csrs
from rvtrace_gdb.support.errors import RvtraceError
from tests.session.proxy.fakes import Client, FakeStub, fake_stub

SISELECT, SIREG, MCTRCTL, UNKNOWN = 0x150, 0x151, 0x34E, 0x7C0


def description(*registers: tuple[str, int], xlen: int = 64) -> str:
    """A target description with x0 to pc and these."""
    rows = "".join(f'<reg name="x{n}" bitsize="{xlen}" regnum="{n}"/>' for n in range(32))
    rows += f'<reg name="pc" bitsize="{xlen}" regnum="32"/>'
    rows += "".join(f'<reg name="{name}" bitsize="{xlen}" regnum="{number}"/>' for name, number in registers)
    return f'<target><feature name="org.gnu.gdb.riscv.csr">{rows}</feature></target>'


class Gdb:
    """gdb connected to a stub with registers: *values*, by the number of the protocol; *refused*: those it refuses."""

    def __init__(self, session: Session, xml: str, values: dict[int, int] | None = None, size: int = 8) -> None:
        self.xml, self.values, self.size, self.refused = xml, values or {}, size, set[int]()
        self.sent: list[str] = []
        self.asked: list[dict[str, Any]] = []
        session.ask = self

    def __call__(self, need: dict[str, Any]) -> Any:
        self.asked.append(need)
        replies: list[str] = []
        for packet in need["packets"]:
            replies.append(self.reply(packet))
            if need["stop"] and replies[-1][:1] in ("", "E"):
                break
        return replies

    def reply(self, packet: str) -> str:
        if found := re.fullmatch("qXfer:features:read:target.xml:([0-9a-f]+),([0-9a-f]+)", packet):
            at, size = int(found[1], 16), int(found[2], 16)
            return ("l" if at + size >= len(self.xml) else "m") + self.xml[at : at + size]
        self.sent.append(packet)
        found = re.fullmatch("([pP])([0-9a-f]+)(?:=([0-9a-f]+))?", packet)
        assert found
        number = int(found[2], 16)
        if number in self.refused:
            return "E14"
        if found[1] == "P":
            self.values[number] = int.from_bytes(bytes.fromhex(found[3]), "little")
            return "OK"
        return self.values.get(number, 0).to_bytes(self.size, "little").hex()


@pytest.fixture
def session() -> Session:
    return Session(environ={})


def test_a_stub_that_describes_no_csrs_has_no_numbers_for_them(session: Session) -> None:
    Gdb(session, description())
    with pytest.raises(NoNumbers, match="does not describe its CSRs"):
        open_access({"way": "packets"}, session, None).run([(SIREG, None)])


def test_openocd_is_asked_for_nothing_that_it_does_not_name(session: Session) -> None:
    """It would close the connection (gdb_server.c of 0.12, "gdb requested a non-existing register")."""
    gdb = Gdb(session, description(("mstatus", 65 + 0x300), ("csr_sireg", 65 + SIREG), ("csr846", 65 + MCTRCTL)))
    access = open_access({"way": "packets", "openocd": True}, session, None)
    answers = access.run([(SIREG, None), (MCTRCTL, None), (SISELECT, None)])
    assert answers == [0, 0, "OpenOCD does not expose it (`riscv expose_csrs`)"]
    assert gdb.sent == [f"p{65 + SIREG:x}", f"p{65 + MCTRCTL:x}"]


def test_openocd_that_hides_errors_is_not_believed(session: Session) -> None:
    gdb = Gdb(session, description(("mstatus", 65 + 0x300), ("utvt", 70), ("uintstatus", 71)))
    access = open_access({"way": "packets", "openocd": True}, session, None)
    with pytest.raises(ErrorsHidden, match="gdb_report_register_access_error enable"):
        access.run([("pc", None)])
    gdb.refused = {70, 71}
    assert access.run([("pc", None)]) == [0]


@pytest.mark.parametrize("way", ["packets", "named", "monitor"])
def test_gdb_says_that_the_hart_runs(session: Session, way: str) -> None:
    def runs(need: dict[str, Any]) -> Any:
        raise ClientFailed("it runs", "HartRuns")

    session.ask = runs
    with pytest.raises(HartRuns):
        open_access({"way": way}, session, None).run([(SIREG, None)])


@pytest.mark.parametrize("way", ["packets", "named", "monitor"])
def test_without_a_gdb_that_can_be_asked_it_is_said(session: Session, way: str) -> None:
    with pytest.raises(CannotAsk):
        open_access({"way": way}, session, None).run([(SIREG, None)])


def test_what_gdb_cannot_do_is_one_line(session: Session) -> None:
    def fails(need: dict[str, Any]) -> Any:
        raise ClientFailed("gdb: no such thing", "Failed")

    session.ask = fails
    with pytest.raises(NoWay, match=r"^gdb: no such thing$"):
        open_access({"way": "named"}, session, None).run([(SIREG, None)])


@pytest.mark.parametrize(
    ("way", "answer"),
    [("named", "0d00"), ("named", None), ("named", {"xlen": 64}), ("named", {"xlen": "x", "answers": []}),
     ("named", {"xlen": 64, "answers": [None]}), ("packets", {}), ("packets", []), ("packets", [None]),
     ("monitor", ["0"]), ("monitor", None)],
)  # fmt: skip
def test_an_answer_that_is_none_is_one_line(session: Session, way: str, answer: Any) -> None:
    """Found by `make fuzz`: a client of another version answers something else."""
    session.ask = lambda need: answer
    with pytest.raises(BadRequest, match=r"^(registers|packets|monitor): the answer is .*, which is not what protocol"):
        open_access({"way": way}, session, None).run([(SIREG, None)])


def test_the_hart_is_told_to_gdb(session: Session) -> None:
    gdb = Gdb(session, description(("mstatus", 66 + 0x300)))
    open_access({"way": "packets"}, session, 3).run([(SIREG, None)])
    assert {need["hart"] for need in gdb.asked} == {3}


def test_named_registers_have_the_names_that_stubs_use(session: Session) -> None:
    asked: list[Any] = []

    def gdb(need: dict[str, Any]) -> Any:
        asked.append(need["accesses"])
        return {"xlen": 32, "answers": [5]}

    session.ask = gdb
    access = open_access({"way": "named"}, session, None)
    assert access.run([(SIREG, None), (UNKNOWN, 1), ("pc", None)]) == [5]
    assert access.xlen == 32
    assert asked == [[[["sireg", "csr_sireg", "csr337"], None], [["csr1984"], 1], [["pc"], None]]]


def test_no_way_and_wrong_ones(session: Session) -> None:
    with pytest.raises(NoWay, match="connect it first"):
        open_access(None, session, 0)
    with pytest.raises(BadRequest, match="unknown way 'smoke', it is one of openocd, monitor, packets, named"):
        open_access({"way": "smoke"}, session, 0)
    with pytest.raises(BadRequest, match="is not a host and port"):
        open_access({"way": "openocd", "port": "6666"}, session, 0)


# OpenOCD through `monitor`, played by the test


class Monitor:
    """OpenOCD's interpreter with *targets* and no registers for CTR. *log*: what it prints besides."""

    def __init__(self, session: Session, targets: str, log: str = "") -> None:
        self.targets, self.log = targets, log
        session.ask = self

    def __call__(self, need: dict[str, Any]) -> str:
        found = re.search(r"catch \{(.*)\} _rvtrace\]; return", need["command"], re.S)
        assert found and need["do"] == "monitor"
        result = self.targets if found[1] == "target names" else "csr_x unknown register 'csr_x'"
        return f"{self.log}<<rvtrace 0 {result}rvtrace>>\n"


def test_a_hart_that_openocd_does_not_have(session: Session) -> None:
    Monitor(session, "riscv.cpu0 riscv.cpu1")
    with pytest.raises(HartUnreachable, match=r"hart 2 .* OpenOCD counts 2 \(riscv.cpu0, riscv.cpu1\)"):
        open_access({"way": "monitor"}, session, 2).run([(SIREG, None)])


@pytest.mark.parametrize(
    ("types", "target"),
    [
        ("testee riscv", "b"), ("cortex_m riscv testee", "b"), ("riscv testee", "a"), ("esp32c6 riscv", "a"),
        ("", "a"), ("riscv riscv", "a"),
    ],
)  # fmt: skip
def test_a_target_that_is_no_riscv_core_is_not_asked(types: str, target: str) -> None:
    """Reported of boards with another core beside: OpenOCD's first target is that one."""
    asked: list[str] = []

    def openocd(script: str) -> str:
        asked.append(script)
        return types if "-type" in script else "a b c" if len(types.split()) == 3 else "a b"

    with suppress(RvtraceError):
        OpenOcdAccess(openocd, "OpenOCD", 0, None).run([(SIREG, None)])
    assert f"set _rvtrace_target {target};" in asked[2]


@pytest.mark.parametrize(
    ("types", "said"), [("testee riscv riscv", "these are: b, c"), ("testee testee testee", "none is")]
)
def test_which_of_the_targets_are_riscv_cores(types: str, said: str) -> None:
    with pytest.raises(HartUnreachable, match=rf"OpenOCD's target a is not a RISC-V core \(testee\); {said}"):
        OpenOcdAccess(lambda it: types if "-type" in it else "a b c", "OpenOCD", 0, None).run([(SIREG, None)])


@pytest.mark.parametrize(("state", "raised"), [("running", HartRuns), ("unknown", HartUnreachable)])
def test_a_hart_that_is_not_halted(state: str, raised: type[Exception]) -> None:
    def openocd(script: str) -> str:
        if script == "target names":
            return "a.cpu"
        return f"?{state}" if "curstate" in script else "csr_sireg 0x0"

    with pytest.raises(raised, match=r"the hart runs|hart 0 cannot be reached: its state is unknown"):
        OpenOcdAccess(openocd, "OpenOCD", 0, None).run([(SIREG, None)])


@pytest.mark.parametrize("version", ["1.0", "0.1.4"])
def test_the_line_for_openocd_has_decimal_numbers_and_the_documents_names(version: str) -> None:
    """Numbers: the CSR tables of the documents, converted by hand; the indirect CSRs of the Smcsrind chapter."""
    lines = {
        "1.0": "334=sctrctl,335=sctrstatus,336=siselect,337=sireg,338=sireg2,339=sireg3,351=sctrdepth,590=vsctrctl"
        ",846=mctrctl",
        "0.1.4": "897=mctrcontrol,899=mctrstatus,848=miselect,849=mireg,850=mireg2,851=mireg3,385=sctrcontrol",
    }
    shown = expose_csrs(version)
    assert shown.startswith("riscv expose_csrs ")
    assert set(lines[version].split(",")) <= set(shown.split()[2].split(","))


# In the proxy's own thread


class InItsThread:
    """An extension that uses CSRs while gdb waits for an answer to a packet, as going back in time does."""

    prefixes = (b"qTest",)

    def __init__(self) -> None:
        self.use: Callable[[], list[Any]] = list

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        return repr(self.use()).encode()


class Connected:
    """A session whose debugger is the proxy, a stub behind it and a gdb in front."""

    def __init__(self, session: Session, ends: ExitStack) -> None:
        self.stub: FakeStub = ends.enter_context(fake_stub())
        self.extension = InItsThread()
        debugger = ProxyDebugger(session, Context(), (RegisterBatches(), self.extension))
        session.debugger = debugger
        ends.callback(debugger.close)
        self.gdb = Client(debugger.listen(StubAddress("127.0.0.1", self.stub.port)).port, acknowledges=False)
        ends.callback(self.gdb.close)
        self.gdb.ask(b"?")
        self._known, self.stub._answer = self.stub._answer, self._answer  # type: ignore[method-assign]

    def _answer(self, body: bytes) -> bytes | list[bytes] | None:
        found = re.fullmatch(rb"qXfer:features:read:target.xml:([0-9a-f]+),([0-9a-f]+)", body)
        if found is None:
            return self._known(body)
        at, size = int(found[1], 16), int(found[2], 16)
        xml = description(("mstatus", 66 + 0x300)).encode()
        return (b"l" if at + size >= len(xml) else b"m") + xml[at : at + size]


@pytest.fixture
def connected(session: Session) -> Iterator[Connected]:
    with ExitStack() as ends:
        yield Connected(session, ends)


@pytest.mark.parametrize("way", ["packets", "named"])
def test_in_the_proxys_thread_the_stub_is_asked_directly(session: Session, connected: Connected, way: str) -> None:
    access = open_access({"way": way}, session, None)
    connected.stub.answers |= {b"p%x" % (66 + SIREG): b"0900000000000000", b"p%x" % (66 + 0x152): b"E14"}
    connected.extension.use = lambda: [access.xlen, *access.run([(SISELECT, 0x200), (SIREG, None), (0x152, None)])]
    assert connected.gdb.ask(b"qTest") == b"[64, 0, 9, 'refused by the stub (E14)']"
    assert b"P%x=0002000000000000" % (66 + SISELECT) in connected.stub.got


def test_in_the_proxys_thread_openocds_interpreter_is_asked_directly(session: Session, connected: Connected) -> None:
    access = open_access({"way": "monitor"}, session, None)

    def answer(body: bytes) -> bytes | list[bytes] | None:
        if not body.startswith(b"qRcmd,"):
            return known(body)
        asked.append(bytes.fromhex(body[6:].decode()).decode())
        said = "a.cpu b.cpu" if "target names" in asked[-1] else ""
        return [b"O" + f"Info : log\n<<rvtrace 0 {said}".encode().hex().encode(), b"O" + b"rvtrace>>\n".hex().encode(),
                b"OK"]  # fmt: skip

    asked: list[str] = []
    known = connected.stub._answer
    connected.stub._answer = answer  # type: ignore[method-assign]
    connected.extension.use = lambda: [raised(access)]
    assert b"CsrsNotExposed" in connected.gdb.ask(b"qTest")
    assert "target names" in asked[0]
    assert connected.gdb.output == [], "gdb sees nothing of it"


def raised(access: CsrAccess) -> str:
    try:
        access.run([(SIREG, None)])
    except NoWay as error:
        return type(error).__name__
    return ""


def test_other_threads_have_no_way_around_gdb(session: Session, connected: Connected) -> None:
    debugger = session.debugger
    assert isinstance(debugger, ProxyDebugger)
    assert debugger.own_connection is None and threading.current_thread().name != "proxy"


def test_through_the_proxy_a_batch_is_one_packet(session: Session, connected: Connected) -> None:
    """gdb hands our packet to its stub, which is the proxy."""
    needs: list[dict[str, Any]] = []

    def gdb(need: dict[str, Any]) -> Any:
        needs.append(need)
        return [connected.gdb.ask(packet.encode()).decode() for packet in need["packets"]]

    session.ask = gdb
    connected.stub.answers[b"p%x" % (66 + SIREG)] = b"0900000000000000"
    access = open_access({"way": "packets"}, session, 0)
    assert access.xlen == 64
    needs.clear()
    assert access.run([(SISELECT, 0x200), (SIREG, None), (MCTRCTL, 5)] * 30) == [0, 9, 0] * 30
    assert len(needs) == 1 and len(needs[0]["packets"]) == 1


def test_a_gdb_that_has_left_the_proxy_asks_its_stub(session: Session, connected: Connected) -> None:
    """The proxy may not have noticed yet; a stub answers nothing to what it does not know."""

    class Left(Gdb):
        def reply(self, packet: str) -> str:
            return "" if packet.startswith("qRvtrace") else super().reply(packet)

    gdb = Left(session, description(("mstatus", 66 + 0x300)), {66 + SIREG: 9})
    access = open_access({"way": "packets"}, session, None)
    assert access.run([(SISELECT, 0x200), (SIREG, None)]) == [0, 9]
    assert gdb.sent == [f"P{66 + SISELECT:x}=0002000000000000", f"p{66 + SIREG:x}"]
