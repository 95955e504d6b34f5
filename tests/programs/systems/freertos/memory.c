/* What the kernel wants of <string.h>: the library for these instructions has another ABI. */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t count)
{
    unsigned long all = (unsigned char)value * (~0UL / 255);
    size_t i = 0;
    if ((unsigned long)to % sizeof all == 0)
        for (; i + sizeof all <= count; i += sizeof all)
            *(unsigned long *)((char *)to + i) = all;
    for (; i < count; i++)
        ((char *)to)[i] = (char)value;
    return to;
}
