"""A session with one method more: accesses to CSRs, as gdb asks for them. Instead of `python -I -m session`.

| method | params                      | result                                                                    |
|--------|-----------------------------|---------------------------------------------------------------------------|
| csrs   | access, hart, accesses      | {xlen, answers, packets}: of each batch in accesses a list; questions that |
|        |                             | were asked of gdb                                                         |
"""

import sys
from pathlib import Path
from typing import Any

from rvtrace_gdb.session.__main__ import main
from rvtrace_gdb.session.rpc import server
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.csr_access import open_access
from rvtrace_gdb.support.errors import Progress

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent.parent))


def csrs(it: Session, params: Params, progress: Progress) -> Any:
    """One batch of accesses after the other."""
    asked: list[object] = []
    ask = it.ask
    assert ask is not None

    def counted(need: dict[str, Any]) -> Any:
        asked.append(need["do"])
        return ask(need)

    it.ask = counted
    try:
        access = open_access(params.table("access") or None, it, params.optional_number("hart"))
        answers = [access.run([tuple(one) for one in batch], progress) for batch in params.table("batches")["of"]]
        return {"xlen": access.xlen, "name": access.name, "answers": answers, "asked": asked}
    finally:
        it.ask = ask


if __name__ == "__main__":
    analysis.METHODS = {**analysis.METHODS, "csrs": csrs}
    server.MODULES["csrs"] = "questions.analysis"
    sys.exit(main())
