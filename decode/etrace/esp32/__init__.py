"""What ESP-IDF leaves behind of a trace by Espressif's trace encoders: in a core dump, or in the memory of a live chip.

descriptors   the structures
parameters    what of an encoder they tell
coredump      a core dump as a file, from flash or from the serial line
live          a chip's memory, read from where `g_esp_riscv_trace_snapshot` is
ring          a core's trace buffer in the order of time
chips         where the encoders' registers are

Source: ESP-IDF (2026), component esp_riscv_trace, "trace snapshot target-memory ABI" 1.0 and the core dump extension.
"""
