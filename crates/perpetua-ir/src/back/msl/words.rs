//! Words that generated MSL must not use for its own things besides C++'s: Metal's, and the functions that we call.

pub(super) const METAL: &[&str] = &[
    "kernel", "device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "vertex", "fragment", "metal",
    "half", "bfloat", "uchar", "ushort", "uint", "ulong", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
    "uint32_t", "uint64_t", "vec", "array", "atomic", "atomic_int", "atomic_uint", "atomic_float", "atomic_bool",
    "atomic_ulong", "as_type", "precise", "fast", "sampler", "texture", "buffer", "access", "matrix", "simd", "quad",
    "abs", "absdiff", "acos", "acosh", "addsat", "all", "any", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "clamp",
    "clz", "copysign", "cos", "cosh", "cospi", "cross", "ctz", "distance", "divide", "dot", "exp", "exp10", "exp2",
    "extract_bits", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "fract", "frexp", "hadd", "ilogb",
    "insert_bits", "isfinite", "isinf", "isnan", "isnormal", "ldexp", "length", "log", "log10", "log2", "mad24", "madhi",
    "madsat", "max", "max3", "median3", "min", "min3", "mix", "modf", "mul24", "mulhi", "nextafter", "normalize",
    "popcount", "pow", "powr", "reverse_bits", "rhadd", "rint", "rotate", "round", "rsqrt", "saturate", "select", "sign",
    "signbit", "sin", "sincos", "sinh", "sinpi", "smoothstep", "sqrt", "step", "subsat", "tan", "tanh", "tanpi", "trunc",
    "args", "tid", "bid", "bdim", "gdim", "simd_lane", "simd_size", "mem_flags", "memory_order", "thread_scope",
    "simd_vote", "simd_sum", "simd_product", "simd_and", "simd_or", "simd_xor", "simd_min", "simd_max", "simd_any",
    "simd_all", "simd_ballot", "simd_shuffle", "simd_broadcast_first", "threadgroup_barrier", "r32float",
];
