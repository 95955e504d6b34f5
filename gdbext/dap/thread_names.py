"""Names for threads that gdb 16 lists without one. The protocol asks for it: clients may refuse a list without."""

from __future__ import annotations

from rvtrace_gdb.gdbext.dap.server import Body, DapServer


def add(server: DapServer) -> None:
    """Change the answer to `threads` of a server."""

    def named(answer: Body) -> Body:
        return {"threads": [{"name": f"Thread #{it['id']}", **it} for it in answer["threads"]]}

    server.change_answer("threads", named)
