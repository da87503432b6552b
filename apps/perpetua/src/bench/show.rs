//! Measured figures as a table, as CSV and as a roofline plot. Must not know how they came about.

use perpetua::device::Device;
use perpetua::kernels::Factors;
use perpetua::kernels::measure::{Roof, Unit};
use perpetua::wave::chart::{Chart, Curve};

use super::row::{Row, What};
use crate::text::ratio;

/// Sizes with an x between them.
pub(super) fn sizes(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    sizes.join("x")
}

/// A number with three digits.
fn digits(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// What units are called, with their peaks.
fn peaks(roof: &Roof) -> Vec<(Unit, &'static str, f64)> {
    [
        (Unit::Lanes, "f32"),
        (Unit::Matrices(Factors::Tf32), "tf32"),
        (Unit::Matrices(Factors::F16), "f16 and bf16"),
        (Unit::Matrices(Factors::E4m3), "e4m3 and i8"),
    ]
    .into_iter()
    .filter_map(|(unit, name)| Some((unit, name, roof.peak(unit)?)))
    .collect()
}

/// What the device could do at best, in words.
pub(super) fn roof(roof: &Roof, what: What, types: &[String]) -> String {
    let mut out = format!("at best: a copy {} GB/s", digits(roof.bandwidth() / 1e9));
    if what != What::Memory {
        for (_, name, peak) in peaks(roof) {
            let is_used =
                what == What::Quant || types.iter().any(|kind| name.split(' ').any(|word| word == kind));
            if is_used || name == "f32" {
                out += &format!(", {name} {} TFLOP/s", digits(peak / 1e12));
            }
        }
    }
    out + "\n"
}

pub(super) fn rows(rows: &[Row], roof: &Roof) -> Vec<Vec<String>> {
    let head = ["", "type", "shape", "us", "TFLOP/s", "GB/s", "of best"];
    let mut out = vec![head.map(String::from).to_vec()];
    for row in rows {
        let speed = match row.operations {
            0.0 => String::new(),
            operations => digits(operations / row.seconds / 1e12),
        };
        let reached = match row.is_transfer {
            true => String::new(),
            false => row.of_best(roof).map_or("-".into(), ratio),
        };
        out.push(vec![
            row.what.clone(),
            row.kind.clone(),
            sizes(&row.shape),
            digits(1e6 * row.seconds),
            speed,
            digits(row.bytes / row.seconds / 1e9),
            reached,
        ]);
    }
    out
}

pub(super) fn csv(rows: &[Row], roof: &Roof, device: &Device) -> String {
    let mut out = "device,backend,what,type,shape,seconds,operations,bytes,of_best\n".to_owned();
    for row in rows {
        let reached = row
            .of_best(roof)
            .map_or(String::new(), |part| format!("{part:.4}"));
        out += &format!(
            "\"{}\",{},{},{},{},{:.4e},{},{},{reached}\n",
            device.info().name.replace('"', "\"\""),
            device.backend(),
            row.what,
            row.kind,
            sizes(&row.shape),
            row.seconds,
            row.operations,
            row.bytes
        );
    }
    out
}

/// Kernels under the roof; of what computes nothing, bandwidth by size.
pub(super) fn plot(what: What, rows: &[Row], roof: &Roof, device: &Device) -> Chart {
    let is_memory = what == What::Memory;
    let point = |row: &Row| match is_memory {
        true => [row.bytes, row.bytes / row.seconds],
        false => [row.operations / row.bytes, row.operations / row.seconds],
    };
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let name = match is_memory {
            true => row.what.clone(),
            false => format!("{} {}", row.what, row.kind),
        };
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point(row)),
            None => curves.push(Curve {
                name,
                points: vec![point(row)],
            }),
        }
    }
    if !is_memory {
        let along = rows.iter().map(|row| point(row)[0]);
        let (low, high) = along.fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
        let used = |unit: Unit| {
            rows.iter()
                .any(|row| row.unit.is_some_and(|of| roof.peak(of) == roof.peak(unit)))
        };
        for (_, name, peak) in peaks(roof).into_iter().filter(|(unit, ..)| used(*unit)) {
            let corner = peak / roof.bandwidth();
            let (low, high) = (low.min(corner / 4.0), high.max(corner * 4.0));
            curves.push(Curve {
                name: format!("at best, {name}"),
                points: vec![[low, low * roof.bandwidth()], [corner, peak], [high, peak]],
            });
        }
    }
    let (across, up) = match is_memory {
        true => ("bytes", "bytes/s"),
        false => ("operations for each byte", "operations/s"),
    };
    Chart {
        title: format!("{} ({})", device.info().name, device.backend()),
        labels: [across.into(), up.into()],
        logarithmic: [true; 2],
        curves,
    }
}
