"""A fake stub, a past of a few instructions, the proxy between them, and a raw client."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest

from rvtrace_gdb.session.proxy.backend import Extension
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.session.proxy.fakes import Client, FakeStub, fake_stub
from tests.session.proxy.listed_past import ListedPast

__all__ = ["Between", "FakeStub"]

PCS = (0x1000, 0x1002, 0x1004, 0x2000, 0x2002, 0x1004, 0x1008, 0x1010)
CODE = {0x1000: bytes(range(64))}


class Between:
    """The proxy between a fake stub and clients. *histories*: by hart; what runs last is where the stub stands."""

    def __init__(self, ends: ExitStack) -> None:
        self._ends = ends
        self.stub = ends.enter_context(fake_stub())
        self.histories: dict[int | None, tuple[int, ...]] = {0: PCS, 1: (0x3000, 0x3004, 0x3008), None: PCS}
        self.past = ListedPast(lambda hart: self.histories[hart], CODE)
        self.lock = threading.RLock()
        self.proxy = Proxy(self.setup())

    def setup(self, *, extensions: Sequence[Extension] = (), hold_at_present: bool = False) -> ProxySetup:
        """What the proxy is made of."""
        address = StubAddress("127.0.0.1", self.stub.port)
        return ProxySetup(self.past, self.lock, address, extensions=extensions, hold_at_present=hold_at_present)

    def start(self) -> None:
        self.proxy.start()
        self._ends.callback(self.proxy.close)

    def client(
        self, *, acknowledges: bool = False, reads_target: bool = True, feature: bytes = b"swbreak+"
    ) -> Client:
        """A gdb that has looked at its target."""
        if not self.proxy.port:
            self.start()
        client = Client(self.proxy.port, acknowledges=acknowledges, feature=feature)
        self._ends.callback(client.close)
        if reads_target:
            client.read_target()
        client.ask(b"?")
        return client


@pytest.fixture
def between() -> Iterator[Between]:
    with ExitStack() as ends:
        yield Between(ends)
