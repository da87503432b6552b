//! README and the book as documentation tests: each sample is compiled and run. Exists for them alone.

#[doc = include_str!("../../../README.md")]
pub struct Readme;

#[doc = include_str!("../../../docs/book/src/introduction.md")]
pub struct Introduction;

#[doc = include_str!("../../../docs/book/src/first-hour.md")]
pub struct FirstHour;

#[doc = include_str!("../../../docs/book/src/from-cuda.md")]
pub struct FromCuda;

#[doc = include_str!("../../../docs/book/src/from-wgsl.md")]
pub struct FromWgsl;

#[doc = include_str!("../../../docs/book/src/language.md")]
pub struct Language;

#[doc = include_str!("../../../docs/book/src/tables.md")]
pub struct Tables;

#[doc = include_str!("../../../docs/book/src/targets.md")]
pub struct Targets;

#[doc = include_str!("../../../docs/book/src/memory.md")]
pub struct Memory;

#[doc = include_str!("../../../docs/book/src/performance.md")]
pub struct Performance;

#[doc = include_str!("../../../docs/book/src/errors.md")]
pub struct Errors;

#[doc = include_str!("../../../docs/book/src/devices.md")]
pub struct Devices;

#[cfg(feature = "actors")]
#[doc = include_str!("../../../docs/book/src/actors.md")]
pub struct Actors;

#[cfg(feature = "actors")]
#[doc = include_str!("../../../docs/book/src/promises.md")]
pub struct Promises;

#[cfg(feature = "actors")]
#[doc = include_str!("../../../docs/book/src/watching.md")]
pub struct Watching;

#[cfg(feature = "actors")]
#[doc = include_str!("../../../docs/book/src/coming-from-ringkernel.md")]
pub struct ComingFromRingkernel;

#[doc = include_str!("../../../docs/book/src/wave.md")]
pub struct Wave;

#[doc = include_str!("../../../docs/book/src/scenes.md")]
pub struct Scenes;

#[cfg(feature = "tensor")]
#[doc = include_str!("../../../docs/book/src/tensors.md")]
pub struct Tensors;

#[cfg(feature = "tensor")]
#[doc = include_str!("../../../docs/book/src/tensor-operators.md")]
pub struct TensorOperators;

#[cfg(feature = "tensor")]
#[doc = include_str!("../../../docs/book/src/tensor-standard.md")]
pub struct TensorStandard;

#[doc = include_str!("../../../docs/book/src/launch-or-stay.md")]
pub struct LaunchOrStay;

#[cfg(feature = "kernels")]
#[doc = include_str!("../../../docs/book/src/kernels.md")]
pub struct Kernels;

#[doc = include_str!("../../../docs/book/src/instruction-set.md")]
pub struct InstructionSet;

#[doc = include_str!("../../../docs/book/src/ir.md")]
pub struct Ir;

#[doc = include_str!("../../../docs/book/src/backend.md")]
pub struct Backend;

#[doc = include_str!("../../../docs/book/src/glossary.md")]
pub struct Glossary;
