//! The table: what each of the twelve kernels is called, is written as, is launched with, and is counted in. Runs nothing.

use perpetua::KernelFn;

use super::{kernels, reference};

/// What a kernel's speed is counted in.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// 10⁹ bytes a second that must come from or go to memory.
    Bytes,
    /// 10⁹ floating-point operations a second.
    Operations,
}

/// One kernel. Its parameters are in every form the input, the output, a size and a factor.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Bytes or operations of a launch, by the size and what it computed.
    pub(super) work: fn(f64, &[f32]) -> f64,
    /// The size, and the factor.
    pub(super) n: usize,
    pub(super) factor: f32,
    /// Elements of input and output.
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) grid: [u32; 2],
    pub(super) block: [u32; 2],
    pub(super) kernel: fn() -> KernelFn,
    /// A kernel `k` in OpenCL C.
    pub(super) opencl: &'static str,
    /// The same in plain Rust, on all processors.
    pub(super) reference: fn(&[f32], &mut [f32], usize, f32),
    /// Whether memory bounds it, so that plain Rust is a peer.
    pub(super) streams: bool,
    /// Whether the output are counts of 32 bits.
    pub(super) counts: bool,
    /// The part of the elements that may differ, where rounding decides about a loop's end.
    pub(super) strays: f64,
}

/// A row of 4 Mi elements in blocks of 256, of which each says only how it differs.
const LINE: Row = Row {
    name: "",
    unit: Unit::Bytes,
    work: |n, _| 8.0 * n,
    n: 4 << 20,
    factor: 0.5,
    input: 4 << 20,
    output: 4 << 20,
    grid: [(4 << 20) / 256, 1],
    block: [256, 1],
    kernel: kernels::saxpy::kernel,
    opencl: "",
    reference: reference::saxpy,
    streams: false,
    counts: false,
    strays: 0.0,
};

pub(super) static ROWS: [Row; 12] = [
    Row {
        name: "saxpy",
        work: |n, _| 12.0 * n,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0);
    if (i < n) y[i] += a * x[i];
}",
        streams: true,
        ..LINE
    },
    Row {
        name: "chain",
        kernel: kernels::chain::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0);
    if (i < n) y[i] = fmax(2.0f * x[i] + a, 0.0f);
}",
        reference: reference::chain,
        streams: true,
        ..LINE
    },
    Row {
        name: "gelu",
        factor: 0.044_715,
        kernel: kernels::gelu::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0);
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanh(0.7978846f * (v + a * v * v * v)));
    }
}",
        reference: reference::gelu,
        ..LINE
    },
    Row {
        name: "softmax",
        work: |n, y| 8.0 * n * (y.len() as f64 / n),
        n: 1024,
        grid: [4096, 1],
        kernel: kernels::softmax::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    local float part[256];
    size_t t = get_local_id(0), row = get_group_id(0) * n;
    float top = x[row + t];
    for (size_t k = t; k < n; k += 256) top = fmax(top, x[row + k]);
    part[t] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t s = 128; s > 0; s /= 2) {
        if (t < s) part[t] = fmax(part[t], part[t + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    top = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (size_t k = t; k < n; k += 256) {
        float e = exp(x[row + k] - top);
        y[row + k] = e;
        sum += e;
    }
    part[t] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t s = 128; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = part[0];
    for (size_t k = t; k < n; k += 256) y[row + k] /= sum;
}",
        reference: reference::softmax,
        ..LINE
    },
    Row {
        name: "reduction",
        work: |n, _| 4.0 * n,
        output: (4 << 20) / 256,
        kernel: kernels::reduction::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    local float part[256];
    size_t t = get_local_id(0);
    part[t] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t s = 128; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) y[get_group_id(0)] = part[0];
}",
        reference: reference::reduction,
        streams: true,
        ..LINE
    },
    Row {
        name: "scan",
        kernel: kernels::scan::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    local float part[256];
    size_t t = get_local_id(0), i = get_global_id(0);
    part[t] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t s = 1; s < 256; s *= 2) {
        float before = 0.0f;
        if (t >= s) before = part[t - s];
        barrier(CLK_LOCAL_MEM_FENCE);
        part[t] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[i] = part[t];
}",
        reference: reference::scan,
        ..LINE
    },
    Row {
        name: "histogram",
        work: |n, _| 4.0 * n,
        factor: 128.0,
        output: 256,
        grid: [(4 << 20) / 4096, 1],
        kernel: kernels::histogram::kernel,
        opencl: "
kernel void k(global const float *x, global uint *y, ulong n, float a) {
    local uint bins[256];
    size_t t = get_local_id(0), first = get_group_id(0) * 4096 + t;
    bins[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t k = 0; k < 16; k++) atomic_add(&bins[(uint)((x[first + k * 256] + 1.0f) * a)], 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&y[t], bins[t]);
}",
        reference: reference::histogram,
        counts: true,
        ..LINE
    },
    Row {
        name: "transpose",
        work: |n, _| 8.0 * n * n,
        n: 2048,
        grid: [128, 128],
        block: [16, 16],
        kernel: kernels::transpose::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    local float tile[16][17];
    size_t tx = get_local_id(0), ty = get_local_id(1);
    tile[ty][tx] = x[get_global_id(1) * n + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    size_t row = get_group_id(0) * 16 + ty, column = get_group_id(1) * 16 + tx;
    y[row * n + column] = tile[tx][ty];
}",
        reference: reference::transpose,
        streams: true,
        ..LINE
    },
    Row {
        name: "tiled product",
        unit: Unit::Operations,
        work: |n, _| 2.0 * n * n * n,
        n: 1024,
        input: 1 << 20,
        output: 1 << 20,
        grid: [64, 64],
        block: [16, 16],
        kernel: kernels::tiled::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    local float left[16][16], right[16][16];
    size_t tx = get_local_id(0), ty = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (size_t k = 0; k < n; k += 16) {
        left[ty][tx] = x[row * n + k + tx];
        right[ty][tx] = x[(k + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (size_t j = 0; j < 16; j++) sum += left[ty][j] * right[j][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[row * n + column] = sum;
}",
        reference: reference::tiled,
        ..LINE
    },
    Row {
        name: "stencil",
        work: |n, _| 8.0 * n * n,
        n: 2048,
        factor: 0.1,
        grid: [64, 256],
        block: [32, 8],
        kernel: kernels::stencil::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0), j = get_global_id(1);
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1) {
        size_t p = j * n + i;
        y[p] = x[p] + a * (x[p - 1] + x[p + 1] + x[p - n] + x[p + n] - 4.0f * x[p]);
    }
}",
        reference: reference::stencil,
        streams: true,
        ..LINE
    },
    Row {
        name: "mandelbrot",
        unit: Unit::Operations,
        // A turn of the loop: four products, three sums, the comparison's sum.
        work: |_, y| y.iter().map(|k| 8.0 * f64::from(*k)).sum(),
        n: 1024,
        factor: 3.0 / 1024.0,
        input: 1,
        output: 1 << 20,
        grid: [32, 128],
        block: [32, 8],
        kernel: kernels::mandelbrot::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0), j = get_global_id(1);
    if (i < n && j < n) {
        float cx = i * a - 2.0f, cy = j * a - 1.5f, zx = 0.0f, zy = 0.0f;
        uint k = 0;
        while (k < 256 && zx * zx + zy * zy < 4.0f) {
            float t = zx * zx - zy * zy + cx;
            zy = 2.0f * zx * zy + cy;
            zx = t;
            k++;
        }
        y[j * n + i] = k;
    }
}",
        reference: reference::mandelbrot,
        strays: 0.01,
        ..LINE
    },
    Row {
        name: "n-body",
        unit: Unit::Operations,
        work: |n, _| 20.0 * n * n,
        n: 4096,
        factor: 0.01,
        input: 4 * 4096,
        output: 3 * 4096,
        grid: [16, 1],
        kernel: kernels::nbody::kernel,
        opencl: "
kernel void k(global const float *x, global float *y, ulong n, float a) {
    size_t i = get_global_id(0);
    if (i < n) {
        float px = x[i], py = x[n + i], pz = x[2 * n + i], fx = 0.0f, fy = 0.0f, fz = 0.0f;
        for (size_t j = 0; j < n; j++) {
            float dx = x[j] - px, dy = x[n + j] - py, dz = x[2 * n + j] - pz;
            float r = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + a);
            float s = x[3 * n + j] * r * r * r;
            fx += dx * s;
            fy += dy * s;
            fz += dz * s;
        }
        y[i] = fx;
        y[n + i] = fy;
        y[2 * n + i] = fz;
    }
}",
        reference: reference::nbody,
        ..LINE
    },
];
