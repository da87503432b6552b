//! Words that generated CUDA C must not use for its own things: C++'s, CUDA's, and the functions that we call.

/// C++ keywords, and names of its preprocessor.
pub(crate) const CPP: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "char8_t", "char16_t", "char32_t", "class", "co_await", "co_return", "co_yield", "compl", "concept",
    "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend",
    "goto", "if", "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "std", "struct",
    "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "NULL", "INFINITY",
    "NAN", "assert", "size_t", "ptrdiff_t", "printf",
];

/// CUDA's own.
pub(super) const CUDA: &[&str] = &[
    "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "dim3", "uint3", "cudaError_t", "clock", "clock64",
    "abs", "acos", "acosf", "acosh", "acoshf", "asin", "asinf", "asinh", "asinhf", "atan", "atan2", "atan2f",
    "atanf", "atanh", "atanhf", "atomicAdd", "atomicAnd", "atomicCAS", "atomicExch", "atomicMax", "atomicMin",
    "atomicOr", "atomicSub", "atomicXor", "atomicCAS_system", "cbrt", "cbrtf", "ceil", "ceilf", "copysign",
    "copysignf", "cos", "cosf", "cosh", "coshf", "exp", "exp2", "exp2f", "expf", "expm1", "expm1f", "fabs", "fabsf",
    "floor", "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf", "hypot", "hypotf",
    "isfinite", "isinf", "isnan", "log", "log10", "log10f", "log1p", "log1pf", "log2", "log2f", "logf", "max",
    "min", "pow", "powf", "rint", "rintf", "round", "roundf", "signbit", "sin", "sinf", "sinh", "sinhf", "sqrt",
    "sqrtf", "tan", "tanf", "tanh", "tanhf", "trunc", "truncf", "j0", "j1", "jn", "y0", "y1", "yn", "gamma",
    "rsqrt", "rcbrt", "norm", "erf", "remainder", "exp10", "pow10", "div", "free", "malloc", "memcpy", "memset",
    "logb", "ilogb", "ldexp", "frexp", "modf", "lgamma", "tgamma", "nan", "fdim", "scalbn", "normcdf", "saturate",
];
