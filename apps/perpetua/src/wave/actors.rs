//! `perpetua wave --mode actors`: one run whose tiles stay where they run. Must not know arguments' spelling.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use perpetua::device::Device;
use perpetua::wave::actors::WaveActors;
use perpetua::wave::picture::{encode_png, percentile};
use perpetua::wave::{Error, Painter};

use super::prepare::prepared;
use super::progress::Progress;
use super::session::BATCH;
use super::steps::steps_of;
use super::{Args, Dtype, Failure, Source, open};
use crate::files::{check_places, write};
use crate::say::{say, short};
use crate::signals::{self, Interrupted};
use crate::whole::counted;

/// What tile actors do not do yet, and the argument that asks for it.
fn refuse(args: &Args) -> Result<(), Failure> {
    let asked = [
        (args.window, "--window"),
        (args.dtype != Dtype::F32, "--dtype f16"),
        (args.animate.is_some(), "--animate"),
        (args.video.is_some(), "--video"),
        (args.probes.is_some(), "--probes"),
        (args.plot.is_some(), "--plot"),
        (args.layer.is_some(), "--layer"),
        (args.checkpoint.is_some(), "--checkpoint"),
        (args.checkpoint_every.is_some(), "--checkpoint-every"),
        (args.resume.is_some(), "--resume"),
    ];
    match asked.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) => Err(format!(
            "{option}: tile actors cannot do that yet: leave it out, or take --mode launch"
        )
        .into()),
        None => Ok(()),
    }
}

pub(super) fn run(args: &Args, source: &Source) -> Result<(), Failure> {
    refuse(args)?;
    let (scene, out) = (&source.scene()?, args.still());
    check_places(
        &[("--out", out.as_ref(), &["png"])],
        Some(("--scene", Path::new(&args.scene))),
    )?;
    if args.frames != Args::default().frames {
        return Err("--frames: tile actors make no films yet: leave it out, or take --mode launch".into());
    }
    let device = open(args.place.backend, args.place.device)?;
    let model = prepared(args, source, scene, &device)?;
    let steps = steps_of(args, source, scene, &model)?;
    let (cells, [w, h, _]) = (model.cells.clone(), model.size);
    let colors: Vec<[u8; 3]> = scene.materials.iter().map(|m| m.color).collect();
    let painter = Painter::new(&model, args.colors.into(), &colors);
    let time_step = model.time_step;
    let tiles = WaveActors::start(&device, model);
    let mut tiles = tiles.map_err(|error| source.wrong(args, error))?;
    say(format!(
        "{} on {} ({}): {}, {w} x {h} cells, {} of {time_step:.3e} s",
        device.backend(),
        device.info().name,
        tiles.form(),
        short(&scene.name),
        counted(steps, "step", "steps"),
    ));
    signals::catch()?;
    let steps_done = Arc::new(AtomicU64::new(0));
    let _observed = observed(&device, &tiles, &steps_done)?;
    advance(&mut tiles, steps, w * h, &steps_done)?;
    let field = tiles.field()?;
    if field.iter().any(|v| !v.is_finite()) {
        return Err(Error::Diverged { step: steps }.into());
    }
    tiles.stop()?;
    let Some(out) = out else { return Ok(()) };
    let range = args.range.unwrap_or_else(|| percentile(&field));
    let rgb = painter.draw(&field, &cells, range);
    write(&out, &encode_png(&rgb, w as u32, h as u32)?)
}

/// Lets `perpetua top` look at the tiles, where `PERPETUA_TOP` asks for it: a row, whose messages are steps.
#[cfg(feature = "actors")]
fn observed(
    device: &Device,
    tiles: &WaveActors,
    steps: &Arc<AtomicU64>,
) -> Result<impl Sized + use<>, Failure> {
    use perpetua::actors::telemetry::{ActorMetrics, ActorReading, Reading, observe, register};
    let (backend, name, steps) = (device.backend().to_string(), tiles.form(), Arc::clone(steps));
    let row = register("wave", move || {
        let metrics = ActorMetrics {
            messages_processed: steps.load(Ordering::Relaxed),
            ..ActorMetrics::default()
        };
        Some(Reading::new(backend.as_str()).with(ActorReading::new(name.as_str(), 0, "Active", metrics)))
    });
    Ok((row, observe::observe_if_asked()?))
}

/// Without actors nothing can be looked at.
#[cfg(not(feature = "actors"))]
fn observed(_: &Device, _: &WaveActors, _: &Arc<AtomicU64>) -> Result<impl Sized + use<>, Failure> {
    Ok(())
}

/// Steps, with a bar that shows how far.
fn advance(tiles: &mut WaveActors, steps: u64, cells: usize, steps_done: &AtomicU64) -> Result<(), Failure> {
    let mut progress = Progress::new(0, steps, cells);
    let (mut batch, mut done) = (64, 0);
    while done < steps {
        let turns = batch.min(steps - done);
        let before = Instant::now();
        tiles.step(turns)?;
        tiles.synchronize()?;
        if before.elapsed() < BATCH {
            batch = (batch * 2).min(1 << 20);
        }
        done += turns;
        steps_done.store(done, Ordering::Relaxed);
        progress.at(done);
        if let Some(signal) = signals::asked().filter(|_| done < steps) {
            progress.abandon();
            let message = format!(
                "interrupted after {done} of {steps} steps; nothing was written (tile actors keep no checkpoints)"
            );
            return Err(Interrupted { signal, message }.into());
        }
    }
    progress.finish(0);
    Ok(())
}
