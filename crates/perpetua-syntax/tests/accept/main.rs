//! Functions that the reader accepts: the tree's text is the source again, survives encoding, and reads back as
//! the same tree.

#![expect(clippy::panic, reason = "a refusal of a source here is the report")]

use perpetua_syntax::{
    Function, FunctionKind, PathUsage, decode, encode, parse,
    parse::{GpuType, Read},
};

fn read_as(source: &str, kind: FunctionKind) -> Read<Function> {
    let item: syn::ItemFn = syn::parse_str(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
    parse::read_function(&item, kind, "src/kernels.rs").unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        panic!("{}\n{source}", errors.join("\n"))
    })
}

fn read(source: &str) -> Read<Function> {
    read_as(source, FunctionKind::Device)
}

/// The tree of `source` prints as `expect`, and its encoding decodes to it.
fn check(source: &str, expect: &str) {
    let tree = read(source).tree;
    assert_eq!(tree.to_string(), expect);
    assert_eq!(
        decode(&encode(&tree)).as_ref(),
        Ok(&tree),
        "decoded from its encoding:\n{source}"
    );
}

#[test]
fn plain_functions_print_as_they_are_written() {
    let functions = include_str!("plain.txt").split("\n\n").map(str::trim_end);
    assert_eq!(functions.map(|source| check(source, source)).count(), 25);
}

#[test]
fn other_spellings_print_plainly() {
    for (source, plain) in RESPELLED {
        check(source, plain);
    }
}

/// Each prints as the text beside it.
const RESPELLED: &[(&str, &str)] = &[
    (
        r#"fn f<'a, T>(x: &'a [T], r#type: u8) where T: Copy, T: Add<Output = T> + 'a { (((1))); g::<'a, T>(r#type) }"#,
        r#"fn f<T: Copy + Add < Output = T >>(x: &[T], type: u8) {
    1;
    g::<T>(type)
}"#,
    ),
    (
        r#"fn f() { let x = 1. + std::f32::consts::PI + core::f64::consts::TAU; let y = b'a' + 0xff_u8 + 0b11 + 0o17; }"#,
        r#"fn f() {
    let x = 1.0 + f32::PI + f64::TAU;
    let y = 97u8 + 255u8 + 3 + 15;
}"#,
    ),
    (
        r#"fn f(a: half::f16, b: half::bf16) { let c = half::f16::from_f32(1f32) + f16::ONE; perpetua::prelude::sync_threads(); }"#,
        r#"fn f(a: f16, b: bf16) {
    let c = f16::from_f32(1f32) + f16::ONE;
    sync_threads();
}"#,
    ),
    (
        r#"fn f(x: f32) { gpu_println!("{x} {} {x:?} {K}", 1); #[allow(unused)] let y = Pair(1, 2.0); let z = Self(3); S { x } }"#,
        r#"fn f(x: f32) {
    gpu_println!("{1} {0} {2:?} {3}", 1, x, x, K);
    let y = Pair { 0: 1, 1: 2.0 };
    let z = Self { 0: 3 };
    S { x: x }
}"#,
    ),
    (
        r#"fn f(c: bool, n: u32) -> u32 { for (_) in ((0..n)) { if c { 1 } else { 2 }; } atomic_add_explicit(&mut n, 1, Relaxed, perpetua::Scope::Device) }"#,
        r#"fn f(c: bool, n: u32) -> u32 {
    for _ in 0..n {
        if c {
            1
        } else {
            2
        };
    }
    atomic_add_explicit(&mut n, 1, Ordering::Relaxed, Scope::Device)
}"#,
    ),
];

/// Every integer literal of this function is the line on which it stands, or on which the operator stands that
/// it is the right operand of.
const LINES: &str = r#"
fn lines(
    x: &mut [u32],
) -> u32 {
    let a = f(5,
        6)
        + 7;
    if a > 8 {
        x[9] = 9;
    } else if a ==
        11 { return 11; }
    for i in 12..
        13 {
        match i {
            15 => 15,
            16 |
            17 if a < 17 => {
                atomic_add(&mut x[18], 18);
            }
            _ => gpu_println!("{}", 20),
        }
    }
    x[0x17]
        .min(24)
        .max(
            26,
        )
}
"#;

#[test]
fn assertions_are_ifs_around_a_panic() {
    check(
        r#"fn f(x: f32) { assert!(x >  0.0,); assert!(x > 1.0, "{x} is small"); debug_assert_ne!(x, 2.0); assert_eq!(x, 3.0, "at {}", 4); todo!("{x}"); unreachable!() }"#,
        r#"fn f(x: f32) {
    if !(x > 0.0) {
        panic!("assertion failed: x > 0.0");
    }
    if !(x > 1.0) {
        panic!("{0} is small", x);
    }
    if __PERPETUA_DEBUG_ASSERTIONS {
        {
            let side 1 = x;
            let side 2 = 2.0;
            if !(side 1 != side 2) {
                panic!("assertion `left != right` failed\n  left: {0:?}\n right: {1:?}", side 1, side 2);
            };
        };
    }
    {
        let side 3 = x;
        let side 4 = 3.0;
        if !(side 3 == side 4) {
            panic!("assertion `left == right` failed: at {0}\n  left: {1:?}\n right: {2:?}", 4, side 3, side 4);
        };
    }
    panic!("not yet implemented: {0}", x);
    unreachable!()
}"#,
    );
}

#[test]
fn every_node_carries_its_line() {
    let tree = read(LINES).tree;
    for tree in [&tree, &decode(&encode(&tree)).unwrap()] {
        // Expressions and patterns both print as `line: L, kind: …`, and their integers show the line they want.
        let text = format!("{:?}", tree.body);
        let mut seen = 0;
        for node in text.split("line: ").skip(1) {
            let Some((line, rest)) = node.split_once(',') else {
                continue;
            };
            let value = |prefix| Some(rest.strip_prefix(prefix)?.split_once(',')?.0);
            let int = value(" kind: Int { value: ")
                .or_else(|| value(" kind: Const(Int { negative: false, value: "));
            if let Some(int) = int {
                assert_eq!(line, int, "the integer {int}");
                seen += 1;
            }
        }
        assert_eq!(seen, 21);
        assert_eq!((tree.line, tree.params[0].line, tree.body.end_line), (2, 3, 28));
        for expected in [
            "line: 5, kind: Call",
            "line: 7, kind: Binary { op: Add",
            "line: 10, kind: Binary { op: Eq",
            "line: 23, kind: Index",
            "line: 24, kind: MethodCall",
            "line: 25, kind: MethodCall",
        ] {
            assert!(text.contains(expected), "`{expected}` in {text}");
        }
    }
}

/// The entries of the table of paths, one a line: usage, text, line, and what the macro writes.
fn paths(source: &str) -> String {
    let read = read(source);
    assert_eq!(
        read.tree.paths.len(),
        read.paths.len(),
        "each entry has its tokens"
    );
    let entries = read.tree.paths.iter().zip(&read.paths).map(|(entry, tokens)| {
        let tokens = quote::quote!(#tokens).to_string().replace(' ', "");
        format!("{:?} {} {} {tokens}", entry.usage, entry.text(), entry.line)
    });
    entries.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_not_local_becomes_a_path_once_per_usage() {
    for (source, expect) in PATHS {
        assert_eq!(paths(source), *expect, "{source}");
    }
}

const PATHS: &[(&str, &str)] = &[
    // Locals, parameters, generics and the language's own functions are none.
    (
        "fn f<const N: usize>(x: u32) { let a = x; for i in 0..N { thread_idx_x(); i; a; } match a { b => b } }",
        "",
    ),
    // A local is one from its `let` to the end of its block.
    (
        "fn f() { let a = a; { let b = a; b; } b }",
        "Value a 1 a\nValue b 1 b",
    ),
    ("fn f() { match 1 { n if n > 1 => n, _ => n } }", "Value n 1 n"),
    ("fn f() { for i in 0..i { i; } i }", "Value i 1 i"),
    // The value of a `let` is read before its name.
    ("fn f() { let x = x + 1; x }", "Value x 1 x"),
    // Each path and usage once; arguments make a path of its own.
    (
        "fn f(p: P) -> P { P { x: K }; K; g(); g(); g::<P>(); g::<4>(); P::new(K) }",
        "Type P 1 P\nStructLiteral P 1 P\nValue K 1 K\nCall g 1 g\nCall g 1 g::<P>\nCall g 1 g::<4>\nCall P::new 1 P::new",
    ),
    (
        "fn f(x: u8) {\n match x { A | m::B => {}\n C..=::D => {} _ => {} } }",
        "Pattern A 2 A\nPattern m::B 2 m::B\nPattern C 3 C\nPattern ::D 3 ::D",
    ),
    (
        "fn f(a: [f32; ROWS * 2]) { [0; ROWS]; Self::K; x as Alias; \n shared_array::<[Cell; 4]>(); }",
        "Value ROWS 1 ROWS\nValue Self::K 1 Self::K\nValue x 1 x\nType Alias 1 Alias\nType Cell 2 Cell",
    ),
    // A variant is a member of its enum.
    (
        "fn f() { Mode::Off; m::Mode::Turn(1); match 1 { Mode::Step { by } | Mode::Off => {} Mode::X => {} } }",
        "StructLiteral Mode 1 Mode\nStructLiteral m::Mode 1 m::Mode\nPattern Mode::X 1 Mode::X",
    ),
    // Capitals alone as a generic argument mean a constant; a known type parameter does not.
    (
        "fn f<TT>() { g::<WIDTH>(); g::<TT>(); g::<Rgb>(); }",
        "Value WIDTH 1 WIDTH\nCall g 1 g::<WIDTH>\nCall g 1 g::<TT>\nType Rgb 1 Rgb\nCall g 1 g::<Rgb>",
    ),
];

#[test]
fn a_position_makes_a_stencil_of_a_kernel() {
    let kind = |source| read_as(source, FunctionKind::Kernel).tree.kind;
    assert_eq!(kind("fn k(x: &mut [f32]) {}"), FunctionKind::Kernel);
    assert_eq!(
        kind("fn k(x: &mut [f32], pos: GridPos) {}"),
        FunctionKind::Stencil
    );
    assert_eq!(
        kind("fn k(x: &mut [f32], pos: perpetua::GridPos) -> () {}"),
        FunctionKind::Stencil
    );
    let device = read("fn k(pos: GridPos) -> usize { pos.idx() }").tree;
    assert_eq!(
        (device.kind, device.file.as_str()),
        (FunctionKind::Device, "src/kernels.rs")
    );
}

#[test]
fn methods_and_constants_read_as_functions_do() {
    let method: syn::ImplItemFn =
        syn::parse_quote! { pub const fn len(&self) -> f32 { (self.x * self.x).sqrt() } };
    let read = parse::read_method(&method, &syn::parse_quote!(impl Point {}), "").unwrap();
    assert_eq!(
        read.tree.to_string(),
        "fn len(&self) -> f32 {\n    (self.x * self.x).sqrt()\n}"
    );
    let item: syn::ItemConst = syn::parse_quote! { const AREA: [Real; 2] = [W * 2.0, sim::H]; };
    let read = parse::read_const(&item.ident, &item.ty, &item.expr).unwrap();
    let usages: Vec<_> = read
        .tree
        .paths
        .iter()
        .map(|path| (path.usage, path.text()))
        .collect();
    let expect = [
        (PathUsage::Type, "Real"),
        (PathUsage::Value, "W"),
        (PathUsage::Value, "sim::H"),
    ];
    assert_eq!(usages, expect.map(|(usage, text)| (usage, text.to_owned())));
    assert_eq!(read.tree.name, "AREA");
}

/// A struct as `name tuple: field type line, …`, an enum as `name repr: variant = value, …`.
fn describe(source: &str) -> syn::Result<String> {
    Ok(match parse::read_gpu_type(&syn::parse_str(source)?)? {
        GpuType::Struct(read) => {
            let fields = read.tree.fields.iter().map(|field| {
                let ty = format!("{:?}", field.ty).replace(' ', "");
                format!("{} {ty} {}", field.name, field.line)
            });
            let fields: Vec<_> = fields.collect();
            let paths: Vec<_> = read.tree.paths.iter().map(|path| path.text()).collect();
            let variants = read.tree.variants.iter();
            let variants: Vec<_> = variants.map(|(name, count)| format!(" {name} {count}")).collect();
            let (name, tuple) = (read.tree.name, read.tree.tuple);
            let (fields, paths) = (fields.join(", "), paths.join(" "));
            format!("{name} {tuple}: {fields} [{paths}]{}", variants.join(","))
        }
        GpuType::Enum(read) => {
            let variants: Vec<_> = read
                .variants
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            format!("{} {}: {}", read.name, read.repr.name(), variants.join(", "))
        }
    })
}

#[test]
fn structs_and_enums_read_with_their_layout() {
    for (source, expect) in [
        (
            "#[derive(Clone)] #[repr(C)] struct P {\n pub x: f32,\n r#type: half::bf16, }",
            "P false: x Scalar(F32) 2, type Scalar(Bf16) 3 []",
        ),
        (
            "#[repr(C)] struct P(u8, grid::Cell);",
            "P true: 0 Scalar(U8) 1, 1 Named(PathId(0)) 1 [grid::Cell]",
        ),
        (
            "#[repr(u8)] enum Mode { Off, Slow = 4, Fast }",
            "Mode u8: Off = 0, Slow = 4, Fast = 5",
        ),
        (
            "#[repr(C, i16)] enum E { A = -3, B, C = b'a' }",
            "E i16: A = -3, B = -2, C = 97",
        ),
        (
            "enum E<T> { A, B(T, (f32, u8)), C { x: grid::Cell } }",
            "E false: 0 Generic(0) 1, 1 Tuple([Scalar(F32),Scalar(U8)]) 1, x Named(PathId(0)) 1 [grid::Cell] A 0, B 2, C 1",
        ),
        (
            "#[repr(u64)] enum E { A = 0xffff_ffff_ffff_ffff }",
            "E u64: A = 18446744073709551615",
        ),
    ] {
        assert_eq!(describe(source).unwrap(), expect, "{source}");
    }
}
