"""Tests of the QEMU backend, with the real QEMU 10 (scripts/setup-qemu10)."""
