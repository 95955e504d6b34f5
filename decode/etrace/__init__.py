"""E-Trace (Efficient Trace for RISC-V): its decoder, and below its encoder, data trace, transports and ESP32 chips."""
