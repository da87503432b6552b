//! What is wrong with a program is said before anything runs, and where it stands. `texts` has what is wrong with its text.

use perpetua_isa::{Assembler, BackendType, Error, Executor, LaunchConfig, Program, lower, verify};

// Programs that read well and are wrong.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "add.f32 r0, r1, r2",
        "program:1 (`add.f32 r0, r1, r2`): r1 is read, but not every way to here has written it",
    ),
    (
        "mov.f32 r0, 1.0\nadd.i32 r1, r0, r0",
        "r0 holds f32 here, not i32",
    ),
    (
        "setlt.u32 p0, r252, 3\n@p0 mov.f32 r0, 1.0\nadd.f32 r1, r0, r0",
        "r0 is read, but not every way to here has written it: write it first, outside of guards and branches or under both a guard and its opposite",
    ),
    (
        "setlt.u32 p0, r252, 3\n@p0 mov.f32 r0, 1.0\nsetlt.u32 p0, r252, 4\n@!p0 mov.f32 r0, 2.0\nadd.f32 r1, r0, r0",
        "r0 is read, but not every way",
    ),
    (
        "setlt.u32 p0, r252, 3\n@p0 mov.f32 r0, 1.0\n@!p0 setlt.u32 p0, r252, 4\n@!p0 mov.f32 r0, 2.0\nadd.f32 r1, r0, r0",
        "r0 is read, but not every way",
    ),
    (
        "setlt.u32 p0, r252, 3\n@p0 mov.f32 r0, 1.0\n@p0 mov.i32 r0, 1\n@!p0 mov.f32 r0, 2.0\nadd.f32 r1, r0, r0",
        "r0 is read, but not every way",
    ),
    (
        "setlt.u32 p0, r252, 3\n@p0 mov.f32 r0, 1.0\nhere: @!p0 mov.f32 r0, 2.0\nadd.f32 r1, r0, r0\n@p0 bra here",
        "r0 is read, but not every way",
    ),
    (
        "setlt.u32 p0, r252, 3\nmov.f32 r0, 1.0\n@p0 mov.i32 r0, 1\nadd.f32 r1, r0, r0",
        "r0 holds different types here",
    ),
    (
        ".buffer x: f32 read\nmov.f32 r0, 1.0\nstg.f32 x[0], r0",
        "`x` is declared `read`",
    ),
    (
        ".buffer x: f32\nldg.f32 r0, x[-1]",
        "index -1 is out of bounds: elements of `x` are counted from 0",
    ),
    (
        ".shared s: f32[8]\nlds.f32 r0, s[8]",
        "index 8 is out of bounds: `s` has 8 elements",
    ),
    (".buffer x: f32\nldg.i32 r0, x[0]", "those of `x` are f32"),
    (
        "and.f32 r0, 1.0, 1.0",
        "`and` works on an integer or bool, not on f32",
    ),
    (
        "call f\n.func f\ncall g\n.func g\ncall f",
        "program:5, in `g` (`call f`): `f` calls itself through `g`: programs have no recursion",
    ),
    (
        "exit\n.func f\ncall f",
        "program:3, in `f` (`call f`): `f` calls itself: programs",
    ),
    (
        "exit\n.func a\ncall b\n.func b\n@p0 call c\n.func c\ncall d\n.func d\ncall e\n.func e\ncall f\n.func f\ncall a",
        "`a` calls itself through `b`, `c`, `d`, `e` and 1 more: programs",
    ),
    (
        "bitcast.f32.u64 r0, r255",
        "`bitcast` does not go from u64 to f32: they differ in their bits",
    ),
    (
        "mov.u32 r1, 1\ncvt.pred.u32 p0, r1",
        "`cvt` does not go from u32 to pred: a comparison makes a predicate, as `setne`",
    ),
    (
        "seteq.u32 p1, r252, 1\ncvt.f32.pred r1, p1",
        "`cvt` does not go from pred to f32: `select` takes",
    ),
    (
        ".pool h\nseteq.u32 p0, 1, 1\npool_store.pred h[r252], p0",
        "works on an integer or a float, not on",
    ),
    (
        "cvt.f32.i32 r2, 5",
        "operand 2 must be a register, special, parameter or length: `mov`",
    ),
    ("@p0 bra e\ne:", "p0 is read, but not every way"),
    ("@p3 nop\nexit", "p3 is read, but not every way"),
    ("nop\n@p4 exit", "p4 is read, but not every way"),
    (
        "here: @p5 bra there\nthere: bra here",
        "p5 is read, but not every way",
    ),
    (".param a: f32\nmov.i32 r0, a", "the parameter `a` has type f32"),
    (
        ".buffer x: f32\nmov.f32 r0, 1.0\nldg.f32 r1, x[r0]",
        "r0 holds f32 here, not an integer",
    ),
    ("mov.f32 r1, 0.0\nreduce_add.f32 r0, r250, 7", "too near to r255"),
    (
        "mov.u64 r0, 1\natom_add.u8 r1, x[0], 1\n.buffer x: u8",
        "there is no memory `x`",
    ),
    (
        ".buffer x: f32\nmov.u8 r0, 1\nldg.f32 r1, x[r0 + 256]",
        "operand 2 must be an element at an offset of 8 bits, as the index has: 256 is more",
    ),
    (
        ".buffer x: f32\nldg.f32 r1, x[%tid.x + 4294967296]",
        "an offset of 32 bits",
    ),
];

#[test]
fn programs_are_refused_before_they_run() {
    for (text, part) in PROGRAMS {
        let program: Program = match text.parse() {
            Ok(program) => program,
            Err(error) => {
                assert!(error.message.contains(part), "{error}");
                continue;
            }
        };
        let error = verify::verify(&program).expect_err(text).to_string();
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn what_no_assembler_writes_is_refused() {
    let good: Program = ".pool p\nnop".parse().unwrap();
    let refused = |change: &dyn Fn(&mut Program)| {
        let mut program = good.clone();
        change(&mut program);
        verify::verify(&program).unwrap_err().to_string()
    };
    let error = refused(&|program| program.routines[0].lines = vec![1; 3]);
    assert!(error.contains("lines of instructions: 3, at most 1"), "{error}");
    let error = refused(&|program| program.source = "x".repeat(5000));
    assert!(error.contains("bytes of the name of the file: 5000"), "{error}");
    let error = refused(&|program| program.source = "a\nerror: b".into());
    assert!(
        !error.contains('\n') && error.contains("characters that are not printed"),
        "{error}"
    );
    let error = refused(&|program| program.name = "a\nerror: b".into());
    assert!(
        !error.contains('\n') && error.contains("cannot be called"),
        "{error}"
    );
    // 32 calls within each other, and one more.
    let calls = |count: usize| {
        let nested = (1..count).map(|i| format!("ret\n.func f{i}\ncall f{}\n", i + 1));
        let text = format!(
            "call f1\n{}ret\n.func f{count}\nnop\n",
            nested.collect::<String>()
        );
        verify::verify(&text.parse::<Program>().unwrap())
    };
    assert!(calls(32).is_ok() && calls(33).is_err());
    let error = refused(&|program| program.name = "_".into());
    assert!(error.contains("cannot be called `_`"), "{error}");
    let mut bytes = good.encode();
    bytes[7] = 1;
    let error = Program::decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "byte 6: 256 is not zero, which stands here in version 1");
}

#[test]
fn hostile_sizes_are_refused() {
    // Each routine calls the next one twice: a million million instructions.
    let doubling: String = (0..40)
        .map(|i| format!(".func f{i}\ncall f{}\ncall f{}\n", i + 1, i + 1))
        .collect();
    let program: Program = format!("call f0\n{doubling}.func f40\nnop\n").parse().unwrap();
    let error = verify::verify(&program).unwrap_err().to_string();
    assert!(
        error.contains("calls within each other: 33, at most 32"),
        "{error}"
    );
    let doubling: String = (0..20)
        .map(|i| format!(".func f{i}\nbar\ncall f{}\ncall f{}\n", i + 1, i + 1))
        .collect();
    let program: Program = format!("call f0\n{doubling}.func f20\nnop\n").parse().unwrap();
    let error = verify::verify(&program).unwrap_err().to_string();
    assert!(error.contains("at most 16384"), "{error}");
    // Nothing at all, a thousand million times.
    let doubling: String = (0..30)
        .map(|i| format!(".func f{i}\ncall f{}\ncall f{}\n", i + 1, i + 1))
        .collect();
    let program: Program = format!("call f0\n{doubling}.func f30\nnop\n").parse().unwrap();
    assert!(verify::verify(&program).is_err());
    let doubling: String = (0..30)
        .rev()
        .map(|i| format!(".macro m{i}\nm{}\nm{}\n.endmacro\n", i + 1, i + 1))
        .collect();
    let error = format!(".macro m30\n.endmacro\n{doubling}m0\n")
        .parse::<Program>()
        .unwrap_err();
    assert!(error.message.contains("more than 200000 lines"), "{error}");
    // So many ways that nesting them would overflow stacks.
    let mut deep = String::new();
    for i in 0..3000 {
        deep += &format!("setlt.u32 p0, r252, {i}\n@p0 bra l{}\n", (i * 7919) % 3000);
    }
    let text: String = deep
        .lines()
        .enumerate()
        .map(|(i, line)| match i % 2 {
            0 => format!("l{}: {line}\n", i / 2),
            _ => format!("{line}\n"),
        })
        .collect();
    let program: Program = text.parse().unwrap();
    let verified = verify::verify(&program).unwrap();
    lower::lower(&verified, lower::Options::default()).unwrap();
}

#[test]
fn what_is_verified_is_lowered() {
    let texts = [
        // A preset at another type in a loop around a choice of blocks.
        "setlt.u32 p0, r252, 3\n@p0 bra two\none: mov.f32 r252, 1.0\n mov.u32 r1, 3\ntwo: mov.u32 r2, 4\n bra one",
        // Names that the lowering would take.
        ".shared reduced_f32: f32[4]\n.param left: u32\n.param next: u32\n group_add.f32 r0, 1.0\n sts.f32 reduced_f32[0], r0",
        ".buffer next: u32\n.param budget: u32\n fill.u32 next[0], budget, 3",
    ];
    for text in texts {
        let program: Program = text.parse().unwrap();
        let verified = verify::verify(&program).unwrap();
        for budget in [None, Some(1000)] {
            let options = lower::Options {
                budget,
                ..lower::Options::default()
            };
            lower::lower(&verified, options).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}

#[test]
fn kernels_rules_hold_for_programs() {
    let program: Program = "setlt.u32 p0, r252, 3\n@p0 bar".parse().unwrap();
    let error = lower::lower(&verify::verify(&program).unwrap(), lower::Options::default()).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }), "{error}");
    assert!(error.to_string().contains("barrier"), "{error}");
    // In the program's words.
    let program: Program = "seteq.u32 p0, %tid.x, 3\n@p0 bra e\ngroup_add.f32 r0, 1.0\ne:"
        .parse()
        .unwrap();
    let parted = lower::lower(&verify::verify(&program).unwrap(), lower::Options::default()).unwrap_err();
    let parted = parted.to_string();
    for part in [
        "program:2 (`@p0 bra e`), because `%tid.x` is each lane's own, at program:1 (`seteq",
        "@p0",
    ] {
        assert!(parted.contains(part), "{parted}");
    }
    assert!(
        !parted.contains("return") && !parted.contains("thread_idx"),
        "{parted}"
    );
    assert!(error.to_string().contains("program:2 (`@p0 bar`)"), "{error}");
    // `%3` is a value of the IR, `%tid.x` a special.
    let is_value = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    assert!(!error.to_string().split('%').skip(1).any(is_value), "{error}");
}

#[test]
fn long_programs_cost_time_by_their_length() {
    // Each loop begins within the one before; each of many registers changes its type on another way back; long chains of ways that meet.
    let loops: String = (0..4000)
        .map(|i| format!("l{i}: setlt.u32 p0, r252, {i}\n"))
        .collect();
    let ends: String = (0..4000).rev().map(|i| format!("@p0 bra l{i}\n")).collect();
    let types: String = (0..4000)
        .map(|i| {
            format!(
                "setlt.u32 p0, r252, {i}\n@p0 bra t{i}\nmov.f32 r{}, 1.0\nt{i}:\n",
                i % 250
            )
        })
        .collect();
    let ladder: String = (0..4000)
        .map(|i| {
            format!(
                "@p{} bra m\nm{i}: @p{} bra m{}\n",
                i % 16,
                (i + 1) % 16,
                (i * 7 + 13) % 4000
            )
        })
        .collect();
    let predicates: String = (0..16).map(|i| format!("seteq.u32 p{i}, r252, {i}\n")).collect();
    for text in [
        format!("{loops}{ends}"),
        types,
        format!("{predicates}{ladder}m: nop\n"),
    ] {
        let program: Program = text.parse().expect("a program");
        let verified = verify::verify(&program).expect("it is right");
        // Nests too deep, or not: it ends.
        let _ = lower::lower(&verified, lower::Options::default());
    }
}

#[test]
fn faults_name_the_programs_line() {
    let executor = Executor::new_with_backend(BackendType::Cpu).unwrap();
    let x = executor.allocate_buffer(16).unwrap();
    let program = Assembler::new()
        .assemble(
            "reach.pasm",
            ".buffer x: u32\n\n ldg.u32 r0, x[r255 + 2]\n stg.u32 x[r255], r0",
        )
        .unwrap();
    let program = program.with_buffer("x", x).unwrap();
    executor
        .execute_program(&program, &LaunchConfig::new(1, 3))
        .unwrap();
    let error = executor.read_buffer::<u32>(x, 0, 4).unwrap_err().to_string();
    assert!(
        error.contains("the length of `x` is 4 but the index is 4"),
        "{error}"
    );
    assert!(error.contains("reach.pasm:3"), "{error}");
}

#[test]
fn the_executor_says_what_is_missing() {
    let executor = Executor::new_with_backend(BackendType::Cpu).unwrap();
    let program: Program = ".buffer x: u32\n.param a: u32\nstg.u32 x[0], a".parse().unwrap();
    let run = |program: &Program| {
        executor
            .execute_program(program, &LaunchConfig::new(1, 1))
            .unwrap_err()
            .to_string()
    };
    assert!(run(&program).contains("`x` of program is bound to nothing"));
    let x = executor.allocate_buffer(4).unwrap();
    let program = program.with_buffer("x", x).unwrap();
    assert!(run(&program).contains("the parameter `a` of program takes u32; nothing was given"));
    executor.free_buffer(x).unwrap();
    assert!(run(&program).contains("there is no buffer with the handle"));
    assert!(executor.free_buffer(x).is_err());
    let y = executor.allocate_buffer(8).unwrap();
    assert!(
        executor
            .write_buffer(y, 4, &[1u32, 2])
            .unwrap_err()
            .to_string()
            .contains("8 bytes at byte 4 of handle")
    );
    if !cfg!(target_vendor = "apple") {
        let error = Executor::new_with_backend(BackendType::Metal)
            .err()
            .unwrap()
            .to_string();
        assert_eq!(error, "Metal backend only available on Apple platforms");
    }
    if !cfg!(feature = "cuda") {
        let error = Executor::new_with_backend(BackendType::Cuda)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with("CUDA backend requires 'cuda' feature to be enabled"),
            "{error}"
        );
    }
}
