//! What a window asks of the simulation. Must not know how it is done.

use crate::Model;
use perpetua_device::BackendKind;

/// What the mouse draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brush {
    /// A reflector.
    Wall,
    /// A medium that takes the waves' energy.
    Absorber,
    /// A medium with 60% of the speed: lenses.
    Slow,
    /// The scene's first medium; sources and probes under it go.
    Erase,
    /// A point that swings.
    Source,
    /// A point where the field is recorded.
    Probe,
}

impl Brush {
    /// All, in the order of the tool bar.
    pub const ALL: [Brush; 6] = [
        Brush::Wall,
        Brush::Absorber,
        Brush::Slow,
        Brush::Erase,
        Brush::Source,
        Brush::Probe,
    ];

    /// Its name in the tool bar.
    pub fn name(self) -> &'static str {
        match self {
            Brush::Wall => "Wall",
            Brush::Absorber => "Absorber",
            Brush::Slow => "Slow",
            Brush::Erase => "Erase",
            Brush::Source => "Source",
            Brush::Probe => "Probe",
        }
    }

    /// Whether it is drawn along a line, and not set at a point.
    pub fn is_drawn(self) -> bool {
        !matches!(self, Brush::Source | Brush::Probe)
    }
}

/// How fast the simulation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// So many steps in a sixtieth of a second.
    PerFrame(u64),
    /// As many as the device can do.
    Most,
}

/// What a window asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// Runs or pauses.
    Run(bool),
    /// Does so many steps, also while paused.
    Step(u64),
    /// Changes the speed.
    Speed(Speed),
    /// Goes back to the beginning; what was drawn stays.
    Reset,
    /// Replaces the scene.
    Load(Box<Model>),
    /// Goes on on another device.
    Open(BackendKind),
    /// Draws a line between two cells, with a radius in cells.
    Draw {
        /// The brush.
        brush: Brush,
        /// First end.
        from: [f64; 3],
        /// Other end.
        to: [f64; 3],
        /// In cells.
        radius: f64,
        /// Of a new source: in cells.
        wavelength: f64,
    },
    /// Which layer of a volume is shown.
    Layer(usize),
}
