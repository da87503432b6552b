//! The wave simulation as a whole, on the CPU: against analytic solutions, and one way of computing it against another.
#![allow(clippy::unwrap_used, reason = "tests")]

mod wave_recording;
mod wave_scenes;

use std::f64::consts::PI;

use perpetua::device::{BackendKind, Device};
use perpetua::wave::{
    Border, Medium, Model, Probe, Region, Result, Simulation, Source, Storage, Tuning, Waveform, checkpoint,
};
use wave_scenes::{SPEED, busy, pulse, run};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).unwrap()
}

/// The same scene with native code and in the interpreter, which the race detector brings about.
#[test]
fn native_code_does_what_the_interpreter_does() -> Result<()> {
    for (size, storage) in [
        ([48, 30, 1], Storage::F32),
        ([45, 31, 1], Storage::F16),
        ([44, 26, 8], Storage::F32),
    ] {
        let open = |size: [usize; 3]| {
            let mut model = Model::empty(size, 0.01, Medium::of_speed(SPEED));
            model.border = Border::Absorb(8);
            model.sources = vec![pulse([14, 15, size[2] / 2], 0.01)];
            model
        };
        let mut reflecting = open(size);
        reflecting.border = Border::Reflect;
        for model in [busy(size), open(size), reflecting] {
            for cells_per_lane in [1, 4] {
                // One launch at a time in the interpreter; natively in graphs, with and without caches that hold the fields.
                let results: Vec<Vec<u32>> = [(true, 1 << 30), (false, 1 << 30), (false, 1 << 14)]
                    .into_iter()
                    .map(|(interpreted, cache)| {
                        let device = cpu();
                        let context = device.context().as_any();
                        let context = context
                            .downcast_ref::<perpetua::device::cpu::CpuContext>()
                            .unwrap();
                        context.detect_races(interpreted);
                        context.assume_cache(cache);
                        let tuning = Tuning {
                            cells_per_lane: Some(cells_per_lane),
                            ..Tuning::default()
                        };
                        let mut simulation = Simulation::tuned(&device, model.clone(), storage, tuning)?;
                        simulation.step(if interpreted { 1 } else { 40 })?;
                        for _ in 1..if interpreted { 40 } else { 1 } {
                            simulation.step(1)?;
                        }
                        let probes = simulation.probe_series()?;
                        let all = simulation
                            .field()?
                            .into_iter()
                            .chain(probes.into_iter().flatten());
                        Ok(all.map(f32::to_bits).collect())
                    })
                    .collect::<Result<_>>()?;
                assert!(
                    results[0] == results[1],
                    "{size:?} {storage:?} {cells_per_lane}: shares"
                );
                assert!(
                    results[0] == results[2],
                    "{size:?} {storage:?} {cells_per_lane}: a wavefront"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_scene_with_everything_runs_in_the_plane_and_in_space() -> Result<()> {
    for (size, storage) in [
        ([64, 40, 1], Storage::F32),
        ([64, 40, 1], Storage::F16),
        ([48, 32, 16], Storage::F32),
        ([48, 32, 16], Storage::F16),
    ] {
        let (field, series) = run(&cpu(), busy(size), storage, 75)?;
        assert!(field.iter().all(|u| u.is_finite() && u.abs() < 20.0), "{size:?}");
        assert!(field.iter().any(|u| u.abs() > 0.05), "{size:?}");
        assert_eq!(series.iter().map(Vec::len).collect::<Vec<_>>(), [75, 75]);
        let most = |s: &[f32]| s.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        assert!(
            most(&series[0]) > most(&series[1]) && most(&series[1]) > 0.0,
            "{size:?}"
        );
    }
    Ok(())
}

#[test]
fn probes_record_the_field_at_every_step_however_steps_are_grouped() -> Result<()> {
    let (field, at_once) = run(&cpu(), busy([64, 40, 1]), Storage::F32, 70)?;
    let mut simulation = Simulation::new(&cpu(), busy([64, 40, 1]))?;
    let mut seen = Vec::new();
    for steps in [1u64, 5, 16, 17, 31] {
        simulation.step(steps - 1)?;
        seen.push((simulation.step_count(), simulation.field()?[16 * 64 + 20]));
        simulation.step(1)?;
    }
    let series = simulation.probe_series()?;
    assert_eq!(series, at_once);
    assert_eq!(simulation.field()?, field);
    for (step, value) in seen {
        assert_eq!(series[0][step as usize], value, "{step}");
    }
    Ok(())
}

/// The largest difference to the standing wave `sin(k x) sin(l y) cos(ω t)` in a box with reflecting walls.
fn standing_wave_error(cells: usize) -> Result<f64> {
    let spacing = 1.0 / cells as f64;
    let n = cells + 1;
    let mut model = Model::empty([n, n, 1], spacing, Medium::of_speed(1.0));
    model.border = Border::Reflect;
    // Half the largest: at it, waves along diagonals are exact, and would converge faster.
    model.time_step = 0.5 * spacing;
    let (k, l) = (2.0 * PI, 3.0 * PI);
    let omega = (k * k + l * l).sqrt();
    let at = |step: f64| -> Vec<f32> {
        let t = step * model.time_step;
        (0..n * n)
            .map(|i| {
                let (x, y) = ((i % n) as f64 * spacing, (i / n) as f64 * spacing);
                let edge = i % n == 0 || i % n == cells || i / n == 0 || i / n == cells;
                if edge {
                    0.0
                } else {
                    ((k * x).sin() * (l * y).sin() * (omega * t).cos()) as f32
                }
            })
            .collect()
    };
    let steps = cells as u64;
    let exact = at(steps as f64);
    let (now, before) = (at(0.0), at(-1.0));
    let mut simulation = Simulation::new(&cpu(), model)?;
    simulation.set_fields(&now, &before)?;
    simulation.step(steps)?;
    let field = simulation.field()?;
    Ok(field
        .iter()
        .zip(&exact)
        .map(|(a, b)| f64::from((a - b).abs()))
        .fold(0.0, f64::max))
}

#[test]
fn the_scheme_converges_with_the_second_order() -> Result<()> {
    let errors = [24, 48, 96].map(standing_wave_error);
    let [coarse, middle, fine] = errors;
    let (coarse, middle, fine) = (coarse?, middle?, fine?);
    let orders = [(coarse / middle).log2(), (middle / fine).log2()];
    assert!(
        orders.iter().all(|o| (1.8..2.2).contains(o)),
        "{orders:?}: {coarse} {middle} {fine}"
    );
    Ok(())
}

/// The energy that the leapfrog scheme conserves: of the change over the last step, and of the gradients of both fields.
fn energy(now: &[f32], before: &[f32], n: usize, courant: f64) -> f64 {
    let mut sum = 0.0;
    for i in 0..now.len() {
        let (u, v) = (f64::from(now[i]), f64::from(before[i]));
        sum += (u - v).powi(2);
        for next in [(i % n + 1 < n).then_some(i + 1), (i / n + 1 < n).then_some(i + n)]
            .into_iter()
            .flatten()
        {
            sum += courant * courant * (f64::from(now[next]) - u) * (f64::from(before[next]) - v);
        }
    }
    sum
}

#[test]
fn reflecting_walls_keep_the_energy_and_absorbing_ones_do_not() -> Result<()> {
    let n = 64;
    let check = |border: Border, expect: fn(f64) -> bool| -> Result<()> {
        let mut model = Model::empty([n, n, 1], 0.01, Medium::of_speed(SPEED));
        model.border = border;
        let courant = SPEED * model.time_step / model.spacing;
        let bump: Vec<f32> = (0..n * n)
            .map(|i| {
                let (x, y) = ((i % n) as f64 - 30.0, (i / n) as f64 - 24.0);
                (-(x * x + y * y) / 30.0).exp() as f32
            })
            .map(|u| if u < 1e-6 { 0.0 } else { u })
            .collect();
        let mut simulation = Simulation::new(&cpu(), model)?;
        simulation.set_fields(&bump, &bump)?;
        let start = energy(&bump, &bump, n, courant);
        simulation.step(300)?;
        let (now, before) = simulation.fields()?;
        let ratio = energy(&now, &before, n, courant) / start;
        assert!(expect(ratio), "{border:?}: {ratio}");
        Ok(())
    };
    check(Border::Reflect, |ratio| (ratio - 1.0).abs() < 1e-4)?;
    check(Border::Absorb(16), |ratio| ratio < 1e-3)
}

/// What probes record below a source in a grid that goes on for `below` cells: those where rays that leave the source at
/// `angles` (degrees) come back from a mirror `distance` below it, and those as far away where nothing reflects.
fn recorded(below: usize, distance: f64, border: usize, angles: &[f64]) -> Result<Vec<Vec<f32>>> {
    let (left, height) = (40usize, 60usize);
    let size = [126, height + distance as usize + below, 1];
    let mut model = Model::empty(size, 0.01, Medium::of_speed(SPEED));
    model.border = Border::Absorb(border);
    model.sources = vec![Source {
        region: Region::cell([left, height, 0]),
        waveform: Waveform::Ricker {
            frequency: SPEED / 0.12,
        },
        amplitude: 1.0,
    }];
    for angle in angles {
        let across = 2.0 * distance * angle.to_radians().tan();
        let path = 2.0 * distance / angle.to_radians().cos();
        for by in [across, path] {
            model.probes.push(Probe {
                name: angle.to_string(),
                at: [left + by.round() as usize, height, 0],
            });
        }
    }
    Ok(run(&cpu(), model, Storage::F32, 240)?.1)
}

#[test]
fn absorbing_borders_reflect_at_most_a_hundredth_of_the_energy_up_to_45_degrees() -> Result<()> {
    let (border, distance) = (24, 20.0);
    let angles = [0.0, 15.0, 30.0, 45.0];
    // The sponge begins `distance` below the source; in the other grid the border is too far away to answer.
    let near = recorded(border, distance, border, &angles)?;
    let far = recorded(border + 60, distance, border, &angles)?;
    for (i, angle) in angles.iter().enumerate() {
        let energy = |series: &mut dyn Iterator<Item = f64>| series.map(|v| v * v).sum::<f64>();
        let pairs = near[2 * i].iter().zip(&far[2 * i]);
        let reflected = energy(&mut pairs.map(|(a, b)| f64::from(a - b)));
        let arriving = energy(&mut far[2 * i + 1].iter().map(|v| f64::from(*v)));
        let part = reflected / arriving;
        println!("{angle} degrees: {part:.2e}");
        assert!(
            part <= 0.01 && arriving > 1e-3,
            "{angle} degrees: {part}, {arriving}"
        );
    }
    Ok(())
}

/// Magnitudes of the wave along a column behind a double slit, once it stands.
#[test]
fn the_double_slit_has_its_fringes_where_theory_puts_them() -> Result<()> {
    // Slits 5 wavelengths apart, a screen 15 behind the wall: bright fringes where the paths differ by whole wavelengths.
    let (wavelength, apart, screen) = (8.0f64, 40usize, 120usize);
    let (width, height) = (205usize, 200usize);
    let mut model = Model::empty([width, height, 1], 0.01, Medium::of_speed(SPEED));
    model.media.push(Medium::WALL);
    model.border = Border::Absorb(24);
    let (wall, middle) = (50usize, height / 2);
    for y in 0..height {
        let from_middle = (y as f64 - middle as f64).abs();
        if (from_middle - apart as f64 / 2.0).abs() > 4.0 {
            for x in wall..wall + 3 {
                let cell = model.index([x, y, 0]);
                model.cells[cell] = 1;
            }
        }
    }
    let frequency = SPEED / (wavelength * 0.01);
    model.sources = vec![Source {
        region: Region {
            from: [26, 0, 0],
            to: [27, height, 1],
        },
        waveform: Waveform::Sine { frequency },
        amplitude: 1.0,
    }];
    let column = wall + 3 + screen;
    model.probes = (0..height)
        .map(|y| Probe {
            name: y.to_string(),
            at: [column, y, 0],
        })
        .take(width)
        .collect();
    let steps = (2.2 * width as f64 / 0.67) as u64;
    let series = run(&cpu(), model, Storage::F32, steps)?.1;
    let period = (wavelength / 0.67).ceil() as usize * 4;
    let strength: Vec<f64> = series
        .iter()
        .map(|s| s[s.len() - period..].iter().map(|v| f64::from(*v).powi(2)).sum())
        .collect();
    // Within the slits' own diffraction: the first bright fringe beside the middle, and the dark ones on either side of it.
    let at = |order: f64| {
        // Where the paths from both slits differ by `order` wavelengths.
        let (a, d) = (order * wavelength / 2.0, apart as f64 / 2.0);
        a * (1.0 + (screen as f64).powi(2) / (d * d - a * a)).sqrt()
    };
    let brightest = |from: f64, to: f64| {
        let range = (middle as f64 + from) as usize..(middle as f64 + to) as usize;
        range
            .max_by(|a, b| strength[*a].total_cmp(&strength[*b]))
            .unwrap() as f64
            - middle as f64
    };
    let first = brightest(at(0.5), at(1.5));
    let second = brightest(at(1.5), at(2.5));
    println!(
        "fringes at {first} and {second}, theory {} and {}",
        at(1.0),
        at(2.0)
    );
    assert!((first - at(1.0)).abs() < 0.1 * at(1.0), "{first} {}", at(1.0));
    assert!((second - at(2.0)).abs() < 0.1 * at(2.0), "{second} {}", at(2.0));
    let (dark, bright) = (
        strength[middle + at(0.5) as usize],
        strength[middle + first as usize],
    );
    assert!(dark < 0.1 * bright, "{dark} {bright}");
    Ok(())
}

#[test]
fn walls_and_sources_can_be_changed_while_it_runs() -> Result<()> {
    let mut model = Model::empty([64, 48, 1], 0.01, Medium::of_speed(SPEED));
    model.media.push(Medium::WALL);
    model.border = Border::Absorb(8);
    model.sources = vec![pulse([20, 24, 0], 0.01)];
    let mut simulation = Simulation::new(&cpu(), model)?;
    assert!(simulation.cells_buffer().is_none());
    simulation.step(20)?;
    simulation.paint([32.0, 24.0, 0.0], 3.0, 1)?;
    simulation.set_material(
        Region {
            from: [40, 0, 0],
            to: [42, 1000, 1000],
        },
        1,
    )?;
    simulation.step(60)?;
    let field = simulation.field()?;
    let cells = simulation.model().cells.clone();
    assert_eq!(cells.iter().filter(|c| **c == 1).count(), 29 + 2 * 48);
    assert!(field.iter().zip(&cells).all(|(u, c)| *c == 0 || *u == 0.0));
    let behind = |field: &[f32]| (0..48).map(|y| field[y * 64 + 50].abs()).sum::<f32>();
    assert_eq!(behind(&field), 0.0);
    assert!(simulation.set_material(Region::cell([0; 3]), 7).is_err());
    simulation.set_sources(vec![pulse([20, 10, 0], 0.01), pulse([50, 24, 0], 0.01)])?;
    assert!(simulation.set_sources(vec![pulse([64, 0, 0], 0.01)]).is_err());
    simulation.reset()?;
    assert_eq!((simulation.step_count(), behind(&simulation.field()?)), (0, 0.0));
    simulation.step(60)?;
    assert!(behind(&simulation.field()?) > 0.1);
    Ok(())
}

#[test]
fn a_checkpoint_goes_on_to_the_bit_or_is_refused() -> Result<()> {
    for storage in [Storage::F32, Storage::F16] {
        let model = || busy([64, 40, 1]);
        let (expect, expect_series) = run(&cpu(), model(), storage, 70)?;
        let mut first = Simulation::with_storage(&cpu(), model(), storage)?;
        first.step(33)?;
        let bytes = first.checkpoint_with(b"mine")?;
        assert_eq!(checkpoint::note(&bytes)?, b"mine");
        let mut second = Simulation::with_storage(&cpu(), model(), storage)?;
        second.step(5)?;
        let refused = |simulation: &mut Simulation, bytes: &[u8], expect: &str| {
            let error = simulation.restore(bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        let mut flipped = bytes.clone();
        flipped[5000] ^= 1;
        refused(&mut second, &flipped, "damaged");
        refused(&mut second, &bytes[..bytes.len() - 9], "damaged");
        refused(&mut second, &[7; 100], "is no checkpoint");
        refused(&mut second, &[], "is no checkpoint");
        refused(&mut second, &bytes[..10], "ends too early");
        let mut other = Simulation::with_storage(&cpu(), busy([64, 48, 1]), storage)?;
        refused(&mut other, &bytes, "another scene");
        second.restore(&bytes)?;
        assert_eq!(second.step_count(), 33);
        second.step(37)?;
        assert_eq!(second.field()?, expect);
        assert_eq!(second.probe_series()?, expect_series);
    }
    Ok(())
}

#[test]
fn several_steps_a_launch_compute_the_same_to_the_bit() -> Result<()> {
    let mut model = Model::empty([70, 61, 1], 0.01, Medium::of_speed(SPEED));
    model.border = Border::Absorb(8);
    model.sources = vec![pulse([20, 24, 0], 0.01)];
    for storage in [Storage::F32, Storage::F16] {
        let with = |steps: u32| -> Result<(Vec<f32>, Vec<f32>)> {
            let tuning = Tuning {
                steps_per_launch: Some(steps),
                ..Tuning::default()
            };
            let mut simulation = Simulation::tuned(&cpu(), model.clone(), storage, tuning)?;
            simulation.step(51)?;
            simulation.fields()
        };
        let one = with(1)?;
        assert!(one.0.iter().any(|u| u.abs() > 1e-3));
        for steps in [2, 4, 8] {
            assert!(with(steps)? == one, "{storage:?}, {steps} steps");
        }
    }
    Ok(())
}

/// What a cell's medium is comes from a table in one kernel, and from numbers of its own in the other.
#[test]
fn numbers_of_its_own_or_a_medium_of_a_table_give_a_cell_the_same_to_the_bit() -> Result<()> {
    for (size, storage, more) in [
        ([48, 30, 1], Storage::F32, 0),
        ([45, 31, 1], Storage::F16, 4),
        ([44, 26, 8], Storage::F32, 4),
    ] {
        let mut model = busy(size);
        model.probes.extend((0..more).map(|i| Probe {
            name: format!("more {i}"),
            at: [10 + i, 12, size[2] / 2],
        }));
        let with = |generated: bool| -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
            let tuning = Tuning {
                generated,
                ..Tuning::default()
            };
            let mut simulation = Simulation::tuned(&cpu(), model.clone(), storage, tuning)?;
            simulation.step(40)?;
            simulation.paint([30.0, 16.0, 0.0], 3.0, 2)?;
            simulation.step(20)?;
            Ok((simulation.field()?, simulation.probe_series()?))
        };
        let (own, table) = (with(false)?, with(true)?);
        assert!(own.0.iter().any(|u| u.abs() > 0.01));
        assert!(own == table, "{size:?} {storage:?}");
    }
    Ok(())
}

#[test]
fn four_cells_a_lane_compute_the_same_to_the_bit() -> Result<()> {
    for (size, storage) in [
        ([70, 41, 1], Storage::F32),
        ([64, 44, 1], Storage::F16),
        ([40, 22, 13], Storage::F32),
        ([32, 24, 16], Storage::F16),
    ] {
        let mut model = Model::empty(size, 0.01, Medium::of_speed(SPEED));
        model.border = Border::Absorb(8);
        let z = size[2] / 2;
        model.sources = vec![Source {
            region: Region {
                from: [9, 6, z],
                to: [11, size[1] - 5, z + 1],
            },
            waveform: Waveform::Ricker { frequency: 3000.0 },
            amplitude: 1.0,
        }];
        model.probes = vec![Probe {
            name: "far".into(),
            at: [size[0] - 3, 7, z],
        }];
        let with = |cells: u32| -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
            let tuning = Tuning {
                cells_per_lane: Some(cells),
                ..Tuning::default()
            };
            let mut simulation = Simulation::tuned(&cpu(), model.clone(), storage, tuning)?;
            simulation.step(60)?;
            Ok((simulation.field()?, simulation.probe_series()?))
        };
        let (one, four) = (with(1)?, with(4)?);
        assert!(one.0.iter().any(|u| u.abs() > 0.01));
        assert!(one == four, "{size:?} {storage:?}");
    }
    Ok(())
}
