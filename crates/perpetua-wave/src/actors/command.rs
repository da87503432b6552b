//! What can be asked of tiles while they run, and what they say. Must not know how that travels.

use super::super::model::Region;

/// A change while tiles run. It takes effect between two steps, the same two for all tiles.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Puts a source elsewhere, as large as it is: its first cell in x and y. Its signal goes on.
    MoveSource {
        /// Which one, by its index in the model.
        index: usize,
        /// Where its region begins.
        to: [usize; 2],
    },
    /// Fills the cells whose middle lies within `radius` of `center` (both in cells) with a medium: walls that reflect, damping
    /// that absorbs, or what waves pass through.
    Paint {
        /// In x and y.
        center: [f64; 2],
        /// In cells.
        radius: f64,
        /// By its index in the model.
        medium: u8,
    },
    /// Fills a box of cells with a medium; what of it lies outside the grid is left out.
    Fill {
        /// The box.
        region: Region,
        /// By its index in the model.
        medium: u8,
    },
    /// Gives a medium another speed, in m/s: at most that of the model's fastest at the start, by which its time step, its borders
    /// and its sources are made.
    SetSpeed {
        /// By its index in the model.
        medium: u8,
        /// In m/s.
        speed: f64,
    },
}

/// When a command takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Behind so many steps.
    pub step: u64,
    /// The order's number, for [`WaveActors::wait`](super::WaveActors::wait).
    pub number: u32,
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Behind so many steps.
    pub step: u64,
    /// The field there.
    pub value: f32,
}

/// How a grid is cut, where somebody knows better than the default. What is computed is the same to the bit.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::wave::actors::{TileTuning, WaveActors};
/// use perpetua::wave::{Medium, Model};
/// let tuning = TileTuning { threads: Some(2), span: Some(8), ..TileTuning::default() };
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let model = Model::empty([64, 64, 1], 0.01, Medium::of_speed(343.0));
/// let mut tiles = WaveActors::tuned(&device, model, tuning)?;
/// tiles.step(10)?;
/// tiles.stop()?;
/// # Ok::<(), perpetua::wave::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TileTuning {
    /// Steps between two exchanges of halos, and their width: on devices 2, 4 or 8, and a multiple of `rows`; on threads 1 to 64.
    pub span: Option<u32>,
    /// On devices, rows of cells that a lane holds: 2, 4 or 8.
    pub rows: Option<u32>,
    /// On devices, subgroups of a tile, 3 to 16: it is 64 cells wide and `rows` times as many high.
    pub strips: Option<u32>,
    /// Tiles on threads; if left out, one a processor.
    pub threads: Option<u32>,
    /// Steps given out at once while tiles run freely.
    pub chunk: Option<u32>,
    /// On devices, such portions ahead of the slowest tile.
    pub ahead: Option<u32>,
    /// On the CPU, tiles as on a device, in the interpreter: slow, and how these are tried without one.
    pub resident: bool,
}
