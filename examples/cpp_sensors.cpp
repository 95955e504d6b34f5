/* The bug of docs/tutorials/a-cpp-program.md: `average` takes a sensor by value, and its copy is no `calibrated` one. */

namespace sensors {

class sensor {
public:
    explicit sensor(int first) : raw(first) {}
    virtual int read();

protected:
    int raw;
};

class calibrated : public sensor {
public:
    calibrated(int first, int zero) : sensor(first), offset(zero) {}
    int read() override;

private:
    int offset;
};

int sensor::read() { return raw++; }
int calibrated::read() { return raw++ - offset; }

__attribute__((noinline)) int next(sensor &from) { return from.read(); }

template <int COUNT>
__attribute__((noinline)) int average(sensor of)
{
    int sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += next(of);
    return sum / COUNT;
}

}

int shown;

__attribute__((noinline)) void show(int value) { shown = value; }

int main()
{
    sensors::calibrated probe(200, 180);
    show(sensors::next(probe));
    show(sensors::average<4>(probe));
    return 0;
}
