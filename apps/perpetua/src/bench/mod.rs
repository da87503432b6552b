//! `perpetua bench`: what this machine does, with the library's kernels, and as Perpetua itself decides by.

mod crossover;
#[cfg(feature = "kernels")]
mod families;
#[cfg(feature = "kernels")]
mod kernels;
#[cfg(feature = "kernels")]
mod row;
#[cfg(feature = "kernels")]
mod show;

use std::path::PathBuf;

use perpetua::device::{AdapterType, BackendKind, Crossover, Device};
#[cfg(feature = "kernels")]
use perpetua::kernels::Choices;
use perpetua::wave::chart::Chart;

use super::{Backend, Failure};
use crate::listing::Listing;
use crate::text::table;

/// Arguments of `perpetua bench`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Matrix products
    #[cfg(feature = "kernels")]
    Gemm {
        #[command(flatten)]
        args: kernels::Args,
        /// Measure first which tiles and slices are fastest on this device, and keep that for all programs: in the file that the environment variable PERPETUA_CHOICES names, else beside the caches
        #[arg(long)]
        tune: bool,
    },
    /// Attention forward, batch 2, 16 heads, full and causal
    #[cfg(feature = "kernels")]
    Attention(kernels::Args),
    /// Softmax, layer norm, RMS norm and cross entropy of rows
    #[cfg(feature = "kernels")]
    Norm(kernels::Args),
    /// Products of quantised weights with a vector, and with a matrix of 512 rows
    #[cfg(feature = "kernels")]
    Quant(kernels::Args),
    /// Copies, fills and a kernel within a device's memory, and copies from and to the host
    #[cfg(feature = "kernels")]
    Memory(kernels::Args),
    /// From which size on a GPU is faster than the CPU, with data that is there and with its way there and back; measured, and kept for whoever asks (`Device::best_for`)
    Crossover {
        /// The GPU's backend; if left out, each that has one
        #[arg(long, value_enum, value_delimiter = ',')]
        backend: Vec<Backend>,
        /// Elements at which both are measured, however long that takes (as 1024,16777216); if left out, from 1024 to 4194304
        #[arg(long, value_delimiter = ',', value_name = "ELEMENTS", value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
        sizes: Vec<u32>,
        /// How many times as fast as the CPU the first GPU is, by size, as a plot in SVG or PNG
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (backend, sizes, plot) = match &args.command {
        Command::Crossover { backend, sizes, plot } => (backend, sizes, plot),
        #[cfg(feature = "kernels")]
        Command::Gemm { args, tune } => {
            let choices = match tune {
                true => Some(Choices::of_user().ok_or(
                    "--tune: there is no folder to keep choices in; name a file with PERPETUA_CHOICES=FILE",
                )?),
                false => None,
            };
            return kernels::run(row::What::Gemm, args, choices.as_ref());
        }
        #[cfg(feature = "kernels")]
        Command::Attention(args) => return kernels::run(row::What::Attention, args, None),
        #[cfg(feature = "kernels")]
        Command::Norm(args) => return kernels::run(row::What::Norm, args, None),
        #[cfg(feature = "kernels")]
        Command::Quant(args) => return kernels::run(row::What::Quant, args, None),
        #[cfg(feature = "kernels")]
        Command::Memory(args) => return kernels::run(row::What::Memory, args, None),
    };
    crate::files::check_places(&[("--plot", plot.as_ref(), &["svg", "png"])], None)?;
    let mut devices = Vec::new();
    let mut missing = Vec::new();
    let wanted: Vec<BackendKind> = match backend.is_empty() {
        true => vec![BackendKind::Cuda, BackendKind::Wgpu],
        false => backend.iter().map(|backend| (*backend).into()).collect(),
    };
    for kind in wanted {
        match Device::new(kind, 0) {
            Ok(device) if device.info().on_host => {
                return Err(format!(
                    "--backend {}: it is the CPU, which GPUs are held against",
                    kind.name()
                )
                .into());
            }
            Ok(device) => devices.push(device),
            // Whoever names a backend wants to know.
            Err(error) if !backend.is_empty() => return Err(error.into()),
            Err(error) => missing.push(error.to_string()),
        }
    }
    if devices.is_empty() {
        return Err(format!("there is no GPU to hold against the CPU: {}", missing.join("; ")).into());
    }
    let sizes: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
    let mut listing = Listing::new(plot.is_some());
    let host = Device::new(BackendKind::Cpu, 0)?;
    let mut drawn = None;
    for device in &devices {
        let chart = beside(&mut listing, &host, device, &sizes)?;
        drawn.get_or_insert(chart);
    }
    if let (Some(path), Some(chart)) = (plot, drawn) {
        crate::files::write(path, &chart.file(path)?)?;
    }
    listing.end()
}

/// Measures a GPU beside the CPU, and prints it; the chart of it.
pub(super) fn beside(
    listing: &mut Listing,
    host: &Device,
    device: &Device,
    sizes: &[usize],
) -> Result<Chart, Failure> {
    let info = device.info();
    let found = Crossover::measure(host, device, sizes)?;
    let name = match info.adapter_type {
        AdapterType::Cpu => format!("{} (software)", info.name),
        _ => info.name.clone(),
    };
    listing.print(&format!("\nCPU and {name}\n{}", table(&crossover::rows(&found))))?;
    listing.print(&crossover::from_where(&found))?;
    Ok(crossover::chart(&found, &name, device.backend()))
}
