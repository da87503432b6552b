//! What a device's arithmetic and loops do: WGSL leaves contraction, denormals and the rounding of divisions to the driver, and one
//! ends loops before their time, so a small kernel finds out.

use std::sync::Arc;

use super::shared::{Health, driver};
use super::signal::Signal;
use crate::error::Result;
use crate::info::NumericProbe;

/// Room for the results.
const RESULT_BYTES: u64 = 128;

/// Turns of the loop: more than llvmpipe lets a loop have.
const LOOP_TURNS: u32 = 70_000;

/// Operands come from memory, so that no compiler folds them.
const SOURCE: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn probe() {
    r[0] = bitcast<u32>(x[0] * x[1] + x[2]);
    r[1] = bitcast<u32>(x[3] * x[4]);
    r[2] = bitcast<u32>(fma(x[0], x[1], x[2]));
    for (var i = 0u; i < 8u; i++) { r[3u + i] = bitcast<u32>(x[5u + 2u * i] / x[6u + 2u * i]); }
    for (var i = 0u; i < 8u; i++) { r[11u + i] = bitcast<u32>(sqrt(x[5u + i])); }
    var turns = 0u;
    var y = x[21];
    while (turns < u32(x[22])) { y = y * y + x[21]; turns += 1u; }
    r[19] = turns;
    r[20] = bitcast<u32>(y);
}
";

/// Operands: a product whose rounding error is not zero and what it is subtracted from; a denormal product; pairs to
/// divide, whose quotients lie near halfway between floats; what a loop computes, and its turns.
fn operands() -> [f32; 24] {
    let mut x = [1.0f32; 24];
    x[0] = 1.000_000_1;
    x[1] = 1.000_000_1;
    x[2] = -1.000_000_2;
    x[3] = 1e-20;
    x[4] = 1e-20;
    let pairs = [
        (1.0, 3.0),
        (2.0, 7.0),
        (1.000_000_1, 0.999_999_94),
        (16_777_215.0, 3.0),
        (1e10, 7e-5),
        (0.1, 0.3),
        (5.0, 9.0),
        (123_456.79, 0.000_987_654_3),
    ];
    for (i, (a, b)) in pairs.into_iter().enumerate() {
        (x[5 + 2 * i], x[6 + 2 * i]) = (a, b);
    }
    (x[21], x[22]) = (0.25, LOOP_TURNS as f32);
    x
}

/// What the probe found.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) numeric: NumericProbe,
    /// Turns after which the driver ended the loop, if it did.
    pub(super) loop_turns: Option<u32>,
}

/// Runs the probe.
pub(super) async fn run(device: &wgpu::Device, queue: &wgpu::Queue, health: &Health) -> Result<Probe> {
    let x = operands();
    let buffer = |size: u64, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let input = buffer(
        size_of_val(&x) as u64,
        wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
    );
    let output = buffer(
        RESULT_BYTES,
        wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC,
    );
    let back = buffer(
        RESULT_BYTES,
        wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
    );
    queue.write_buffer(&input, 0, bytemuck::cast_slice(&x));
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("numeric probe"),
        source: wgpu::ShaderSource::Wgsl(SOURCE.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("numeric probe"),
        layout: None,
        module: &module,
        entry_point: Some("probe"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry {
                binding: 0,
                resource: input.as_entire_binding(),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: output.as_entire_binding(),
            },
        ],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &back, 0, RESULT_BYTES);
    queue.submit([encoder.finish()]);
    let mapped = Arc::<Signal>::default();
    let signal = Arc::clone(&mapped);
    back.map_async(wgpu::MapMode::Read, .., move |result| signal.set(result.is_ok()));
    let failed = |message: String| driver("probing the device's arithmetic", message);
    #[cfg(not(target_arch = "wasm32"))]
    device
        .poll(wgpu::PollType::wait_indefinitely())
        .map_err(|e| failed(e.to_string()))?;
    let ok = mapped.ended().await;
    health.check()?;
    if !ok {
        return Err(failed("the result could not be mapped".into()));
    }
    let view = back.get_mapped_range(..).map_err(|e| failed(e.to_string()))?;
    let words: Vec<u32> = view
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    Ok(judge(&x, &words))
}

/// Compares the device's results with the host's.
fn judge(x: &[f32], r: &[u32]) -> Probe {
    let same = |i: usize, want: f32| r.get(i) == Some(&want.to_bits());
    let numeric = NumericProbe {
        no_contraction: Some(same(0, x[0] * x[1] + x[2])),
        keeps_denormals: Some(same(1, x[3] * x[4])),
        exact_fma: Some(same(2, x[0].mul_add(x[1], x[2]))),
        exact_division: Some((0..8).all(|i| same(3 + i, x[5 + 2 * i] / x[6 + 2 * i]))),
        exact_sqrt: Some((0..8).all(|i| same(11 + i, x[5 + i].sqrt()))),
    };
    // The loops above had turns of the same count; a compiler may have unrolled them.
    let loop_turns = r.get(19).copied().filter(|turns| *turns < LOOP_TURNS);
    Probe { numeric, loop_turns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operands_tell_contraction_from_two_roundings() {
        let x = operands();
        assert_ne!(x[0] * x[1] + x[2], x[0].mul_add(x[1], x[2]));
        assert!((x[3] * x[4]).is_subnormal());
    }
}
