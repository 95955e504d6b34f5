/* Messages to objects, through pointers to functions: nearly all messages go to one kind of object, which only a
   profile tells the compiler. */

#define MESSAGES 500

struct object {
    int (*receive)(struct object *self, int message);
    int total;
};

volatile int result;

static int count(struct object *self, int message)
{
    self->total += message & 15;
    return self->total;
}

static int scale(struct object *self, int message)
{
    for (int round = 0; round < 4; round++)
        self->total = self->total * 3 + message;
    return self->total & 255;
}

static int clear(struct object *self, int message)
{
    self->total = 0;
    return message;
}

static struct object objects[] = { { count, 0 }, { scale, 0 }, { clear, 0 } };

static struct object *receiver(int number)
{
    if (number % 97 == 50)
        return &objects[2];
    if (number % 41 == 40)
        return &objects[1];
    return &objects[0];
}

int main(void)
{
    int sum = 0;
    for (int number = 0; number < MESSAGES; number++) {
        struct object *to = receiver(number);
        sum += to->receive(to, number);
    }
    result = sum;
    return 0;
}
