#define MACHINE
#include "patched_kernel.S"
