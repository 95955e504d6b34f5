"""Traces by Espressif's trace encoders under ESP-IDF: in a core dump, or in the memory of a live chip."""
