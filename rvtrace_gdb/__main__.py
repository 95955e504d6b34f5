"""`python -m rvtrace_gdb`: the program `rvtrace`, whatever is on the PATH."""

from rvtrace_gdb.console.start import main

if __name__ == "__main__":
    raise SystemExit(main())
