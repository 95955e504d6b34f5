"""Programs of Linux: processes and kernels, by what can be copied off the target."""
