//! What tiles compute, in the interpreter: tiles that end with their orders, launched again and again, against the simulation.
#![allow(clippy::unwrap_used, reason = "tests")]

use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

use super::bounded;
use crate::device::{BackendKind, Device};
use crate::wave::actors::cut::Cut;
use crate::wave::actors::order::{BEGIN, FILL, MEDIUM, Order, PAINT, PARK, PROBE, RUN, SOURCE, order, words};
use crate::wave::slots::Slots;
use crate::wave::{Border, Medium, Model, Region, Simulation, Source, Waveform};

fn model(size: [usize; 2]) -> Model {
    let mut model = Model::empty([size[0], size[1], 1], 0.01, Medium::of_speed(343.0));
    model.border = Border::Absorb(8);
    model.media.push(Medium::WALL);
    model.media.push(Medium {
        speed: 200.0,
        damping: 300.0,
        reflects: false,
    });
    model.sources = vec![Source {
        region: Region {
            from: [size[0] / 3, size[1] / 2, 0],
            to: [size[0] / 3 + 2, size[1] / 2 + 1, 1],
        },
        waveform: Waveform::Ricker { frequency: 3430.0 },
        amplitude: 1.0,
    }];
    model
}

fn vectors(orders: &[Order]) -> Vec<U32x4> {
    orders
        .iter()
        .flat_map(|o| {
            o.chunks(3).map(|w| U32x4 {
                x: w[0],
                y: w[1],
                z: w[2],
                w: 0,
            })
        })
        .collect()
}

struct Tiles {
    device: Device,
    kernel: KernelFn,
    cut: Cut,
    model: Model,
    now: Vec<f32>,
    before: Vec<f32>,
    step: u32,
}

impl Tiles {
    fn new(model: Model, cut: Cut) -> Tiles {
        let device = Device::new(BackendKind::Cpu, 0).unwrap();
        let kernel = match cut.rows {
            2 => bounded::two::kernel(),
            4 => bounded::four::kernel(),
            _ => bounded::eight::kernel(),
        };
        let cells = model.cells.len();
        Tiles {
            device,
            kernel,
            cut,
            model,
            now: vec![0.0; cells],
            before: vec![0.0; cells],
            step: 0,
        }
    }

    /// Launches them with orders that hold at most `span` steps; gives what the first probe said.
    fn launch(&mut self, steps: u32, extra: &[Order]) -> f32 {
        let (device, cut, model) = (&self.device, self.cut, &self.model);
        let mut unsourced = model.clone();
        unsourced.sources.clear();
        let mut slots = Slots::default();
        let bytes: Vec<u8> = (0..model.size[1])
            .flat_map(|y| slots.row(&unsourced, [0, y, 0], model.size[0]).unwrap())
            .collect();
        let region = model.sources[0].region;
        let source = [0, region.from[0], region.to[0], region.from[1], region.to[1]].map(|n| n as u32);
        let mut orders = vec![order(BEGIN, &[]), order(SOURCE, &source)];
        orders.extend(extra);
        orders.extend([
            order(RUN, &[steps]),
            order(PROBE, &[source[1], source[3], 0]),
            order(PARK, &[]),
        ]);
        let drive: Vec<u32> = (0..64u64)
            .flat_map(|t| [(model.drive(&model.sources[0], t) as f32).to_bits(), 0, 0, 0])
            .collect();
        let cells = model.cells.len();
        let (now, before) = (
            device.zeros::<f32>(cells).unwrap(),
            device.zeros::<f32>(cells).unwrap(),
        );
        let probes = device.zeros::<U32x4>(1).unwrap();
        let launched = device.launch(
            &self.kernel,
            LaunchConfig::new([cut.count(), 1, 1], [32, cut.strips, 1]),
            args![
                &device.upload(&vectors(&orders)).unwrap(),
                &device.zeros::<U32x4>(1).unwrap(),
                &device.zeros::<U32x4>(cut.board()).unwrap(),
                &device.zeros::<u32>(1).unwrap(),
                &device.zeros::<U32x4>(1).unwrap(),
                &device.zeros::<U32x4>(1).unwrap(),
                &probes,
                &device.upload(&self.now).unwrap(),
                &device.upload(&self.before).unwrap(),
                &now,
                &before,
                &device.upload(&cut.spread(&bytes)).unwrap(),
                &device.upload(&slots.table(&unsourced)).unwrap(),
                &device.upload(&drive).unwrap(),
                model.size[0] as u32,
                model.size[1] as u32,
                Simulation::edge_of(model),
                cut.across(),
                cut.count(),
                cut.span,
                self.step,
                0u32,
                0u32,
                0u32,
                0u32,
                63u32,
                0u32,
                0u32,
                0u32,
            ],
        );
        launched.unwrap();
        (self.now, self.before) = (now.read().unwrap(), before.read().unwrap());
        self.step += steps;
        f32::from_bits(probes.read().unwrap()[0].x)
    }
}

fn check(size: [usize; 2], rows: u32, strips: u32, span: u32) {
    let cut = Cut {
        size: size.map(|n| n as u32),
        rows,
        strips,
        span,
    };
    assert!(cut.is_possible());
    let device = Device::new(BackendKind::Cpu, 0).unwrap();
    let mut model = model(size);
    model.cells[size[0] * 9 + 13] = 1;
    let mut expect = Simulation::new(&device, model.clone()).unwrap();
    let mut tiles = Tiles::new(model, cut);
    for launch in 0..6u64 {
        let steps = (span - (launch % 2) as u32).max(1);
        let mut orders = Vec::new();
        if launch == 2 {
            let (center, radius) = (
                [size[0] as f64 / 2.0 + 0.25, size[1] as f64 / 2.0 - 0.5, 0.0],
                5.3,
            );
            expect.paint(center, radius, 2).unwrap();
            let ([x0, x1], [y0, y1], [r0, r1]) = (words(center[0]), words(center[1]), words(radius * radius));
            orders.push(order(PAINT, &[3, x0, x1, y0, y1, r0, r1]));
        }
        if launch == 3 {
            let region = Region {
                from: [3, 4, 0],
                to: [9, 7, 1],
            };
            expect.set_material(region, 1).unwrap();
            orders.push(order(FILL, &[0, 3, 9, 4, 7]));
        }
        if launch == 4 {
            // A medium that no cell has.
            orders.push(order(MEDIUM, &[77, 0x3f00_0000, 0]));
        }
        expect.step(steps.into()).unwrap();
        let probe = tiles.launch(steps, &orders);
        tiles.model.cells.copy_from_slice(&expect.model().cells);
        let (now, before) = expect.fields().unwrap();
        let at = tiles.model.index(tiles.model.sources[0].region.from);
        let what = format!("{size:?}, {rows} rows, {strips} strips, {span} steps, launch {launch}");
        let wrong = (0..now.len()).find(|i| now[*i].to_bits() != tiles.now[*i].to_bits());
        assert_eq!(
            wrong.map(|i| (i % size[0], i / size[0], now[i], tiles.now[i])),
            None,
            "{what}"
        );
        assert!(before == tiles.before, "{what}: the field before");
        assert_eq!(probe.to_bits(), now[at].to_bits(), "{what}: the probe");
    }
}

#[test]
fn tiles_do_what_the_simulation_does() {
    check([96, 64], 2, 8, 4);
    check([101, 67], 2, 16, 8);
    check([64, 40], 4, 8, 8);
    check([77, 130], 4, 16, 4);
    check([50, 130], 8, 16, 8);
    check([90, 150], 8, 16, 4);
}

/// Registers beyond this, and sixteen strips find no room.
const MOST_REGISTERS: u32 = 128;

#[test]
fn tiles_that_stay_pass_nvidias_assembler() {
    use super::resident::{eight, four, two};
    for (name, kernel) in [
        ("two", two::kernel()),
        ("four", four::kernel()),
        ("eight", eight::kernel()),
    ] {
        // SAFETY: nothing is launched.
        let kernel = unsafe { kernel.with_block_size(32, 16, 1).unchecked() };
        let lowered = perpetua_ir::front::rust::lower(&kernel.definition(), &kernel.instantiation()).unwrap();
        let verified = perpetua_ir::verify::verify(lowered).unwrap();
        for (sm, arch) in [(75, "sm_75"), (90, "sm_90a")] {
            let text = perpetua_ir::back::ptx::render(&verified, sm).unwrap().text;
            let Some(assembled) = perpetua_vendor_tools::ptxas(&text, arch).required(arch).unwrap() else {
                continue;
            };
            for usage in assembled.usage {
                println!("{name} {arch}: {usage:?}");
                assert!(usage.registers <= MOST_REGISTERS, "{name}: {usage:?}");
                // A word or two that are rarely needed may go.
                assert!(usage.spill_store_bytes <= 64, "{name}: {usage:?}");
            }
        }
    }
}
