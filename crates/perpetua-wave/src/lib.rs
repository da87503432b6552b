//! Waves in the plane and in space, by finite differences, on any backend.
//!
//! In the order of the data: [`scene`] is what stands where, in metres, from TOML (`scene_text`), a PNG (`scene_picture`) or
//! built in ([`builtin`]); [`model`] is what is computed, cells and time steps; [`simulation`] steps it on a device, by the
//! kernels of `kernels`; [`checkpoint`] keeps it; [`picture`] and [`chart`] show it. Programs reach all of
//! this as `perpetua::wave`. Must not know files and command lines.
//!
//! ```
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::wave::{Medium, Model, Region, Simulation, Source, Waveform};
//!
//! let mut model = Model::empty([128, 96, 1], 0.01, Medium::of_speed(343.0));
//! model.sources.push(Source {
//!     region: Region::cell([40, 48, 0]),
//!     waveform: Waveform::Ricker { frequency: 2000.0 },
//!     amplitude: 1.0,
//! });
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let mut simulation = Simulation::new(&device, model)?;
//! simulation.step(100)?;
//! let field = simulation.field()?;
//! assert!(field.iter().any(|u| u.abs() > 0.01));
//! # Ok::<(), perpetua::wave::Error>(())
//! ```

// What the macros write names the facade, whose kernel language is this crate's.
extern crate perpetua_language as perpetua;

pub mod error;

pub mod waveform;

pub mod builtin;
pub mod scene;
pub mod scene_picture;
mod scene_text;

pub mod model;

mod slots;

mod kernels;

pub mod simulation;

#[cfg(not(target_arch = "wasm32"))]
pub mod actors;

pub mod checkpoint;

pub mod chart;
pub mod picture;

#[cfg(feature = "window")]
pub mod window;

pub use builtin::BUILTIN;
pub use error::{Error, Part, Result};
pub use model::{Border, Medium, Model, Probe, Region, Source};
pub use picture::{ColorMap, Painter};
pub use scene::{Remarks, Scene};
pub use simulation::{FieldBuffer, Recording, Simulation, Storage, Tuning};
pub use waveform::Waveform;
