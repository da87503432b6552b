//! The language in which kernels are written, as plain Rust functions, and what the macros' output calls. Programs reach it
//! through `perpetua`, which has all of this under its own name. Must not know what kernels are used for.

// What the macros write names the facade; so it can be written here, too.
extern crate self as perpetua;

pub mod prelude;

pub mod kernel;

pub use kernel::{GridPos, KernelFn, Scope, volume};
pub use perpetua_device::args;
pub use perpetua_ir::front::rust::{Edge, GpuType, GpuValue, StencilConfig};

/// Makes a function a kernel: `#[kernel] fn saxpy(a: f32, x: &[f32], y: &mut [f32]) { … }`.
///
/// The function stays as it is. Beside it appears `saxpy::kernel()`, which `Device::launch` takes (for a generic function
/// `scale::kernel::<f32, 16>()`): `device.launch(&saxpy::kernel(), LaunchConfig::linear(n, 256), args![a, &x, &y])`, where
/// the launch checks number, types and lengths of the arguments. Functions that a kernel calls carry `#[device]`.
///
/// A parameter of type `GridPos` makes the function a stencil. In the launch the position is left out, and the grid's extent
/// comes last: `fn blur(at: GridPos, a: &[f32], b: &mut [f32])` takes `args![&a, &b, width, height]` (in space also the
/// depth), as `u32`, with lanes for each cell: `LaunchConfig::tiled(width, height, (16, 16))`.
///
/// ```
/// use perpetua::device::{BackendKind, Device, LaunchConfig};
/// use perpetua::prelude::*;
///
/// #[kernel]
/// fn scale<const BY: u32>(x: &mut [u32]) {
///     let i = global_id_x();
///     if i < x.len() {
///         x[i] *= BY;
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.upload(&[1u32, 2, 3])?;
/// device.launch(&scale::kernel::<10>(), LaunchConfig::linear(3, 256), args![&x])?;
/// assert_eq!(x.read()?, [10, 20, 30]);
///
/// let mut one = [4];
/// scale::<10>(&mut one); // as Rust: a launch of one lane
/// assert_eq!(one, [40]);
/// # Ok::<(), perpetua::device::Error>(())
/// ```
///
/// Options, separated by commas:
/// - `block_size = (16, 16)`: the block size that the kernel requires.
/// - `contract`: multiplications and additions may be fused.
/// - `tile = (16, 16)`, `halo = 1`, `edge = clamp`: how a stencil runs, see `StencilConfig`. Edges are `interior`,
///   `clamp`, `wrap` and `constant(0.0)`.
/// - `interpret`: the kernel gets no native body; the CPU runs it as machine code, or in the interpreter.
/// - `crate = path`: where the facade is, if not `::perpetua`.
pub use perpetua_macros::kernel;

/// Makes a function one that kernels can call: a free function, all functions of an `impl` block, or a trait.
///
/// On an `impl` block of a type of device memory it lets kernels use the block's functions, constants and types: methods
/// are found by the receiver's type, wherever that comes from. A block may implement a trait: one that has the attribute
/// itself, or an operator of Rust's (`Add` and its kin, `AddAssign` and its kin, `Neg`, `Not`, `Index`, `IndexMut`,
/// `PartialEq`, `Default`, `From`). The type may be your own, generic or not, or a primitive one; a block may also be for all types that
/// have a trait.
///
/// In front of `#[derive(…)]` on a struct or an enum it lets kernels use what `Default`, `PartialOrd` and `Ord` write there; a
/// derived `PartialEq` they have without it.
///
/// On a trait it lets generic kernels and functions use what the trait has, default methods included. Bounds stand where
/// Rust has them: after a parameter, in a `where` clause, as `impl Trait`. The module `perpetua::kernel` has an example.
///
/// ```
/// use perpetua::prelude::*;
///
/// #[derive(Clone, Copy, GpuType)]
/// #[repr(C)]
/// struct Ball {
///     height: f32,
///     speed: f32,
/// }
///
/// #[device]
/// impl Ball {
///     fn fall(&mut self, seconds: f32) {
///         self.speed -= 9.81 * seconds;
///         self.height += self.speed * seconds;
///     }
/// }
///
/// #[device]
/// fn is_down(ball: Ball) -> bool {
///     ball.height <= 0.0
/// }
///
/// #[kernel]
/// fn drop_all(balls: &mut [Ball], down: &mut [u32]) {
///     let i = global_id_x();
///     balls[i].fall(0.1);
///     down[i] = is_down(balls[i]) as u32;
/// }
///
/// let (mut balls, mut down) = ([Ball { height: 0.05, speed: 0.0 }], [0]);
/// drop_all(&mut balls, &mut down);
/// assert_eq!(down, [1]);
/// ```
///
/// Options: `crate = path`.
pub use perpetua_macros::device;

/// Makes a `#[repr(C)]` struct, or an enum without data and with an integer `repr`, a type of device memory; and an enum with data, which
/// needs no `repr`, a type of kernels' values ([`GpuValue`]).
///
/// The type must be `Copy`. A struct and an enum with data may have type and const parameters. Options, as `#[gpu(crate = path)]`.
///
/// ```
/// use perpetua::device::{BackendKind, Device, LaunchConfig};
/// use perpetua::prelude::*;
///
/// #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
/// #[repr(u32)]
/// enum Kind {
///     Calm,
///     Loud,
/// }
///
/// #[derive(Clone, Copy, Debug, PartialEq, GpuType)]
/// #[repr(C)]
/// struct Sound {
///     level: f32,
///     kind: Kind,
/// }
///
/// #[kernel]
/// fn judge(sounds: &mut [Sound]) {
///     let i = global_id_x();
///     if sounds[i].level > 80.0 {
///         sounds[i].kind = Kind::Loud;
///     }
/// }
///
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let sounds = [40.0, 90.0].map(|level| Sound { level, kind: Kind::Calm });
/// let sounds = device.upload(&sounds)?;
/// device.launch(&judge::kernel(), LaunchConfig::linear(2, 2), args![&sounds])?;
/// assert_eq!(sounds.read()?[1], Sound { level: 90.0, kind: Kind::Loud });
/// # Ok::<(), perpetua::device::Error>(())
/// ```
pub use perpetua_macros::GpuType;
