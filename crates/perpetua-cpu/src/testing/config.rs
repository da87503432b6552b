//! What generated kernels may contain.

use perpetua_ir::ir::Scalar;

/// What generated kernels may contain. `Config::default()` is what every target can do; the rest is switched on for
/// those that can do more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// About how many statements the kernel's own code has, at most.
    pub statements: usize,
    /// `f32` (and `f16`, `bf16` with [`Config::small`]). Off for devices whose floats are not exact.
    pub floats: bool,
    /// Float operators whose result is only near the exact one, which must then be the same on all targets.
    pub library: bool,
    /// 8- and 16-bit types.
    pub small: bool,
    /// 64-bit integers.
    pub int64: bool,
    /// `f64`.
    pub float64: bool,
    /// Shared memory and barriers.
    pub shared: bool,
    /// Dynamic shared memory.
    pub dynamic_shared: bool,
    /// Atomics of 32 bits, and of 64 with [`Config::atomic64`].
    pub atomics: bool,
    /// Atomics of 64 bits.
    pub atomic64: bool,
    /// Orders other than relaxed, and fences.
    pub ordering: bool,
    /// Subgroup operations, in patterns whose result does not depend on how lanes are grouped.
    pub subgroups: bool,
    /// Indices, divisors and `match`es that may fault. What such a kernel leaves in its buffers is unspecified.
    pub faults: bool,
    /// Most buffers; at least 1.
    pub buffers: usize,
    /// Most lanes of a block.
    pub lanes: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            statements: 40,
            floats: true,
            library: false,
            small: true,
            int64: false,
            float64: false,
            shared: true,
            dynamic_shared: false,
            atomics: true,
            atomic64: false,
            ordering: false,
            subgroups: false,
            faults: false,
            buffers: 7,
            lanes: 64,
        }
    }
}

impl Config {
    /// Everything that CUDA and the interpreter can do, faults aside.
    pub fn full() -> Config {
        Config {
            statements: 60,
            library: true,
            int64: true,
            float64: true,
            dynamic_shared: true,
            atomic64: true,
            ordering: true,
            subgroups: true,
            buffers: 14,
            lanes: 256,
            ..Config::default()
        }
    }

    /// The scalars that kernels may compute with, simplest first.
    pub fn scalars(&self) -> Vec<Scalar> {
        let mut all = vec![Scalar::U32, Scalar::I32, Scalar::Bool];
        if self.floats {
            all.push(Scalar::F32);
        }
        if self.small {
            all.extend([Scalar::U8, Scalar::I8, Scalar::U16, Scalar::I16]);
            if self.floats {
                all.extend([Scalar::F16, Scalar::BF16]);
            }
        }
        if self.int64 {
            all.extend([Scalar::U64, Scalar::I64]);
        }
        if self.float64 {
            all.push(Scalar::F64);
        }
        all
    }
}
