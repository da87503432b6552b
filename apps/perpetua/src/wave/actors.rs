//! `perpetua wave --mode actors`: one run whose tiles stay where they run. Must not know arguments' spelling.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use perpetua::device::Device;
use perpetua::wave::actors::WaveActors;
use perpetua::wave::picture::{encode_png, percentile};
use perpetua::wave::{Error, Painter, Scene};

use super::session::{BATCH, TEMPLATE};
use super::{Args, Dtype, Failure, Interrupted, signals};
use crate::files::{check_places, write};
use crate::say::say;

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

pub(super) fn run(args: &Args, scene: &Scene) -> Result<(), Failure> {
    refuse(args)?;
    check_places(
        &[("--out", Some(&args.out))],
        Some(("--scene", Path::new(&args.scene))),
    )?;
    let model = scene.model(args.size, args.time_step)?;
    let steps = args.steps.unwrap_or_else(|| scene.steps(&model));
    let device = Device::new(args.place.backend.into(), args.place.device)?;
    let (cells, [w, h, _]) = (model.cells.clone(), model.size);
    let colors: Vec<[u8; 3]> = scene.materials.iter().map(|m| m.color).collect();
    let painter = Painter::new(&model, args.colors.into(), &colors);
    let time_step = model.time_step;
    let mut tiles = WaveActors::start(&device, model)?;
    say(format!(
        "{} on {} ({}): {}, {w} x {h} cells, {steps} steps of {time_step:.3e} s",
        device.backend(),
        device.info().name,
        tiles.form(),
        scene.name,
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
    let range = args.range.unwrap_or_else(|| percentile(&field));
    let rgb = painter.draw(&field, &cells, range);
    write(&args.out, &encode_png(&rgb, w as u32, h as u32)?)
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
    let start = Instant::now();
    let bar = ProgressBar::new(steps);
    // The template is a constant, tested where it stands.
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
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
        let rate = done as f64 / start.elapsed().as_secs_f64();
        bar.set_position(done);
        bar.set_message(format!(
            "{rate:.0} steps/s, {:.3} Gcell/s",
            rate * cells as f64 * 1e-9
        ));
        if let Some(signal) = signals::asked().filter(|_| done < steps) {
            bar.abandon();
            let message = format!(
                "interrupted after {done} of {steps} steps; nothing was written (tile actors keep no checkpoints)"
            );
            return Err(Interrupted { signal, message }.into());
        }
    }
    bar.finish();
    if let Some(message) = Some(bar.message()).filter(|m| !m.is_empty()) {
        say(format!(
            "{steps} steps in {:.2} s: {message}",
            start.elapsed().as_secs_f64()
        ));
    }
    Ok(())
}
