/* Without what changes return addresses: for an encoder that only counts calls. */
#define WELL_BEHAVED
#include "user.c"
