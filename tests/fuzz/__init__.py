"""Damaged inputs of every kind, for `make fuzz` and, a few each, for `make test` (docs/architecture.md, "How to add").

Whatever the program reads may be damaged, or written by somebody who means harm. It may say so in one line, which is
an `RvtraceError`; anything else is a finding: another exception, more than 10 s of CPU time, 500 MB more memory, or the
end of the process by a signal. Each input follows from a seed, the name of its kind, and its number.
"""
