//! MSL through the shim: kernels run and their numbers are right, and what Metal refuses is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation in a helper of tests is the report"
)]

use perpetua_vendor_tools::msl::{LaneOrder, MslLaunch, MslRunError};
use perpetua_vendor_tools::{MslProgram, ToolResult};

/// The convention of rendered kernels: buffers, arguments, fault word, positions.
const TREE_SUM: &str = r"#include <metal_stdlib>
using namespace metal;

struct Args { uint n; uint stride; };

static inline float at(device const float* data, constant Args& args, uint i) {
    return i < args.n ? data[i * args.stride] : 0.0f;
}

kernel void tree_sum(device const float* data [[buffer(0)]], device atomic_uint* total [[buffer(1)]],
                     constant Args& args [[buffer(2)]], device atomic_uint* fault [[buffer(3)]],
                     uint3 tid [[thread_position_in_threadgroup]], uint3 bid [[threadgroup_position_in_grid]],
                     uint3 bdim [[threads_per_threadgroup]], uint3 gdim [[threadgroups_per_grid]]) {
    threadgroup float tile[64];
    uint i = bid.x * bdim.x + tid.x;
    tile[tid.x] = at(data, args, i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_width = bdim.x / 2u; half_width > 0u; half_width /= 2u) {
        if (tid.x < half_width) { tile[tid.x] += tile[tid.x + half_width]; }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (tid.x == 0u) { atomic_fetch_add_explicit(total, uint(tile[0]), memory_order_relaxed); }
    if (i >= args.n) { atomic_fetch_or_explicit(fault, gdim.x, memory_order_relaxed); }
}
";

fn compiled(source: &str, kernel: &str) -> Option<MslProgram> {
    MslProgram::compile(source, kernel).required(kernel).unwrap()
}

fn bytes<T: Copy, const N: usize>(values: &[T], to: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| to(*value)).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    bytes(values, u32::to_le_bytes)
}

fn f32s(values: &[f32]) -> Vec<u8> {
    bytes(values, f32::to_le_bytes)
}

fn as_u32s(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

fn as_f32s(bytes: &[u8]) -> Vec<f32> {
    as_u32s(bytes).into_iter().map(f32::from_bits).collect()
}

/// A kernel of one statement list over `uint` buffers `a` and `b`, with every position at hand.
fn small(body: &str) -> String {
    format!(
        "#include <metal_stdlib>\nusing namespace metal;\n\
         kernel void k(device uint* a [[buffer(0)]], device uint* b [[buffer(1)]], \
         uint3 gid [[thread_position_in_grid]], uint3 tid [[thread_position_in_threadgroup]], \
         uint lane [[thread_index_in_simdgroup]], uint width [[threads_per_simdgroup]], \
         uint simd [[simdgroup_index_in_threadgroup]]) {{\n{body}\n}}\n"
    )
}

/// Runs a small kernel over one group of 64 threads and gives both buffers.
fn run_small(
    body: &str,
    a: &[u32],
    b: &[u32],
    launch: &MslLaunch,
) -> Option<Result<[Vec<u32>; 2], MslRunError>> {
    let program = compiled(&small(body), "k")?;
    let mut buffers = [u32s(a), u32s(b)];
    Some(
        program
            .run_launch(launch, &mut buffers)
            .map(|()| buffers.map(|bytes| as_u32s(&bytes))),
    )
}

const ONE_GROUP: [u32; 3] = [1, 1, 1];

#[test]
fn threadgroup_memory_barriers_and_atomics_work() {
    let Some(program) = compiled(TREE_SUM, "tree_sum") else {
        return;
    };
    let data: Vec<f32> = (0..1000).map(|i| (i % 7) as f32).collect();
    let expected: u32 = (0..500).map(|i| (2 * i) % 7).sum();
    for order in [LaneOrder::Ascending, LaneOrder::Descending] {
        let mut buffers = [f32s(&data), u32s(&[0]), u32s(&[500, 2]), u32s(&[0])];
        let launch = MslLaunch {
            order,
            ..MslLaunch::new([8, 1, 1], [64, 1, 1])
        };
        program.run_launch(&launch, &mut buffers).unwrap();
        assert_eq!(as_u32s(&buffers[1]), [expected], "{order:?}");
        assert_eq!(
            as_u32s(&buffers[3]),
            [8],
            "{order:?}: lanes past the end saw the grid's size"
        );
    }
}

#[test]
fn a_missing_barrier_shows_in_one_order_of_lanes() {
    let racy = TREE_SUM.replacen("    threadgroup_barrier(mem_flags::mem_threadgroup);\n", "", 1);
    let Some(program) = compiled(&racy, "tree_sum") else {
        return;
    };
    let totals = [LaneOrder::Ascending, LaneOrder::Descending].map(|order| {
        let mut buffers = [f32s(&[1.0; 64]), u32s(&[0]), u32s(&[64, 1]), u32s(&[0])];
        let launch = MslLaunch {
            order,
            ..MslLaunch::new(ONE_GROUP, [64, 1, 1])
        };
        program.run_launch(&launch, &mut buffers).unwrap();
        as_u32s(&buffers[1])[0]
    });
    assert_ne!(totals[0], totals[1]);
}

#[test]
fn positions_have_three_dimensions() {
    let source = "#include <metal_stdlib>
        using namespace metal;
        [[kernel]] void where(device packed_uint3* out [[buffer(0)]], constant uint& n [[buffer(1)]],
            uint3 gid [[thread_position_in_grid]], ushort3 size [[threads_per_grid]],
            uint flat [[thread_index_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]) {
            uint i = (gid.z * size.y + gid.y) * size.x + gid.x;
            if (i < n) { out[i] = uint3(gid.x + 100 * gid.y + 10000 * gid.z, flat, group.x + 10 * group.y); }
        }";
    let Some(program) = compiled(source, "where") else {
        return;
    };
    let (groups, threads) = ([2, 3, 2], [4, 2, 3]);
    let count = 2 * 3 * 2 * 4 * 2 * 3;
    let mut buffers = [vec![0; count * 12], u32s(&[count as u32])];
    program.run(groups, threads, &mut buffers, 0).unwrap();
    let out = as_u32s(&buffers[0]);
    // The lane at (5, 3, 4) of a grid of 8 x 6 x 6.
    let i = (4 * 6 + 3) * 8 + 5;
    assert_eq!(out[3 * i..3 * i + 3], [5 + 300 + 40000, (2 + 1) * 4 + 1, 1 + 10]);
}

#[test]
fn dynamic_threadgroup_memory_is_shared_and_not_zero() {
    let source = "#include <metal_stdlib>
        using namespace metal;
        kernel void reverse(device uint* data [[buffer(0)]], threadgroup uchar* dyn [[threadgroup(0)]],
            uint tid [[thread_index_in_threadgroup]]) {
            threadgroup uint* words = (threadgroup uint*)dyn;
            uint before = words[tid];
            words[tid] = data[tid];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            data[tid] = words[31 - tid] + (before == 0 ? 1000 : 0);
        }";
    let Some(program) = compiled(source, "reverse") else {
        return;
    };
    let mut buffers = [u32s(&(0..32).collect::<Vec<_>>())];
    program.run(ONE_GROUP, [32, 1, 1], &mut buffers, 128).unwrap();
    assert_eq!(as_u32s(&buffers[0]), (0..32).rev().collect::<Vec<_>>());

    let error = program.run(ONE_GROUP, [32, 1, 1], &mut buffers, 64).unwrap_err();
    assert!(
        matches!(
            error,
            MslRunError::OutOfBounds {
                slot: 1,
                length: 64,
                side: "past the end"
            }
        ),
        "{error}"
    );
    let error = program
        .run(ONE_GROUP, [32, 1, 1], &mut buffers, 40_000)
        .unwrap_err();
    assert!(
        error.to_string().contains("threadgroup memory is 40000"),
        "{error}"
    );
}

#[test]
fn simd_operations_exchange_values() {
    let body = "uint v = a[gid.x];
        uint total = simd_sum(v);
        uint before = simd_prefix_exclusive_sum(v);
        uint neighbour = simd_shuffle_xor(v, ushort(1));
        uint first = simd_broadcast_first(v);
        uint down = simd_shuffle_down(v, ushort(2));
        ulong odd = (ulong)(simd_vote::vote_t)simd_ballot((v & 1u) != 0u);
        uint high = simd_max(v);
        b[gid.x] = (simd_all(v < 1000u) && !simd_any(v == 999u)) ? total : 0u;
        b[64 + gid.x] = before; b[128 + gid.x] = neighbour; b[192 + gid.x] = first;
        b[256 + gid.x] = down; b[320 + gid.x] = uint(odd) ^ uint(odd >> 32); b[384 + gid.x] = high;";
    let a: Vec<u32> = (0..64).map(|i| i * 3 % 50).collect();
    for width in [4, 16, 32, 64] {
        let launch = MslLaunch {
            simd_width: width,
            ..MslLaunch::new(ONE_GROUP, [64, 1, 1])
        };
        let Some(result) = run_small(body, &a, &[0; 448], &launch) else {
            return;
        };
        let [_, b] = result.unwrap();
        for i in 0..64usize {
            let width = width as usize;
            let base = i / width * width;
            let simd = &a[base..base + width];
            let ballot = simd
                .iter()
                .enumerate()
                .fold(0u64, |bits, (lane, v)| bits | u64::from(v & 1) << lane);
            let down = if i - base + 2 < width { a[i + 2] } else { a[i] };
            let expected = [
                simd.iter().sum(),
                a[base..i].iter().sum(),
                a[i ^ 1],
                a[base],
                down,
                (ballot ^ ballot >> 32) as u32,
                *simd.iter().max().unwrap(),
            ];
            let found: Vec<u32> = (0..7).map(|row| b[row * 64 + i]).collect();
            assert_eq!(found, expected, "width {width}, lane {i}");
        }
    }
}

#[test]
fn diverged_lanes_meet_again() {
    // Only even lanes take part in the first sum; loops of different length end before the last.
    let body = "uint s = 0u;
        if ((lane & 1u) == 0u) {
            s = simd_sum(1u);
        }
        for (uint i = 0u; i < lane; i++) {
            s += simd_active_threads_mask().any() ? 0u : 1u;
        }
        b[gid.x] = s + 100u * simd_sum(1u);";
    let Some(result) = run_small(body, &[0], &[0; 64], &MslLaunch::new(ONE_GROUP, [64, 1, 1])) else {
        return;
    };
    let [_, b] = result.unwrap();
    let expected: Vec<u32> = (0..64).map(|i| if i % 2 == 0 { 3216 } else { 3200 }).collect();
    assert_eq!(b, expected);
}

#[test]
fn lanes_that_wait_for_each_other_take_turns() {
    let body = "device atomic_uint* turn = (device atomic_uint*)a;
        while (atomic_load_explicit(turn, memory_order_relaxed) != 63u - gid.x) {}
        b[gid.x] = a[0];
        uint expected = 63u - gid.x;
        while (!atomic_compare_exchange_weak_explicit(turn, &expected, 64u - gid.x, memory_order_relaxed, memory_order_relaxed)) {
            expected = 63u - gid.x;
        }";
    let Some(result) = run_small(body, &[0], &[0; 64], &MslLaunch::new(ONE_GROUP, [64, 1, 1])) else {
        return;
    };
    let [a, b] = result.unwrap();
    assert_eq!(a, [64]);
    assert_eq!(b, (0..64).rev().collect::<Vec<_>>());
}

#[test]
fn mathematics_is_metals() {
    let source = "#include <metal_stdlib>
        using namespace metal;
        kernel void k(device float* out [[buffer(0)]]) {
            half third = 1.0h / 3.0h;
            out[0] = float(third);
            out[1] = float(fma(third, third, 0.5h));
            out[2] = precise::sqrt(2.0f) + fast::exp(0.0f);
            out[3] = as_type<float>(as_type<uint>(1.5f) ^ 0x80000000u);
            float4 v = float4(float2(1.0f, 2.0f), 3.0f, 4.0f) * 2.0f;
            out[4] = dot(v, float4(1.0f)) + v[2] + v.w;
            out[5] = float(bfloat(1.01f));
            out[6] = float(popcount(0xF0F0u) + clz(1u) + ctz(8u));
            out[7] = select(1.0f, 2.0f, isnan(NAN)) + clamp(7.0f, 0.0f, 1.0f) + float(clamp(-3, -2, 5));
            out[8] = float(mulhi(0x80000000u, 6u)) + float(mulhi(0x8000000000000000ul, 6ul)) + float(abs(INT_MIN) < 0);
            out[9] = rint(2.5f) + round(2.5f) + fract(-0.25f) + min(NAN, 3.0f);
            out[10] = float(extract_bits(0xABCDu, 4u, 8u)) + float(insert_bits(0u, 5u, 4u, 3u)) + float(reverse_bits(1u) >> 31);
            out[11] = all(v > 1.0f) && any(v == 8.0f) ? 1.0f : 0.0f;
        }";
    let Some(program) = compiled(source, "k") else {
        return;
    };
    let mut buffers = [vec![0; 48]];
    program.run(ONE_GROUP, [1, 1, 1], &mut buffers, 0).unwrap();
    let third = 0.333_251_95_f32;
    let expected = [
        third,
        0.610_839_84,
        2.0f32.sqrt() + 1.0,
        -1.5,
        20.0 + 6.0 + 8.0,
        1.007_812_5,
        (8 + 31 + 3) as f32,
        2.0 + 1.0 - 2.0,
        3.0 + 3.0 + 1.0,
        2.0 + 3.0 + 0.75 + 3.0,
        (0xBC + 0x50 + 1) as f32,
        1.0,
    ];
    assert_eq!(as_f32s(&buffers[0]), expected);
}

#[test]
fn what_metal_refuses_is_refused_with_its_line() {
    let check = |body: &str, expect: &str| {
        let result = MslProgram::compile(&small(body), "k");
        match result {
            ToolResult::Accepted(_) => panic!("accepted: {body}"),
            ToolResult::Rejected { log } => {
                assert!(log.contains("program.metal:4"), "{log}");
                assert!(log.contains(expect), "{log}");
            }
            ToolResult::Missing(missing) => eprintln!("ignored: {missing}"),
        }
    };
    check("a[0] = undeclared;", "undeclared");
    check("a[0] = 1u", "expected ';'");
    check("double d = 1.0;", "double");
    check("goto end;", "goto");
    check(
        "b[0] = atomic_load_explicit((device atomic_uint*)a, memory_order_seq_cst);",
        "atomic_load_explicit",
    );
    check("threadgroup uint x = 1u;", "cannot have an initializer");
    let result = MslProgram::compile(&small("b[0] = uint(simd_sum(ulong(a[0])));"), "k");
    assert!(
        result.rejection().is_none_or(|log| log.contains("up to 32 bits")),
        "{result:?}"
    );
    let result = MslProgram::compile("kernel void k(float* p [[buffer(0)]]) {}", "k");
    assert!(
        result
            .rejection()
            .is_none_or(|log| log.contains("'device' or 'constant'")),
        "{result:?}"
    );
}

#[test]
fn undefined_behaviour_is_found_where_it_happens() {
    let check = |body: &str, expect: &str| {
        let a = [0, i32::MIN as u32, 40, f32::MAX.to_bits()];
        let Some(result) = run_small(body, &a, &[7; 64], &MslLaunch::new(ONE_GROUP, [2, 1, 1])) else {
            return;
        };
        let error = result.expect_err(body);
        assert!(error.to_string().contains(expect), "{error}");
        assert!(
            matches!(error, MslRunError::Undefined { line: 4, lane: 0, .. }),
            "{error:?}"
        );
    };
    check("b[0] = 1u / a[0];", "division by zero");
    check("b[0] = uint(int(a[1]) / (int(a[0]) - 1));", "least integer by -1");
    check("b[0] = uint(int(a[1]) - 1);", "signed subtraction overflows");
    check("b[0] = uint(-int(a[1]));", "signed negation overflows");
    check("b[0] = 1u << a[2];", "shift by the type's width");
    check(
        "b[0] = uint(int(as_type<float>(a[3])));",
        "outside the integer's range",
    );
    check(
        "uint local[4] = {1, 2, 3, 4}; b[0] = local[a[2]];",
        "outside a fixed array",
    );
    check(
        "b[0] = *(device uint*)((device uchar*)a + a[2] - 39u);",
        "misaligned",
    );
}

#[test]
fn broken_launches_are_errors() {
    let check = |body: &str, a: &[u32], threads: u32, expect: &str| {
        let Some(result) = run_small(body, a, &[7; 64], &MslLaunch::new(ONE_GROUP, [threads, 1, 1])) else {
            return;
        };
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    check("b[gid.x] = 1u;", &[0], 65, "past the end of buffer 1 (256 bytes)");
    check("(a - 1)[gid.x] = 1u;", &[0], 1, "before the start of buffer 0");
    check("b[0] = 1u;", &[0], 1025, "1 to 1,024 threads");
    let lonely = "if (tid.x < 3u) { threadgroup_barrier(mem_flags::mem_none); }";
    check(
        lonely,
        &[0],
        64,
        "3 of 64 lanes wait at the barrier in line 4, the others have returned",
    );
    let apart = "if (tid.x < 3u) { threadgroup_barrier(mem_flags::mem_none); }
        else { threadgroup_barrier(mem_flags::mem_none); }";
    check(apart, &[0], 64, "at the one in line 5");
    let endless = "while (atomic_load_explicit((device atomic_uint*)a, memory_order_relaxed) == 0u) {}";
    check(endless, &[0], 1, "without end");

    let Some(program) = compiled(TREE_SUM, "tree_sum") else {
        return;
    };
    let error = program
        .run(ONE_GROUP, [1, 1, 1], &mut [vec![0; 4]], 0)
        .unwrap_err();
    assert!(
        matches!(error, MslRunError::Unbound { slot: 1, given: 1 }),
        "{error}"
    );
    let sneaky = "#include <metal_stdlib>
        kernel void k(device const uint* a [[buffer(0)]]) { *(device uint*)a = 1u; }";
    let Some(program) = compiled(sneaky, "k") else {
        return;
    };
    let error = program
        .run(ONE_GROUP, [1, 1, 1], &mut [vec![0; 4]], 0)
        .unwrap_err();
    assert_eq!(error, MslRunError::ReadOnly { slot: 0 });
}
