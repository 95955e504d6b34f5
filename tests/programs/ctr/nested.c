/* Calls deeper than the entries of Control Transfer Records: recursion, function pointers, and many that have returned. */

volatile int sink;

__attribute__((noinline)) void leaf(int value) { sink = value; }

__attribute__((noinline)) void deepest(void)
{
    sink = 0;
    leaf(1);
}

typedef void (*action)(void);
static const action actions[] = {deepest};

__attribute__((noinline)) void dive(int depth)
{
    leaf(depth);
    if (depth > 0)
        dive(depth - 1);
    else
        actions[sink]();
    leaf(depth);
}

__attribute__((noinline)) void around(void)
{
    leaf(7);
    dive(39);
    leaf(8);
}

int main(void)
{
    for (;;) {
        leaf(1);
        around();
    }
}
