// Closes a translation unit of generated MSL: the entry that the runner calls for one lane, what the runner sets, and
// the compiler's reports of undefined behaviour. Read after `metal_stdlib`; the macro PERPETUA_CALL follows from
// the kernel's signature.
#undef kernel
#undef device
#undef constant
#undef thread

namespace perpetua {

// One lane's launch; mirrored in `runner.rs`.
struct Launch {
    void *const *buffers;
    void *const *threadgroup;
    uint thread_in_group[3], group_in_grid[3], threads_per_group[3], groups_per_grid[3];
    uint simd_lane, simd_width, simd_group;
};

// A buffer as whatever pointer or reference the kernel's parameter is.
struct Bound {
    void *start;
    template <class T> operator T *() const { return (T *)start; }
    template <class T> operator T &() const { return *(T *)start; }
};

// A position as whatever width of unsigned vector the kernel's parameter is.
struct Position {
    uint x, y, z;
    operator uint() const { return x; }
    operator ushort() const { return (ushort)x; }
    operator metal::uint2() const { return metal::uint2(x, y); }
    operator metal::ushort2() const { return metal::ushort2((ushort)x, (ushort)y); }
    operator metal::uint3() const { return metal::uint3(x, y, z); }
    operator metal::ushort3() const { return metal::ushort3((ushort)x, (ushort)y, (ushort)z); }
};
static inline Position position(const uint *p) { return Position{p[0], p[1], p[2]}; }
static inline Position product(const uint *a, const uint *b) { return Position{a[0] * b[0], a[1] * b[1], a[2] * b[2]}; }
static inline Position in_grid(const Launch *l) {
    Position p = product(l->group_in_grid, l->threads_per_group);
    return Position{p.x + l->thread_in_group[0], p.y + l->thread_in_group[1], p.z + l->thread_in_group[2]};
}
static inline Position scalar(uint x) { return Position{x, 0, 0}; }
static inline uint index_in_group(const Launch *l) {
    return (l->thread_in_group[2] * l->threads_per_group[1] + l->thread_in_group[1]) * l->threads_per_group[0] + l->thread_in_group[0];
}
static inline uint threads(const Launch *l) { return l->threads_per_group[0] * l->threads_per_group[1] * l->threads_per_group[2]; }

Lane *current;
static void (*wait_in_runner)(uint kind, uint line);
static void (*report_to_runner)(const char *what, const char *file, uint line);
void wait(WaitKind kind, uint line) { wait_in_runner(kind, line); }

// The start of every record that the undefined-behaviour checks hand over.
struct Place {
    const char *file;
    uint line, column;
};

} // namespace perpetua

extern "C" {

// Static threadgroup variables lie in one section, which exists only where a kernel declares some.
extern char __start_perpetua_threadgroup[] __attribute__((weak, visibility("hidden")));
extern char __stop_perpetua_threadgroup[] __attribute__((weak, visibility("hidden")));

#define PERPETUA_EXPORT __attribute__((visibility("default")))
PERPETUA_EXPORT void perpetua_attach(void (*wait)(uint, uint), void (*report)(const char *, const char *, uint)) {
    perpetua::wait_in_runner = wait;
    perpetua::report_to_runner = report;
}
PERPETUA_EXPORT void perpetua_become(perpetua::Lane *lane) { perpetua::current = lane; }
PERPETUA_EXPORT void perpetua_threadgroup_memory(char **start, size_t *size) {
    *start = __start_perpetua_threadgroup;
    *size = (size_t)(__stop_perpetua_threadgroup - __start_perpetua_threadgroup);
}
PERPETUA_EXPORT void perpetua_enter(const perpetua::Launch *launch) { PERPETUA_CALL; }

// The compiler knows these names with other types, hence the labels.
#define PERPETUA_UNDEFINED(name, what) \
    __attribute__((used)) void perpetua_undefined_##name(const perpetua::Place *place) __asm__("__ubsan_handle_" #name); \
    void perpetua_undefined_##name(const perpetua::Place *place) { \
        perpetua::report_to_runner(what, place->file, place->line); \
    }
PERPETUA_UNDEFINED(add_overflow, "signed addition overflows")
PERPETUA_UNDEFINED(sub_overflow, "signed subtraction overflows")
PERPETUA_UNDEFINED(mul_overflow, "signed multiplication overflows")
PERPETUA_UNDEFINED(negate_overflow, "signed negation overflows")
PERPETUA_UNDEFINED(divrem_overflow, "division by zero, or of the least integer by -1")
PERPETUA_UNDEFINED(shift_out_of_bounds, "shift by the type's width or more")
PERPETUA_UNDEFINED(float_cast_overflow, "float outside the integer's range is converted")
PERPETUA_UNDEFINED(out_of_bounds, "index outside a fixed array")
PERPETUA_UNDEFINED(load_invalid_value, "load of a bool that is neither 0 nor 1")
PERPETUA_UNDEFINED(type_mismatch_v1, "null or misaligned pointer is followed")
PERPETUA_UNDEFINED(missing_return, "end of a function that should return a value")
#undef PERPETUA_UNDEFINED

} // extern "C"
