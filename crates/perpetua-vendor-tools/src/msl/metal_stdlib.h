// A shim of Metal's standard library for a C++ compiler on the CPU: types, functions and atomics under Metal's
// names and with Metal's meaning, as far as compute kernels need them. Written in C++14, the language of MSL 3, and
// free of other headers, so that a kernel compiles in well under a tenth of a second.
//
// It is stricter than it needs to be where that finds mistakes: what Metal refuses (double, exceptions, atomics with
// another order than relaxed, SIMD-group operations on 64-bit types and bool) is refused here.
//
// It knows nothing of scheduling: a lane that must wait calls `perpetua::wait`, which the runner provides.
#pragma once
#pragma GCC system_header

// Address spaces and the kernel mark. `threadgroup` is not here: the runner rewrites it, because it is storage in a
// declaration and a mere qualifier in a pointer's type.
#define kernel
#define device
#define constant const
#define thread

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef _Float16 half;

constexpr half operator""h(long double x) { return (half)x; }
constexpr half operator""H(long double x) { return (half)x; }

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define MAXFLOAT 0x1.fffffep127f
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LN2_F 0.69314718055994530942f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_SQRT2_F 1.41421356237309504880f
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul

// ---------------------------------------------------------------------------------------------------------------
// The runner's side: the lane that runs now, and how it waits. The layouts are mirrored in `runner.rs`.

namespace perpetua {

// What the lanes of one SIMD group handed in at the operation that they met at.
struct Exchange {
    unsigned long active;      // bit i: lane i takes part
    unsigned char value[64][16];
};

struct Lane {
    unsigned char value[16];   // what this lane hands in
    const Exchange *exchange;  // valid after waiting at an operation of the SIMD group
    uint lane, width;          // this lane's place in its SIMD group, and the group's width
    uint impatience;           // atomics since the lane last let others run
};

extern Lane *current;

enum WaitKind : uint { others_may_run = 0, threadgroup_rendezvous = 1, simdgroup_rendezvous = 2 };
void wait(WaitKind kind, uint line);

template <class T> struct identity { typedef T type; };
template <class T> using identity_t = typename identity<T>::type;
template <bool, class T> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool condition, class T = void> using enable_if_t = typename enable_if<condition, T>::type;
template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };

template <class T> struct integer { static constexpr bool value = false; };
#define PERPETUA_INTEGER(T, U) \
    template <> struct integer<T> { static constexpr bool value = true; typedef U unsigned_type; };
PERPETUA_INTEGER(char, uchar)
PERPETUA_INTEGER(int8_t, uchar)
PERPETUA_INTEGER(uchar, uchar)
PERPETUA_INTEGER(short, ushort)
PERPETUA_INTEGER(ushort, ushort)
PERPETUA_INTEGER(int, uint)
PERPETUA_INTEGER(uint, uint)
PERPETUA_INTEGER(long, ulong)
PERPETUA_INTEGER(ulong, ulong)
#undef PERPETUA_INTEGER
template <class T> using unsigned_t = typename integer<T>::unsigned_type;
template <class T> constexpr bool is_signed_integer() { return integer<T>::value && (T)-1 < (T)0; }

} // namespace perpetua

template <class To, class From> inline To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// bfloat: a storage format with arithmetic through float. Conversions to it are explicit.
struct bfloat {
    ushort bits;
    bfloat() = default;
    template <class T> explicit bfloat(T from) {
        float x = (float)from;
        uint b = as_type<uint>(x);
        bits = x != x ? (ushort)((b >> 16) | 0x40u) : (ushort)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
    }
    operator float() const { return as_type<float>((uint)bits << 16); }
};
#define PERPETUA_BFLOAT(op) \
    inline bfloat operator op(bfloat a, bfloat b) { return bfloat((float)a op (float)b); } \
    inline bfloat &operator op##=(bfloat &a, bfloat b) { return a = a op b; }
PERPETUA_BFLOAT(+)
PERPETUA_BFLOAT(-)
PERPETUA_BFLOAT(*)
PERPETUA_BFLOAT(/)
#undef PERPETUA_BFLOAT
inline bfloat operator-(bfloat a) { return as_type<bfloat>((ushort)(a.bits ^ 0x8000u)); }

namespace metal {

// ---------------------------------------------------------------------------------------------------------------
// Vectors. A vector of three has the size and the alignment of four; the packed ones have neither.

template <class T, int N> struct vec;
template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
    T x, y;
    vec() = default;
    vec(T s) : x(s), y(s) {}
    vec(T x, T y) : x(x), y(y) {}
    template <class U> explicit vec(vec<U, 2> v) : x((T)v.x), y((T)v.y) {}
    T &operator[](uint i) { return (&x)[i]; }
    T operator[](uint i) const { return (&x)[i]; }
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 3> {
    T x, y, z;
    vec() = default;
    vec(T s) : x(s), y(s), z(s) {}
    vec(T x, T y, T z) : x(x), y(y), z(z) {}
    vec(vec<T, 2> a, T z) : x(a.x), y(a.y), z(z) {}
    vec(T x, vec<T, 2> b) : x(x), y(b.x), z(b.y) {}
    template <class U> explicit vec(vec<U, 3> v) : x((T)v.x), y((T)v.y), z((T)v.z) {}
    T &operator[](uint i) { return (&x)[i]; }
    T operator[](uint i) const { return (&x)[i]; }
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
    T x, y, z, w;
    vec() = default;
    vec(T s) : x(s), y(s), z(s), w(s) {}
    vec(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
    vec(vec<T, 2> a, T z, T w) : x(a.x), y(a.y), z(z), w(w) {}
    vec(vec<T, 2> a, vec<T, 2> b) : x(a.x), y(a.y), z(b.x), w(b.y) {}
    vec(vec<T, 3> a, T w) : x(a.x), y(a.y), z(a.z), w(w) {}
    vec(T x, vec<T, 3> b) : x(x), y(b.x), z(b.y), w(b.z) {}
    template <class U> explicit vec(vec<U, 4> v) : x((T)v.x), y((T)v.y), z((T)v.z), w((T)v.w) {}
    T &operator[](uint i) { return (&x)[i]; }
    T operator[](uint i) const { return (&x)[i]; }
};

template <class T, int N> struct packed_vec {
    T at[N];
    packed_vec() = default;
    packed_vec(vec<T, N> v) { for (int i = 0; i < N; i++) at[i] = v[i]; }
    operator vec<T, N>() const { vec<T, N> v; for (int i = 0; i < N; i++) v[i] = at[i]; return v; }
    T &operator[](uint i) { return at[i]; }
    T operator[](uint i) const { return at[i]; }
};

#define PERPETUA_VECTORS(T) \
    typedef vec<T, 2> T##2; typedef vec<T, 3> T##3; typedef vec<T, 4> T##4; \
    typedef packed_vec<T, 2> packed_##T##2; typedef packed_vec<T, 3> packed_##T##3; typedef packed_vec<T, 4> packed_##T##4;
PERPETUA_VECTORS(bool)
PERPETUA_VECTORS(char)
PERPETUA_VECTORS(uchar)
PERPETUA_VECTORS(short)
PERPETUA_VECTORS(ushort)
PERPETUA_VECTORS(int)
PERPETUA_VECTORS(uint)
PERPETUA_VECTORS(long)
PERPETUA_VECTORS(ulong)
PERPETUA_VECTORS(half)
PERPETUA_VECTORS(bfloat)
PERPETUA_VECTORS(float)
#undef PERPETUA_VECTORS

#define PERPETUA_LANES(R, expression) { vec<R, N> r; for (int i = 0; i < N; i++) r[i] = (R)(expression); return r; }
#define PERPETUA_ARITHMETIC(op) \
    template <class T, int N> inline vec<T, N> operator op(vec<T, N> a, vec<T, N> b) PERPETUA_LANES(T, a[i] op b[i]) \
    template <class T, int N> inline vec<T, N> operator op(vec<T, N> a, perpetua::identity_t<T> b) PERPETUA_LANES(T, a[i] op b) \
    template <class T, int N> inline vec<T, N> operator op(perpetua::identity_t<T> a, vec<T, N> b) PERPETUA_LANES(T, a op b[i]) \
    template <class T, int N> inline vec<T, N> &operator op##=(vec<T, N> &a, vec<T, N> b) { return a = a op b; } \
    template <class T, int N> inline vec<T, N> &operator op##=(vec<T, N> &a, perpetua::identity_t<T> b) { return a = a op b; }
PERPETUA_ARITHMETIC(+)
PERPETUA_ARITHMETIC(-)
PERPETUA_ARITHMETIC(*)
PERPETUA_ARITHMETIC(/)
PERPETUA_ARITHMETIC(%)
PERPETUA_ARITHMETIC(&)
PERPETUA_ARITHMETIC(|)
PERPETUA_ARITHMETIC(^)
PERPETUA_ARITHMETIC(<<)
PERPETUA_ARITHMETIC(>>)
#undef PERPETUA_ARITHMETIC
#define PERPETUA_COMPARISON(op) \
    template <class T, int N> inline vec<bool, N> operator op(vec<T, N> a, vec<T, N> b) PERPETUA_LANES(bool, a[i] op b[i]) \
    template <class T, int N> inline vec<bool, N> operator op(vec<T, N> a, perpetua::identity_t<T> b) PERPETUA_LANES(bool, a[i] op b) \
    template <class T, int N> inline vec<bool, N> operator op(perpetua::identity_t<T> a, vec<T, N> b) PERPETUA_LANES(bool, a op b[i])
PERPETUA_COMPARISON(==)
PERPETUA_COMPARISON(!=)
PERPETUA_COMPARISON(<)
PERPETUA_COMPARISON(<=)
PERPETUA_COMPARISON(>)
PERPETUA_COMPARISON(>=)
PERPETUA_COMPARISON(&&)
PERPETUA_COMPARISON(||)
#undef PERPETUA_COMPARISON
template <class T, int N> inline vec<T, N> operator-(vec<T, N> a) PERPETUA_LANES(T, -a[i])
template <class T, int N> inline vec<T, N> operator~(vec<T, N> a) PERPETUA_LANES(T, ~a[i])
template <int N> inline vec<bool, N> operator!(vec<bool, N> a) PERPETUA_LANES(bool, !a[i])

template <class T, size_t N> struct array {
    T at[N];
    T &operator[](size_t i) { return at[i]; }
    const T &operator[](size_t i) const { return at[i]; }
    static constexpr size_t size() { return N; }
};

// A function of one, two or three values, lane by lane on vectors.
#define PERPETUA_VECTOR_1(name) \
    template <class T, int N> inline auto name(vec<T, N> a) -> vec<decltype(name(a.x)), N> PERPETUA_LANES(decltype(name(a.x)), name(a[i]))
#define PERPETUA_VECTOR_2(name) \
    template <class T, int N> inline auto name(vec<T, N> a, vec<T, N> b) -> vec<decltype(name(a.x, b.x)), N> PERPETUA_LANES(decltype(name(a.x, b.x)), name(a[i], b[i]))
#define PERPETUA_VECTOR_3(name) \
    template <class T, int N> inline auto name(vec<T, N> a, vec<T, N> b, vec<T, N> c) -> vec<decltype(name(a.x, b.x, c.x)), N> PERPETUA_LANES(decltype(name(a.x, b.x, c.x)), name(a[i], b[i], c[i]))

// ---------------------------------------------------------------------------------------------------------------
// Floating-point functions. A half is computed as float and rounded, which is exact for what IEEE rounds.

#define PERPETUA_FLOAT_1(name, expression) \
    inline float name(float x) { return expression; } \
    inline half name(half h) { float x = (float)h; return (half)(expression); } \
    PERPETUA_VECTOR_1(name)
#define PERPETUA_FLOAT_2(name, expression) \
    inline float name(float x, float y) { return expression; } \
    inline half name(half g, half h) { float x = (float)g, y = (float)h; return (half)(expression); } \
    PERPETUA_VECTOR_2(name)

#define PERPETUA_APPROXIMATED \
    PERPETUA_FLOAT_1(acos, __builtin_acosf(x)) \
    PERPETUA_FLOAT_1(acosh, __builtin_acoshf(x)) \
    PERPETUA_FLOAT_1(asin, __builtin_asinf(x)) \
    PERPETUA_FLOAT_1(asinh, __builtin_asinhf(x)) \
    PERPETUA_FLOAT_1(atan, __builtin_atanf(x)) \
    PERPETUA_FLOAT_1(atanh, __builtin_atanhf(x)) \
    PERPETUA_FLOAT_1(cos, __builtin_cosf(x)) \
    PERPETUA_FLOAT_1(cosh, __builtin_coshf(x)) \
    PERPETUA_FLOAT_1(cospi, (float)__builtin_cos((double)x * 3.141592653589793)) \
    PERPETUA_FLOAT_1(exp, __builtin_expf(x)) \
    PERPETUA_FLOAT_1(exp2, __builtin_exp2f(x)) \
    PERPETUA_FLOAT_1(exp10, (float)__builtin_exp10((double)x)) \
    PERPETUA_FLOAT_1(log, __builtin_logf(x)) \
    PERPETUA_FLOAT_1(log2, __builtin_log2f(x)) \
    PERPETUA_FLOAT_1(log10, __builtin_log10f(x)) \
    PERPETUA_FLOAT_1(rsqrt, (float)(1.0 / __builtin_sqrt((double)x))) \
    PERPETUA_FLOAT_1(sin, __builtin_sinf(x)) \
    PERPETUA_FLOAT_1(sinh, __builtin_sinhf(x)) \
    PERPETUA_FLOAT_1(sinpi, (float)__builtin_sin((double)x * 3.141592653589793)) \
    PERPETUA_FLOAT_1(sqrt, __builtin_sqrtf(x)) \
    PERPETUA_FLOAT_1(tan, __builtin_tanf(x)) \
    PERPETUA_FLOAT_1(tanh, __builtin_tanhf(x)) \
    PERPETUA_FLOAT_1(tanpi, (float)__builtin_tan((double)x * 3.141592653589793)) \
    PERPETUA_FLOAT_2(atan2, __builtin_atan2f(x, y)) \
    PERPETUA_FLOAT_2(divide, x / y) \
    PERPETUA_FLOAT_2(pow, __builtin_powf(x, y)) \
    PERPETUA_FLOAT_2(powr, __builtin_powf(x, y))

#define PERPETUA_EXACT \
    PERPETUA_FLOAT_1(ceil, __builtin_ceilf(x)) \
    PERPETUA_FLOAT_1(fabs, __builtin_fabsf(x)) \
    PERPETUA_FLOAT_1(floor, __builtin_floorf(x)) \
    PERPETUA_FLOAT_1(fract, __builtin_fminf(x - __builtin_floorf(x), 0x1.fffffep-1f)) \
    PERPETUA_FLOAT_1(rint, __builtin_rintf(x)) \
    PERPETUA_FLOAT_1(round, __builtin_roundf(x)) \
    PERPETUA_FLOAT_1(trunc, __builtin_truncf(x)) \
    PERPETUA_FLOAT_2(copysign, __builtin_copysignf(x, y)) \
    PERPETUA_FLOAT_2(fdim, __builtin_fdimf(x, y)) \
    PERPETUA_FLOAT_2(fmax, __builtin_fmaxf(x, y)) \
    PERPETUA_FLOAT_2(fmin, __builtin_fminf(x, y)) \
    PERPETUA_FLOAT_2(fmod, __builtin_fmodf(x, y))

// The sum of a product of halves and a half needs more bits than a double: round it to odd, then to half.
#define PERPETUA_FMA \
    inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); } \
    inline half fma(half a, half b, half c) { \
        double p = (double)a * (double)b, s = p + (double)c, t = s - p, e = (p - (s - t)) + ((double)c - t); \
        long bits = as_type<long>(s); \
        if (e == e && e != 0.0 && !(bits & 1)) bits += (e > 0.0) == (s > 0.0) ? 1 : -1; \
        return (half)as_type<double>(bits); \
    } \
    PERPETUA_VECTOR_3(fma)

PERPETUA_APPROXIMATED
PERPETUA_EXACT
PERPETUA_FMA
namespace precise { PERPETUA_APPROXIMATED PERPETUA_EXACT PERPETUA_FMA }
namespace fast { PERPETUA_APPROXIMATED PERPETUA_EXACT PERPETUA_FMA }

PERPETUA_FLOAT_1(saturate, __builtin_fminf(__builtin_fmaxf(x, 0.0f), 1.0f))
PERPETUA_FLOAT_1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? x : 0.0f)
PERPETUA_FLOAT_2(step, y < x ? 0.0f : 1.0f)
inline float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
inline float ldexp(float x, int k) { return __builtin_ldexpf(x, k); }
inline half ldexp(half x, int k) { return (half)__builtin_ldexpf((float)x, k); }
inline int ilogb(float x) { return __builtin_ilogbf(x); }
inline float frexp(float x, int &e) { return __builtin_frexpf(x, &e); }
inline float modf(float x, float &whole) { return __builtin_modff(x, &whole); }
inline float sincos(float x, float &cosine) { cosine = cos(x); return sin(x); }
inline float mix(float x, float y, float a) { return x + (y - x) * a; }
inline float smoothstep(float a, float b, float x) { float t = saturate((x - a) / (b - a)); return t * t * (3.0f - 2.0f * t); }
PERPETUA_VECTOR_3(mix)
PERPETUA_VECTOR_3(smoothstep)

#define PERPETUA_CLASS(name, expression) \
    inline bool name(float x) { return expression; } \
    inline bool name(half h) { float x = (float)h; return expression; } \
    PERPETUA_VECTOR_1(name)
PERPETUA_CLASS(isnan, __builtin_isnan(x))
PERPETUA_CLASS(isinf, __builtin_isinf(x))
PERPETUA_CLASS(isfinite, __builtin_isfinite(x))
PERPETUA_CLASS(signbit, __builtin_signbit(x))
inline bool isnormal(float x) { return __builtin_isnormal(x); }
inline bool isnormal(half x) { return __builtin_isfinite((float)x) && __builtin_fabsf((float)x) >= 0x1p-14f; }
PERPETUA_VECTOR_1(isnormal)
#undef PERPETUA_CLASS

// ---------------------------------------------------------------------------------------------------------------
// Integer functions, and what integers and floats share.

#define PERPETUA_INT template <class T> inline perpetua::enable_if_t<perpetua::integer<T>::value, T>
#define PERPETUA_BITS (8 * (int)sizeof(T))
PERPETUA_INT min(T a, T b) { return b < a ? b : a; }
PERPETUA_INT max(T a, T b) { return a < b ? b : a; }
PERPETUA_INT clamp(T x, T low, T high) { return min(max(x, low), high); }
PERPETUA_INT abs(T x) { return x < (T)0 ? (T)((perpetua::unsigned_t<T>)0 - (perpetua::unsigned_t<T>)x) : x; }
template <class T> inline perpetua::unsigned_t<T> absdiff(T a, T b) {
    typedef perpetua::unsigned_t<T> U;
    return a < b ? (U)((U)b - (U)a) : (U)((U)a - (U)b);
}
PERPETUA_INT addsat(T a, T b) {
    T r;
    if (!__builtin_add_overflow(a, b, &r)) return r;
    typedef perpetua::unsigned_t<T> U;
    return !perpetua::is_signed_integer<T>() ? (T)~(U)0 : a < (T)0 ? (T)((U)1 << (PERPETUA_BITS - 1)) : (T)((U)~(U)0 >> 1);
}
PERPETUA_INT subsat(T a, T b) {
    T r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    typedef perpetua::unsigned_t<T> U;
    return !perpetua::is_signed_integer<T>() ? (T)0 : a < (T)0 ? (T)((U)1 << (PERPETUA_BITS - 1)) : (T)((U)~(U)0 >> 1);
}
PERPETUA_INT popcount(T x) { return (T)__builtin_popcountl((ulong)(perpetua::unsigned_t<T>)x); }
PERPETUA_INT clz(T x) {
    return x == 0 ? (T)PERPETUA_BITS : (T)(__builtin_clzl((ulong)(perpetua::unsigned_t<T>)x) - (64 - PERPETUA_BITS));
}
PERPETUA_INT ctz(T x) { return x == 0 ? (T)PERPETUA_BITS : (T)__builtin_ctzl((ulong)(perpetua::unsigned_t<T>)x); }
PERPETUA_INT reverse_bits(T x) {
    perpetua::unsigned_t<T> u = (perpetua::unsigned_t<T>)x, r = 0;
    for (int i = 0; i < PERPETUA_BITS; i++) { r = (perpetua::unsigned_t<T>)((ulong)r << 1 | (u & 1)); u = (perpetua::unsigned_t<T>)((ulong)u >> 1); }
    return (T)r;
}
PERPETUA_INT rotate(T x, T by) {
    perpetua::unsigned_t<T> u = (perpetua::unsigned_t<T>)x;
    uint n = (uint)by & (uint)(PERPETUA_BITS - 1);
    return n == 0 ? x : (T)(perpetua::unsigned_t<T>)((ulong)u << n | (ulong)u >> (PERPETUA_BITS - n));
}
PERPETUA_INT extract_bits(T x, uint offset, uint bits) {
    if (bits == 0) return 0;
    int up = PERPETUA_BITS - (int)(offset + bits);
    return (T)((T)((perpetua::unsigned_t<T>)x << up) >> (PERPETUA_BITS - (int)bits));
}
PERPETUA_INT insert_bits(T base, T insert, uint offset, uint bits) {
    typedef perpetua::unsigned_t<T> U;
    if (bits == 0) return base;
    U mask = (U)((ulong)((U)~(U)0 >> (PERPETUA_BITS - (int)bits)) << offset);
    return (T)(((U)base & (U)~mask) | ((U)((ulong)(U)insert << offset) & mask));
}
PERPETUA_INT mulhi(T a, T b) { return (T)(((__int128)a * (__int128)b) >> PERPETUA_BITS); }
template <> inline ulong mulhi<ulong>(ulong a, ulong b) { return (ulong)(((unsigned __int128)a * b) >> 64); }
PERPETUA_INT madhi(T a, T b, T c) { return (T)((perpetua::unsigned_t<T>)mulhi(a, b) + (perpetua::unsigned_t<T>)c); }
PERPETUA_INT hadd(T a, T b) { return (T)((a >> 1) + (b >> 1) + (a & b & 1)); }
PERPETUA_INT rhadd(T a, T b) { return (T)((a >> 1) + (b >> 1) + ((a | b) & 1)); }
PERPETUA_FLOAT_1(abs, __builtin_fabsf(x))
PERPETUA_FLOAT_2(min, __builtin_fminf(x, y))
PERPETUA_FLOAT_2(max, __builtin_fmaxf(x, y))
inline float clamp(float x, float low, float high) { return fmin(fmax(x, low), high); }
inline half clamp(half x, half low, half high) { return fmin(fmax(x, low), high); }
PERPETUA_VECTOR_3(clamp)
PERPETUA_VECTOR_1(popcount)
PERPETUA_VECTOR_1(clz)
PERPETUA_VECTOR_1(ctz)
PERPETUA_VECTOR_1(reverse_bits)
PERPETUA_VECTOR_2(mulhi)
PERPETUA_VECTOR_2(absdiff)
PERPETUA_VECTOR_2(addsat)
PERPETUA_VECTOR_2(subsat)

template <class T> inline T select(T no, T yes, bool c) { return c ? yes : no; }
template <class T, int N> inline vec<T, N> select(vec<T, N> no, vec<T, N> yes, vec<bool, N> c) PERPETUA_LANES(T, c[i] ? yes[i] : no[i])
inline bool all(bool x) { return x; }
inline bool any(bool x) { return x; }
template <int N> inline bool all(vec<bool, N> v) { bool r = true; for (int i = 0; i < N; i++) r = r && v[i]; return r; }
template <int N> inline bool any(vec<bool, N> v) { bool r = false; for (int i = 0; i < N; i++) r = r || v[i]; return r; }
template <class T, int N> inline T dot(vec<T, N> a, vec<T, N> b) { T r = a[0] * b[0]; for (int i = 1; i < N; i++) r += a[i] * b[i]; return r; }
template <class T, int N> inline T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <class T, int N> inline T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <class T, int N> inline vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <class T> inline vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
    return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

// ---------------------------------------------------------------------------------------------------------------
// Barriers and atomics. The lanes of a group take turns on one thread, so plain accesses are atomic; a lane that
// repeats atomics without end lets the others run. Weak exchanges fail now and then, as they may.

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

inline void threadgroup_barrier(mem_flags, uint line = __builtin_LINE()) { perpetua::wait(perpetua::threadgroup_rendezvous, line); }
inline void simdgroup_barrier(mem_flags, uint line = __builtin_LINE()) { perpetua::wait(perpetua::simdgroup_rendezvous, line); }

// Atomic accesses take this order alone; the others order fences.
struct relaxed_order {};
static constexpr relaxed_order memory_order_relaxed{};
enum memory_order { memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
inline void atomic_thread_fence(mem_flags, memory_order, thread_scope = thread_scope_device) {}
inline void atomic_thread_fence(mem_flags, relaxed_order, thread_scope = thread_scope_device) {}

template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
typedef atomic<ulong> atomic_ulong;

template <class T> constexpr bool perpetua_atomic() {
    return perpetua::same<T, int>::value || perpetua::same<T, uint>::value || perpetua::same<T, float>::value || perpetua::same<T, bool>::value;
}
inline void perpetua_atomic_step() {
    if (++perpetua::current->impatience % 256 == 0) perpetua::wait(perpetua::others_may_run, 0);
}

template <class T> inline T atomic_load_explicit(const volatile atomic<T> *object, relaxed_order) {
    static_assert(perpetua_atomic<T>(), "Metal loads atomics of 32 bits");
    perpetua_atomic_step();
    return object->value;
}
template <class T> inline void atomic_store_explicit(volatile atomic<T> *object, perpetua::identity_t<T> desired, relaxed_order) {
    static_assert(perpetua_atomic<T>(), "Metal stores atomics of 32 bits");
    perpetua_atomic_step();
    object->value = desired;
}
template <class T> inline bool atomic_compare_exchange_weak_explicit(
    volatile atomic<T> *object, T *expected, perpetua::identity_t<T> desired, relaxed_order, relaxed_order) {
    static_assert(perpetua_atomic<T>(), "Metal exchanges atomics of 32 bits");
    perpetua_atomic_step();
    T found = object->value;
    bool equal = __builtin_memcmp(&found, expected, sizeof(T)) == 0;
    *expected = found;
    if (!equal || perpetua::current->impatience % 5 == 0) return false;
    object->value = desired;
    return true;
}
#define PERPETUA_FETCH(name, condition, expression) \
    template <class T> inline T name(volatile atomic<T> *object, perpetua::identity_t<T> operand, relaxed_order) { \
        static_assert(condition, #name " does not take this type"); \
        perpetua_atomic_step(); \
        T old = object->value; \
        object->value = (T)(expression); \
        return old; \
    }
#define PERPETUA_ATOMIC_INT (perpetua_atomic<T>() && perpetua::integer<T>::value)
template <class T> inline T perpetua_wrapping_add(T a, T b) { return (T)((perpetua::unsigned_t<T>)a + (perpetua::unsigned_t<T>)b); }
inline float perpetua_wrapping_add(float a, float b) { return a + b; }
template <class T> inline T perpetua_wrapping_sub(T a, T b) { return (T)((perpetua::unsigned_t<T>)a - (perpetua::unsigned_t<T>)b); }
inline float perpetua_wrapping_sub(float a, float b) { return a - b; }
PERPETUA_FETCH(atomic_exchange_explicit, perpetua_atomic<T>(), operand)
PERPETUA_FETCH(atomic_fetch_add_explicit, (PERPETUA_ATOMIC_INT || perpetua::same<T, float>::value), perpetua_wrapping_add(old, operand))
PERPETUA_FETCH(atomic_fetch_sub_explicit, (PERPETUA_ATOMIC_INT || perpetua::same<T, float>::value), perpetua_wrapping_sub(old, operand))
PERPETUA_FETCH(atomic_fetch_and_explicit, PERPETUA_ATOMIC_INT, old & operand)
PERPETUA_FETCH(atomic_fetch_or_explicit, PERPETUA_ATOMIC_INT, old | operand)
PERPETUA_FETCH(atomic_fetch_xor_explicit, PERPETUA_ATOMIC_INT, old ^ operand)
PERPETUA_FETCH(atomic_fetch_min_explicit, PERPETUA_ATOMIC_INT, operand < old ? operand : old)
PERPETUA_FETCH(atomic_fetch_max_explicit, PERPETUA_ATOMIC_INT, old < operand ? operand : old)
#undef PERPETUA_FETCH
inline void atomic_min_explicit(volatile atomic_ulong *object, ulong x, relaxed_order) { if (x < object->value) object->value = x; }
inline void atomic_max_explicit(volatile atomic_ulong *object, ulong x, relaxed_order) { if (object->value < x) object->value = x; }

// ---------------------------------------------------------------------------------------------------------------
// SIMD-group operations: every active lane hands in its value and waits until all have. Reading a lane that does not
// take part is undefined in Metal; here it gives the reader's own value.

template <class T> struct perpetua_element { typedef T type; };
template <class T, int N> struct perpetua_element<vec<T, N>> { typedef T type; };
template <class T> constexpr bool perpetua_exchangeable() {
    typedef typename perpetua_element<T>::type E;
    return (perpetua::integer<E>::value && sizeof(E) <= 4) || perpetua::same<E, float>::value || perpetua::same<E, half>::value;
}

template <class T> inline const perpetua::Exchange *perpetua_meet(T mine, uint line) {
    static_assert(sizeof(T) <= 16, "a lane hands in at most 16 bytes");
    __builtin_memcpy(perpetua::current->value, &mine, sizeof(T));
    perpetua::wait(perpetua::simdgroup_rendezvous, line);
    return perpetua::current->exchange;
}
template <class T> inline T perpetua_value(const perpetua::Exchange *met, uint lane, T otherwise) {
    if (lane >= perpetua::current->width || !(met->active >> lane & 1)) return otherwise;
    T value;
    __builtin_memcpy(&value, met->value[lane], sizeof(T));
    return value;
}

struct simd_vote {
    typedef uint64_t vote_t;
    vote_t bits, width_mask;
    explicit simd_vote(vote_t v = 0) : bits(v), width_mask(~0ul >> (64 - perpetua::current->width)) {}
    explicit operator vote_t() const { return bits; }
    bool all() const { return bits == width_mask; }
    bool any() const { return bits != 0; }
};

#define PERPETUA_LINE uint line = __builtin_LINE()
#define PERPETUA_SHUFFLE(name, source, otherwise) \
    template <class T> inline T name(T data, ushort by, PERPETUA_LINE) { \
        static_assert(perpetua_exchangeable<T>(), #name " takes integers and floats of up to 32 bits"); \
        const perpetua::Exchange *met = perpetua_meet(data, line); \
        uint self = perpetua::current->lane, width = perpetua::current->width; \
        (void)self; (void)width; \
        return perpetua_value(met, source, otherwise); \
    }
PERPETUA_SHUFFLE(simd_shuffle, by, data)
PERPETUA_SHUFFLE(simd_broadcast, by, data)
PERPETUA_SHUFFLE(simd_shuffle_xor, self ^ by, data)
PERPETUA_SHUFFLE(simd_shuffle_up, self < by ? self : self - by, data)
PERPETUA_SHUFFLE(simd_shuffle_down, self + by >= width ? self : self + by, data)
PERPETUA_SHUFFLE(simd_shuffle_rotate_up, (self + width - by % width) % width, data)
PERPETUA_SHUFFLE(simd_shuffle_rotate_down, (self + by) % width, data)
PERPETUA_SHUFFLE(quad_shuffle, (self & ~3u) + (by & 3u), data)
PERPETUA_SHUFFLE(quad_broadcast, (self & ~3u) + (by & 3u), data)
PERPETUA_SHUFFLE(quad_shuffle_xor, self ^ (by & 3u), data)
#undef PERPETUA_SHUFFLE
template <class T> inline T simd_broadcast_first(T data, PERPETUA_LINE) {
    static_assert(perpetua_exchangeable<T>(), "simd_broadcast_first takes integers and floats of up to 32 bits");
    const perpetua::Exchange *met = perpetua_meet(data, line);
    return perpetua_value(met, (uint)__builtin_ctzl(met->active), data);
}

// Folds the values of active lanes below `end`, in the order of lanes, starting from `start`.
template <class T, class F> inline T perpetua_fold(const perpetua::Exchange *met, uint end, T start, F step) {
    T r = start;
    for (uint i = 0; i < end; i++)
        if (met->active >> i & 1) r = step(r, perpetua_value(met, i, r));
    return r;
}
template <class T, class F> inline T perpetua_reduce(const perpetua::Exchange *met, F step) {
    uint first = (uint)__builtin_ctzl(met->active);
    T r = perpetua_value(met, first, T());
    for (uint i = first + 1; i < perpetua::current->width; i++)
        if (met->active >> i & 1) r = step(r, perpetua_value(met, i, r));
    return r;
}
struct perpetua_add {
    template <class T> perpetua::enable_if_t<perpetua::integer<T>::value, T> operator()(T a, T b) const { return perpetua_wrapping_add(a, b); }
    float operator()(float a, float b) const { return a + b; }
    half operator()(half a, half b) const { return a + b; }
    template <class T, int N> vec<T, N> operator()(vec<T, N> a, vec<T, N> b) const PERPETUA_LANES(T, (*this)(a[i], b[i]))
};
struct perpetua_multiply {
    template <class T> perpetua::enable_if_t<perpetua::integer<T>::value, T> operator()(T a, T b) const {
        return (T)((ulong)(perpetua::unsigned_t<T>)a * (ulong)(perpetua::unsigned_t<T>)b);
    }
    float operator()(float a, float b) const { return a * b; }
    half operator()(half a, half b) const { return a * b; }
    template <class T, int N> vec<T, N> operator()(vec<T, N> a, vec<T, N> b) const PERPETUA_LANES(T, (*this)(a[i], b[i]))
};
struct perpetua_min { template <class T> T operator()(T a, T b) const { return min(a, b); } };
struct perpetua_max { template <class T> T operator()(T a, T b) const { return max(a, b); } };
struct perpetua_and { template <class T> T operator()(T a, T b) const { return a & b; } };
struct perpetua_or { template <class T> T operator()(T a, T b) const { return a | b; } };
struct perpetua_xor { template <class T> T operator()(T a, T b) const { return a ^ b; } };

#define PERPETUA_REDUCE(name, step) \
    template <class T> inline T name(T data, PERPETUA_LINE) { \
        static_assert(perpetua_exchangeable<T>(), #name " takes integers and floats of up to 32 bits"); \
        return perpetua_reduce<T>(perpetua_meet(data, line), step()); \
    }
PERPETUA_REDUCE(simd_sum, perpetua_add)
PERPETUA_REDUCE(simd_product, perpetua_multiply)
PERPETUA_REDUCE(simd_min, perpetua_min)
PERPETUA_REDUCE(simd_max, perpetua_max)
PERPETUA_REDUCE(simd_and, perpetua_and)
PERPETUA_REDUCE(simd_or, perpetua_or)
PERPETUA_REDUCE(simd_xor, perpetua_xor)
#undef PERPETUA_REDUCE
#define PERPETUA_PREFIX(name, step, start, last) \
    template <class T> inline T name(T data, PERPETUA_LINE) { \
        static_assert(perpetua_exchangeable<T>(), #name " takes integers and floats of up to 32 bits"); \
        const perpetua::Exchange *met = perpetua_meet(data, line); \
        return perpetua_fold(met, perpetua::current->lane + last, T(start), step()); \
    }
PERPETUA_PREFIX(simd_prefix_inclusive_sum, perpetua_add, 0, 1)
PERPETUA_PREFIX(simd_prefix_exclusive_sum, perpetua_add, 0, 0)
PERPETUA_PREFIX(simd_prefix_inclusive_product, perpetua_multiply, 1, 1)
PERPETUA_PREFIX(simd_prefix_exclusive_product, perpetua_multiply, 1, 0)
#undef PERPETUA_PREFIX
inline simd_vote simd_ballot(bool data, PERPETUA_LINE) {
    const perpetua::Exchange *met = perpetua_meet((uint)data, line);
    ulong bits = 0;
    for (uint i = 0; i < perpetua::current->width; i++) bits |= (ulong)perpetua_value(met, i, 0u) << i;
    return simd_vote(bits);
}
inline simd_vote simd_active_threads_mask(PERPETUA_LINE) { return simd_vote(perpetua_meet(0u, line)->active); }
inline bool simd_all(bool data, PERPETUA_LINE) {
    const perpetua::Exchange *met = perpetua_meet((uint)data, line);
    return perpetua_reduce<uint>(met, perpetua_and()) != 0;
}
inline bool simd_any(bool data, PERPETUA_LINE) {
    const perpetua::Exchange *met = perpetua_meet((uint)data, line);
    return perpetua_reduce<uint>(met, perpetua_or()) != 0;
}
inline bool simd_is_first(PERPETUA_LINE) {
    const perpetua::Exchange *met = perpetua_meet(0u, line);
    return (uint)__builtin_ctzl(met->active) == perpetua::current->lane;
}
#undef PERPETUA_LINE

} // namespace metal

// What MSL's language lacks, whatever C++ says.
#pragma GCC poison double goto new delete throw try catch typeid dynamic_cast virtual asm thread_local
