//! What probes recorded, as a table and as curves. Must not know files.

use std::fmt::LowerExp;
use std::io::{self, Write};

use perpetua::wave::Simulation;
use perpetua::wave::chart::{Chart, Curve};

/// Field of CSV: in quotes where it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number as CSV has it, with an exponent where it needs one.
fn number(value: impl LowerExp) -> String {
    let text = format!("{value:e}");
    text.strip_suffix("e0").unwrap_or(&text).to_owned()
}

/// What the probes recorded, a line a step.
pub(super) fn csv(simulation: &Simulation, series: &[Vec<f32>], file: &mut dyn Write) -> io::Result<()> {
    let model = simulation.model();
    write!(file, "step,time (s)")?;
    for probe in &model.probes {
        write!(file, ",{}", quoted(&probe.name))?;
    }
    writeln!(file)?;
    for row in 0..series.first().map_or(0, Vec::len) {
        let step = simulation.probes_from() + row as u64;
        write!(file, "{step},{}", number(step as f64 * model.time_step))?;
        for values in series {
            write!(file, ",{}", number(values[row]))?;
        }
        writeln!(file)?;
    }
    Ok(())
}

/// What the probes recorded, as curves over time.
pub(super) fn plot(simulation: &Simulation, series: &[Vec<f32>], title: &str) -> String {
    let model = simulation.model();
    let end = simulation.time();
    let (unit, scale) = if end < 1.0 { ("ms", 1e3) } else { ("s", 1.0) };
    let curves = model.probes.iter().zip(series).map(|(probe, values)| Curve {
        name: probe.name.clone(),
        points: values
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let step = simulation.probes_from() + i as u64;
                [step as f64 * model.time_step * scale, f64::from(*v)]
            })
            .collect(),
    });
    let chart = Chart {
        title: title.to_owned(),
        labels: [format!("time ({unit})"), "field".to_owned()],
        logarithmic: [false; 2],
        curves: curves.collect(),
    };
    chart.svg()
}
