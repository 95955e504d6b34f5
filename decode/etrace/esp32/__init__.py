"""What ESP-IDF leaves of a trace by Espressif's trace encoders: in a core dump, or in the memory of a live chip."""
