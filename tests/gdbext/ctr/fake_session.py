"""Sourced in gdb behind rvtrace.py: what the session would answer to the `trace ctr` commands is in a file.

$CTR_ANSWERS names a JSON file {method: result}. The answer "page" has all records, of which a page takes its part; the
answer "rows" are those of the history. The requests are written to $CTR_REQUESTS, one a line: [method, parameters].
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def request(method: str, **params: Any) -> Any:
    with open(os.environ["CTR_REQUESTS"], "a", encoding="utf-8") as log:
        log.write(json.dumps([method, params]) + "\n")
    answer = json.loads(Path(os.environ["CTR_ANSWERS"]).read_text(encoding="utf-8"))[method]
    if method == "page":
        return {**answer, "rows": answer["rows"][answer["begin"] - 1 : answer["end"] - 1]}
    return {"rows": answer[params["begin"] - 1 : params["end"] - 1], "events": []} if method == "rows" else answer


sys.modules["rvtrace_gdb.gdbext.tracer"].tracer().request = request
for name in ("access_params", "flush_registers"):
    setattr(sys.modules["rvtrace_gdb.gdbext.csr_access"], name, lambda: None)
