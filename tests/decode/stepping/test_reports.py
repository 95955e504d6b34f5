"""Bytes that are not a frame, and stretches with fewer messages than the encoder sends."""

import pytest

from rvtrace_gdb.decode.stepping.reports import Losses, LostBytes, MessageCountJudge


def test_a_hart_that_comes_late_gets_all_losses_as_one() -> None:
    losses = Losses()
    for number in range(40_000):
        losses.add(LostBytes(10 * number, 3, f"why {number}"))
        if losses.full:
            losses.missed(1)
            losses.forget()
    assert losses.missed(5) == LostBytes(0, 120_000, "why 0, the first of 40000 places")
    assert losses.missed(5) is None
    losses.add(LostBytes(7, 2, "more"))
    assert losses.missed(5) == LostBytes(7, 2, "more")
    late = losses.missed(1)
    assert late is not None and late.why.endswith("places")


def test_losses_are_reported_once_to_each_hart() -> None:
    losses = Losses()
    losses.add(LostBytes(4, 2, "first"))
    losses.add(LostBytes(9, 1, "second"))
    assert losses.missed(0) == LostBytes(4, 3, "first, the first of 2 places")
    assert losses.missed(0) is None
    assert losses.missed(1) == LostBytes(4, 3, "first, the first of 2 places")


@pytest.mark.parametrize("messages", [7, 12])
def test_far_too_few_messages_are_a_loss_once_whole_stretches_were_seen(messages: int) -> None:
    judge = MessageCountJudge(16)
    assert not judge.is_short(16)
    assert judge.is_short(messages)


def test_an_encoder_that_rarely_keeps_its_period_is_not_judged() -> None:
    """It does not do what its register says: short stretches are then as usual as whole ones."""
    judge = MessageCountJudge(16)
    judge.add(2, 2)
    assert [judge.is_short(3) for _ in range(4)] == [True, True, False, False]


def test_one_message_fewer_is_a_loss_only_after_four_exact_stretches() -> None:
    judge = MessageCountJudge(16)
    judge.add(4, 4)
    assert judge.is_short(15)
    sends_one_fewer = MessageCountJudge(16)
    assert not sends_one_fewer.is_short(15)
    sends_one_fewer.add(4, 4)
    assert not sends_one_fewer.is_short(15)
