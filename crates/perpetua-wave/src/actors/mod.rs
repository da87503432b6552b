//! The wave simulation as tile actors: the grid is cut into tiles, each an actor that stays where it runs, holds its part of the
//! field, exchanges halos with its neighbours every few steps, and takes orders while it runs.
//!
//! In the order of the data: [`Command`] is what can be asked; `order` its words; `cut` and `strip` the tiles on a device and on
//! threads; `kernels` what they compute there; `engine` what both can do, `grid` (CUDA) and `threads` (CPU) how. Fields are those of
//! a [`Simulation`](super::Simulation) that is launched, to the bit.
//!
//! ```
//! use perpetua::device::{BackendKind, Device};
//! use perpetua::wave::actors::{Command, WaveActors};
//! use perpetua::wave::{Medium, Model, Region, Source, Waveform};
//!
//! let mut model = Model::empty([96, 64, 1], 0.01, Medium::of_speed(343.0));
//! model.media.push(Medium::WALL);
//! model.sources.push(Source {
//!     region: Region::cell([40, 32, 0]),
//!     waveform: Waveform::Ricker { frequency: 2000.0 },
//!     amplitude: 1.0,
//! });
//! let device = Device::new(BackendKind::Cpu, 0)?;
//! let mut tiles = WaveActors::start(&device, model)?;
//! tiles.step(50)?;
//! let painted = tiles.inject(&Command::Paint { center: [70.0, 32.0], radius: 4.0, medium: 1 })?;
//! assert_eq!(painted.step, 50);
//! tiles.step(50)?;
//! assert!(tiles.probe([40, 30])?.value.abs() > 0.0);
//! tiles.stop()?;
//! # Ok::<(), perpetua::wave::Error>(())
//! ```

mod cut;
mod engine;
mod grid;
mod kernels;
mod order;
mod strip;
mod threads;

mod command;
mod core;
mod feeder;
mod session;

pub use command::{Command, Reading, Receipt, TileTuning};
pub use session::WaveActors;
