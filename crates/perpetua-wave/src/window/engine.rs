//! The simulation behind a window: takes commands, keeps the device busy but never far ahead, and publishes what there is
//! to see. Must not know windows, mice and colours.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use web_time::Instant;

use super::command::{Brush, Command, Speed};
use super::view::{Picture, SharedView, View, lock};
use crate::{
    Border, FieldBuffer, Medium, Model, Probe, Recording, Region, Result, Simulation, Source, Waveform,
};
use perpetua_device::{BackendKind, BoxFuture, Device, Event};

/// When to call [`Engine::pump`] again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At once.
    Now,
    /// When the device has done something.
    Busy,
    /// After this time, or when there is a command.
    After(Duration),
}

/// Submitted batches that have not ended. A browser tells of an end a frame later.
const AHEAD: usize = if cfg!(target_arch = "wasm32") { 3 } else { 2 };
/// Seconds that a batch should take at most speed.
const BATCH_SECONDS: f64 = if cfg!(target_arch = "wasm32") { 0.02 } else { 0.006 };
/// Rows of the probes' plots.
const ROWS: usize = 600;
/// Seconds between two readings of the probes.
const PROBE_SECONDS: f64 = 0.1;

struct Batch {
    end: Event,
    submitted: Instant,
}

/// The simulation, and what is under way.
pub struct Engine {
    simulation: Simulation,
    /// The device that the window draws with, if it can compute.
    gpu: Option<Device>,
    view: SharedView,
    running: bool,
    extra: u64,
    speed: Speed,
    /// Steps in a batch at most speed.
    batch: u64,
    next: Instant,
    under_way: VecDeque<Batch>,
    counted: (Instant, u64),
    layer: usize,
    picture: Option<BoxFuture<'static, perpetua_device::Result<Vec<f32>>>>,
    cells: Arc<Vec<u8>>,
    probes: Option<BoxFuture<'static, Result<Vec<f32>>>>,
    probed: Instant,
}

impl Engine {
    /// Starts `model` on `device`. `gpu` is the device that the window draws with, if it can compute.
    ///
    /// # Errors
    /// What is wrong with the model, or what the device says.
    pub fn new(device: &Device, gpu: Option<Device>, model: Model) -> Result<Engine> {
        let simulation = simulated(device, model)?;
        let now = Instant::now();
        let view = Arc::new(Mutex::new(View {
            device: String::new(),
            backend: device.backend(),
            form: "",
            size: [0; 3],
            spacing: 0.0,
            time_step: 0.0,
            step: 0,
            running: true,
            rate: 0.0,
            picture: Picture::None,
            layer: 0,
            media: Vec::new(),
            sources: Vec::new(),
            probes: Vec::new(),
            series: Vec::new(),
            error: None,
            wanted: true,
        }));
        let layer = middle(&simulation);
        let mut engine = Engine {
            simulation,
            gpu,
            view,
            running: true,
            extra: 0,
            speed: Speed::PerFrame(4),
            batch: 16,
            next: now,
            under_way: VecDeque::new(),
            counted: (now, 0),
            layer,
            picture: None,
            cells: Arc::default(),
            probes: None,
            probed: now,
        };
        engine.scene_changed();
        Ok(engine)
    }

    /// What there is to see; the engine goes on writing to it.
    pub fn view(&self) -> SharedView {
        Arc::clone(&self.view)
    }

    /// Does what the window asks for. What goes wrong is in the view.
    pub fn obey(&mut self, command: Command) {
        let outcome = match command {
            Command::Run(running) => {
                self.running = running;
                let mut view = lock(&self.view);
                view.running = running;
                view.error = None;
                Ok(())
            }
            Command::Step(steps) => {
                self.extra += steps;
                Ok(())
            }
            Command::Speed(speed) => {
                self.speed = speed;
                Ok(())
            }
            Command::Reset => self.reset(),
            Command::Load(model) => {
                lock(&self.view).error = None;
                let device = self.simulation.device().clone();
                self.start(&device, *model)
            }
            Command::Open(kind) => self.open(kind),
            Command::Draw {
                brush,
                from,
                to,
                radius,
                wavelength,
            } => self.draw(brush, from, to, radius, wavelength),
            Command::Layer(layer) => {
                self.layer = layer.min(self.simulation.model().size[2] - 1);
                lock(&self.view).layer = self.layer;
                self.look();
                Ok(())
            }
        };
        self.note(outcome);
    }

    fn note(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.running = false;
            let mut view = lock(&self.view);
            view.running = false;
            view.error = Some(error.to_string());
        }
    }

    fn reset(&mut self) -> Result<()> {
        self.simulation.reset()?;
        lock(&self.view).series.iter_mut().for_each(Vec::clear);
        self.probes = None;
        self.look();
        Ok(())
    }

    fn start(&mut self, device: &Device, model: Model) -> Result<()> {
        self.simulation = simulated(device, model)?;
        self.under_way.clear();
        (self.batch, self.extra) = (16, 0);
        self.layer = middle(&self.simulation);
        (self.picture, self.probes) = (None, None);
        self.scene_changed();
        Ok(())
    }

    fn open(&mut self, kind: BackendKind) -> Result<()> {
        let device = match &self.gpu {
            Some(gpu) if kind == BackendKind::Wgpu => gpu.clone(),
            _ => Device::new(kind, 0)?,
        };
        let (model, layer) = (self.simulation.model().clone(), self.layer);
        #[cfg(not(target_arch = "wasm32"))]
        let (fields, step) = (self.simulation.fields()?, self.simulation.step_count());
        self.start(&device, model)?;
        // A browser cannot wait for the field: there it begins anew.
        #[cfg(not(target_arch = "wasm32"))]
        {
            self.simulation.set_step(step, Vec::new(), step);
            self.simulation.set_fields(&fields.0, &fields.1)?;
        }
        self.layer = layer;
        self.scene_changed();
        Ok(())
    }

    fn draw(
        &mut self,
        brush: Brush,
        from: [f64; 3],
        to: [f64; 3],
        radius: f64,
        wavelength: f64,
    ) -> Result<()> {
        let model = self.simulation.model();
        let inside = (0..3).all(|a| (0.0..model.size[a] as f64).contains(&to[a]));
        let cell = to.map(|c| c.max(0.0) as usize);
        match brush {
            Brush::Source if inside => {
                let mut sources = model.sources.clone();
                sources.push(Source {
                    region: Region::cell(cell),
                    waveform: Waveform::Sine {
                        frequency: model.fastest() / (wavelength.max(4.0) * model.spacing),
                    },
                    amplitude: 1.0,
                });
                self.simulation.set_sources(sources)?;
            }
            Brush::Probe if inside => {
                let mut probes = model.probes.clone();
                probes.push(Probe {
                    name: format!("{}", probes.len() + 1),
                    at: cell,
                });
                self.simulation.set_probes(probes)?;
            }
            Brush::Source | Brush::Probe => return Ok(()),
            Brush::Wall | Brush::Absorber | Brush::Slow | Brush::Erase => {
                let medium = medium_of(model, brush);
                let length = (0..3).map(|a| (to[a] - from[a]).powi(2)).sum::<f64>().sqrt();
                let parts = (length / (0.5 * radius).max(0.5)).ceil().clamp(1.0, 4096.0);
                for i in 0..=parts as u32 {
                    let part = f64::from(i) / parts;
                    let at = std::array::from_fn(|a| from[a] + (to[a] - from[a]) * part);
                    self.simulation.paint(at, radius, medium)?;
                }
                if brush == Brush::Erase {
                    self.remove_points(from, to, radius.max(3.0))?;
                }
            }
        }
        self.scene_changed();
        Ok(())
    }

    /// Takes sources and probes away that lie within `radius` of a line.
    fn remove_points(&mut self, from: [f64; 3], to: [f64; 3], radius: f64) -> Result<()> {
        let near = |at: [f64; 3]| {
            let along: [f64; 3] = std::array::from_fn(|a| to[a] - from[a]);
            let square = along.iter().map(|v| v * v).sum::<f64>();
            let part = (0..3).map(|a| (at[a] - from[a]) * along[a]).sum::<f64>();
            let part = if square > 0.0 {
                (part / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let off = (0..3)
                .map(|a| (from[a] + part * along[a] - at[a]).powi(2))
                .sum::<f64>();
            off <= radius * radius
        };
        let model = self.simulation.model();
        let middle = |r: &Region| std::array::from_fn(|a| (r.from[a] + r.to[a] - 1) as f64 * 0.5);
        let mut sources = model.sources.clone();
        sources.retain(|s| !near(middle(&s.region)));
        let mut probes = model.probes.clone();
        probes.retain(|p| !near(p.at.map(|c| c as f64)));
        if sources.len() != model.sources.len() {
            self.simulation.set_sources(sources)?;
        }
        if probes.len() != self.simulation.model().probes.len() {
            self.simulation.set_probes(probes)?;
        }
        Ok(())
    }

    /// Submits what the speed asks for, unless the device is behind, and publishes what has come.
    pub fn pump(&mut self) -> Pace {
        let outcome = self.advance();
        let (pace, outcome) = match outcome {
            Ok(pace) => (pace, Ok(())),
            Err(error) => (Pace::After(Duration::from_millis(50)), Err(error)),
        };
        self.note(outcome);
        pace
    }

    /// Waits for the oldest batch under way.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&mut self) {
        if let Some(batch) = self.under_way.front() {
            let waited = batch.end.synchronize().map_err(crate::Error::from);
            self.note(waited);
        }
    }

    fn advance(&mut self) -> Result<Pace> {
        self.retire()?;
        self.collect()?;
        let now = Instant::now();
        if !self.running && self.extra == 0 {
            self.look();
            return Ok(Pace::After(Duration::from_millis(30)));
        }
        if self.under_way.len() >= AHEAD {
            return Ok(Pace::Busy);
        }
        let (steps, pace) = if self.extra > 0 {
            (std::mem::take(&mut self.extra), Pace::Now)
        } else {
            match self.speed {
                Speed::Most => (self.batch, Pace::Now),
                Speed::PerFrame(steps) => {
                    // A browser's frames set the pace themselves.
                    if !cfg!(target_arch = "wasm32") && now < self.next {
                        return Ok(Pace::After(self.next - now));
                    }
                    self.next = (self.next + Duration::from_secs_f64(1.0 / 60.0)).max(now);
                    (steps, Pace::Now)
                }
            }
        };
        self.simulation.step(steps)?;
        self.simulation.stream().flush()?;
        let end = self.simulation.stream().record()?;
        self.under_way.push_back(Batch { end, submitted: now });
        self.count(Instant::now());
        self.look();
        Ok(pace)
    }

    /// Drops batches that have ended, and learns from how long they took.
    fn retire(&mut self) -> Result<()> {
        while let Some(batch) = self.under_way.front() {
            if !batch.end.is_complete()? {
                break;
            }
            let seconds = batch.submitted.elapsed().as_secs_f64();
            if self.speed == Speed::Most {
                if seconds < BATCH_SECONDS {
                    self.batch = (self.batch * 2).min(1024);
                } else if seconds > 4.0 * BATCH_SECONDS {
                    self.batch = (self.batch / 2).max(2);
                }
            }
            self.under_way.pop_front();
        }
        Ok(())
    }

    fn count(&mut self, now: Instant) {
        let seconds = (now - self.counted.0).as_secs_f64();
        let step = self.simulation.step_count();
        if seconds > 0.5 {
            lock(&self.view).rate = step.saturating_sub(self.counted.1) as f64 / seconds;
            self.counted = (now, step);
        }
    }

    /// Takes what has come back from the device.
    fn collect(&mut self) -> Result<()> {
        let mut context = Context::from_waker(Waker::noop());
        if let Some(reading) = &mut self.picture
            && let Poll::Ready(field) = reading.as_mut().poll(&mut context)
        {
            self.picture = None;
            lock(&self.view).picture = Picture::Host(Arc::new(field?), Arc::clone(&self.cells));
        }
        if let Some(reading) = &mut self.probes
            && let Poll::Ready(rows) = reading.as_mut().poll(&mut context)
        {
            self.probes = None;
            let (rows, count) = (rows?, self.simulation.model().probes.len());
            lock(&self.view).series = (0..count)
                .map(|p| rows.iter().skip(p).step_by(count.max(1)).copied().collect())
                .collect();
        }
        Ok(())
    }

    /// Publishes the state, and asks for what has to be read back.
    fn look(&mut self) {
        let simulation = &self.simulation;
        let FieldBuffer::F32(field) = simulation.field_buffer() else {
            return;
        };
        // What was drawn while paused waits to be submitted.
        if let Err(error) = simulation.stream().flush() {
            self.note(Err(error.into()));
            return;
        }
        let mut view = lock(&self.view);
        view.step = simulation.step_count();
        if self
            .gpu
            .as_ref()
            .is_some_and(|gpu| gpu.id() == simulation.device().id())
        {
            view.picture = Picture::Buffers(field, simulation.cells_buffer().cloned());
        } else if view.wanted && self.picture.is_none() {
            view.wanted = false;
            let [width, height, _] = simulation.model().size;
            let part = self.layer * width * height..(self.layer + 1) * width * height;
            self.picture = field.slice(part).map(|layer| layer.read_async()).ok();
        }
        drop(view);
        let due = self.probed.elapsed().as_secs_f64() > PROBE_SECONDS;
        if due && self.probes.is_none() && !simulation.model().probes.is_empty() {
            self.probed = Instant::now();
            self.probes = Some(simulation.latest_probes_async(ROWS));
        }
    }

    /// Publishes media, sources and probes.
    fn scene_changed(&mut self) {
        let (simulation, device) = (&self.simulation, self.simulation.device());
        let model = simulation.model();
        let is_shared = self.gpu.as_ref().is_some_and(|gpu| gpu.id() == device.id());
        if !is_shared {
            let [width, height, _] = model.size;
            let start = self.layer * width * height;
            self.cells = Arc::new(model.cells[start..start + width * height].to_vec());
        }
        let mut view = lock(&self.view);
        if view.size != model.size || view.backend != device.backend() {
            view.picture = Picture::None;
        }
        view.device = format!("{} on {}", device.backend(), device.info().name);
        (view.backend, view.form) = (device.backend(), simulation.form());
        (view.size, view.layer) = (model.size, self.layer);
        (view.spacing, view.time_step) = (model.spacing, model.time_step);
        view.media.clone_from(&model.media);
        view.sources.clone_from(&model.sources);
        view.probes.clone_from(&model.probes);
        view.series.resize(model.probes.len(), Vec::new());
        view.wanted = true;
        drop(view);
        self.counted = (Instant::now(), self.simulation.step_count());
        self.look();
    }
}

/// The layer to begin with: of a volume the middle one, since the first lies in the border.
fn middle(simulation: &Simulation) -> usize {
    simulation.model().size[2] / 2
}

/// The scene's medium for a brush; [`with_media`] has seen to it that there is one.
fn medium_of(model: &Model, brush: Brush) -> u8 {
    let wanted = brush_media(model);
    let of = |medium: Medium| model.media.iter().rposition(|m| *m == medium).unwrap_or(0);
    match brush {
        Brush::Wall => of(wanted[0]) as u8,
        Brush::Absorber => of(wanted[1]) as u8,
        Brush::Slow => of(wanted[2]) as u8,
        _ => 0,
    }
}

/// The media that brushes draw: wall, absorber, slow.
fn brush_media(model: &Model) -> [Medium; 3] {
    let speed = model.fastest();
    let absorber = Medium {
        speed,
        damping: 0.04 / model.time_step,
        reflects: false,
    };
    [Medium::WALL, absorber, Medium::of_speed(0.6 * speed)]
}

/// A simulation that may run for as long as the window is open.
fn simulated(device: &Device, model: Model) -> Result<Simulation> {
    let mut simulation = Simulation::new(device, with_media(model))?;
    simulation.set_recording(Recording::Latest);
    Ok(simulation)
}

/// The model with the media that brushes draw.
fn with_media(mut model: Model) -> Model {
    for medium in brush_media(&model) {
        if !model.media.contains(&medium) {
            model.media.push(medium);
        }
    }
    if model.border == Border::Absorb(0) {
        model.border = Border::Reflect;
    }
    model
}
