//! A scene's cells, and whether a run on them can be: room on the device and the host, and what may not be meant. Must not know steps.

use perpetua::device::{BackendKind, Device, host};
use perpetua::wave::{Model, Remarks, Scene};

use super::{Args, Dtype, Failure, Source};
use crate::say::{self, say};
use crate::whole::counted;

/// The scene's cells, if device and host have room for them; what may not be meant is said.
pub(super) fn prepared(
    args: &Args,
    source: &Source,
    scene: &Scene,
    device: &Device,
) -> Result<Model, Failure> {
    let grid = scene.grid(args.size).map_err(|error| source.wrong(args, error))?;
    fits(device, grid, args.dtype, args.checkpoint.is_some())?;
    if grid.iter().product::<usize>() > LARGE {
        say("preparing the scene's cells");
    }
    let made = scene.model_with_remarks(args.size, args.time_step);
    let (model, remarks) = made.map_err(|error| source.wrong(args, error))?;
    warn(scene, &model, &remarks);
    Ok(model)
}

/// So many warnings of a kind are said one by one.
const FEW: usize = 3;

/// Says the first warnings of a kind, and how many more there are.
fn few(warnings: impl ExactSizeIterator<Item = String>, kind: &str) {
    let more = warnings.len().saturating_sub(FEW);
    for warning in warnings.take(FEW) {
        say(format!("warning: {warning}"));
    }
    if more > 0 {
        say(format!("warning: {more} more {kind}"));
    }
}

/// What may be meant, and is seldom.
fn warn(scene: &Scene, model: &Model, remarks: &Remarks) {
    if let Some(resolved) = remarks.cells_per_wavelength.filter(|n| *n < 6.0) {
        say(format!(
            "warning: the shortest wave has {resolved:.1} cells; with fewer than 6 the simulation is inaccurate (--size)"
        ));
    }
    if model.sources.is_empty() {
        say(format!(
            "warning: {} has no source: nothing moves",
            say::short(&scene.name)
        ));
    }
    let of = |shape: usize| &scene.materials[scene.shapes[shape].material].name;
    let sources = remarks.walled_sources.iter();
    few(
        sources.map(|source| format!("source {} lies in a wall: it moves nothing", source + 1)),
        "sources lie in walls",
    );
    let probes = remarks.walled_probes.iter().map(|probe| {
        let name = &model.probes[*probe].name;
        format!(
            "probe {}, {}, lies in a wall: it records zeros",
            probe + 1,
            say::short(name)
        )
    });
    few(probes, "probes lie in walls");
    let absent = remarks.absent_shapes.iter().map(|shape| {
        let material = say::short(of(*shape));
        format!(
            "shape {}, of {material}, is not there: it is thinner than the cells (--size), or lies outside the scene",
            shape + 1
        )
    });
    few(absent, "shapes are not there");
    let thin = remarks.thin_shapes.iter().map(|(shape, thickness)| {
        let (material, cells) = (say::short(of(*shape)), model.size[0] as f64 / thickness);
        format!(
            "shape {}, of {material}, is {thickness:.2} cells thin and slanted: it may have holes; --size {:.0} closes it",
            shape + 1,
            cells.ceil()
        )
    });
    few(thin, "shapes are thinner than a cell");
    let fastest = |is_meant: &dyn Fn(usize) -> bool| {
        let media = model.media.iter().enumerate();
        let meant = media.filter(|(i, medium)| is_meant(*i) && !medium.reflects);
        meant.fold((0, 0.0f64), |(best, most), (i, medium)| {
            match medium.speed > most {
                true => (i, medium.speed),
                false => (best, most),
            }
        })
    };
    let used = fastest(&|i| !remarks.unused_media.contains(&i));
    let of_all = fastest(&|_| true);
    if of_all.1 > used.1 && used.1 > 0.0 {
        say(format!(
            "note: `{}`, a material that no cell has, makes the time step {:.1} times as short: it may be painted in a window",
            say::short(&scene.materials[of_all.0].name),
            of_all.1 / used.1
        ));
    }
}

/// Whether the host can hold what the probes record in so many steps, and what is made of it.
pub(super) fn holds_recording(
    args: &Args,
    probes: usize,
    steps: u64,
    free: Option<u64>,
) -> Result<(), Failure> {
    // Numbers as they were taken, one row after the other, and one probe after the other; of a plot points, and those of one curve placed.
    let points = if args.plot.is_some() {
        16 * (probes as u64 + 1)
    } else {
        0
    };
    let needed = u128::from(steps) * u128::from(12 * probes as u64 + points);
    match free {
        Some(free) if needed > u128::from(free) => {
            let option = if args.probes.is_some() {
                "--probes"
            } else {
                "--plot"
            };
            let (steps, probes) = (
                counted(steps, "step", "steps"),
                counted(probes as u64, "probe", "probes"),
            );
            Err(format!(
                "{option}: {steps} of {probes} take {needed} bytes of memory, and {free} are free: take fewer steps, or a scene with fewer probes"
            )
            .into())
        }
        _ => Ok(()),
    }
}

/// Whether a buffer of the device's can hold the field, and the host the rest; else, what would fit.
pub(super) fn fits(device: &Device, size: [usize; 3], dtype: Dtype, is_kept: bool) -> Result<(), Failure> {
    let each = if dtype == Dtype::F16 { 2 } else { 4 };
    let [w, h, d] = size.map(|n| n as u64);
    let axes = size.iter().filter(|n| **n > 1).count().max(1);
    let refused = |needed: u64, limit: u64, why: String| {
        let scale = (limit as f64 / needed as f64).powf(1.0 / axes as f64);
        let less = (w as f64 * scale) as u64;
        Err(format!("--size {w}: {why}: take --size {less} or less, or another --backend").into())
    };
    let (limit, needed) = (device.info().limits.max_buffer_bytes, w * h * d * each);
    if needed > limit {
        let (name, backend) = (&device.info().name, device.backend());
        let why = format!(
            "the field takes {needed} bytes, and a buffer of {name} ({backend}) holds {limit} at most"
        );
        return refused(needed, limit, why);
    }
    // Of a cell: its medium, twice, and on the CPU the two fields; of one that is drawn the field as it is read and sorted, and a colour.
    let fields = if device.backend() == BackendKind::Cpu {
        2 * each
    } else {
        0
    };
    // Of one whose state is kept: both fields as they are read, and what is written.
    let state = if is_kept { 17 } else { 0 };
    let needed = w * h * (d * (2 + fields + state) + 8 + 3);
    match host::memory_info().free {
        Some(free) if needed > free => {
            let why = format!("the run takes {needed} bytes of memory, and {free} are free");
            refused(needed, free, why)
        }
        _ => Ok(()),
    }
}

/// Grids so large take a while to prepare.
const LARGE: usize = 1 << 24;
