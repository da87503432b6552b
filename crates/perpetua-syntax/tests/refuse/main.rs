//! What the reader refuses: which row of the table, and where.
//!
//! In a source `§` stands before each place where an error must start; the errors follow in that order.

#![expect(
    clippy::panic,
    reason = "a source that does not parse is a mistake in the table"
)]

use perpetua_syntax::parse::{self, Refusal};
mod bodies;

use bodies::BODIES;
use perpetua_syntax::{FunctionKind, MAX_NESTING};
use proc_macro2::LineColumn;

/// The source without its marks, and where they stood.
fn unmark(source: &str) -> (String, Vec<LineColumn>) {
    let mut plain = String::new();
    let mut marks = Vec::new();
    let mut at = LineColumn { line: 1, column: 0 };
    for c in source.chars() {
        match c {
            '§' => {
                marks.push(at);
                continue;
            }
            '\n' => {
                at = LineColumn {
                    line: at.line + 1,
                    column: 0,
                }
            }
            _ => at.column += 1,
        }
        plain.push(c);
    }
    (plain, marks)
}

/// The errors of reading `source`, by place.
fn errors(source: &str, kind: FunctionKind) -> Vec<(LineColumn, String)> {
    let errors = if let Ok(input) = syn::parse_str::<syn::DeriveInput>(source) {
        match input.attrs.iter().any(|attr| attr.path().is_ident("device")) {
            true => parse::derived_blocks(&input).err(),
            false => parse::read_gpu_type(&input).err(),
        }
    } else if let Ok(block) = syn::parse_str::<syn::ItemImpl>(source) {
        let mut methods = block.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(item) => Some(item),
            _ => None,
        });
        methods.find_map(|item| parse::read_method(item, &block, "").err())
    } else {
        let item: syn::ItemFn = syn::parse_str(source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        parse::read_function(&item, kind, "").err()
    };
    let mut errors: Vec<(LineColumn, String)> = errors
        .into_iter()
        .flatten()
        .map(|error| (error.span().start(), error.to_string()))
        .collect();
    errors.sort_by_key(|(at, _)| *at);
    errors
}

/// Reading each source gives exactly the errors beside it, at its marks.
fn check(cases: impl IntoIterator<Item = (String, FunctionKind, Vec<String>)>) {
    let mut wrong = String::new();
    for (source, kind, expect) in cases {
        let (plain, marks) = unmark(&source);
        assert_eq!(marks.len(), expect.len(), "a mark for each error: {source}");
        let expect: Vec<(LineColumn, String)> = marks.into_iter().zip(expect).collect();
        let found = errors(&plain, kind);
        if found != expect {
            wrong.push_str(&format!("{source}\n  found {found:#?}\n  expected {expect:#?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Rows of the table, each with the name that it is about.
type Rows = &'static [(Refusal, &'static str)];

use FunctionKind::{Device, Kernel, Stencil};
use Refusal as R;

/// Whole functions, structs and enums, and the rows that refuse them.
const ITEMS: &[(&str, FunctionKind, Rows)] = &[
    ("§async fn f() {}", Device, &[(R::AsyncFn, "")]),
    ("§unsafe fn f() {}", Device, &[(R::UnsafeFn, "")]),
    ("§extern \"C\" fn f() {}", Device, &[(R::ExternFn, "")]),
    ("fn f(x: f32, §...) {}", Device, &[(R::Variadic, "")]),
    (
        "fn f(x: &[f32]) §-> f32 { x[0] }",
        Kernel,
        &[(R::KernelReturn, "")],
    ),
    (
        "fn f(pos: GridPos) §-> (f32,) { (1.0,) }",
        Stencil,
        &[(R::KernelReturn, "")],
    ),
    ("fn f(§&self) {}", Kernel, &[(R::KernelReceiver, "")]),
    ("fn f(§self: Box<Self>) {}", Device, &[(R::ReceiverType, "")]),
    ("fn f(§self: Pin<Self>) {}", Device, &[(R::ReceiverType, "")]),
    (
        "fn f(§[a, b]: [f32; 2], §_: u8) {}",
        Kernel,
        &[(R::ParamPattern, ""); 2],
    ),
    (
        "fn f((a, b): (f32, f32), _: u8, §ref c: u8) {}",
        Device,
        &[(R::RefBinding, "")],
    ),
    (
        "fn f(§a: (f32, f32), §b: &[(u8, u8)], §c: &mut [[(u8, u8); 2]], d: &[[u8; 2]]) {}",
        Kernel,
        &[(R::TupleParam, ""); 3],
    ),
    (
        "fn f<T: Copy + §?Sized>(x: T) where [T]: Sized, Vec2: Copy, for<'a> T: Real<'a>, 'static: 'static {}",
        Device,
        &[(R::Bound, "")],
    ),
    (
        "fn f<const C: §Mode, const X: §f32, const B: bool>() {}",
        Device,
        &[(R::ConstParamType, ""); 2],
    ),
    ("fn f(§x: Option<f32>) {}", Kernel, &[(R::OptionParam, "")]),
    (
        "fn f(§x: Range<usize>, §y: RangeInclusive<u8>) {}",
        Kernel,
        &[(R::RangeType, "Range"), (R::RangeType, "RangeInclusive")],
    ),
    (
        "fn f(n: u32) -> u32 { if n == 0 { 1 } else { n * §f(n - 1) } }",
        Device,
        &[(R::Recursion, "f")],
    ),
    ("fn §f(x: &[f32]) {}", Stencil, &[(R::NoGridPos, "")]),
    (
        "fn §subgroup_lane() -> u32 { 7 }",
        Device,
        &[(R::IntrinsicName, "subgroup_lane")],
    ),
    ("fn f(a: GridPos, §b: GridPos) {}", Kernel, &[(R::TwoGridPos, "")]),
    (
        "fn f(x: impl Real, y: &mut §dyn Real, z: [§impl Real; 2]) -> §Option { 1 }",
        Device,
        &[
            (R::TraitObject, ""),
            (R::ImplTrait, ""),
            (R::OptionType, "Option"),
        ],
    ),
    (
        "fn f(§#[cfg(test)] x: f32, #[allow(unused)] y: f32) {}",
        Device,
        &[(R::Attribute, "cfg")],
    ),
    // Structs and enums.
    ("struct §S { x: f32 }", Device, &[(R::NoReprC, "")]),
    (
        "#[repr(C, §packed)] struct S(f32);",
        Device,
        &[(R::ReprOption, "packed")],
    ),
    (
        "#[repr(§align(16))] #[repr(C)] struct S(f32);",
        Device,
        &[(R::ReprOption, "align")],
    ),
    (
        "#[repr(§transparent)] struct §S(f32);",
        Device,
        &[(R::ReprOption, "transparent"), (R::NoReprC, "")],
    ),
    (
        "#[repr(u8)] enum E§<const N: usize> { A, B }",
        Device,
        &[(R::GenericType, "")],
    ),
    (
        "#[repr(C)] struct S<§'a, T: Copy + §Ord, U = §f32> where U: §Real + Clone { x: T, y: U, z: §&'a f32 }",
        Device,
        &[
            (R::TypeLifetime, ""),
            (R::TypeBound, ""),
            (R::TypeDefault, ""),
            (R::TypeBound, ""),
            (R::FieldType, ""),
        ],
    ),
    ("§union U { x: f32, y: u32 }", Device, &[(R::UnionType, "")]),
    ("#[repr(C)] struct §S<T>;", Device, &[(R::EmptyStruct, "")]),
    (
        "impl §std::ops::Deref for S { type Target = [f32]; fn deref(&self) -> &[f32] { &self.a } }",
        Device,
        &[(R::DerefTrait, "Deref")],
    ),
    (
        "impl §Sum for S { fn sum<I: Iterator<Item = S>>(iter: I) -> S { iter.fold(S::ZERO, |a, b| a + b) } }",
        Device,
        &[(R::SumTrait, "Sum")],
    ),
    (
        "impl Total for §[f32] { fn total(&self) -> f32 { self[0] } }",
        Device,
        &[(R::SliceImpl, "")],
    ),
    (
        "#[repr(C)] struct S { a: §&'static f32, b: (f32, f32), c: §[(); 3], d: §Vec<f32>, e: Inner }",
        Device,
        &[(R::FieldType, ""), (R::FieldType, ""), (R::HeapType, "Vec")],
    ),
    (
        "enum E { A, B(§Option<&'static f32>, Option<f32>, (f32, [u8; 2])), C { x: §&'static f32 } }",
        Device,
        &[(R::FieldType, ""), (R::FieldType, "")],
    ),
    ("enum §E { A }", Device, &[(R::NoEnumRepr, "")]),
    ("#[repr(C)] enum §E { A }", Device, &[(R::NoEnumRepr, "")]),
    ("#[repr(u32)] enum §E {}", Device, &[(R::EmptyEnum, "")]),
    (
        "#[repr(u32)] enum E { A = 1 + 2, B = §K + 1, D = §1 / 1, C = 5 }",
        Device,
        &[(R::Discriminant, ""), (R::Discriminant, "")],
    ),
    (
        "#[device] #[repr(C)] struct §S { x: f32 }",
        Device,
        &[(R::DeriveBehind, "S")],
    ),
];

/// A body as a function.
fn function_of(body: &str) -> String {
    format!("fn f(x: &mut [f32], n: usize) {{\n    {body}\n}}")
}

fn messages(rows: Rows) -> Vec<String> {
    rows.iter().map(|(refusal, name)| refusal.message(name)).collect()
}

#[test]
fn statements_outside_the_language_are_refused_where_they_stand() {
    check(
        BODIES
            .iter()
            .map(|(body, rows)| (function_of(body), Device, messages(rows))),
    );
}

#[test]
fn items_outside_the_language_are_refused_where_they_stand() {
    check(
        ITEMS
            .iter()
            .map(|(item, kind, rows)| ((*item).to_owned(), *kind, messages(rows))),
    );
}

#[test]
fn every_row_of_the_table_has_a_case() {
    let bodies = BODIES.iter().flat_map(|(_, rows)| *rows);
    let items = ITEMS.iter().flat_map(|(_, _, rows)| *rows);
    let seen: Vec<Refusal> = bodies.chain(items).map(|(refusal, _)| *refusal).collect();
    // Forms of a later syn, and what `deep_nesting_is_refused` tests.
    let elsewhere = [R::TooDeep, R::OtherExpr, R::OtherType];
    let missing: Vec<&Refusal> = Refusal::ALL
        .iter()
        .filter(|row| !seen.contains(row) && !elsewhere.contains(row))
        .collect();
    assert_eq!(missing, [] as [&Refusal; 0]);
}

#[test]
fn messages_name_what_and_what_instead() {
    assert_eq!(
        R::HeapType.message("Vec"),
        "the heap type `Vec` is outside the kernel language: take a slice parameter, or use an array `[T; N]`"
    );
    for row in Refusal::ALL {
        let (what, instead) = row.row();
        assert!(
            !what.is_empty() && !instead.is_empty() && !instead.ends_with('.'),
            "{row:?}"
        );
    }
}

/// Calls of the language's own functions and macros that are wrong, and the whole error.
const USES: &[(&str, &str)] = &[
    (
        "§sync_threads(1);",
        "`sync_threads` is called with 1 argument: write `sync_threads()`",
    ),
    (
        "§atomic_add(&mut x[0]);",
        "`atomic_add` is called with 1 argument: write `atomic_add(&mut x[i], value)`",
    ),
    (
        "§atomic_add_explicit(&mut x[0], 1.0, Ordering::Relaxed);",
        "`atomic_add_explicit` is called with 3 arguments: write \
         `atomic_add_explicit(&mut x[i], value, Ordering::Relaxed, Scope::Device)`",
    ),
    (
        "let t = §shared_array();",
        "`shared_array` is called with 0 generic arguments: write `shared_array::<[f32; 256]>()`",
    ),
    (
        "let t = §shared_slice::<4>();",
        "`shared_slice` takes a type: write `shared_slice::<f32>()`",
    ),
    (
        "let t = shared_slice::<f32>(); let u = §shared_slice::<u32>();",
        "the dynamic shared memory is used as `f32` and as `u32`: use one element type, and `to_bits` and `from_bits`",
    ),
    (
        "atomic_add_explicit(&mut x[0], 1.0, §order, Scope::Device);",
        "the order of an atomic is part of its code: write `Ordering::Relaxed`, `Acquire`, `Release`, `AcqRel` or \
         `SeqCst`",
    ),
    (
        "atomic_add_explicit(&mut x[0], 1.0, Ordering::SeqCst, §Scope::Galaxy);",
        "the scope of an atomic is part of its code: write `Scope::Block`, `Device` or `System`",
    ),
    (
        "§gpu_println!(n);",
        "expected string literal: write `gpu_println!(\"x = {}\", x)`",
    ),
    (
        "gpu_println!(§\"{} {}\", n);",
        "the text prints argument 1 (counted from 0), but 1 are given: add it, or remove a `{}`",
    ),
    (
        "gpu_println!(\"{}\", n, §n + 1);",
        "this argument is never printed: add a `{}` to the text, or remove it",
    ),
    (
        "gpu_println!(\"{}\", §a = n);",
        "`gpu_println!` takes no named arguments: write `{}` and the value after the text",
    ),
    (
        "gpu_println!(§\"}\");",
        "a `}` stands alone in the text: write `}}`",
    ),
    (
        "gpu_println!(§\"{\");",
        "a `{` stands alone in the text: write `{{`",
    ),
    (
        "gpu_println!(§\"{n + 1}\");",
        "`{n + 1}` names no argument: write a local's name, or `{}` and the value",
    ),
    (
        "gpu_println!(§\"{:^8b}\", n);",
        "the format `{:^8b}` is outside the kernel language: write `{}`, `{:?}`, `{:x}`, `{:X}` or `{:e}`, with \
         `<`, `>`, `+`, `#`, `0`, a width and a precision, such as `{:>+8.3}`",
    ),
    (
        "gpu_println!(§\"{:.*}\", n);",
        "the format `{:.*}` is outside the kernel language: write `{}`, `{:?}`, `{:x}`, `{:X}` or `{:e}`, with \
         `<`, `>`, `+`, `#`, `0`, a width and a precision, such as `{:>+8.3}`",
    ),
];

#[test]
fn wrong_uses_of_the_languages_own_functions_say_how_to_write_them() {
    check(
        USES.iter()
            .map(|(body, message)| (function_of(body), Device, vec![(*message).to_owned()])),
    );
}

#[test]
fn deep_nesting_is_refused() {
    // The chain of `!` and its operand.
    let deep = |levels: u32| {
        let source = format!("fn f() -> u8 {{ {}1 }}", "!".repeat(levels as usize - 1));
        errors(&source, Device)
            .into_iter()
            .map(|(_, message)| message)
            .collect::<Vec<_>>()
    };
    assert_eq!(deep(MAX_NESTING), [] as [&str; 0]);
    assert_eq!(deep(MAX_NESTING + 1), [R::TooDeep.message("")]);
    // The bound is the thread's, and is free again after an error.
    assert_eq!(deep(MAX_NESTING), [] as [&str; 0]);
}
