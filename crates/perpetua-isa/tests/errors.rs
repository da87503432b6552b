//! What is wrong is said where it stands, and before anything runs.

use perpetua_isa::{Assembler, BackendType, Error, Executor, LaunchConfig, Program, lower, verify};

// Text, line, column, and a part of what is said.
const TEXTS: &[(&str, u32, usize, &str)] = &[
    ("  ad.f32 r0, r1, r2", 1, 3, "`ad.f32` is no instruction"),
    ("  add r0, r1, r2", 1, 3, "needs a type, as `add.f32`"),
    ("  cvt.f32 r0, r1", 1, 3, "needs two types"),
    ("  add.f32 r0, r1", 1, 17, "takes 3 operands"),
    ("  add.f32 r0, r1, q2", 1, 19, "`q2` is no register"),
    ("  add.f32 r256, r1, r2", 1, 11, "a register, r0 to r255"),
    (
        "  add.u8 r0, r1, 256",
        1,
        18,
        "256 does not fit u8, which holds 0 to 255",
    ),
    ("  mov.i8 r0, -129", 1, 14, "does not fit i8"),
    ("  mov.f32 r0, 1.5x", 1, 15, "is no float"),
    ("  nop\n  bra there", 2, 7, "there is no label `there`"),
    ("here: nop\nhere: nop", 2, 1, "is there already"),
    ("  call there", 1, 8, "there is no routine `there`"),
    ("  ldg.f32 r0, 7", 1, 15, "an element of a memory"),
    (".buffer x: f33", 1, 12, "a type belongs here"),
    (".buffer x f32", 1, 11, "`:` and a type"),
    (".buffer x: f32\n ldg.f32 r0, x[r1 * 2]", 2, 19, "`]`, `+` or `-`"),
    ("  ldg.f32 r0, x[r255]", 1, 15, "there is no memory `x`"),
    (".buffer r1: f32", 1, 1, "cannot be called `r1`"),
    (
        ".buffer x: f32\n.param x: f32",
        2,
        1,
        "that is the name of another",
    ),
    (" .shared s: f32[0]", 1, 2, "`s` has at least one element"),
    (".block 0", 1, 1, "a block has at least one lane"),
    (".block 8\n.block 8", 2, 1, "a second `.block`"),
    (".program a\n.program b", 2, 1, "a second `.program`"),
    (".program a-b", 1, 11, "nothing more"),
    (".param a: pred", 1, 1, "`a` has an integer or a float, not pred"),
    ("", 1, 1, "there is no program in this text"),
    (
        ".macro m\n nop\n.endmacro",
        1,
        1,
        "there is no program in this text",
    ),
    ("  mov.f32 r0, 1e999", 1, 15, "`1e999` is more than f32 holds"),
    ("  mov.f16 r0, -65520", 1, 15, "`-65520` is more than f16 holds"),
    (
        ".buffer x: f32\n ldg.f32 r0, x[r1 + r2 + r3]",
        2,
        26,
        "at most two parts",
    ),
    (".bufer x: f32", 1, 1, "`.bufer` is no directive"),
    ("@p16 nop", 1, 2, "p0 to p15"),
    (".include \"x.pasm\"", 1, 10, "cannot be included"),
    (".macro m\n nop", 1, 1, "does not end"),
    (".macro m\n m\n.endmacro\n m", 2, 2, "within each other"),
    (
        ".macro m a\n nop\n.endmacro\n m",
        4,
        2,
        "takes 1 arguments, not 0",
    ),
    (".include \"x", 1, 10, "a quote that does not end"),
    ("  nop nop", 1, 7, "nothing more"),
    (
        "l: loop.u32 r9, l",
        1,
        4,
        "`loop` has no type of its own: leave `u32` out",
    ),
    ("  add.f32.i32 r0, r1, r2", 1, 3, "`add` has one type"),
    ("  mov.f32 r0, 0f3f8", 1, 15, "8 digits for f32, not `3f8`"),
    ("  mov.f32 r0, 0f3f8000_0", 1, 15, "8 digits for f32"),
    ("  mov.u32 r0, 0f3f800000", 1, 15, "`0x3f800000` is an integer"),
    (
        ".macro m a\n nop\n.endmacro\n.macro m a\n bar\n.endmacro",
        4,
        1,
        "a second macro `m`",
    ),
    (
        ".buffer x: f32 write",
        1,
        16,
        "`write` is no access: `read` or `readwrite`",
    ),
    (".shared s: f32", 1, 15, "the length stands in brackets"),
    (
        ".shared s: f32[]",
        1,
        16,
        "the number of elements belongs here, a number",
    ),
    (
        "  select.f32 r0, 1.0, r1, r2",
        1,
        18,
        "a predicate, p0 to p15, `true` or `false` belongs",
    ),
    (".macro add a\n nop\n.endmacro", 1, 8, "`add` is an instruction"),
    (
        ".macro stg.u32 a\n nop\n.endmacro",
        1,
        8,
        "`stg.u32` is an instruction",
    ),
    (
        ".macro .param a\n nop\n.endmacro",
        1,
        8,
        "`.param` is a directive",
    ),
    (
        ".shared s: u64[18446744073709551615]",
        1,
        16,
        "the number of elements, 18446744073709551615, is more than 4294967295",
    ),
    (
        ".shared s: u64[4294967295]",
        1,
        1,
        "bytes of shared memory: 34359738360, at most 1048576 can be",
    ),
    (
        ".shared s: u64[100000]\n.shared t: u64[100000]",
        2,
        1,
        "bytes of shared memory: 1600000",
    ),
    (
        ".block 32, 33",
        1,
        1,
        "lanes of a block: 1056, at most 1024 can be",
    ),
    ("  tile_mma.f32 r0, r8, r16, 0, 2, 2", 1, 29, "a positive number"),
];

#[test]
fn texts_are_refused_at_the_place() {
    for (text, line, column, part) in TEXTS {
        let error = Assembler::new().assemble("bad.pasm", text).expect_err(text);
        assert_eq!((error.line, error.column()), (*line, *column), "{error}");
        assert!(error.message.contains(part), "`{part}` is not in:\n{error}");
    }
    let error = Assembler::new()
        .assemble("bad.pasm", "  add.f32 r0, r1, q2")
        .unwrap_err();
    let shown = "error: `q2` is no register, constant, special or parameter\n --> bad.pasm:1:19\n  |\n1 |   add.f32 r0, r1, q2\n  |                   ^^";
    assert_eq!(error.to_string(), shown);
    let error = Assembler::new()
        .assemble("bad.pasm", "  fmaa.f32 r0, r1, r2, r3")
        .unwrap_err();
    assert!(error.to_string().contains("help: did you mean `fma`?"), "{error}");
}

#[test]
fn one_too_many_is_refused_at_its_line() {
    let many = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    for (text, line, part) in [
        (
            many(16_390, &|_| " nop\n".into()),
            16_385,
            "instructions: 16385, at most 16384",
        ),
        (
            many(4100, &|i| format!(".buffer b{i}: f32\n")),
            4097,
            "memories: 4097, at most 4096",
        ),
        (
            many(4100, &|i| format!(".param b{i}: f32\n")),
            4097,
            "parameters: 4097, at most 4096",
        ),
        (
            many(4100, &|i| format!("l{i}:\n")),
            4097,
            "labels of a routine: 4097, at most 4096",
        ),
        // The program's own code is one.
        (
            many(4100, &|i| format!(".func f{i}\n")),
            4096,
            "routines: 4097, at most 4096",
        ),
    ] {
        let error = text.parse::<Program>().expect_err(part);
        assert!(error.message.contains(part) && error.line == line, "{error}");
    }
    // What no assembler has made is refused by the verifier.
    let mut program: Program = "nop\n.func f\nret\n".parse().expect("a program");
    let nop = program.routines[0].code[0].clone();
    program.routines[1].code = vec![nop; 16_384];
    let error = verify::verify(&program).expect_err("too long").to_string();
    assert!(
        error.contains("in `f`") && error.contains("instructions: 16385"),
        "{error}"
    );
}

#[test]
fn what_an_editor_puts_in_front_is_no_instruction() {
    let program: Program = "\u{feff}.program p\n nop\n".parse().expect("a program");
    assert_eq!((program.name.as_str(), program.len()), ("p", 1));
    assert!("\u{feff}\u{feff}nop".parse::<Program>().is_err());
}

#[test]
fn other_names_are_known() {
    for (word, help) in [
        ("setp.lt.u32", "PTX's `setp.lt.u32` is `setlt` here"),
        ("ld.global.f32", "PTX's `ld.global.f32` is `ldg` here"),
        ("mad.lo.s32", "PTX's `mad.lo.s32` is `mad` here"),
        ("bar.red", "PTX's `bar.red` is `bar` here"),
        ("add.s32", "PTX's types s32 and b32 are i32 and u32 here"),
        ("fma.rn.f32", "PTX's `fma.rn.f32` is `fma` here"),
        ("add.f33", "`add` is one, and behind it stands a type: i8 i16"),
        ("addd.f32", "did you mean `add`?"),
        (
            "mov.u64 r0, %gid.y ;",
            "`mad.u64 r0, %ctaid.y, %ntid.y, %tid.y` gives",
        ),
        ("mov.u32 r0, %tid ;", "there are `%tid.x`, `%tid.y` and `%tid.z`"),
        ("mov.u64 r0, %gid.x ;", "the lane's index along x is `%gid`"),
        ("GEMM", "the library's program `atlas_gemm_f32`"),
    ] {
        let text = format!("  {word} r0, r1, r2");
        let error = Assembler::new().assemble("bad.pasm", &text).expect_err(word);
        let found = error.help.as_deref().unwrap_or_default();
        assert!(found.contains(help), "{error}");
    }
}

#[test]
fn messages_are_short_whatever_the_text() {
    let long = "q".repeat(1_000_000);
    for text in [
        format!(" {long}.f32 r0"),
        format!(" add.f32 r0, r1, {long}"),
        format!(" mov.f32 r0, {}", "9".repeat(1_000_000)),
        format!(" bra {long}"),
        format!(".include \"{long}\""),
        "[".repeat(1_000_000),
        format!(".macro {long}\n.endmacro\n{long} {long}"),
        format!(".endmacro {long}"),
    ] {
        let error = Assembler::new()
            .assemble("bad.pasm", &text)
            .expect_err("no program");
        let shown = error.to_string();
        assert!(shown.len() < 2500, "{} bytes", shown.len());
    }
}

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
    ("call f\n.func f\ncall g\n.func g\ncall f", "calls itself"),
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
