/* A filter over samples of a sensor: most of them are of one kind, and the function for that kind is too large for a
   compiler to inline, unless it knows how often it is called, and with what. */

#define SAMPLES 400

static unsigned int state = 1;
volatile int result;
int unusual; /* the last value of another kind, for who debugs it */

static unsigned int random_number(void)
{
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

static int report(int code)
{
    return code * 3 + 1;
}

int apply(int kind, int value, int gain)
{
    int sum = value;
    if (kind == 0) {
        unusual = value;
        return value;
    }
    if (kind == 1) {
        sum = value * gain;
        if (sum > 1000000)
            sum = 1000000;
        return sum;
    }
    if (kind == 2) {
        unusual = value + 2;
        for (int bit = 0; bit < 16; bit++)
            sum += (value >> bit) & gain;
        return sum;
    }
    if (kind == 3) {
        unusual = value + 3;
        for (int bit = 0; bit < 8; bit++)
            sum ^= (value << bit) | (gain >> bit);
        return sum;
    }
    if (kind == 4)
        return sum / (gain + 1) + sum % (gain + 3) + report(value);
    if (kind == 5)
        return sum / (gain + 7) - sum % (gain + 5) + report(gain);
    if (kind == 6)
        return report(sum) + report(gain) + sum / (gain + 9);
    return report(kind);
}

int main(void)
{
    int sum = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        int value = (int)random_number();
        int kind = 1;
        if (value % 64 == 0)
            kind = value % 7;
        sum += apply(kind, value, 3);
    }
    result = sum;
    return 0;
}
