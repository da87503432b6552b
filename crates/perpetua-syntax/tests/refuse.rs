//! What the reader refuses: which row of the table, and where.
//!
//! In a source `§` stands before each place where an error must start; the errors follow in that order.

#![expect(
    clippy::panic,
    reason = "a source that does not parse is a mistake in the table"
)]

use perpetua_syntax::parse::{self, Refusal};
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
        parse::read_gpu_type(&input).err()
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

/// Statements of a device function, and the rows that refuse them.
const BODIES: &[(&str, Rows)] = &[
    // Statements and blocks.
    ("§const N: usize = 4;", &[(R::InnerItem, "const")]),
    (
        "§use core::f32::consts::PI; §fn g() {} §static S: u8 = 0;",
        &[
            (R::InnerItem, "use"),
            (R::InnerItem, "fn"),
            (R::InnerItem, "static"),
        ],
    ),
    ("let 1 = n §else { return; };", &[(R::LetElse, "")]),
    (
        "§#[cfg(test)] let y = 1; #[allow(unused)] let z = 2;",
        &[(R::Attribute, "cfg")],
    ),
    ("§unsafe { n };", &[(R::UnsafeBlock, "")]),
    ("§const { 3 };", &[(R::ConstBlock, "")]),
    ("§async { 3 };", &[(R::AsyncBlock, "")]),
    ("let y = §try { 3 };", &[(R::TryBlock, "")]),
    // Expressions.
    ("let f = §|a: f32| a + 1.0;", &[(R::Closure, "")]),
    ("(§|a: f32| a)(1.0);", &[(R::Closure, "")]),
    ("let y = §n?;", &[(R::Try, "")]),
    ("let y = §n.await;", &[(R::Await, "")]),
    ("§yield n;", &[(R::Yield, "")]),
    ("if §let 1 = n {}", &[(R::IfLet, "")]),
    (
        "if §n > 1 && let 2 = n {} else if §let 3 = n {}",
        &[(R::IfLet, ""), (R::IfLet, "")],
    ),
    ("while §let 1 = n {}", &[(R::WhileLet, "")]),
    ("let y = (§let 1 = n);", &[(R::LetExpr, "")]),
    ("match n { v if §let 1 = v => {} _ => {} }", &[(R::LetExpr, "")]),
    ("let r = §0..n;", &[(R::RangeValue, "")]),
    ("let b = (0..n).§contains(&n);", &[(R::RangeContains, "")]),
    ("let y = &§x[1..n]; ", &[(R::Slicing, "")]),
    ("let y = §x[1..n];", &[(R::Slicing, "")]),
    ("helper(&mut §x[..], 1);", &[(R::Slicing, "")]),
    (
        "let s = x.§iter().map(|v| v * 2.0).sum::<f32>();",
        &[(R::Iterator, "iter")],
    ),
    ("for v in x.§iter_mut() {}", &[(R::Iterator, "iter_mut")]),
    ("let s = (0..n).§map(|v| v).sum();", &[(R::Iterator, "map")]),
    ("for v in (0..n).§zip(0..n) {}", &[(R::Iterator, "zip")]),
    ("let w = x.§windows(2);", &[(R::Iterator, "windows")]),
    ("for v in §x {}", &[(R::ForOver, "")]),
    ("for v in §0.. {}", &[(R::OpenRange, "")]),
    ("for §(a, b) in 0..n {}", &[(R::ForPattern, "")]),
    ("let s = §\"text\";", &[(R::StringLiteral, "")]),
    ("let s = §b\"text\";", &[(R::StringLiteral, "")]),
    ("let c = §'c';", &[(R::CharLiteral, "")]),
    ("let i = §18446744073709551616;", &[(R::WideLiteral, "")]),
    (
        "let i = §1u128 + §2i128;",
        &[(R::WideInteger, "u128"), (R::WideInteger, "i128")],
    ),
    ("let i = §1meters;", &[(R::LiteralSuffix, "meters")]),
    ("let r = §&(n + 1);", &[(R::RefOfValue, "")]),
    (
        "helper(§&[1.0, 2.0], §&mut g());",
        &[(R::RefOfValue, ""), (R::RefOfValue, "")],
    ),
    ("let r = §&raw const n;", &[(R::AddressOf, "")]),
    ("let p = n as §*const u8;", &[(R::RawPointer, "")]),
    ("let p = n as §&u8;", &[(R::CastTarget, "")]),
    ("§(a, b) = (1, 2);", &[(R::Destructuring, "")]),
    (
        "§n + 1 = 2; §f() += 1;",
        &[(R::NotAPlace, ""), (R::NotAPlace, "")],
    ),
    ("§_ = n;", &[(R::UnderscoreValue, "")]),
    ("let y = §_;", &[(R::UnderscoreValue, "")]),
    ("§n(1);", &[(R::LocalCall, "n")]),
    ("(§x[0])(1);", &[(R::CalleeExpr, "")]),
    (
        "let v = §Vec::new(); let b = §Box::new(1); let s = §std::string::String::from(b);",
        &[
            (R::HeapCall, "Vec::new"),
            (R::HeapCall, "Box::new"),
            (R::HeapCall, "std::string::String::from"),
        ],
    ),
    (
        "§Some(1); §None; §Ok(2); §Option::Some(3);",
        &[
            (R::OptionCall, "Some"),
            (R::OptionCall, "None"),
            (R::OptionCall, "Ok"),
            (R::OptionCall, "Option::Some"),
        ],
    ),
    (
        "§std::mem::swap(a, b); §core::cmp::max(1, 2);",
        &[(R::StdCall, "std::mem::swap"), (R::StdCall, "core::cmp::max")],
    ),
    (
        "let s = §Shape::Circle(1.0); let t = §Shape::Box { w: 1.0 };",
        &[(R::VariantData, "Shape::Circle"), (R::VariantData, "Shape::Box")],
    ),
    (
        "x.§to_vec(); x.§as_ptr();",
        &[(R::HeapMethod, "to_vec"), (R::HeapMethod, "as_ptr")],
    ),
    (
        "x.get(n).§unwrap(); n.§checked_add(1);",
        &[(R::OptionMethod, "unwrap"), (R::OptionMethod, "checked_add")],
    ),
    (
        "atomic_add(§x[0], 1.0); atomic_store(§&x[0], 1.0); atomic_load(§n + 1);",
        &[
            (R::AtomicPlace, "atomic_add"),
            (R::AtomicPlace, "atomic_store"),
            (R::AtomicPlace, "atomic_load"),
        ],
    ),
    (
        "let y = §<f32 as Default>::default() + §<f32>::MAX;",
        &[(R::QualifiedPath, ""), (R::QualifiedPath, "")],
    ),
    ("g::<§Item = f32>(1);", &[(R::AssocArg, "")]),
    // Macros.
    (
        "§assert!(n > 1); §debug_assert_eq!(n, 2);",
        &[(R::AssertMacro, "assert"), (R::AssertMacro, "debug_assert_eq")],
    ),
    (
        "§panic!(\"no\"); let y = §todo!();",
        &[(R::PanicMacro, "panic"), (R::PanicMacro, "todo")],
    ),
    (
        "§unreachable!(\"no {}\", n);",
        &[(R::UnreachableMessage, "unreachable")],
    ),
    (
        "§println!(\"{}\", n); §std::dbg!(n);",
        &[(R::PrintMacro, "println"), (R::PrintMacro, "dbg")],
    ),
    ("let v = §vec![0; 4];", &[(R::VecMacro, "vec")]),
    ("let s = §format!(\"{}\", n);", &[(R::FormatMacro, "format")]),
    ("let b = §matches!(n, 1 | 2);", &[(R::MatchesMacro, "matches")]),
    ("§my_macro!(n);", &[(R::OtherMacro, "my_macro")]),
    // Patterns.
    ("match x { §[a, b] => {} _ => {} }", &[(R::SlicePattern, "")]),
    ("let §[a, b] = x;", &[(R::SlicePattern, "")]),
    ("match p { §P { x, .. } => {} }", &[(R::StructPattern, "")]),
    ("let §P { x, .. } = p;", &[(R::StructPattern, "")]),
    (
        "match p { §Some(v) => v, §None => 1 }",
        &[(R::TupleStructPattern, "Some"), (R::OptionCall, "None")],
    ),
    ("let §P(a) = p;", &[(R::TupleStructPattern, "P")]),
    ("match n { §&v => v }", &[(R::RefPattern, "")]),
    ("match n { §ref v => v }", &[(R::RefBinding, "")]),
    ("let §ref v = n;", &[(R::RefBinding, "")]),
    ("match n { §v @ 1..=5 => v, _ => 0 }", &[(R::AtBinding, "")]),
    (
        "match (1, 2, 3) { (1, §..) => {} _ => {} } let (a, §..) = (1, 2);",
        &[(R::RestPattern, ""), (R::RestPattern, "")],
    ),
    (
        "match 1.0 { §1.0 => {} §2f32 => {} §-3.0..=§4.0 => {} _ => {} }",
        &[(R::FloatPattern, ""); 4],
    ),
    (
        "match n { §'a' => {} §\"s\" => {} _ => {} }",
        &[(R::StringPattern, ""), (R::StringPattern, "")],
    ),
    (
        "let §5 = n; let (§1..=2, b) = (n, n);",
        &[(R::RefutableLet, ""), (R::RefutableLet, "")],
    ),
    (
        "match n { §const { 3 } => {} 1..=§const { 9 } => {} _ => {} }",
        &[(R::OtherPattern, ""), (R::OtherPattern, "")],
    ),
    ("let §my_pattern!() = n;", &[(R::LetPattern, "")]),
    // Types.
    (
        "let y: §i128 = 1; let z: §u128 = 2;",
        &[(R::WideInteger, "i128"), (R::WideInteger, "u128")],
    ),
    ("let y: §char = n;", &[(R::CharType, "char")]),
    (
        "let y: &§str = n; let z: §String = n;",
        &[(R::StrType, "str"), (R::StrType, "String")],
    ),
    (
        "let y: §Vec<f32> = n; let z: §Box<[f32]> = n;",
        &[(R::HeapType, "Vec"), (R::HeapType, "Box")],
    ),
    (
        "let y: §Option<f32> = n; let z: §std::result::Result<u8, ()> = n;",
        &[(R::OptionType, "Option"), (R::OptionType, "Result")],
    ),
    (
        "let y: §Arc<f32> = n; let z: §RefCell<f32> = n;",
        &[(R::SharedType, "Arc"), (R::SharedType, "RefCell")],
    ),
    (
        "let y: &§AtomicU32 = n; §AtomicU32::new(0);",
        &[(R::AtomicType, "AtomicU32"), (R::AtomicType, "AtomicU32")],
    ),
    ("let y: §*mut f32 = n;", &[(R::RawPointer, "")]),
    ("let y: §fn(f32) -> f32 = n;", &[(R::FnPointer, "")]),
    ("let y: &§dyn Real = n;", &[(R::TraitObject, "")]),
    ("let y: §impl Real = n;", &[(R::ImplTrait, "")]),
    ("let y: §[f32] = n;", &[(R::BareSlice, "")]),
    ("let y: §! = n;", &[(R::NeverType, "")]),
    ("let y: §my_type!(f32) = n;", &[(R::TypeMacro, "")]),
    ("let y: §<T as Real>::Part = n;", &[(R::QualifiedPath, "")]),
    ("let y: Cell<§Item = f32> = n;", &[(R::AssocArg, "")]),
    // Several at once, each where it stands.
    (
        "let f = §|a| a;\n    let v = §vec![1];\n\n    if §let 1 = n { §panic!() }\n",
        &[
            (R::Closure, ""),
            (R::VecMacro, "vec"),
            (R::IfLet, ""),
            (R::PanicMacro, "panic"),
        ],
    ),
];

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
        "fn f(§(a, b): (f32, f32), §_: u8, §ref c: u8) {}",
        Device,
        &[(R::ParamPattern, ""); 3],
    ),
    (
        "fn f<T>(x: T) where §[T]: Sized, §Vec2: Copy, §for<'a> T: Fn(&'a u8), 'static: 'static {}",
        Device,
        &[(R::WherePredicate, ""); 3],
    ),
    (
        "fn f<T: Copy + §?Sized + §for<'a> Real<'a>>(x: T) {}",
        Device,
        &[(R::Bound, ""), (R::Bound, "")],
    ),
    (
        "fn f<const C: §Mode, const X: §f32, const B: bool>() {}",
        Device,
        &[(R::ConstParamType, ""); 2],
    ),
    ("fn §f(x: &[f32]) {}", Stencil, &[(R::NoGridPos, "")]),
    ("fn f(a: GridPos, §b: GridPos) {}", Kernel, &[(R::TwoGridPos, "")]),
    (
        "fn f(x: §impl Real, y: &mut §dyn Real) -> §Option<f32> { 1 }",
        Device,
        &[
            (R::ImplTrait, ""),
            (R::TraitObject, ""),
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
        "#[repr(C)] struct S§<T> { x: f32, y: T }",
        Device,
        &[(R::GenericType, "")],
    ),
    ("§union U { x: f32, y: u32 }", Device, &[(R::UnionType, "")]),
    ("#[repr(C)] struct §S;", Device, &[(R::EmptyStruct, "")]),
    (
        "#[repr(C)] struct S { a: §&'static f32, b: §(f32, f32), c: §[(); 3], d: §Vec<f32>, e: Inner }",
        Device,
        &[
            (R::FieldType, ""),
            (R::FieldType, ""),
            (R::FieldType, ""),
            (R::HeapType, "Vec"),
        ],
    ),
    (
        "#[repr(u8)] enum E { A, §B(f32), §C { x: f32 } }",
        Device,
        &[(R::EnumData, ""), (R::EnumData, "")],
    ),
    ("enum §E { A }", Device, &[(R::NoEnumRepr, "")]),
    ("#[repr(C)] enum §E { A }", Device, &[(R::NoEnumRepr, "")]),
    ("#[repr(u32)] enum §E {}", Device, &[(R::EmptyEnum, "")]),
    (
        "#[repr(u32)] enum E { A = §1 + 2, B = §K, C = 5 }",
        Device,
        &[(R::Discriminant, ""), (R::Discriminant, "")],
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
        "let t = §workgroup_array();",
        "`workgroup_array` is called with 0 generic arguments: write `workgroup_array::<[f32; 256]>()`",
    ),
    (
        "let t = §workgroup_slice::<4>();",
        "`workgroup_slice` takes a type: write `workgroup_slice::<f32>()`",
    ),
    (
        "atomic_add_explicit(&mut x[0], 1.0, §order, Scope::Device);",
        "the order of an atomic is part of its code: write `Ordering::Relaxed`, `Acquire`, `Release`, `AcqRel` or \
         `SeqCst`",
    ),
    (
        "atomic_add_explicit(&mut x[0], 1.0, Ordering::SeqCst, §Scope::Galaxy);",
        "the scope of an atomic is part of its code: write `Scope::Workgroup`, `Device` or `System`",
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
