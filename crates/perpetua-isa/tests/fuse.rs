//! Fused programs leave what they leave one after the other, to the bit; and what is not fused is told with a reason.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, executors, upload};
use perpetua_device::BackendKind;
use perpetua_ir::back::Capability;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::eval::eval_cast;
use perpetua_isa::{Arguments, Error, Executor, LaunchConfig, Meaning, Program, fuse, library};

const LEN: usize = 300;

// A number of each of these a program may be.
const FLOATS: &[(&str, usize)] = &[
    ("add", 2),
    ("sub", 2),
    ("mul", 2),
    ("div", 2),
    ("max", 2),
    ("mad", 3),
    ("neg", 1),
    ("sqrt", 1),
    ("exp", 1),
    ("tanh", 1),
    ("gelu", 1),
    ("copy", 1),
    ("fill", 0),
];
const INTEGERS: &[(&str, usize)] = &[
    ("add", 2),
    ("sub", 2),
    ("mul", 2),
    ("xor", 2),
    ("min", 2),
    ("mad", 3),
    ("not", 1),
    ("copy", 1),
    ("fill", 0),
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

// A program of the library on some of the buffers.
fn step(random: &mut Random, ty: Scalar, table: &[(&str, usize)], handles: &[u64]) -> (Program, Arguments) {
    // Some are there for some types alone.
    let (name, inputs, program) = loop {
        let (name, inputs) = table[random.below(table.len())];
        if let Ok(program) = library(&format!("atlas_{name}_{ty}")) {
            break (name, inputs, program);
        }
    };
    let mut arguments = Arguments::new();
    if name == "fill" {
        let bits = number(ty, random).to_le_bytes();
        arguments = arguments.with_bytes("value", ty, bits);
    }
    let memories = ["out", "a", "b", "c"].into_iter().take(1 + inputs);
    let bound: Vec<(&str, u64)> = memories
        .map(|name| (name, handles[random.below(handles.len())]))
        .collect();
    (bind(program, &bound), arguments)
}

// The bits of a number: of floats one between -10 and 21 that all types have.
fn number(ty: Scalar, random: &mut Random) -> u64 {
    let bits = random.below(1 << 31) as u64 ^ (random.below(1 << 31) as u64) << 31;
    match (random.below(8), ty.is_float()) {
        (0, _) => 0,
        (_, false) => bits & u64::MAX >> (64 - ty.bits()),
        (_, true) => {
            let value = (random.below(124) as f32 / 4.0 - 10.0).to_bits();
            eval_cast(Scalar::F32, ty, value.into())
        }
    }
}

fn contents(executor: &Executor, handles: &[u64]) -> Vec<Vec<u8>> {
    let read = |handle: &u64| {
        let size = executor.buffer_size(*handle)?;
        executor.read_buffer::<u8>(*handle, 0, size)
    };
    handles
        .iter()
        .map(|handle| read(handle).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn sequences(executor: &Executor, ty: Scalar, table: &[(&str, usize)], seed: u64) {
    let mut random = Random(seed);
    let bytes = ty.size() as usize;
    let start: Vec<Vec<u8>> = (0..5)
        .map(|_| {
            (0..LEN)
                .flat_map(|_| number(ty, &mut random).to_le_bytes()[..bytes].to_vec())
                .collect()
        })
        .collect();
    let handles: Vec<u64> = start.iter().map(|values| upload(executor, values)).collect();
    let config = LaunchConfig::linear(LEN, 64);
    for _ in 0..6 {
        let count = 2 + random.below(6);
        let steps: Vec<(Program, Arguments)> = (0..count)
            .map(|_| step(&mut random, ty, table, &handles))
            .collect();
        let reset = || {
            for (handle, values) in handles.iter().zip(&start) {
                executor.write_buffer(*handle, 0, values).expect("a write");
            }
        };
        reset();
        for (program, arguments) in &steps {
            executor.execute(program, &config, arguments).expect("a launch");
        }
        let expected = contents(executor, &handles);
        reset();
        let parts: Vec<(&Program, &Arguments)> = steps.iter().map(|(p, a)| (p, a)).collect();
        let (fused, arguments) = executor
            .fuse(&parts, &config)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(count_of(&fused, |m| matches!(m, Meaning::Exit)) == 1, "{fused}");
        executor.execute(&fused, &config, &arguments).expect("a launch");
        assert!(contents(executor, &handles) == expected, "{fused}");
    }
    for handle in handles {
        executor.free_buffer(handle).expect("there");
    }
}

fn count_of(program: &Program, what: impl Fn(Meaning) -> bool) -> usize {
    let code = program.routines.iter().flat_map(|routine| &routine.code);
    code.filter(|instruction| what(instruction.opcode.meaning()))
        .count()
}

#[test]
fn fused_is_equal_to_one_after_the_other() {
    for executor in executors() {
        let has = |capability| executor.device().info().capabilities.contains(&capability);
        // Vulkan's drivers fuse products into sums where they see both.
        let is_exact = executor.device().backend() != BackendKind::Wgpu;
        let mut compared = 0;
        for ty in Scalar::ALL {
            let table = match ty {
                Scalar::Bool => continue,
                Scalar::I64 | Scalar::U64 if !has(Capability::Int64) => continue,
                Scalar::F64 if !has(Capability::Float64) => continue,
                _ if ty.is_int() => INTEGERS,
                _ if is_exact => FLOATS,
                _ => continue,
            };
            let seeds = if ty.bits() == 32 { 3 } else { 1 };
            for seed in 0..seeds {
                sequences(&executor, ty, table, seed + 100 * ty as u64);
            }
            compared += 1;
        }
        assert!(compared >= 6, "{compared} types");
    }
}

#[test]
fn what_is_known_is_neither_loaded_nor_stored_twice() {
    let (x, y, t, z) = (1, 2, 3, 4);
    let step =
        |name: &str, a, b, out| bind(library(name).expect("there"), &[("a", a), ("b", b), ("out", out)]);
    let steps = [
        step("atlas_mul_f32", x, y, t),
        step("atlas_add_f32", t, x, t),
        step("atlas_max_f32", t, y, z),
    ];
    let none = Arguments::new();
    let parts: Vec<(&Program, &Arguments)> = steps.iter().map(|program| (program, &none)).collect();
    let (fused, _) = fuse(&parts, &|_| Some(1)).expect("fused");
    assert_eq!(count_of(&fused, |m| matches!(m, Meaning::Load(_))), 2, "{fused}");
    assert_eq!(count_of(&fused, |m| matches!(m, Meaning::Store(_))), 2, "{fused}");
}

#[test]
fn the_lanes_number_may_be_computed() {
    // As a captured kernel has it, as PTX does, and in 32 bits.
    let captured = "\
.buffer x: f32
.buffer y: f32
    mov.u32 r0, %ctaid.x
    cvt.u64.u32 r0, r0
    mov.u32 r1, %ntid.x
    cvt.u64.u32 r1, r1
    mul.u64 r0, r0, r1
    mov.u32 r1, %tid.x
    cvt.u64.u32 r1, r1
    add.u64 r0, r0, r1
    setlt.u64 p0, r0, len(x)
@!p0 bra end
    ldg.f32 r1, x[r0]
    mul.f32 r1, r1, 2.0
    stg.f32 y[r0], r1
end:
";
    let short = "\
.buffer y: f32
.buffer z: f32
    mov.u64 r7, %gid
    setle.u64 p3, len(y), r7
@p3 exit
    ldg.f32 r0, y[r7]
    cvt.f32.u64 r1, r7
    add.f32 r0, r0, r1
    stg.f32 z[r7], r0
    exit
";
    let narrow = "\
.buffer x: f32
.buffer y: f32
    mad.u32 r9, r253, r254, r252
    setge.u32 p0, r9, len(x)
@p0 exit
    ldg.f32 r1, x[r9]
    add.f32 r1, r1, 1.0
    stg.f32 y[r9], r1
";
    let none = Arguments::new();
    let config = LaunchConfig::linear(LEN, 64);
    for texts in [
        [captured, short],
        [narrow, narrow],
        [narrow, short],
        [captured, narrow],
    ] {
        for executor in executors() {
            let values: Vec<u32> = (0..LEN).map(|i| (i as f32).to_bits()).collect();
            let handles = [0; 3].map(|_| upload(&executor, &values));
            let [x, y, z] = handles;
            let programs = texts.map(|text| {
                let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
                let all = [("x", x), ("y", y), ("z", z)];
                let has = |(name, _): &(&str, u64)| program.memory(name).is_some();
                let named: Vec<(&str, u64)> = all.into_iter().filter(has).collect();
                bind(program, &named)
            });
            for program in &programs {
                executor.execute_program(program, &config).expect("a launch");
            }
            let expected = contents(&executor, &handles);
            for handle in handles {
                executor.write_buffer(handle, 0, &values).expect("a write");
            }
            let [first, second] = &programs;
            let (fused, arguments) = executor
                .fuse(&[(first, &none), (second, &none)], &config)
                .unwrap_or_else(|error| panic!("{error}"));
            executor.execute(&fused, &config, &arguments).expect("a launch");
            assert!(contents(&executor, &handles) == expected, "{fused}");
            // Nothing is left of how the number was computed, and of the second one's end.
            let ends = count_of(&fused, |m| matches!(m, Meaning::Compare(..)));
            assert!(ends == 1 && !fused.to_string().contains("%ctaid"), "{fused}");
        }
    }
}

#[test]
fn what_is_not_fused_is_told() {
    let add = || library("atlas_add_f32").expect("there");
    let text = |text: &str| text.parse::<Program>().unwrap_or_else(|error| panic!("{error}"));
    let guard = ".buffer out: f32\n setge.u64 p0, r255, len(out)\n@p0 exit\n";
    let cases = [
        (library("dot").expect("there"), "runs straight on"),
        (library("scan").expect("there"), "blocks have another size"),
        (
            text(".buffer out: f32\n.shared s: f32[4]\n sts.f32 s[0], 1.0"),
            "memory that lanes share",
        ),
        (
            text(&format!(
                "{guard} ldg.f32 r0, out[r255 + 1]\n stg.f32 out[r255], r0"
            )),
            "`ldg.f32 r0, out[r255 + 1]`: a lane of an element-wise program",
        ),
        (
            text(&format!("{guard} grid_add.f32 out[0], 1.0")),
            "a lane of an element-wise program",
        ),
        (
            text(".buffer out: f32\n stg.f32 out[r255], 1.0"),
            "its lanes end beyond another length",
        ),
        (
            text(".buffer out: u32\n setge.u64 p0, r255, len(out)\n@p0 exit\n stg.u32 out[r255], 1"),
            "elements of another type in the same buffer",
        ),
        (
            text(&format!("{guard} mov.u64 r255, 0\n stg.f32 out[r255], 1.0")),
            "holds something at the start",
        ),
        (
            text(&format!(
                "{guard} setlt.u64 p1, r255, 5\n@p1 exit\n stg.f32 out[r255], 1.0"
            )),
            "lanes end where their number is not compared",
        ),
    ];
    let none = Arguments::new();
    for (program, part) in cases {
        let first = add();
        let error = fuse(&[(&first, &none), (&program, &none)], &|_| Some(1)).expect_err(part);
        assert!(
            matches!(error, Error::Fuse(_)) && error.to_string().contains(part),
            "{error}"
        );
    }
    // Numbers of 32 and of 64 bits are alike below 2^32 elements.
    let (wide, short) = (text(guard), text(&guard.replace("u64 p0, r255", "u32 p0, r252")));
    let own = ".buffer out: f32\n mad.u32 r0, r253, r254, r252\n setge.u32 p0, r0, len(out)\n@p0 exit\n";
    for (len, is_fused) in [
        (Some(u64::from(u32::MAX)), true),
        (Some(1 << 32), false),
        (None, false),
    ] {
        let fused = fuse(&[(&wide, &none), (&text(own), &none)], &|_| len);
        assert_eq!(fused.is_ok(), is_fused, "{len:?}");
        assert!(fuse(&[(&wide, &none), (&short, &none)], &|_| len).is_err());
    }
    // Lengths and shapes that only the executor knows.
    let executor = perpetua_isa::new_executor().expect("the CPU");
    let [a, b] = [16, 32].map(|bytes| executor.allocate_buffer(bytes).expect("memory"));
    let step = |out| bind(library("atlas_fill_f32").expect("there"), &[("out", out)]);
    let (short, long) = (step(a), step(b));
    let config = LaunchConfig::new(1, 32);
    let error = executor.fuse(&[(&short, &none), (&long, &none)], &config);
    assert!(error.expect_err("lengths").to_string().contains("another length"));
    let config = LaunchConfig::new((1, 2, 1), 32);
    let error = executor.fuse(&[(&short, &none), (&short, &none)], &config);
    assert!(
        error
            .expect_err("rows")
            .to_string()
            .contains("launch along x alone")
    );
}
