/* A function that each file has a copy of. */
static inline int clamp(int x)
{
    if (x > 5)
        return 5;
    return x;
}
