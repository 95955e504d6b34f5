// C++ names that gdb takes from debug information, and those of the linker.
typedef long long int64_t;
struct opaque; enum color { red };
typedef unsigned int myint;
namespace ns { struct s { int v; static int st(int); struct in { int m() const; }; }; enum class e { a };
template<class T> struct box { T v; T get(int) const; template<class U> U conv(U) ; operator bool() const; box<T>& operator=(const box<T>&); ~box(); };
template<class T> __attribute__((noinline)) T box<T>::get(int a) const { return v + a; }
template<class T> template<class U> __attribute__((noinline)) U box<T>::conv(U u) { return u + v; }
template<class T> __attribute__((noinline)) box<T>::operator bool() const { return v; }
template<class T> __attribute__((noinline)) box<T>& box<T>::operator=(const box<T>&o) { v = o.v + 1; return *this; }
template<class T> __attribute__((noinline)) box<T>::~box() { v = 0; asm volatile("":::"memory"); }
__attribute__((noinline)) int s::st(int x) { return x + 1; }
__attribute__((noinline)) int s::in::m() const { return 3; }
template<int N, class... A> __attribute__((noinline)) int var(A... a) { asm volatile("":::"memory"); return N + sizeof...(a); }
}
extern "C" {
__attribute__((noinline)) int c1(const char *p, volatile int *q, opaque *o, color c, myint m) { asm volatile("":::"memory"); return 1; }
__attribute__((noinline)) int c2(void (*f)(int, char), unsigned long long a, long double b, bool c, short s, unsigned char u, signed char sc, void *v) { asm volatile("":::"memory");return 1; }
__attribute__((noinline)) int c3(int (&r)[4], ns::s &s, const ns::box<int> &b, ns::e e, int64_t i, char const *const *pp) {asm volatile("":::"memory"); return 1; }
__attribute__((noinline)) int c4(const char *fmt, ...) { asm volatile("":::"memory");return 1; }
__attribute__((noinline)) int c5(int ns::s::*p, int (ns::s::in::*m)() const, int &&rr, double d, float f, wchar_t w, char16_t c) { asm volatile("":::"memory");return 1; }
}
static __attribute__((noinline)) int stat(int a, int b) { asm volatile("":::"memory"); return a * b; }
namespace { struct anon { int go(int) ; }; __attribute__((noinline)) int anon::go(int a) { asm volatile("":::"memory"); return a; } }
int main() {
  int arr[4] = {1,2,3,4}; ns::box<int> b{1}; ns::box<int> b2{2}; ns::s s{1}; ns::s::in in;
  int r = c1("x", arr, nullptr, red, 3) + c2(nullptr, 1, 2, true, 3, 4, 5, nullptr) + c3(arr, s, b, ns::e::a, 3, nullptr) + c4("f", 1) + c5(nullptr, nullptr, 3, 1, 2, L'a', u'a');
  r += b.get(1) + b.conv<long>(2) + bool(b) + ns::s::st(3) + in.m() + ns::var<3>(1, 'a', 2.0) + stat(r, 2) + stat(r, 2);
  b = b2; anon a; r += a.go(3);
  struct local { __attribute__((noinline)) static int f(int x) { asm volatile("":::"memory"); return x; } };
  auto l1 = [=](int x) __attribute__((noinline)) { asm volatile("":::"memory"); return x + r; };
  return r + local::f(2) + l1(2);
}
