//! The kernels that are measured, by what they are for. Must not know how figures are shown.

use std::time::Duration;

use perpetua::device::{Device, KernelArg, Stream};
use perpetua::kernels::measure::{Unit, numbers, seconds_a_call};
use perpetua::kernels::{
    AttentionKernel, Choices, CrossEntropyKernel, E4m3, Element, Error, Factors, GemmKernel, Kernel,
    LayerNormKernel, QuantFormat, QuantGemmKernel, QuantGemvKernel, QuantizeKernel, RmsNormKernel,
    SoftmaxKernel,
};
use perpetua::prelude::*;
use perpetua_ir::back::Capability;

use super::row::{Row, Shape, What};
use super::show::sizes;
use crate::Failure;
use crate::say;
use crate::text::ratio;

/// Rows of the matrix that quantised weights are multiplied with.
const ROWS: usize = 512;

/// Shapes that suit a GPU, or the host's processor.
pub(super) fn shapes(what: What, on_host: bool) -> Vec<Shape> {
    let shapes: &[&[usize]] = match (what, on_host) {
        (What::Gemm, false) => &[&[1024], &[2048], &[4096], &[8192]],
        (What::Gemm, true) => &[&[256], &[512], &[1024]],
        (What::Attention, false) => &[&[2048, 64], &[4096, 64], &[2048, 128], &[4096, 128]],
        (What::Attention, true) => &[&[256, 64], &[256, 128]],
        (What::Norm, false) => &[&[4096, 4096], &[32768, 4096], &[16384, 8192], &[1024, 50257]],
        (What::Norm, true) => &[&[512, 1024], &[4096, 4096], &[64, 50257]],
        (What::Quant, false) => &[&[4096, 4096], &[4096, 14336]],
        (What::Quant, true) => &[&[1024, 1024], &[4096, 4096]],
        (What::Memory, false) => &[&[1], &[4], &[16], &[64], &[256], &[1024]],
        (What::Memory, true) => &[&[1], &[4], &[16], &[64], &[256]],
    };
    shapes.iter().map(|shape| shape.to_vec()).collect()
}

/// The types that were asked for, or those that the device is made for.
pub(super) fn types(what: What, device: &Device, asked: &[String]) -> Result<Vec<String>, Failure> {
    let formats = QuantFormat::ALL.map(|format| format.name().to_lowercase());
    let known: Vec<&str> = match what {
        What::Gemm => vec!["f32", "tf32", "f16", "bf16", "e4m3", "i8"],
        What::Attention | What::Norm => vec!["f32", "f16", "bf16"],
        What::Quant => formats.iter().map(String::as_str).collect(),
        What::Memory => vec!["f32"],
    };
    let named: Vec<String> = asked.iter().map(|name| name.trim().to_lowercase()).collect();
    if let Some(name) = named.iter().find(|name| !known.contains(&&***name)) {
        return Err(format!(
            "--type {}: of these numbers nothing is measured here; there are {}",
            say::short(name),
            known.join(", ")
        )
        .into());
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let info = device.info();
    let has = |capability| !info.on_host && info.capabilities.contains(&capability);
    let suits = |name: &&str| match (what, *name) {
        (What::Gemm, "f16" | "bf16") | (What::Attention | What::Norm, "bf16") => has(Capability::Matrices),
        (What::Gemm, "tf32" | "e4m3" | "i8") => has(Capability::Stages),
        (What::Attention | What::Norm, "f16") => false,
        _ => true,
    };
    Ok(known.into_iter().filter(suits).map(str::to_owned).collect())
}

/// The figures of one shape and type, and what was found of products that were tuned.
pub(super) fn measure(
    what: What,
    device: &Device,
    (shape, kind): (&Shape, &str),
    long: Duration,
    choices: Option<&Choices>,
) -> Result<(Vec<Row>, Vec<String>), Failure> {
    let mut table = Table {
        stream: device.create_stream()?,
        device,
        shape: shape.clone(),
        kind: kind.to_owned(),
        long,
        choices,
        rows: Vec::new(),
        tuned: Vec::new(),
    };
    match (what, kind) {
        (What::Gemm, _) => table.gemm()?,
        (What::Attention, "f16") => table.attention(Element::F16, half::f16::from_f32)?,
        (What::Attention, "bf16") => table.attention(Element::Bf16, half::bf16::from_f32)?,
        (What::Attention, _) => table.attention(Element::F32, |x| x)?,
        (What::Norm, "f16") => table.norm(Element::F16, half::f16::from_f32)?,
        (What::Norm, "bf16") => table.norm(Element::Bf16, half::bf16::from_f32)?,
        (What::Norm, _) => table.norm(Element::F32, |x| x)?,
        (What::Quant, _) => table.quant()?,
        (What::Memory, _) => table.memory()?,
    }
    Ok((table.rows, table.tuned))
}

/// What a kernel computes and moves at least.
#[derive(Clone, Copy)]
struct Work {
    unit: Unit,
    operations: f64,
    bytes: f64,
}

struct Table<'a> {
    stream: Stream,
    device: &'a Device,
    shape: Shape,
    kind: String,
    long: Duration,
    choices: Option<&'a Choices>,
    rows: Vec<Row>,
    tuned: Vec<String>,
}

impl Table<'_> {
    /// Sizes that were checked to be so many.
    fn sizes<const N: usize>(&self) -> [usize; N] {
        std::array::from_fn(|i| *self.shape.get(i).or(self.shape.last()).unwrap_or(&1))
    }

    fn row(&mut self, what: &str, unit: Option<Unit>, operations: f64, bytes: f64, seconds: f64) {
        self.rows.push(Row {
            what: what.to_owned(),
            kind: self.kind.clone(),
            shape: self.shape.clone(),
            unit,
            seconds,
            operations,
            bytes,
            is_transfer: false,
        });
    }

    fn launch(
        &mut self,
        what: &str,
        kernel: &dyn Kernel,
        args: &[KernelArg<'_>],
        work: Work,
    ) -> Result<(), Failure> {
        let seconds = seconds_a_call(&self.stream, self.long, || kernel.launch(&self.stream, args))?;
        self.row(what, Some(work.unit), work.operations, work.bytes, seconds);
        Ok(())
    }

    fn gemm(&mut self) -> Result<(), Failure> {
        let [m, n, k] = self.sizes();
        let half = |element| GemmKernel::tensor_core(m, n, k).with_element(element);
        let staged = |factors| {
            let kernel = GemmKernel::staged(m, n, k).with_element(Element::Bf16);
            kernel.with_factors(factors).with_transposed(false, true)
        };
        match &*self.kind {
            "f16" => self.product::<_, half::f16>(
                half(Element::F16),
                Unit::Matrices(Factors::F16),
                half::f16::from_f32,
            ),
            "bf16" => self.product::<_, half::bf16>(
                half(Element::Bf16),
                Unit::Matrices(Factors::Bf16),
                half::bf16::from_f32,
            ),
            "tf32" => self.product::<_, f32>(staged(Factors::Tf32), Unit::Matrices(Factors::Tf32), |x| x),
            "e4m3" => self.product::<_, half::bf16>(
                staged(Factors::E4m3),
                Unit::Matrices(Factors::E4m3),
                E4m3::from_f32,
            ),
            "i8" => self.product::<_, i32>(staged(Factors::I8), Unit::Matrices(Factors::I8), |x| {
                (x * 127.0) as i8
            }),
            _ => {
                let tile = if m.min(n) >= 1024 && !self.device.info().on_host {
                    128
                } else {
                    64
                };
                self.product::<_, f32>(GemmKernel::tiled(m, n, k, tile), Unit::Lanes, |x| x)
            }
        }
    }

    fn product<T: GpuType, C: GpuType>(
        &mut self,
        kernel: GemmKernel,
        unit: Unit,
        of: fn(f32) -> T,
    ) -> Result<(), Failure> {
        let [m, n, k] = self.sizes();
        let (a, b) = (numbers(self.device, m * k, of)?, numbers(self.device, k * n, of)?);
        let c = self.device.zeros::<C>(m * n)?;
        let all = args![&a, &b, &c];
        let mut kernel = kernel;
        if let Some(choices) = self.choices {
            match kernel.tune(&self.stream, all, self.long, choices) {
                Ok(found) => {
                    self.tuned.push(format!(
                        "{} {}: {}, {} times as fast as untuned\n",
                        self.kind,
                        sizes(&self.shape),
                        found.choice,
                        ratio(found.untuned_seconds / found.seconds)
                    ));
                    // Also where the file is not the user's.
                    kernel = kernel.with_choices(self.device, choices)?;
                }
                Err(Error::NothingToChoose { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let work = Work {
            unit,
            operations: 2.0 * m as f64 * n as f64 * k as f64,
            bytes: (a.bytes() + b.bytes() + c.bytes()) as f64,
        };
        self.launch("product", &kernel, all, work)
    }

    fn attention<T: GpuType>(&mut self, element: Element, of: fn(f32) -> T) -> Result<(), Failure> {
        let [length, dim] = self.sizes();
        let (batch, heads) = (2, 16);
        let len = batch * heads * length * dim;
        let x = numbers(self.device, len, of)?;
        let out = self.device.zeros::<T>(len)?;
        let full = AttentionKernel::new(batch, heads, [length, length], dim).with_element(element);
        let unit = match &*self.kind {
            "f16" => Unit::Matrices(Factors::F16),
            "bf16" => Unit::Matrices(Factors::Bf16),
            _ => Unit::Lanes,
        };
        let work = Work {
            unit,
            operations: 4.0 * len as f64 * length as f64,
            bytes: 4.0 * x.bytes() as f64,
        };
        let seen = Work {
            operations: work.operations / 2.0,
            ..work
        };
        self.launch("full", &full, args![&x, &x, &x, &out], work)?;
        self.launch("causal", &full.causal(), args![&x, &x, &x, &out], seen)
    }

    fn norm<T: GpuType>(&mut self, element: Element, of: fn(f32) -> T) -> Result<(), Failure> {
        let [rows, columns] = self.sizes();
        let x = numbers(self.device, rows * columns, of)?;
        let y = self.device.zeros::<T>(rows * columns)?;
        let (weight, bias) = (
            numbers(self.device, columns, of)?,
            numbers(self.device, columns, of)?,
        );
        // So many operations on each number, one read and perhaps one write of it.
        let work = |operations: f64, moves: f64| Work {
            unit: Unit::Lanes,
            operations: operations * (rows * columns) as f64,
            bytes: moves * x.bytes() as f64,
        };
        let softmax = SoftmaxKernel::new(rows, columns).with_element(element);
        self.launch("softmax", &softmax, args![&x, &y], work(5.0, 2.0))?;
        let layer = LayerNormKernel::new(rows, columns, 1e-5).with_element(element);
        self.launch(
            "layer norm",
            &layer,
            args![&x, &weight, &bias, &y],
            work(7.0, 2.0),
        )?;
        let rms = RmsNormKernel::new(rows, columns, 1e-5).with_element(element);
        self.launch("RMS norm", &rms, args![&x, &weight, &y], work(4.0, 2.0))?;
        let labels: Vec<i32> = (0..rows).map(|row| (row % columns) as i32).collect();
        let labels = self.device.upload(&labels)?;
        let (losses, logs) = (self.device.zeros::<f32>(rows)?, self.device.zeros::<f32>(rows)?);
        let loss = CrossEntropyKernel::new(rows, columns).with_element(element);
        let args = args![&x, &labels, &losses, &logs];
        self.launch("cross entropy", &loss, args, work(4.0, 1.0))
    }

    fn quant(&mut self) -> Result<(), Failure> {
        let [n, k] = self.sizes();
        let named = |format: &QuantFormat| format.name().eq_ignore_ascii_case(&self.kind);
        let Some(format) = QuantFormat::ALL.into_iter().find(named) else {
            return Ok(());
        };
        let words = format.words(n * k)?;
        let w = numbers(self.device, n * k, |x| x)?;
        let blocks = self.device.zeros::<u32>(words)?;
        QuantizeKernel::new(format, n * k).launch(&self.stream, args![&w, &blocks])?;
        let (x, y) = (numbers(self.device, k, |x| x)?, self.device.zeros::<f32>(n)?);
        let work = |rows: usize| Work {
            unit: Unit::Lanes,
            operations: 2.0 * (rows * n) as f64 * k as f64,
            bytes: 4.0 * (words + rows * (n + k)) as f64,
        };
        let vector = QuantGemvKernel::new(format, n, k);
        self.launch("vector", &vector, args![&blocks, &x, &y], work(1))?;
        let a = numbers(self.device, ROWS * k, |x| x)?;
        let c = self.device.zeros::<f32>(ROWS * n)?;
        let matrix = QuantGemmKernel::new(format, ROWS, n, k);
        self.launch("matrix", &matrix, args![&a, &blocks, &c], work(ROWS))
    }

    fn memory(&mut self) -> Result<(), Failure> {
        let [size] = self.sizes();
        let len = size << 18;
        let x = numbers(self.device, len, |x| x)?;
        let y = self.device.zeros::<f32>(len)?;
        let bytes = x.bytes() as f64;
        let (stream, long) = (self.stream.clone(), self.long);
        let copy = seconds_a_call(&stream, long, || Ok(stream.copy(&x, &y)?))?;
        self.row("copy", None, 0.0, 2.0 * bytes, copy);
        let fill = seconds_a_call(&stream, long, || Ok(stream.fill(&y, 1.0)?))?;
        self.row("fill", None, 0.0, bytes, fill);
        let config = LaunchConfig::linear(len, 256);
        let kernel = scale::kernel();
        let scaled = seconds_a_call(&stream, long, || {
            Ok(stream.launch(&kernel, config, args![0.5f32, &x, &y])?)
        })?;
        self.row("scale", Some(Unit::Lanes), len as f64, 2.0 * bytes, scaled);
        let mut pinned = self.device.pin(&vec![0.0f32; len])?;
        // A graph does not copy from the host.
        let begun = std::time::Instant::now();
        let mut best = [f64::INFINITY; 2];
        while begun.elapsed() < long || best[1].is_infinite() {
            let start = std::time::Instant::now();
            pinned.copy_to(&stream, &x)?;
            stream.synchronize()?;
            best[0] = best[0].min(start.elapsed().as_secs_f64());
            let start = std::time::Instant::now();
            pinned = pinned.read_from(&stream, &x)?.wait()?;
            best[1] = best[1].min(start.elapsed().as_secs_f64());
        }
        for (what, seconds) in ["from the host", "to the host"].into_iter().zip(best) {
            self.row(what, None, 0.0, bytes, seconds);
            if let Some(row) = self.rows.last_mut() {
                row.is_transfer = true;
            }
        }
        Ok(())
    }
}

/// One read and one write a number; on the CPU as machine code, whatever the program's build.
#[kernel(interpret)]
fn scale(factor: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = factor * x[i];
    }
}
