//! `perpetua bench gemm` and its kin: what kernels of the library reach of what the device could do, as a table, as CSV and as a roofline plot.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use perpetua::device::Device;
use perpetua::kernels::Choices;
use perpetua::kernels::measure::Roof;

use super::super::{Backend, Failure, open};
use super::row::{Row, Shape, What};
use super::{families, show};
use crate::files::{check_places, write};
use crate::listing::Listing;
use crate::text::table;
use crate::whole::from_nought;

/// Arguments of each.
#[derive(clap::Args)]
#[command(
    after_help = "What a device could do is measured first: the bandwidth of a copy within its memory, and multiplications with \
        additions in registers. Of NVIDIA's tensor cores it is the operations a cycle that NVIDIA states, times the highest clock. \
        Under `of best` stands how much of that a kernel reaches: the time that its operations or its bytes take at least, whichever \
        is more, divided by the time it took; where all of it stays in a cache, that may be more than 1. Each figure is the best of five rounds; let nothing else run.\n\n\
        The plot has operations for each byte along x and operations a second along y: a kernel under the slope waits for memory, one \
        under the flat part for arithmetic. That of `memory` has bytes along x and bytes a second along y.\n\nExamples:\n  \
        perpetua bench gemm --plot gemm.svg\n  \
        perpetua bench gemm --shape 4096x4096x64,1000 --type bf16,f32\n  \
        perpetua bench gemm --shape 4096x4096x64 --type bf16 --tune\n  \
        perpetua bench norm --shape 1024x50257 --csv norm.csv\n  \
        perpetua bench memory --backend cpu"
)]
pub(super) struct Args {
    /// The backend
    #[arg(long, value_enum, default_value = "auto")]
    backend: Backend,
    /// Which of its devices
    #[arg(long, default_value_t = 0, value_parser = from_nought::<usize>, allow_negative_numbers = true)]
    device: usize,
    /// Shapes: of gemm N or MxNxK, of attention LENGTHxDIM, of norm ROWSxCOLUMNS, of quant ROWSxCOLUMNS, of memory MiB (if left out, some that suit the device)
    #[arg(long, value_delimiter = ',', value_name = "SHAPE,SHAPE,…", value_parser = shape)]
    shape: Vec<Shape>,
    /// Types of numbers: of gemm f32, tf32, f16, bf16, e4m3, i8, of attention and norm f32, f16, bf16, of quant q4_0, q8_0, q4_k, q5_k, q6_k (if left out, all that the device is made for)
    #[arg(long = "type", value_delimiter = ',', value_name = "TYPE,TYPE,…")]
    types: Vec<String>,
    /// Seconds for each figure
    #[arg(long, default_value_t = 0.2, allow_negative_numbers = true, value_parser = measured)]
    seconds: f64,
    /// The table as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// The table as a plot, in SVG or PNG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn shape(text: &str) -> Result<Shape, String> {
    let sizes: Result<Shape, _> = text.split('x').map(from_nought::<usize>).collect();
    match sizes {
        Ok(sizes) if !sizes.contains(&0) => Ok(sizes),
        _ => Err("sizes are whole numbers from 1 on, with an x between them, as 4096x1024".into()),
    }
}

/// How long a figure may take.
fn measured(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e6 => Ok(seconds),
        _ => Err("it must be a number of seconds above 0, and below a million".into()),
    }
}

/// `choices`: where the fastest tiles and slices of products are kept, if they are to be found first.
pub(super) fn run(what: What, args: &Args, choices: Option<&Choices>) -> Result<(), Failure> {
    check_places(
        &[
            ("--csv", args.csv.as_ref(), &["csv"]),
            ("--plot", args.plot.as_ref(), &["svg", "png"]),
        ],
        None,
    )?;
    let axes: &[usize] = match what {
        What::Gemm => &[1, 3],
        What::Attention | What::Norm | What::Quant => &[2],
        What::Memory => &[1],
    };
    if let Some(shape) = args.shape.iter().find(|shape| !axes.contains(&shape.len())) {
        let sizes: Vec<String> = axes.iter().map(usize::to_string).collect();
        return Err(format!(
            "--shape {}: a shape of this kind has {} sizes, not {}",
            show::sizes(shape),
            sizes.join(" or "),
            shape.len()
        )
        .into());
    }
    let device = open(args.backend, args.device)?;
    let types = families::types(what, &device, &args.types)?;
    let shapes = match args.shape.is_empty() {
        true => families::shapes(what, device.info().on_host),
        false => args.shape.clone(),
    };
    let long = Duration::from_secs_f64(args.seconds);
    let mut listing = Listing::new(args.csv.is_some() || args.plot.is_some());
    listing.print(&format!("{} ({})\n", device.info().name, device.backend()))?;
    let roof = Roof::measure(&device, long)?;
    listing.print(&show::roof(&roof, what, &types))?;
    let (rows, tuned) = measure(what, &device, (&shapes, &types), long, choices)?;
    listing.print(&format!("\n{}", table(&show::rows(&rows, &roof))))?;
    if rows
        .iter()
        .any(|row| !row.is_transfer && row.of_best(&roof).is_none())
    {
        listing.print("(-: what this device's matrix units could do is not known)\n")?;
    }
    if let Some(choices) = choices {
        let kept = match tuned.is_empty() {
            true => "nothing to tune: the library leaves no choice in these products\n".to_owned(),
            false => format!("{}kept in {}\n", tuned.concat(), choices.path().display()),
        };
        listing.print(&format!("\n{kept}"))?;
    }
    if let Some(path) = &args.csv {
        write(path, show::csv(&rows, &roof, &device).as_bytes())?;
    }
    if let Some(path) = &args.plot {
        write(path, &show::plot(what, &rows, &roof, &device).file(path)?)?;
    }
    listing.end()
}

/// All figures, and what was found of products that were tuned, while a line on a terminal says which is being measured.
fn measure(
    what: What,
    device: &Device,
    (shapes, types): (&[Shape], &[String]),
    long: Duration,
    choices: Option<&Choices>,
) -> Result<(Vec<Row>, Vec<String>), Failure> {
    let bar = ProgressBar::new((shapes.len() * types.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("{pos} of {len} measured; now {msg}") {
        bar.set_style(style);
    }
    let mut all = (Vec::new(), Vec::new());
    for shape in shapes {
        for kind in types {
            bar.set_message(format!("{kind} {}", show::sizes(shape)));
            let (rows, tuned) = families::measure(what, device, (shape, kind), long, choices)?;
            all.0.extend(rows);
            all.1.extend(tuned);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_sizes_with_an_x_between_them() {
        assert_eq!(shape("4096x64"), Ok(vec![4096, 64]));
        for text in ["", "x", "0", "4x0", "-1", "4*4"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }
}
