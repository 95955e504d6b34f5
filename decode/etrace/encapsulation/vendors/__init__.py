"""Vendors' transports: Arm Trace Bus, memory of an ESP32, records of PULP's rv_tracer, QEMU's RAM sink."""
