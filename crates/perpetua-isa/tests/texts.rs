//! What is wrong with a text is said where it stands.

use perpetua_isa::{Assembler, Program, verify};

// Text, line, column, and a part of what is said.
const TEXTS: &[(&str, u32, usize, &str)] = &[
    ("  ad.f32 r0, r1, r2", 1, 3, "`ad.f32` is not an instruction"),
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
    ("  mov.f32 r0, 1.5x", 1, 15, "is not a float"),
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
        "  mov.f32 r0, 0x10",
        1,
        15,
        "`0x10` is an integer's form: write 16, or all bits of f32 behind `0f`",
    ),
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

// What macros and includes make the assembler look at is bounded, also where nothing comes of it.
#[test]
fn nothing_is_read_for_ever() {
    let uses = "m\n".repeat(2000);
    let text = format!(".macro m\n{}\n.endmacro\n{uses}", "\\@".repeat(100_000));
    let begun = std::time::Instant::now();
    let error = Assembler::new()
        .assemble("bomb.pasm", &text)
        .expect_err("too much");
    assert!(
        error.to_string().len() < 2500,
        "{} bytes",
        error.to_string().len()
    );
    let empty = format!(
        ".macro m a\n;{}\n.endmacro\n{}",
        "\\a".repeat(400_000),
        "m \n".repeat(1000)
    );
    let error = Assembler::new()
        .assemble("bomb.pasm", &empty)
        .expect_err("too much");
    assert!(error.to_string().len() < 2500);
    let long = format!(
        ".macro m\n{}.endmacro\n nop",
        "; a line that nobody uses\n".repeat(700_000)
    );
    let error = Assembler::new()
        .assemble("bomb.pasm", &long)
        .expect_err("too much");
    assert!(error.message.contains("more than 200000 lines"), "{error}");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
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
