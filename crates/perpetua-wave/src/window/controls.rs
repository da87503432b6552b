//! The panels about the field: tool bar, brushes, sliders, status. Must not know what the commands do.

use eframe::egui;
use egui::{Color32, RichText, vec2};

use super::app::WaveApp;
use super::command::{Brush, Command, Speed};
use super::palette::Palette;
use super::scenes;
use super::view::{SharedView, lock};
use perpetua_device::BackendKind;

const SIZES: [usize; 5] = [128, 256, 512, 1024, 2048];
const BACKENDS: [(BackendKind, &str); 3] = [
    (BackendKind::Wgpu, "wgpu"),
    (BackendKind::Cpu, "CPU"),
    (BackendKind::Cuda, "CUDA"),
];
/// Points below which a window is laid out for a hand-held device.
const COMPACT: f32 = 640.0;

const HELP: &str = "drag: draw    1-6: brush    [ ]: brush size    space: pause    S: step    R: restart    \
                    + -: speed    C: colours";

/// The colour behind everything.
pub(super) const GROUND: Color32 = Color32::from_rgb(20, 22, 28);
/// The colour of what stands out.
pub(super) const ACCENT: Color32 = Color32::from_rgb(255, 160, 60);

impl WaveApp {
    pub(super) fn send_speed(&mut self) {
        let speed = if self.most {
            Speed::Most
        } else {
            Speed::PerFrame(self.speed)
        };
        self.send(Command::Speed(speed));
    }

    pub(super) fn top(&mut self, ui: &mut egui::Ui, view: &SharedView) {
        let (running, backend) = {
            let view = lock(view);
            (view.running, view.backend)
        };
        let mut load = false;
        egui::Panel::top("top").show(ui, |ui| {
            ui.add_space(3.0);
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new("Perpetua").strong().size(17.0).color(ACCENT));
                ui.label(RichText::new("waves").size(17.0));
                ui.separator();
                let name = if running { "Pause" } else { "Run" };
                if ui
                    .add(egui::Button::new(name).min_size(vec2(58.0, 24.0)))
                    .clicked()
                {
                    self.send(Command::Run(!running));
                }
                if ui
                    .add(egui::Button::new("Step").min_size(vec2(46.0, 24.0)))
                    .clicked()
                {
                    self.send(Command::Run(false));
                    self.send(Command::Step(1));
                }
                if ui
                    .add(egui::Button::new("Restart").min_size(vec2(58.0, 24.0)))
                    .clicked()
                {
                    self.send(Command::Reset);
                }
                ui.separator();
                let chosen = self
                    .scene
                    .and_then(|i| scenes::names().nth(i))
                    .unwrap_or("from a file");
                egui::ComboBox::from_id_salt("scene")
                    .selected_text(chosen)
                    .show_ui(ui, |ui| {
                        for (i, name) in scenes::names().enumerate() {
                            load |= ui.selectable_value(&mut self.scene, Some(i), name).clicked();
                        }
                    });
                egui::ComboBox::from_id_salt("size")
                    .width(70.0)
                    .selected_text(format!("{} cells", self.size))
                    .show_ui(ui, |ui| {
                        for size in SIZES {
                            load |= ui
                                .selectable_value(&mut self.size, size, format!("{size} cells"))
                                .clicked();
                        }
                    });
                let mut kind = backend;
                egui::ComboBox::from_id_salt("backend")
                    .width(70.0)
                    .selected_text(backend.to_string())
                    .show_ui(ui, |ui| {
                        for (other, name) in BACKENDS {
                            let possible = match other {
                                BackendKind::Wgpu => self.can_draw_gpu,
                                BackendKind::Cuda => cfg!(all(feature = "cuda", not(target_arch = "wasm32"))),
                                _ => true,
                            };
                            if possible {
                                ui.selectable_value(&mut kind, other, name);
                            }
                        }
                    });
                if kind != backend {
                    self.send(Command::Open(kind));
                }
            });
            ui.add_space(3.0);
        });
        if load && let Some(scene) = self.scene {
            match scenes::model(scene, self.size) {
                Ok(model) => self.send(Command::Load(Box::new(model))),
                Err(error) => lock(view).error = Some(error.to_string()),
            }
        }
    }

    pub(super) fn tools(&mut self, ui: &mut egui::Ui, view: &SharedView) {
        let (depth, layer) = {
            let view = lock(view);
            (view.size[2], view.layer)
        };
        if ui.available_width() < COMPACT {
            egui::Panel::bottom("tools").show(ui, |ui| {
                ui.add_space(3.0);
                ui.horizontal_wrapped(|ui| {
                    for brush in Brush::ALL {
                        let button = egui::Button::selectable(self.brush == brush, brush.name());
                        if ui.add(button.min_size(vec2(52.0, 30.0))).clicked() {
                            self.brush = brush;
                        }
                    }
                });
                ui.horizontal(|ui| {
                    ui.label("radius");
                    ui.add(egui::Slider::new(&mut self.radius, 1.0..=40.0).integer());
                });
            });
            return;
        }
        egui::Panel::left("tools")
            .exact_size(172.0)
            .resizable(false)
            .show(ui, |ui| {
                egui::ScrollArea::vertical().show(ui, |ui| {
                    heading(ui, "DRAW");
                    for (i, brush) in Brush::ALL.into_iter().enumerate() {
                        let text = format!("{}   {}", i + 1, brush.name());
                        let button = egui::Button::selectable(self.brush == brush, text);
                        let row = vec2(154.0, 24.0);
                        let left = egui::Layout::left_to_right(egui::Align::Center).with_main_justify(true);
                        let clicked =
                            ui.allocate_ui_with_layout(row, left.with_main_align(egui::Align::Min), |ui| {
                                ui.add(button.min_size(row)).clicked()
                            });
                        if clicked.inner {
                            self.brush = brush;
                        }
                    }
                    ui.spacing_mut().slider_width = 96.0;
                    labelled(
                        ui,
                        "radius in cells",
                        egui::Slider::new(&mut self.radius, 1.0..=40.0).integer(),
                    );
                    let wavelength = egui::Slider::new(&mut self.wavelength, 6.0..=80.0).integer();
                    labelled(ui, "a new source's wavelength in cells", wavelength);
                    heading(ui, "SPEED");
                    let speed = egui::Slider::new(&mut self.speed, 1..=256).logarithmic(true);
                    let mut changed = labelled(ui, "steps in 1/60 s", speed);
                    changed |= ui.checkbox(&mut self.most, "as fast as it goes").changed();
                    if changed {
                        self.send_speed();
                    }
                    heading(ui, "COLOURS");
                    egui::ComboBox::from_id_salt("palette")
                        .width(154.0)
                        .selected_text(self.palette.name())
                        .show_ui(ui, |ui| {
                            for palette in Palette::ALL {
                                ui.selectable_value(&mut self.palette, palette, palette.name());
                            }
                        });
                    let brightness = egui::Slider::new(&mut self.brightness, -4.0..=4.0).show_value(false);
                    labelled(ui, "brightness", brightness);
                    if depth > 1 {
                        heading(ui, "LAYER");
                        let mut z = layer;
                        if labelled(ui, "z", egui::Slider::new(&mut z, 0..=depth - 1)) {
                            self.send(Command::Layer(z));
                        }
                    }
                });
            });
    }

    pub(super) fn status(&mut self, ui: &mut egui::Ui, view: &SharedView) {
        let view = lock(view);
        let note = self.note;
        let compact = ui.available_width() < COMPACT;
        egui::Panel::bottom("status").show(ui, |ui| {
            ui.add_space(2.0);
            if let Some(error) = &view.error {
                ui.label(RichText::new(error).color(Color32::from_rgb(255, 120, 100)));
            }
            ui.horizontal_wrapped(|ui| {
                let cells = view.size.iter().product::<usize>() as f64;
                let [w, h, d] = view.size;
                let shape = if d > 1 {
                    format!("{w} x {h} x {d}")
                } else {
                    format!("{w} x {h}")
                };
                let (rate, time) = (
                    if view.running { view.rate } else { 0.0 },
                    view.step as f64 * view.time_step,
                );
                let figures = [
                    format!("{:5.1} frames/s", self.frames.rate),
                    format!("{rate:7.0} steps/s"),
                    format!("{:7.3} Gcells/s", rate * cells * 1e-9),
                    format!("step {}  t = {:.3} ms", view.step, time * 1e3),
                ];
                ui.label(RichText::new(&view.device).strong());
                ui.separator();
                ui.label(format!("{shape} cells"));
                for figure in figures {
                    ui.separator();
                    // A line ends between figures, never within one.
                    ui.add(egui::Label::new(RichText::new(figure).monospace()).extend());
                }
            });
            if let Some(note) = note {
                ui.label(RichText::new(note).color(Color32::from_rgb(250, 200, 110)));
            }
            if !compact {
                ui.label(RichText::new(HELP).size(11.5).color(Color32::from_gray(165)));
            }
            ui.add_space(2.0);
        });
    }
}

pub(super) fn style(ctx: &egui::Context) {
    ctx.set_theme(egui::Theme::Dark);
    ctx.all_styles_mut(|style| {
        // The whole window is cleared to its colour; to fill panels with it again would be most of a frame without a GPU.
        style.visuals.panel_fill = Color32::TRANSPARENT;
        style.visuals.selection.bg_fill = Color32::from_rgb(150, 82, 20);
        style.visuals.selection.stroke.color = Color32::WHITE;
        style.visuals.override_text_color = Some(Color32::from_gray(225));
        style.spacing.item_spacing = vec2(7.0, 5.0);
    });
}

fn heading(ui: &mut egui::Ui, text: &str) {
    ui.add_space(8.0);
    ui.label(RichText::new(text).small().strong().color(ACCENT));
}

fn labelled(ui: &mut egui::Ui, text: &str, slider: egui::Slider<'_>) -> bool {
    ui.label(RichText::new(text).small().color(Color32::from_gray(170)));
    ui.add(slider).changed()
}
