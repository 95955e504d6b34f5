"""The check of a session's trace: of each hart, interrupted, and what becomes of it. One message comes twice."""

import random
from dataclasses import replace

import pytest

from rvtrace_gdb.decode.history.events import Loss, LossCause
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress
from tests.decode.ntrace.test_reference import executed, image
from tests.helpers.amounts import thorough
from tests.helpers.checked_captures import ELF


def sent_by(hart: int) -> list[bytes]:
    """The messages of an encoder that synchronizes every 16 messages."""
    messages: list[bytes] = []
    encoder = Encoder(
        EncoderOptions(btm=True, src_bits=2, src_id=hart, sync_mode=InstSyncMode.MESSAGES), messages.append
    )
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(executed("towers"))
    encoder.stop(Evcode.DEBUG_MODE)
    return messages


def captured(data: bytes) -> Capture:
    options = EncoderOptions(btm=True, src_bits=2, sync_mode=InstSyncMode.MESSAGES).of_decoder
    return capture_of(RawImport("two.bin", data, replace(options, src_id=None), image("towers")))


@pytest.fixture(scope="module")
def two_harts() -> Capture:
    """Hart 2 has a message too many."""
    harts = [sent_by(1), sent_by(2)]
    at = next(i for i in range(100, len(harts[1])) if harts[1][i] == harts[1][i + 1] == harts[1][i + 2])
    harts[1].insert(at, harts[1][at])
    rng, data = random.Random(1), []
    while any(harts):
        data.append(rng.choice([hart for hart in harts if hart]).pop(0))
    return captured(b"".join(data))


def opened(capture: Capture) -> Session:
    session = Session()
    session.open_capture(capture, "two.rvt", str(ELF))
    return session


def damaged(decoded: Decoded) -> dict[int, int]:
    """How many losses of the check there are, by hart."""
    found = {}
    for hart, history in decoded.harts.histories.items():
        facts = [event.fact for event in history.events]
        found[hart] = sum(isinstance(fact, Loss) and fact.cause is LossCause.ENCODED_OTHERWISE for fact in facts)
    return found


def test_each_hart_is_checked(two_harts: Capture) -> None:
    session = opened(two_harts)
    before = session.harts()
    assert before.checked is None and damaged(before) == {1: 0, 2: 0}
    after = session.check()
    assert after.checked is not None
    assert [(row.hart, row.conclusion, row.differ) for row in after.checked] == [(1, "agrees", 0), (2, "differs", 1)]
    assert damaged(after) == {1: 0, 2: 1} and session.harts() is after
    for hart in (1, 2):
        old, new = before.harts.histories[hart], after.harts.histories[hart]
        assert (len(old), old.gaps, list(old.pcs())) == (len(new), new.gaps, list(new.pcs()))
        assert [event.position for event in new.events] == sorted(event.position for event in new.events)
    assert damaged(before) == {1: 0, 2: 0}  # whoever has the history keeps what it has


def test_the_status_has_it(two_harts: Capture) -> None:
    session = opened(two_harts)
    assert not [line for line in session.status(Context()) if line.startswith("check:")]
    session.check()
    first, second = [line for line in session.status(Context()) if line.startswith("check:")]
    assert first.startswith("check:    hart 1: ") and first.endswith(" agree")
    assert second.endswith(" agree, 1 differs: damaged")


def stopping(after: int) -> Progress:
    """A progress that interrupts the check after so many calls."""
    left = iter(range(after))

    def stop(label: str, done: int, total: int | None = None) -> None:
        if label == "checking" and next(left, None) is None:
            raise Cancelled

    return stop


@thorough("test_each_hart_is_checked")
def test_it_can_be_interrupted_at_any_time(two_harts: Capture) -> None:
    """Whenever that is, the session is as before, and can be asked again."""
    session, calls = opened(two_harts), []

    def count(label: str, done: int, total: int | None = None) -> None:
        calls.append((label, done, total))

    wanted = opened(two_harts)
    wanted.harts()
    checked = wanted.check(progress=count).checked
    times = len([label for label, _, _ in calls if label == "checking"])
    assert times > 3
    done = [at for label, at, _ in calls if label == "checking"]
    assert done == sorted(done) and all(total == len(two_harts.sinks[0].data) for _, _, total in calls if total)
    session.harts()
    for after in (0, 1, times // 2, times - 1):
        with pytest.raises(Cancelled):
            session.check(progress=stopping(after))
        assert session.harts().checked is None
    assert session.check().checked == checked


def test_an_empty_trace_has_nothing_to_check() -> None:
    with pytest.raises(NoTrace, match="the trace is empty: it has 0 bytes"):
        opened(captured(b"")).check()
