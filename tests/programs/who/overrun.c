/* A text that is one character too long for its array ends in the number behind that. */
struct {
    char line[4];
    volatile int setpoint;
} shared = {"", 306};

__attribute__((noinline)) static void write_text(char *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = 'x';
    to[count] = 0; /* here */
}

__attribute__((noinline)) void finish(void)
{
    for (;;)
        ;
}

int main(void)
{
    shared.setpoint = 306;
    write_text(shared.line, 4);
    finish();
    return 0;
}
