"""Where each hart is in its history, and what gdb is told of that: registers, frames, watchpoints, `record btrace`."""
