/* A checksum of blocks: a profile says that its loop makes many rounds, which makes it worth unrolling. */

#define SIZE 256
#define BLOCKS 8

static unsigned char data[SIZE];
volatile int result;

__attribute__((noinline)) unsigned int checksum(const unsigned char *from, int size)
{
    unsigned int sum = 1;
    for (int at = 0; at < size; at++) {
        sum = sum * 31;
        sum = sum + from[at];
    }
    return sum;
}

int main(void)
{
    unsigned int all = 0;
    for (int block = 0; block < BLOCKS; block++) {
        data[block] = (unsigned char)(all + block);
        all ^= checksum(data, SIZE);
    }
    result = (int)all;
    return 0;
}
