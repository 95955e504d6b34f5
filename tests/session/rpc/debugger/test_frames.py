"""Rows of frames as gdb's unwinder gets them."""

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.rows.answers import FrameRow
from rvtrace_gdb.session.past.choice import OFF
from rvtrace_gdb.session.rpc.debugger.replay import frame_rows
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import PLAIN, Code


def selected(history: History, code: Code = PLAIN) -> SelectedHistory:
    return SelectedHistory(history, ContextImages(code.image), 0, [], values=OFF)


def test_rows() -> None:
    main, f, g = (PLAIN.starts[name] for name in ("main", "f", "g"))
    it, session = selected(history_of(PLAIN.pcs("main.1 f.0 f.1 g.0"))), Session(environ={})
    innermost, middle, outermost = (
        FrameRow(g, g, 2, 4, ""),
        FrameRow(f + 8, f, 1, 3, "call"),
        FrameRow(main + 8, main, 0, 1, "call"),
    )
    assert frame_rows(session, it, 4, 0, 10) == {"frames": [innermost, middle, outermost], "more": False}
    assert frame_rows(session, it, 4, 0, 3) == {"frames": [innermost, middle, outermost], "more": False}
    assert frame_rows(session, it, 4, 0, 1) == {"frames": [innermost], "more": True}
    assert frame_rows(session, it, 4, 1, 1) == {"frames": [middle], "more": True}
    assert frame_rows(session, it, 4, 3, 1) == {"frames": [], "more": False}
    assert frame_rows(session, it, 4, 0, 0) == {"frames": [], "more": True}


def test_behind_the_end_and_where_nothing_is() -> None:
    f, g = PLAIN.starts["f"], PLAIN.starts["g"]
    it, session = selected(history_of(PLAIN.pcs("main.0 - f.0 f.1"))), Session(environ={})
    assert frame_rows(session, it, 5, 0, 9)["frames"] == [FrameRow(-1, None, 0, 5, "", stack=1)]
    known = frame_rows(session, it, 5, 0, 9, pc=g)["frames"]
    assert known == [FrameRow(g, g, 1, 5, "", stack=1), FrameRow(f + 8, f, 0, 4, "call", stack=1)]
    for number in (0, 2, 6):
        assert frame_rows(session, it, number, 0, 9) == {"frames": [], "more": False}
