//! The text form of kernels: what it looks like, printing and reading it.
//!
//! One statement a line; names for everything that has one, `%3` for values, `$name` for local variables, `@12`
//! for source lines, `//` for comments. `Display` prints a kernel, `FromStr` reads one; reading what was printed
//! gives the same kernel. Neither knows whether a kernel is right: that is the verifier's business.
//!
//! ```
//! use perpetua_ir::ir::Kernel;
//! let text = "\
//! kernel scale(x: buffer<f32, read_write>, a: f32) source \"scale.rs\" {
//!   %0: u32 = thread_idx.x @2
//!   %1: u32 = len x @2
//!   %2: bool = lt %0, %1 @2
//!   if %2 @2 {
//!     %3: f32 = load x[%0] @3
//!     %4: f32 = param a @3
//!     %5: f32 = mul %3, %4 @3
//!     store x[%0], %5 @3
//!   }
//! }
//! ";
//! let kernel: Kernel = text.parse()?;
//! assert_eq!(kernel.to_string(), text);
//! # Ok::<(), perpetua_ir::ir::text::ParseError>(())
//! ```

mod cursor;
mod parse;
mod parse_code;
mod parse_op;
mod parse_stages;
mod print;
mod print_code;
mod words;

pub use cursor::ParseError;
pub(crate) use print_code::statement;
