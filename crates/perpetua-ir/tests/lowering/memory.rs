//! What only a launch shows: shared memory, atomics, subgroups, printing, faults with their lines, generic
//! kernels, types of memory. Against expected numbers.

use std::sync::Mutex;

use half::{bf16, f16};
use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
use perpetua_ir::front::rust::{ConstValue, GenericValue, GpuConst, GpuType, Instantiation};

use crate::run::{kernel, launch, lowered};

fn default() -> Instantiation {
    Instantiation::default()
}

#[test]
fn blocks_share_memory_and_meet_at_barriers() {
    let text = "
        #[device]
        fn reduce(tile: &mut [u32; 64], lane: usize) -> u32 {
            let mut n = 32;
            while n > 0 {
                sync_threads();
                if lane < n { tile[lane] += tile[lane + n]; }
                n /= 2;
            }
            sync_threads();
            tile[0]
        }
        #[kernel]
        fn sums(x: &[u32], out: &mut [u32], all: &mut [u32]) {
            let lane = local_id_x();
            let tile = shared_array::<[u32; 64]>();
            let extra = shared_slice::<u32>();
            tile[lane] = x[global_id_x()];
            extra[lane] = lane as u32;
            let sum = reduce(tile, lane);
            if lane == 0 {
                out[group_id_x()] = sum + extra[63];
                atomic_add(&mut all[0], sum);
                atomic_max(&mut all[1], sum);
            }
            let first = atomic_compare_exchange(&mut all[2], 0, 1 + block_idx_x() as u32);
            if first == 0 { atomic_store_explicit(&mut all[3], all.len() as u32, Ordering::Release, Scope::Device); }
            atomic_xor(&mut all[4], 1 << (lane % 32));
            thread_fence();
        }";
    let k = kernel(text, "sums", &default());
    let mut x: Vec<u32> = (0..128).collect();
    let (mut out, mut all) = (vec![0u32; 2], vec![0u32; 5]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut x)),
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Buffer(BufferRef::from_slice(&mut all)),
    ];
    launch(&k, [2, 1, 1], [64, 1, 1], &args).unwrap();
    assert_eq!(out, [2016 + 63, 2016 + 64 * 64 + 63]);
    assert_eq!(all[0], 127 * 64);
    assert_eq!(all[1], 2016 + 64 * 64);
    assert!(matches!(all[2], 1 | 2));
    assert_eq!(all[3], 5);
    assert_eq!(all[4], 0);
}

#[test]
fn a_shared_array_of_an_inlined_function_is_one_variable() {
    let text = "
        #[device]
        fn shared_sum(x: u32) -> u32 {
            let tile = shared_array::<[u32; 32]>();
            sync_threads();
            tile[local_id_x()] = x;
            sync_threads();
            let mut s = 0;
            for i in 0..32 { s += tile[i]; }
            s
        }
        #[kernel]
        fn twice(out: &mut [u32]) {
            let lane = local_id_x() as u32;
            out[global_id_x()] = shared_sum(lane) * 1000 + shared_sum(1);
        }";
    let k = kernel(text, "twice", &default());
    assert_eq!(k.kernel().shared.len(), 1);
    let mut out = vec![0u32; 32];
    let args = [Arg::Buffer(BufferRef::from_slice(&mut out))];
    launch(&k, [1, 1, 1], [32, 1, 1], &args).unwrap();
    assert_eq!(out, [496_032; 32]);
}

#[test]
fn subgroups_exchange_values() {
    let text = "
        #[kernel]
        fn lanes(out: &mut [u32], wide: &mut [[u32; 4]]) {
            let lane = subgroup_lane();
            let i = global_id_x() * 8;
            out[i] = subgroup_add(lane);
            out[i + 1] = subgroup_shuffle_xor(lane, 1);
            out[i + 2] = subgroup_exclusive_add(lane);
            out[i + 3] = subgroup_any(lane == 5) as u32 + subgroup_all(lane < 30) as u32 * 10;
            out[i + 4] = subgroup_broadcast(lane * 2, 7);
            out[i + 5] = subgroup_max(lane) + subgroup_size();
            out[i + 6] = subgroup_id();
            out[i + 7] = subgroup_shuffle_up(lane, 2) + subgroup_shuffle_down(lane, 1) * 100
                + subgroup_inclusive_max(lane) * 10000 + subgroup_broadcast_first(lane + 1) * 1000000;
            wide[global_id_x()] = subgroup_ballot(lane % 2 == 1);
        }";
    let k = kernel(text, "lanes", &default());
    let (mut out, mut wide) = (vec![0u32; 64 * 8], vec![[1u32; 4]; 64]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Buffer(BufferRef::from_slice(&mut wide)),
    ];
    launch(&k, [1, 1, 1], [64, 1, 1], &args).unwrap();
    for lane in 0..64u32 {
        let at = lane % 32;
        let row = &out[lane as usize * 8..][..8];
        let up = if at < 2 { at } else { at - 2 };
        let down = if at < 31 { at + 1 } else { at };
        assert_eq!(
            row,
            [
                496,
                at ^ 1,
                at * at.saturating_sub(1) / 2,
                1,
                14,
                63,
                lane / 32,
                up + down * 100 + at * 10000 + 1_000_000
            ]
        );
        assert_eq!(wide[lane as usize], [0xaaaa_aaaa, 0, 0, 0]);
    }
}

#[test]
fn lines_are_printed() {
    let text = "#[kernel]
        fn show(x: &[f32]) {
            let i = global_id_x();
            gpu_println!(\"x[{}] = {:>+7.2}, {i:?}\", i, x[i]);
        }";
    let k = kernel(text, "show", &default());
    let mut x = [1.5f32, -2.0];
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x))];
    let lines = Mutex::new(Vec::new());
    let sink =
        |p: &perpetua_cpu::interp::Printed<'_>| lines.lock().unwrap().push((p.text.to_owned(), p.line));
    let mut config = LaunchConfig::new([1, 1, 1], [2, 1, 1], &args);
    config.print = Some(&sink);
    Interpreter::new(&k).unwrap().launch(&config).unwrap();
    let lines = lines.into_inner().unwrap();
    assert_eq!(lines[0].1, 4);
    assert_eq!(lines[0].0, "x[0] =   +1.50, 0");
    assert_eq!(lines[1].0, "x[1] =   -2.00, 1");
}

/// Runs `body` in a kernel with `x: &mut [i32]` of eight elements, one lane, and gives the error's text.
fn fault(items: &str, body: &str, x: [i32; 8]) -> String {
    let text = format!("{items}\n#[kernel]\nfn k(x: &mut [i32]) {{\n{body}\n}}");
    let k = kernel(&text, "k", &default());
    let mut x = x;
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x))];
    launch(&k, [1, 1, 1], [1, 1, 1], &args).map_or_else(|e| e.to_string(), |()| format!("{x:?}"))
}

#[test]
fn faults_name_their_line() {
    let x = [0, 1, 2, 3, 4, 5, 6, 7];
    let modes = "#[derive(Clone, Copy, GpuType)] #[repr(i32)] enum Mode { A, B } #[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { m: Mode }";
    let check = |items: &str, body: &str, x: [i32; 8], expected: &str| {
        let found = fault(items, body, x);
        assert!(found.contains(expected), "{body}: {found}");
    };
    check(
        "",
        "\nx[8] = 1;",
        x,
        "the length of `x` is 8 but the index is 8 (kernel `k`, program.rs:5",
    );
    check(
        "",
        "x[0] = 1;\n\nx[1] =\n 5 / x[0 * 3 - 0 + 0].min(0);",
        x,
        "by zero: the dividend is 5 (kernel `k`, program.rs:7",
    );
    check(
        "",
        "x[0] = i32::MIN;\nx[1] = -1;\nx[2] = x[0] % x[1];",
        x,
        "with overflow: -2147483648 by -1 (kernel `k`, program.rs:6",
    );
    check(
        "",
        "for i in (0..9).step_by(x[0] as usize) { x[i] = 1; }",
        x,
        "a range in steps of zero (kernel `k`, program.rs:4",
    );
    check(
        "",
        "if x[1] == 1 { unreachable!() }\nx[0] = 1;",
        x,
        "(kernel `k`, program.rs:4",
    );
    check(
        "",
        "let a = [1, 2, 3];\nx[0] = a[x[5] as usize];",
        x,
        "the length of `a` is 3 but the index is 5",
    );
    check(
        "",
        "let mut n = 0;\nfor v in &x[x[1] as usize..9] { n += *v; }\nx[0] = n;",
        x,
        "the length of `x` is 8 but the index is 9 (kernel `k`, program.rs:5",
    );
    check(
        "const T: [i32; 2] = [4, 5];",
        "x[0] = T[x[2] as usize];",
        x,
        "the length of `T` is 2 but the index is 2",
    );
    // A fault in a function carries the function's line.
    check(
        "#[device]\nfn third(x: &[i32]) -> i32 {\n x[9] }",
        "x[0] = third(x);",
        x,
        "program.rs:3",
    );
    check(
        "#[device] fn half(a: i32, b: i32) -> i32 { a\n / b }",
        "x[1] = half(x[4], x[0]);",
        x,
        "program.rs:2",
    );
    // Enum values that do not exist.
    let text = format!(
        "{modes}\n#[kernel]\nfn k(s: &[S], x: &mut [i32]) {{\nx[0] = match s[0].m {{\nMode::A => 5,\nMode::B => 6,\n}};\nx[1] = match s[0].m {{ Mode::A => 1, _ => 2 }}; }}"
    );
    let k = kernel(&text, "k", &default());
    for (value, expected) in [(0, Some([5, 1])), (1, Some([6, 2])), (2, None), (-1, None)] {
        let (mut s, mut out) = ([value], [0i32; 2]);
        let args = [
            Arg::Buffer(BufferRef::from_slice::<i32>(&mut s)),
            Arg::Buffer(BufferRef::from_slice(&mut out)),
        ];
        let done = launch(&k, [1, 1, 1], [1, 1, 1], &args);
        match expected {
            Some(expected) => assert_eq!((done.is_ok(), out), (true, expected)),
            None => {
                let text = done.unwrap_err().to_string();
                let wanted = format!("has no variant with the value {value} (kernel `k`, program.rs:4");
                assert!(text.contains(&wanted), "{text}");
            }
        }
    }
}

#[test]
fn blocks_are_of_any_type() {
    let text = "
        #[device]
        trait Total { const WEIGHT: i32 = 1; fn total(&self) -> i32; fn twice(&self) -> i32 { self.total() * 2 } }
        #[device]
        impl Total for [i32; 3] { fn total(&self) -> i32 { self[0] + self[1] + self[2] } }
        #[device]
        impl Total for (i32, u32) { const WEIGHT: i32 = 7; fn total(&self) -> i32 { (self.0 + self.1 as i32) * Self::WEIGHT } }
        #[kernel]
        fn k(x: &mut [i32]) {
            let a = [x[0], 2, 3];
            x[1] = a.total();
            x[2] = a.twice();
            x[3] = (x[0], 5u32).twice();
        }";
    let k = kernel(text, "k", &default());
    let mut x = [1, 0, 0, 0];
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x))];
    launch(&k, [1, 1, 1], [1, 1, 1], &args).unwrap();
    assert_eq!(x, [1, 6, 12, 84]);
}

#[test]
fn generic_kernels_are_instantiated() {
    let text = "
        #[device]
        fn times<T: Copy + core::ops::Mul<Output = T>>(a: T, b: T) -> T { a * b }
        #[kernel]
        fn scale<T, const N: usize, const UP: bool>(x: &mut [T], by: T) {
            let i = global_id_x();
            if i < N { x[i] = if UP { times(x[i], by) } else { x[i] + by }; }
            let mut rest = [by; N];
            rest[i % N] = x[i];
            if rest.len() > 2 { x[i] = rest[0]; }
        }";
    let how = |ty, n: usize, up: bool| Instantiation {
        generics: vec![
            GenericValue::Type(ty),
            GenericValue::Const(n.to_const()),
            GenericValue::Const(up.to_const()),
        ],
        ..default()
    };
    let k = kernel(text, "scale", &how(f32::describe(), 2, true));
    assert_eq!(k.kernel().name, "scale_f32_2_1");
    let mut x = [1.5f32, 2.0, 3.0];
    let by = 2.0f32.to_ne_bytes();
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x)), Arg::Value(&by)];
    launch(&k, [1, 1, 1], [3, 1, 1], &args).unwrap();
    assert_eq!(x, [3.0, 4.0, 3.0]);

    let k = kernel(text, "scale", &how(u16::describe(), 3, false));
    let mut x = [1u16, 2, u16::MAX];
    let by = 2u16.to_ne_bytes();
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x)), Arg::Value(&by)];
    launch(&k, [1, 1, 1], [3, 1, 1], &args).unwrap();
    assert_eq!(x, [3, 2, 2]);

    let check = |generics: Vec<GenericValue>, expected: &str| {
        let how = Instantiation {
            generics,
            ..default()
        };
        assert_eq!(lowered(text, "scale", &how), Err(expected.into()));
    };
    check(
        vec![],
        "program.rs:5: `scale` has 3 generic parameters, 0 arguments were given: give one for each, in order",
    );
    check(
        vec![
            GenericValue::Type(f32::describe()),
            GenericValue::Type(f32::describe()),
            GenericValue::Const(true.to_const()),
        ],
        "program.rs:5: the generic parameter `N` takes a constant of type `usize`, the type `f32` was given",
    );
    check(
        vec![
            GenericValue::Type(f32::describe()),
            GenericValue::Const(ConstValue::Scalar(perpetua_syntax::Scalar::U32, 3)),
            GenericValue::Const(true.to_const()),
        ],
        "program.rs:5: the generic parameter `N` takes a constant of type `usize`, a constant of type `u32` was given",
    );
}

#[test]
fn halves_and_usizes_live_in_memory() {
    let text = "#[kernel]
        fn mix(h: &mut [f16], b: &mut [bf16], n: &mut [usize]) {
            let i = global_id_x();
            h[i] = h[i] * f16::from_f32(2.0) + f16::ONE;
            b[i] = bf16::from_f32(b[i].to_f32() * 3.0).max(bf16::ZERO);
            n[i] = n[i] * 2 + usize::MAX.count_ones() as usize + f16::from_bits(0x3c00).to_f32() as usize;
        }";
    let k = kernel(text, "mix", &default());
    let mut h = [1.5f32, -4.0].map(f16::from_f32);
    let mut b = [1.5f32, -4.0].map(bf16::from_f32);
    let mut n = [3u64, 1 << 40];
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut h)),
        Arg::Buffer(BufferRef::from_slice(&mut b)),
        Arg::Buffer(BufferRef::from_slice(&mut n)),
    ];
    launch(&k, [1, 1, 1], [2, 1, 1], &args).unwrap();
    assert_eq!(h.map(f16::to_f32), [4.0, -7.0]);
    assert_eq!(b.map(bf16::to_f32), [4.5, 0.0]);
    assert_eq!(n, [6 + 64 + 1, (1 << 41) + 65]);
}

#[test]
fn one_value_is_a_buffer_of_one_element() {
    let text = "#[kernel] fn one(total: &mut i64, start: &i32, w: &[f32; 3]) { *total += *start as i64 + w[1] as i64 + w.len() as i64; }";
    let k = kernel(text, "one", &default());
    let (mut total, mut start, mut w) = ([5i64], [-7i32], [1.0f32, 20.0, 3.0]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut total)),
        Arg::Buffer(BufferRef::from_slice(&mut start)),
        Arg::Buffer(BufferRef::from_slice(&mut w)),
    ];
    launch(&k, [1, 1, 1], [1, 1, 1], &args).unwrap();
    assert_eq!(total, [21]);
}
