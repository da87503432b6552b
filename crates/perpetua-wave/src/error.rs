//! What can be wrong with a scene, a model or a checkpoint, as data. Must not know how it came from a file.

/// A part of a scene, which an error may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Its extents.
    Size,
    /// How many cells it has along x.
    Cells,
    /// How long it is worth looking at.
    Duration,
    /// A source, counted from 0.
    Source(usize),
    /// A probe, counted from 0.
    Probe(usize),
}

/// Why a wave simulation cannot be.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The time step is too long for the fastest medium.
    #[error(
        "a time step of {} s is unstable with cells of {} m and waves of {speed} m/s; \
         the largest stable one is {} s: leave it out, or take finer steps",
        short(.time_step),
        short(.spacing),
        short(.largest)
    )]
    Unstable {
        /// What was asked for, in seconds.
        time_step: f64,
        /// The largest stable time step, in seconds.
        largest: f64,
        /// Width of a cell in metres.
        spacing: f64,
        /// The fastest medium's speed in m/s.
        speed: f64,
    },
    /// Something is outside of what is allowed.
    #[error("{subject} is {found}; {needed}")]
    Range {
        /// What.
        subject: String,
        /// Its value.
        found: String,
        /// What is allowed.
        needed: String,
        /// The part of a scene that it is about, if it is about one.
        part: Option<Part>,
    },
    /// A name that stands for nothing.
    #[error("there is no {kind} `{name}`; there are: {known}")]
    Unknown {
        /// What sort of thing.
        kind: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A scene's text is wrong.
    #[error("line {line}: {message}")]
    Text {
        /// Line, from 1.
        line: usize,
        /// What is wrong there, with the key.
        message: String,
    },
    /// A picture cannot be a scene.
    #[error("the picture {0}")]
    Picture(String),
    /// A checkpoint does not fit.
    #[error("{0}")]
    Checkpoint(String),
    /// The field has grown beyond all bounds.
    #[error(
        "the field is no longer finite after {step} steps: amplitudes are beyond what its numbers hold (f16: 65504), or the simulation is unstable: take \
         smaller amplitudes, f32, or finer time steps"
    )]
    Diverged {
        /// Steps done when it was found.
        step: u64,
    },
    /// Tile actors cannot do something.
    #[error("tile actors cannot {cannot}; {instead}")]
    Actors {
        /// What.
        cannot: String,
        /// What to do instead.
        instead: &'static str,
    },
    /// What the device says.
    #[error(transparent)]
    Device(#[from] perpetua_device::Error),
}

perpetua_device::debug_as_display!(Error);

/// Five digits of a quantity, with an exponent where it needs one.
fn short(value: &f64) -> String {
    let text = format!("{value:.4e}");
    let Some((digits, exponent)) = text.split_once('e').filter(|(digits, _)| digits.contains('.')) else {
        return text;
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    match exponent {
        "0" => digits.to_owned(),
        _ => format!("{digits}e{exponent}"),
    }
}

/// What a wave simulation gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub(super) fn range(subject: impl Into<String>, found: impl ToString, needed: impl Into<String>) -> Error {
    Error::Range {
        subject: subject.into(),
        found: found.to_string(),
        needed: needed.into(),
        part: None,
    }
}

impl Error {
    /// The same about a part of a scene.
    pub(super) fn about(mut self, of: Part) -> Error {
        if let Error::Range { part, .. } = &mut self {
            *part = Some(of);
        }
        self
    }
}
