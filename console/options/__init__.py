"""Options that several commands share: programs, raw traces, and encoders."""
