/* A program in C++ that goes wrong. FAULT:
 *
 * 0 nothing: shapes are summed, and the main loop waits for the next round
 * 1 a pure virtual function is called, in a constructor
 * 2 a shape is null
 * 3 a check fails, several calls deep: `core::panicking::panic_fmt` is the name that Rust has for it
 */
extern "C" void __cxa_pure_virtual()
{
    for (;;)
        ;
}

namespace core::panicking {
__attribute__((noinline)) void panic_fmt()
{
    for (;;)
        ;
}
}

namespace shapes {
class shape {
public:
    __attribute__((noinline)) shape() { note(); }
    __attribute__((noinline)) void note() { known = area(); }
    virtual int area() const = 0;
    int known = 0;
};

class square : public shape {
public:
    __attribute__((noinline)) explicit square(int side) : shape(), side(side) {}
    int area() const override { return side * side; }

private:
    int side;
};

class circle {
public:
    explicit circle(int radius) : radius(radius) {}
    virtual int area() const { return 3 * radius * radius; }
    int radius;
};
}

volatile int result;

template <int N> __attribute__((noinline)) int sum(shapes::circle *const (&of)[N])
{
    int found = 0;
    for (auto *it : of)
        found += it->area();
    return found;
}

__attribute__((noinline)) void check(int value)
{
    if (value > 400)
        core::panicking::panic_fmt();
    result = value;
}

int main()
{
    shapes::circle one(3), two(4);
    for (int round = 0;; round++) {
        shapes::circle *const all[] = {&one, FAULT == 2 && round == 7 ? nullptr : &two};
        if (FAULT == 1 && round == 5)
            result = shapes::square(2).known;
        check(sum(all) + (FAULT == 3 ? 64 * round : 0));
    }
}
