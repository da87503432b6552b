//! One run: steps in batches, progress, frames on the way, files at the end. Must not know arguments' spelling.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

use perpetua::device::host;
use perpetua::wave::picture::{encode_png, percentile};
use perpetua::wave::{Painter, Recording, Scene, Simulation};

use super::kept::{self, Run};
use super::output::{csv, plot};
use super::prepare::{holds_recording, prepared};
use super::progress::Progress;
use super::steps::steps_of;
use super::video::{self, Film, LONGEST_SIDE, shrink};
use super::{Args, Failure, open};
#[cfg(unix)]
use crate::files::Lock;
use crate::files::{check_places, write, write_silently, write_with};
use crate::say::{file as file_name, say, short, word};
use crate::signals::{self, Interrupted};
use crate::whole::counted;

/// Time between two looks at the clock, about.
pub(super) const BATCH: Duration = Duration::from_millis(80);

/// Time between two lines of a log, at least.
const SELDOM: Duration = Duration::from_secs(5);

/// What draws a layer.
struct Drawing {
    painter: Painter,
    layer: usize,
    width: usize,
    cells: Vec<u8>,
}

impl Drawing {
    fn new(args: &Args, scene: &Scene, simulation: &Simulation) -> Result<Drawing, Failure> {
        let model = simulation.model();
        let [width, height, depth] = model.size;
        let layer = args.layer.unwrap_or(depth / 2);
        if layer >= depth {
            let layers = counted(depth as u64, "layer", "layers");
            return Err(format!("--layer {layer}: the scene has {layers}, counted from 0").into());
        }
        let colors: Vec<[u8; 3]> = scene.materials.iter().map(|m| m.color).collect();
        let cells = model.cells[layer * width * height..(layer + 1) * width * height].to_vec();
        Ok(Drawing {
            painter: Painter::new(model, args.colors.into(), &colors),
            layer,
            width,
            cells,
        })
    }

    /// The layer now.
    fn field(&self, simulation: &Simulation) -> Result<Vec<f32>, Failure> {
        let field = simulation.layer(self.layer)?;
        if field.iter().any(|v| !v.is_finite()) {
            simulation.check_finite()?;
        }
        Ok(field)
    }
}

/// The films asked for, and when their frames are due.
struct Films {
    films: Vec<Film>,
    frames: u64,
    taken: u64,
    shrink: usize,
    range: f32,
}

impl Films {
    /// At most a frame a step.
    fn new(args: &Args, simulation: &Simulation, steps: u64) -> Result<Films, Failure> {
        let rest = steps.saturating_sub(simulation.step_count()).max(1);
        let frames = args.frames.min(u32::try_from(rest).unwrap_or(u32::MAX));
        let model = simulation.model();
        let by = model.size[0].max(model.size[1]).div_ceil(LONGEST_SIDE);
        let size = [(model.size[0] / by) as u32, (model.size[1] / by) as u32];
        let mut films = Vec::new();
        if let Some(path) = &args.animate {
            films.push(Film::animation(path, size, frames)?);
        }
        if let Some(path) = &args.video {
            films.push(Film::video(path, size)?);
        }
        let strongest = model
            .sources
            .iter()
            .map(|s| s.amplitude.abs())
            .fold(0.0, f64::max) as f32;
        Ok(Films {
            films,
            frames: frames.into(),
            taken: 0,
            shrink: by,
            range: args.range.unwrap_or(0.8 * strongest),
        })
    }

    /// The step of the next frame of a run over `steps`.
    fn due(&self, from: u64, steps: u64) -> Option<u64> {
        let wanted = !self.films.is_empty() && self.taken < self.frames;
        wanted.then(|| from + (steps - from) * (self.taken + 1) / self.frames)
    }

    fn take(&mut self, drawing: &Drawing, simulation: &Simulation) -> Result<(), Failure> {
        let field = drawing.field(simulation)?;
        let rgb = shrink(
            &drawing.painter.draw(&field, &drawing.cells, self.range),
            drawing.width,
            self.shrink,
        );
        self.taken += 1;
        self.films.iter_mut().try_for_each(|film| film.frame(&rgb))
    }

    fn abandon(self) {
        self.films.into_iter().for_each(Film::abandon);
    }
}

/// When a state is kept on the way, and where.
struct Keeper<'a> {
    run: &'a Run,
    last: Instant,
    /// When a log was last told, where stderr is one: a terminal has a bar.
    told: Option<Instant>,
}

impl Keeper<'_> {
    /// Keeps the state if it is time, in a run over `steps`.
    fn look(&mut self, simulation: &Simulation, steps: u64) -> Result<(), Failure> {
        let args = &self.run.args;
        if let (Some(path), Some(every)) = (&args.checkpoint, args.checkpoint_every)
            && self.last.elapsed() >= every
        {
            let state = simulation.checkpoint_with(&self.run.note)?;
            // The run goes on: the next time there may be room again, and at its end it is asked for again.
            match write_silently(path, &state) {
                Err(error) => say(format!(
                    "warning: {error}; the state is kept again in {}",
                    humantime::format_duration(every)
                )),
                Ok(())
                    if !stderr().is_terminal() && self.told.is_none_or(|told| told.elapsed() >= SELDOM) =>
                {
                    let done = simulation.step_count();
                    say(format!(
                        "step {done} of {steps}: state kept in {}",
                        file_name(path)
                    ));
                    self.told = Some(Instant::now());
                }
                Ok(()) => {}
            }
            self.last = Instant::now();
        }
        Ok(())
    }
}

pub(super) fn run(mut run: Run) -> Result<(), Failure> {
    let state = run.state.take();
    let run = &run;
    let (args, scene) = (&run.args, &run.source.scene()?);
    check_places(
        &[
            ("--out", args.still().as_ref(), &["png"]),
            ("--animate", args.animate.as_ref(), &["png"]),
            // Which it may be, `judge` says.
            ("--video", args.video.as_ref(), &[]),
            ("--probes", args.probes.as_ref(), &["csv"]),
            ("--plot", args.plot.as_ref(), &["svg"]),
            ("--checkpoint", args.checkpoint.as_ref(), &[]),
        ],
        Some(("--scene", Path::new(&args.scene))),
    )?;
    if args.checkpoint_every.is_some() && args.checkpoint.is_none() {
        return Err("--checkpoint-every: say where with --checkpoint FILE".into());
    }
    if let Some(path) = &args.video {
        video::judge(path)?;
    }
    if args.frames != Args::default().frames && args.animate.is_none() && args.video.is_none() {
        return Err("--frames: say where with --animate FILE or --video FILE".into());
    }
    let is_own_state = |path: &Path| args.resume.as_ref().is_some_and(|resumed| is_same(path, resumed));
    let may_keep = || match &args.checkpoint {
        Some(path) if !is_own_state(path) => kept::may_replace(path),
        _ => Ok(()),
    };
    may_keep()?;
    let device = open(args.place.backend, args.place.device)?;
    let model = prepared(args, &run.source, scene, &device)?;
    let steps = steps_of(args, &run.source, scene, &model)?;
    if (args.probes.is_some() || args.plot.is_some()) && model.probes.is_empty() {
        return Err(
            "this scene has no probes: leave --probes and --plot out, or add some to the scene".into(),
        );
    }
    let is_recorded = args.probes.is_some() || args.plot.is_some();
    if is_recorded {
        holds_recording(args, model.probes.len(), steps, host::memory_info().free)?;
    }
    let simulation = Simulation::with_storage(&device, model, args.dtype.into());
    let mut simulation = simulation.map_err(|error| run.source.wrong(args, error))?;
    if !is_recorded {
        simulation.set_recording(Recording::Latest);
    }
    let drawing = Drawing::new(args, scene, &simulation)?;
    if let (Some(path), Some(bytes)) = (&args.resume, state) {
        simulation
            .restore(&bytes)
            .map_err(|e| format!("--resume {}: {e}", file_name(path)))?;
        if simulation.step_count() > steps {
            return Err(format!(
                "--resume {}: {} steps are done, --steps asks for {steps} in all",
                file_name(path),
                simulation.step_count()
            )
            .into());
        }
        if simulation.step_count() == steps {
            say(format!(
                "no step was left: the checkpoint has all {}; --steps N goes on to the N-th",
                counted(steps, "step", "steps")
            ));
        }
        for written in &run.written {
            say(format!("from the checkpoint: {written}"));
        }
        if is_recorded && simulation.probes_from() > 0 {
            say(format!(
                "probes are recorded from step {}: without --probes and --plot a long run keeps only what they recorded last",
                simulation.probes_from()
            ));
        }
        if args.animate.is_some() || args.video.is_some() {
            say(format!(
                "frames begin at step {}: those before it are not in the checkpoint",
                simulation.step_count()
            ));
        }
    }
    signals::catch()?;
    #[cfg(unix)]
    let _lock = match &args.checkpoint {
        Some(path) if run.lock.is_none() => Lock::take(path)?,
        _ => None,
    };
    // Before the lock another run may have begun to keep its state there.
    may_keep()?;
    let [w, h, d] = simulation.model().size;
    let depth = if d > 1 { format!(" x {d}") } else { String::new() };
    say(format!(
        "{} on {} ({}): {}, {w} x {h}{depth} cells, {} of {:.3e} s",
        device.backend(),
        device.info().name,
        simulation.form(),
        short(&scene.name),
        counted(steps, "step", "steps"),
        simulation.model().time_step
    ));
    let mut films = Films::new(args, &simulation, steps)?;
    if films.shrink > 1 && !films.films.is_empty() {
        say(format!(
            "frames have {} x {} pixels: one for {} x {} cells",
            w / films.shrink,
            h / films.shrink,
            films.shrink,
            films.shrink
        ));
    }
    let mut keeper = Keeper {
        run,
        last: Instant::now(),
        told: None,
    };
    match advance(&mut simulation, &mut films, &drawing, &mut keeper, steps) {
        Ok(Ended::Whole) => {}
        Ok(Ended::Signal(signal)) => {
            films.abandon();
            return interrupted(run, &simulation, steps, signal);
        }
        Ok(Ended::Film(error)) => {
            films.abandon();
            if let Some(ended) = error.downcast_ref::<Interrupted>() {
                return interrupted(run, &simulation, steps, ended.signal);
            }
            return Err(match &args.checkpoint {
                Some(path) => {
                    write(path, &simulation.checkpoint_with(&run.note)?)?;
                    let frames = frames_are_gone(args);
                    format!(
                        "{error}; go on with `perpetua wave --resume {}`{frames}",
                        word(path)
                    )
                    .into()
                }
                None => error,
            });
        }
        Err(error) => {
            films.abandon();
            return Err(error);
        }
    }
    deliver(run, scene, &simulation, &drawing, films)
}

/// Writes what the run was for, first what cannot be made again. What one of the files cannot does not keep the others from being written.
fn deliver(
    run: &Run,
    scene: &Scene,
    simulation: &Simulation,
    drawing: &Drawing,
    films: Films,
) -> Result<(), Failure> {
    let args = &run.args;
    let mut done = Vec::new();
    if let Some(path) = &args.checkpoint {
        let state = simulation.checkpoint_with(&run.note);
        done.push(state.map_err(Failure::from).and_then(|state| write(path, &state)));
    }
    done.extend(films.films.into_iter().map(Film::finish));
    if args.probes.is_some() || args.plot.is_some() {
        let series = simulation.probe_series()?;
        if let Some(path) = &args.probes {
            done.push(write_with(path, |file| csv(simulation, &series, file)));
        }
        if let Some(path) = &args.plot {
            done.push(write(path, plot(simulation, &series, &scene.name).as_bytes()));
        }
    }
    let [width, height, _] = simulation.model().size.map(|n| n as u32);
    done.push(match args.still() {
        Some(out) => drawing.field(simulation).and_then(|field| {
            let range = args.range.unwrap_or_else(|| percentile(&field));
            let rgb = drawing.painter.draw(&field, &drawing.cells, range);
            write(&out, &encode_png(&rgb, width, height)?)
        }),
        // What was recorded may be of a field that is no longer finite.
        None => simulation.check_finite().map_err(Failure::from),
    });
    let errors: Vec<Failure> = done.into_iter().filter_map(Result::err).collect();
    let mut words: Vec<String> = errors.iter().map(ToString::to_string).collect();
    // A field that is no longer finite is said once.
    words.dedup();
    let message = words.join("; ");
    let signal = errors
        .iter()
        .find_map(|error| error.downcast_ref::<Interrupted>());
    match (signal, errors.is_empty()) {
        (_, true) => Ok(()),
        (Some(ended), false) => Err(Interrupted {
            signal: ended.signal,
            message,
        }
        .into()),
        (None, false) => Err(message.into()),
    }
}

/// Whether both name one file that is there.
fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// How steps have ended.
enum Ended {
    Whole,
    /// By this signal.
    Signal(u8),
    /// By a frame that could not be added to a film; the field is sound.
    Film(Failure),
}

/// Steps up to `steps`, with frames on the way.
fn advance(
    simulation: &mut Simulation,
    films: &mut Films,
    drawing: &Drawing,
    keeper: &mut Keeper<'_>,
    steps: u64,
) -> Result<Ended, Failure> {
    let from = simulation.step_count();
    let mut progress = Progress::new(from, steps, simulation.model().cells.len());
    let mut batch = 2;
    while simulation.step_count() < steps {
        let end = films
            .due(from, steps)
            .unwrap_or(steps)
            .max(simulation.step_count());
        let turns = batch.min(end - simulation.step_count());
        let before = Instant::now();
        simulation.step(turns)?;
        simulation.synchronize()?;
        let took = before.elapsed();
        if turns == batch {
            batch = if took < BATCH {
                (batch * 2).min(1 << 16)
            } else {
                (batch / 2).max(2)
            };
        }
        while films
            .due(from, steps)
            .is_some_and(|due| due <= simulation.step_count())
        {
            if let Err(error) = films.take(drawing, simulation) {
                progress.abandon();
                return Ok(Ended::Film(error));
            }
        }
        progress.at(simulation.step_count());
        if simulation.step_count() < steps {
            if let Some(signal) = signals::asked() {
                progress.abandon();
                return Ok(Ended::Signal(signal));
            }
            keeper.look(simulation, steps)?;
        }
    }
    if films.taken == 0 && !films.films.is_empty() {
        // Nothing was left to do: the frames show what there is.
        while films.taken < films.frames {
            if let Err(error) = films.take(drawing, simulation) {
                progress.abandon();
                return Ok(Ended::Film(error));
            }
        }
    }
    progress.finish(films.taken);
    Ok(Ended::Whole)
}

/// What to know of films before a run goes on.
fn frames_are_gone(args: &Args) -> &'static str {
    match args.animate.is_some() || args.video.is_some() {
        true => "; its film will begin where this ended: frames are not kept",
        false => "",
    }
}

/// Ends a run that a signal has stopped.
fn interrupted(run: &Run, simulation: &Simulation, steps: u64, signal: u8) -> Result<(), Failure> {
    let done = simulation.step_count();
    signals::answer();
    let message = match &run.args.checkpoint {
        Some(path) => {
            write(path, &simulation.checkpoint_with(&run.note)?)?;
            format!(
                "interrupted after {done} of {}; go on with `perpetua wave --resume {}`{}",
                counted(steps, "step", "steps"),
                word(path),
                frames_are_gone(&run.args)
            )
        }
        None => format!(
            "interrupted after {done} of {}; nothing was written (--checkpoint FILE keeps the state)",
            counted(steps, "step", "steps")
        ),
    };
    Err(Interrupted { signal, message }.into())
}
