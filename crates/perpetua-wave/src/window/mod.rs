//! The wave simulation in a window or in a web page.
//!
//! `engine` runs the simulation: it takes `command`s and publishes a `view`; `runner` gives it a thread where there are
//! any. `app` is the window's contents, `controls` the panels about the field, `canvas` draws the field from the
//! simulation's own buffers or, with `still`, a picture that the host makes, `overlay` what lies over it, `palette` has
//! the colours, `plot` the probes' lines, `scenes` the menu.

pub mod app;
mod canvas;
pub mod command;
mod controls;
pub mod engine;
mod overlay;
pub mod palette;
mod plot;
mod runner;
pub mod scenes;
mod still;
pub mod view;

use std::sync::Arc;

use eframe::egui_wgpu::{WgpuConfiguration, WgpuSetup, WgpuSetupCreateNew};

pub use app::WaveApp;

use super::model::Model;
use perpetua_device::BackendKind;
use perpetua_device::wgpu::interop;

/// What a window begins with.
#[derive(Clone, Debug)]
pub struct Start {
    /// The first scene.
    pub model: Model,
    /// Its place in [`scenes::names`], if it is one of them.
    pub scene: Option<usize>,
    /// Cells a side of scenes that are chosen later.
    pub size: usize,
    /// Where to run; automatic choice takes the device that draws.
    pub backend: BackendKind,
}

/// A device for drawing that can compute, too.
pub fn wgpu_configuration() -> WgpuConfiguration {
    let mut setup = WgpuSetupCreateNew::without_display_handle();
    // Validation layers are the developer's to switch on.
    setup.instance_descriptor.flags = eframe::wgpu::InstanceFlags::empty().with_env();
    let of_drawing = Arc::clone(&setup.device_descriptor);
    setup.device_descriptor = Arc::new(move |adapter| {
        if interop::can_compute(adapter) {
            interop::device_descriptor(adapter)
        } else {
            of_drawing(adapter)
        }
    });
    WgpuConfiguration {
        wgpu_setup: WgpuSetup::CreateNew(setup),
        ..WgpuConfiguration::default()
    }
}

/// Opens a window and runs until it is closed.
///
/// # Errors
/// There is no display, or no graphics on it.
#[cfg(not(target_arch = "wasm32"))]
pub fn run(start: Start) -> Result<(), String> {
    let options = eframe::NativeOptions {
        viewport: eframe::egui::ViewportBuilder::default()
            .with_title("Perpetua: waves")
            .with_inner_size([1120.0, 800.0])
            .with_min_inner_size([480.0, 360.0]),
        wgpu_options: wgpu_configuration(),
        ..eframe::NativeOptions::default()
    };
    let app = |cc: &eframe::CreationContext<'_>| -> Result<Box<dyn eframe::App>, _> {
        Ok(Box::new(WaveApp::new(
            &cc.egui_ctx,
            cc.wgpu_render_state.as_ref(),
            start,
        )))
    };
    eframe::run_native("perpetua-wave", options, Box::new(app))
        .map_err(|e| format!("the window could not be opened: {e}; without a display leave --window out"))
}
