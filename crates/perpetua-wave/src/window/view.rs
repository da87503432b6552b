//! What a simulation shows to its window. Must not know either.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::{Medium, Probe, Source};
use perpetua_device::{BackendKind, Buffer};

/// Where the field is to be seen.
#[derive(Clone)]
pub enum Picture {
    /// Nowhere yet.
    None,
    /// In buffers of the device that draws: the field, and a byte a cell, if there is one.
    Buffers(Buffer<f32>, Option<Buffer<u8>>),
    /// In the host's memory: one layer, and the medium of each of its cells.
    Host(Arc<Vec<f32>>, Arc<Vec<u8>>),
}

/// What there is to see.
pub struct View {
    /// Backend and name of the device.
    pub device: String,
    /// The backend.
    pub backend: BackendKind,
    /// How the kernel runs there.
    pub form: &'static str,
    /// Cells.
    pub size: [usize; 3],
    /// Width of a cell in metres.
    pub spacing: f64,
    /// In seconds.
    pub time_step: f64,
    /// Steps submitted.
    pub step: u64,
    /// Whether it runs.
    pub running: bool,
    /// Steps a second over the last half second.
    pub rate: f64,
    /// The field.
    pub picture: Picture,
    /// Which layer is shown.
    pub layer: usize,
    /// Media, by index.
    pub media: Vec<Medium>,
    /// Sources.
    pub sources: Vec<Source>,
    /// Probes.
    pub probes: Vec<Probe>,
    /// The last steps that each probe recorded.
    pub series: Vec<Vec<f32>>,
    /// The last thing that went wrong.
    pub error: Option<String>,
    /// Set by the window: it would draw a newer picture.
    pub wanted: bool,
}

/// A view that two threads share.
pub type SharedView = Arc<Mutex<View>>;

/// Locks a view, also after a panic elsewhere: every state of it can be shown.
pub fn lock(view: &SharedView) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(|e| e.into_inner())
}
