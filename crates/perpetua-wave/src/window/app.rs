//! The window's contents: tool bar, field, plots, and what mouse, touch and keyboard do. Must not know how fields are
//! computed and drawn.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use eframe::egui;
use eframe::egui_wgpu::RenderState;
use egui::{Color32, Key, Pos2, Rect, Sense, Stroke, StrokeKind, vec2};

use super::canvas::{Canvas, Look};
use super::command::{Brush, Command};
use super::engine::Engine;
use super::palette::Palette;
use super::runner::Runner;
use super::view::{SharedView, lock};
use super::{Start, controls, overlay, plot};
use crate::Result;
use perpetua_device::wgpu::interop;
use perpetua_device::{BackendKind, BoxFuture, Device};

/// Time between frames while nothing moves; the pointer and the keyboard wait for none.
const PAUSED: std::time::Duration = std::time::Duration::from_millis(50);

/// What the window does until there is a simulation.
enum State {
    Opening(BoxFuture<'static, Result<Engine>>),
    Running(Box<Runner>),
    Failed(String),
}

/// The window's contents.
pub struct WaveApp {
    state: State,
    canvas: Canvas,
    pub(super) can_draw_gpu: bool,
    pub(super) brush: Brush,
    pub(super) radius: f64,
    pub(super) wavelength: f64,
    pub(super) speed: u64,
    pub(super) most: bool,
    pub(super) palette: Palette,
    pub(super) brightness: f32,
    pub(super) scene: Option<usize>,
    pub(super) size: usize,
    pub(super) note: Option<&'static str>,
    /// Where the pointer was when it last drew, in cells.
    last: Option<[f64; 2]>,
    place: Rect,
    /// Whether this frame asked something of the simulation.
    asked: bool,
    pub(super) frames: Frames,
    /// Who hears why there is no simulation; the window then closes.
    told: Option<Arc<Mutex<Option<String>>>>,
}

/// Frames a second, over the last half second.
#[derive(Default)]
pub(super) struct Frames {
    since: f64,
    count: u32,
    pub(super) rate: f64,
}

impl Frames {
    fn tick(&mut self, now: f64) {
        self.count += 1;
        if now - self.since > 0.5 {
            self.rate = f64::from(self.count) / (now - self.since);
            (self.since, self.count) = (now, 0);
        }
    }
}

impl WaveApp {
    /// Opens a simulation for a window that draws through `render`.
    pub fn new(ctx: &egui::Context, render: Option<&RenderState>, start: Start) -> WaveApp {
        controls::style(ctx);
        let gpu = render.filter(|r| interop::can_compute(&r.adapter));
        let handles = gpu.map(|r| (r.adapter.clone(), r.device.clone(), r.queue.clone()));
        let (model, backend) = (start.model, start.backend);
        let opening = async move {
            let gpu = match &handles {
                Some((adapter, device, queue)) => Some(interop::adopt(adapter, device, queue).await?),
                None => None,
            };
            let device = match (&gpu, backend) {
                (Some(gpu), BackendKind::Wgpu | BackendKind::Auto) => gpu.clone(),
                (None, BackendKind::Auto) => Device::new_async(BackendKind::Cpu, 0).await?,
                (_, kind) => Device::new_async(kind, 0).await?,
            };
            Engine::new(&device, gpu, model)
        };
        WaveApp {
            state: State::Opening(Box::pin(opening)),
            canvas: Canvas::new(render),
            can_draw_gpu: gpu.is_some(),
            brush: Brush::Wall,
            radius: 3.0,
            wavelength: 16.0,
            speed: 4,
            most: false,
            palette: Palette::default(),
            brightness: 0.0,
            scene: start.scene,
            size: start.size,
            note: note(gpu.is_some(), start.backend),
            last: None,
            place: Rect::NOTHING,
            asked: false,
            frames: Frames::default(),
            told: None,
        }
    }

    /// Puts it there if there can be no simulation, and closes the window.
    pub fn tell_failure(&mut self, told: Arc<Mutex<Option<String>>>) {
        self.told = Some(told);
    }

    /// What there is to see, once there is a simulation.
    pub fn view(&self) -> Option<&SharedView> {
        match &self.state {
            State::Running(runner) => Some(runner.view()),
            _ => None,
        }
    }

    /// Chooses what the pointer draws.
    pub fn choose(&mut self, brush: Brush) {
        self.brush = brush;
    }

    /// Where in the window the field is drawn, in points.
    pub fn field_rect(&self) -> Rect {
        self.place
    }

    /// Frames a second over the last half second.
    pub fn frames_per_second(&self) -> f64 {
        self.frames.rate
    }

    pub(super) fn send(&mut self, command: Command) {
        self.asked = true;
        if let State::Running(runner) = &mut self.state {
            runner.send(command);
        }
    }

    /// One frame.
    pub fn show(&mut self, ui: &mut egui::Ui) {
        let now = ui.input(|i| i.time);
        self.frames.tick(now);
        self.asked = false;
        self.open();
        if let State::Running(runner) = &mut self.state {
            runner.frame();
        }
        match &self.state {
            State::Opening(_) => message(ui, "opening the device ..."),
            State::Failed(error) => {
                message(ui, error);
                if let Some(told) = &self.told {
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
                    ui.ctx().send_viewport_cmd(egui::ViewportCommand::Close);
                }
            }
            State::Running(runner) => {
                let view = Arc::clone(runner.view());
                self.keys(ui, &view);
                self.top(ui, &view);
                self.status(ui, &view);
                self.tools(ui, &view);
                let has_probes = !lock(&view).probes.is_empty();
                if has_probes {
                    egui::Panel::bottom("probes")
                        .exact_size(130.0)
                        .resizable(false)
                        .show(ui, |ui| plot::probes(ui, &lock(&view)));
                }
                egui::CentralPanel::default().show(ui, |ui| self.field(ui, &view));
            }
        }
        let running = self.view().is_none_or(|view| lock(view).running);
        if running || self.asked {
            ui.ctx().request_repaint();
        } else {
            ui.ctx().request_repaint_after(PAUSED);
        }
    }

    fn open(&mut self) {
        let State::Opening(opening) = &mut self.state else {
            return;
        };
        let polled = opening.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(opened) = polled else {
            return;
        };
        let running = opened
            .map_err(|e| e.to_string())
            .and_then(|engine| Runner::new(engine).map_err(|e| e.to_string()));
        self.state = match running {
            Ok(runner) => State::Running(Box::new(runner)),
            Err(error) => State::Failed(error),
        };
    }

    fn keys(&mut self, ui: &egui::Ui, view: &SharedView) {
        if ui.ctx().egui_wants_keyboard_input() {
            return;
        }
        // A slow frame sees several presses.
        let presses = |key| ui.input(|i| i.num_presses(key));
        let pressed = |key| presses(key) > 0;
        let digits = [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6];
        for (key, brush) in digits.into_iter().zip(Brush::ALL) {
            if pressed(key) {
                self.brush = brush;
            }
        }
        if presses(Key::Space) % 2 == 1 {
            let running = lock(view).running;
            self.send(Command::Run(!running));
        }
        if pressed(Key::S) {
            self.send(Command::Run(false));
            self.send(Command::Step(presses(Key::S) as u64));
        }
        if pressed(Key::R) {
            self.send(Command::Reset);
        }
        for _ in 0..presses(Key::C) {
            let at = Palette::ALL.iter().position(|p| *p == self.palette).unwrap_or(0);
            self.palette = Palette::ALL[(at + 1) % Palette::ALL.len()];
        }
        let wider = presses(Key::CloseBracket) as f64 - presses(Key::OpenBracket) as f64;
        self.radius = (self.radius + wider).clamp(1.0, 40.0);
        let faster = presses(Key::Plus) + presses(Key::Equals);
        let slower = presses(Key::Minus);
        if faster != slower {
            let doubled = (faster.saturating_sub(slower) as u32).min(8);
            let halved = (slower.saturating_sub(faster) as u32).min(8);
            self.speed = ((self.speed << doubled) >> halved).clamp(1, 256);
            self.send_speed();
        }
    }

    fn field(&mut self, ui: &mut egui::Ui, view: &SharedView) {
        let all = ui.available_rect_before_wrap();
        let (response, painter) = ui.allocate_painter(all.size(), Sense::click_and_drag());
        let mut view = lock(view);
        view.wanted = true;
        let [width, height, _] = view.size.map(|n| n as f32);
        let scale = (all.width() - 64.0)
            .max(32.0)
            .min(all.height() * width / height.max(1.0))
            / width.max(1.0);
        let rect = Rect::from_center_size(
            all.center() - vec2(27.0, 0.0),
            vec2(width, height) * scale.min(all.height() / height.max(1.0)),
        );
        self.place = rect;
        let scale = rect.width() / width.max(1.0);
        let look = Look {
            palette: self.palette,
            gain: 0.7 * 2.0f32.powf(self.brightness),
        };
        self.canvas.paint(ui, rect, &view, look);
        painter.rect_stroke(
            rect,
            0.0,
            Stroke::new(1.0, Color32::from_gray(60)),
            StrokeKind::Outside,
        );
        overlay::marks(&painter, rect, scale, &view);
        overlay::colour_bar(&painter, rect, look);
        let layer = view.layer as f64;
        drop(view);
        if let Some(at) = response.hover_pos().filter(|p| rect.contains(*p)) {
            let radius = if self.brush.is_drawn() {
                self.radius as f32 * scale
            } else {
                5.0
            };
            painter.circle_stroke(at, radius.max(2.0), Stroke::new(1.5, Color32::WHITE));
            ui.ctx().set_cursor_icon(egui::CursorIcon::Crosshair);
        }
        self.pointer(&response, rect, scale, layer);
    }

    /// Turns the pointer's way over the field into commands.
    fn pointer(&mut self, response: &egui::Response, rect: Rect, scale: f32, layer: f64) {
        // What was pressed and let go between two frames was a click, no matter how short.
        let down = response.is_pointer_button_down_on() || (response.clicked() && self.last.is_none());
        let Some(at) = response.interact_pointer_pos().filter(|_| down) else {
            self.last = None;
            return;
        };
        let cell = |p: Pos2| {
            [
                f64::from((p.x - rect.min.x) / scale),
                f64::from((p.y - rect.min.y) / scale),
            ]
        };
        let here = cell(at);
        let before = self.last.replace(here);
        if before.is_some() && (!self.brush.is_drawn() || before == Some(here)) {
            return;
        }
        if before.is_none() && !rect.contains(at) {
            return;
        }
        // A point of the plane lies in a cell; circles are drawn about cells' middles.
        let shift = if self.brush.is_drawn() { 0.5 } else { 0.0 };
        let place = |[x, y]: [f64; 2]| [x - shift, y - shift, layer];
        let command = Command::Draw {
            brush: self.brush,
            from: place(before.unwrap_or(here)),
            to: place(here),
            radius: self.radius,
            wavelength: self.wavelength,
        };
        self.send(command);
    }
}

impl eframe::App for WaveApp {
    #[cfg(target_arch = "wasm32")]
    fn as_any_mut(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }

    fn clear_color(&self, _: &egui::Visuals) -> [f32; 4] {
        controls::GROUND.to_normalized_gamma_f32()
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.show(ui);
    }
}

/// What to tell about where the simulation runs, if it is not where one would have it.
fn note(can_compute: bool, backend: BackendKind) -> Option<&'static str> {
    let wanted = matches!(backend, BackendKind::Auto | BackendKind::Wgpu);
    if can_compute || !wanted {
        return None;
    }
    Some(if cfg!(target_arch = "wasm32") {
        "This browser has no WebGPU: the simulation runs on the CPU, as Rust compiled to WebAssembly with SIMD."
    } else {
        "This machine's graphics cannot compute: the simulation runs on the CPU."
    })
}

fn message(ui: &mut egui::Ui, text: &str) {
    egui::CentralPanel::default().show(ui, |ui| ui.centered_and_justified(|ui| ui.heading(text)));
}
