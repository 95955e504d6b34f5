"""Spike's logs of commits as tandem traces."""

from rvtrace_gdb.decode.tandem.encoder import GroupEncoder
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog


def encode_log(commits: CommitLog, encoder: GroupEncoder, limit: int | None = None) -> int:
    """Encode the instructions and traps of a log, at most *limit*; return how many there were."""
    count = 0
    for retired in commits.retired():
        if count == 0 and retired.own is not None:
            encoder.begin(retired.own, retired.own_privilege)
        if limit is not None and count >= limit:
            break
        encoder.put(retired)
        count += 1
    encoder.finish()
    return count
