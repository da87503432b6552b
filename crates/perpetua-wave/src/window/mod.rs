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
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Mutex, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
use eframe::egui_wgpu::WgpuError;
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
        event_loop_builder: event_loop_builder(),
        ..eframe::NativeOptions::default()
    };
    let failure = Arc::new(Mutex::new(None));
    let told = Arc::clone(&failure);
    let app = |cc: &eframe::CreationContext<'_>| -> Result<Box<dyn eframe::App>, _> {
        let mut app = WaveApp::new(&cc.egui_ctx, cc.wgpu_render_state.as_ref(), start);
        app.tell_failure(told);
        Ok(Box::new(app))
    };
    let ended = eframe::run_native("perpetua-wave", options, Box::new(app));
    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (failure, ended) {
        (Some(failure), _) => Err(format!("the window shows nothing: {failure}")),
        (None, Ok(())) => Ok(()),
        (None, Err(eframe::Error::WinitEventLoop(_))) if !has_display() => Err(
            "there is no display for a window: none of WAYLAND_DISPLAY and DISPLAY is set; leave --window out"
                .into(),
        ),
        (
            None,
            Err(eframe::Error::Wgpu(
                WgpuError::RequestAdapterError(_) | WgpuError::CreateSurfaceError(_),
            )),
        ) => Err(
            "no graphics device can draw in a window on this display: `perpetua devices` says what was looked for; leave --window out"
                .into(),
        ),
        (None, Err(error)) => Err(format!(
            "the window could not be opened: {}; leave --window out",
            without_place(&error.to_string())
        )),
    }
}

/// An error of the system's, without the line of the library's source that met it.
#[cfg(not(target_arch = "wasm32"))]
fn without_place(error: &str) -> &str {
    match error.split_once("os error at ") {
        Some((_, placed)) => placed.split_once(": ").map_or(placed, |(_, said)| said),
        None => error,
    }
}

/// Where X11 alone shows windows, it is asked for by name: a program may say of Wayland's display that it is a folder, so that nobody
/// looks for one.
#[cfg(target_os = "linux")]
fn event_loop_builder() -> Option<eframe::EventLoopBuilderHook> {
    use winit::platform::x11::EventLoopBuilderExtX11;
    let is_folder = |name: std::ffi::OsString| std::path::Path::new(&name).is_dir();
    let only_x11 = std::env::var_os("DISPLAY").is_some_and(|name| !name.is_empty())
        && std::env::var_os("WAYLAND_SOCKET").is_none()
        && std::env::var_os("WAYLAND_DISPLAY").is_some_and(is_folder);
    only_x11.then(|| -> eframe::EventLoopBuilderHook {
        Box::new(|builder| {
            builder.with_x11();
        })
    })
}

#[cfg(not(any(target_os = "linux", target_arch = "wasm32")))]
fn event_loop_builder() -> Option<eframe::EventLoopBuilderHook> {
    None
}

/// Whether the environment names one; where displays have no names there is always one.
#[cfg(not(target_arch = "wasm32"))]
fn has_display() -> bool {
    cfg!(not(target_os = "linux"))
        || ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"]
            .into_iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
