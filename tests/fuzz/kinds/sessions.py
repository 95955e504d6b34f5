"""A session process' lines: requests, answers and cancellations, also such as no client sends."""

from __future__ import annotations

import io
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from rvtrace_gdb.session.capture.file import dump
from rvtrace_gdb.session.rpc.server import SessionServer
from rvtrace_gdb.session.session import Session
from tests.fuzz.damage import containers, mutations
from tests.fuzz.exercise import Input
from tests.fuzz.kinds.captures import captures
from tests.fuzz.kinds.requests import ASKED, Requests
from tests.session.queries.hardware.register_target import Registers

_OTHERS = (b'{"cancel": 1}', b'{"answer": 1, "question": 1}', b"", b"[1]", b"{}")
_PATIENCE = 60.0  # seconds for an answer: of ten that an input may take, on a machine that has much else to do


class SessionLines(Requests):
    """A variant is the number of a capture, which is opened first."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds = []
        for number, capture in enumerate(captures()):
            self.written(dump(capture), f"{number}.rvt")
            self.seeds += [Input(str(number), _lines(number, list(asked))) for asked in ASKED[number % 4 :: 4]]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        pick = rng.random()
        if pick < 0.6:
            lines[at] = containers.mutated_json(rng, lines[at])
        elif pick < 0.8:
            lines.insert(at, rng.choice((*_OTHERS, lines[at])))
        else:
            lines[at] = mutations.mutated(rng, lines[at])
        return b"\n".join(lines)

    def run(self, variant: str, data: bytes) -> None:
        talk = _Talk([line for line in data.split(b"\n") if b'"connect"' not in line][:12])
        session = Session(lambda host, port: Registers({}), {})
        SessionServer(session, cast(io.BytesIO, talk), cast(io.BytesIO, talk), Path("it.log")).run()
        assert "internal error" not in talk.said, talk.said[-500:]


class _Talk:
    """Both ends of the process: each line comes when the one before was answered."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines, self._spoken = lines, threading.Event()
        self.said = ""

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self._spoken.clear()
            yield line + b"\n"
            if b'"cancel"' not in line and b'"answer"' not in line:
                assert self._spoken.wait(_PATIENCE), f"no answer to {line!r}"

    def write(self, data: bytes) -> None:
        self.said += data.decode()
        message = json.loads(data)
        if "progress" not in message:
            self._spoken.set()

    def flush(self) -> None:
        return


def _lines(number: int, asked: list[tuple[str, dict[str, Any]]]) -> bytes:
    requests = [("open", {"path": f"{number}.rvt", "elf": None}), *asked]
    made = [json.dumps({"id": at, "method": method, "params": params}) for at, (method, params) in enumerate(requests)]
    return "\n".join(made).encode()
