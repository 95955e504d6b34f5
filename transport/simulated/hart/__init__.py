"""The simulated hart: an RV32/RV64 hart with M and U mode, which runs programs as compiled blocks."""
