//! Statements outside the language.

use super::Rows;
use perpetua_syntax::parse::Refusal as R;

/// Statements of a device function, and the rows that refuse them.
pub(crate) const BODIES: &[(&str, Rows)] = &[
    // Statements and blocks.
    (
        "§trait T {} §static S: u8 = 0; const N: usize = 4; use core::f32::consts::PI;",
        &[(R::InnerItem, "trait"), (R::InnerItem, "static")],
    ),
    (
        "§#[cfg(test)] let y = 1; #[allow(unused)] let z = 2;",
        &[(R::Attribute, "cfg")],
    ),
    ("§unsafe { n };", &[(R::UnsafeBlock, "")]),
    ("§async { 3 };", &[(R::AsyncBlock, "")]),
    ("let y = §try { 3 };", &[(R::TryBlock, "")]),
    // Expressions.
    ("let f = §async |a: f32| a + 1.0;", &[(R::AsyncBlock, "")]),
    ("(§x.f)(1.0);", &[(R::CalleeExpr, "")]),
    ("let y = §n.await;", &[(R::Await, "")]),
    ("§yield n;", &[(R::Yield, "")]),
    ("let y = (§let 1 = n);", &[(R::LetExpr, "")]),
    ("match n { v if §let 1 = v => {} _ => {} }", &[(R::LetExpr, "")]),
    ("let r = §0..; let (s, t) = (§..n, 1);", &[(R::RangeValue, ""); 2]),
    (
        "x.iter().§map(|v| v); let w = ((0..n).map(|v| v).§rev(), 1); let v = [x.§iter()];",
        &[
            (R::IteratorValue, "map"),
            (R::IteratorValue, "rev"),
            (R::IteratorValue, "iter"),
        ],
    ),
    (
        "let s = x.iter().map(|v| *v).§collect();",
        &[(R::Iterator, "collect")],
    ),
    (
        "let mut k = 0; for v in x.iter().filter(|v| true).§zip(x.iter().flat_map(|v| { k += 1; [1] })) {} for v in x.iter().filter(|v| true).§chain(x) {}",
        &[(R::IteratorOrder, "zip"), (R::IteratorOrder, "chain")],
    ),
    // The variable from before is not meant, and what is behind a `&mut` may be another one when it is looked at again.
    (
        "let v = [1, 2]; let mut v = v.into_iter(); v.next(); let w = v; let g = (§w, 1);",
        &[(R::IteratorValue, "w")],
    ),
    (
        "let mut it = x.iter_mut().filter(|row| row[0] == 0).§flatten(); it.next();",
        &[(R::IteratorValue, "flatten")],
    ),
    (
        "let mut k = 0.0; let s = x.iter().map(§move |v| { k += 1.0; *v * k }).sum::<f32>();",
        &[(R::IteratorMove, "k")],
    ),
    ("for v in §..5 {}", &[(R::OpenRange, "")]),
    ("for §(a, b) in 0..n {}", &[(R::ForPattern, "")]),
    ("let s = §\"text\";", &[(R::StringLiteral, "")]),
    ("let c = §'c';", &[(R::CharLiteral, "")]),
    (
        "let i = §340282366920938463463374607431768211456;",
        &[(R::WideLiteral, "")],
    ),
    ("let i = §1meters;", &[(R::LiteralSuffix, "meters")]),
    ("let r = §&mut (n + 1); let s = &(n + 1);", &[(R::RefOfValue, "")]),
    ("helper(&[1.0, 2.0], §&mut g());", &[(R::RefOfValue, "")]),
    ("let r = §&raw const n;", &[(R::AddressOf, "")]),
    ("let p = n as §*const u8;", &[(R::RawPointer, "")]),
    ("let p = n as §&u8;", &[(R::CastTarget, "")]),
    (
        "§n + 1 = 2; §f() += 1;",
        &[(R::NotAPlace, ""), (R::NotAPlace, "")],
    ),
    ("let y = §_;", &[(R::UnderscoreValue, "")]),
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
        "§std::mem::forget(a); §core::cmp::clamp(1, 2);",
        &[(R::StdCall, "std::mem::forget"), (R::StdCall, "core::cmp::clamp")],
    ),
    (
        "x.§to_vec(); x.§as_ptr();",
        &[(R::HeapMethod, "to_vec"), (R::HeapMethod, "as_ptr")],
    ),
    (
        "atomic_add(§x[0], 1.0); atomic_store(§&x[0], 1.0); atomic_load(§n + 1);",
        &[
            (R::AtomicPlace, "atomic_add"),
            (R::AtomicPlace, "atomic_store"),
            (R::AtomicPlace, "atomic_load"),
        ],
    ),
    ("let y = §<T as Real>::Part { x: 1.0 };", &[(R::AssocLiteral, "")]),
    ("g::<§Item = f32>(1);", &[(R::AssocArg, "")]),
    // Macros.
    (
        "§eprintln!(\"{}\", n); §std::dbg!(n);",
        &[(R::PrintMacro, "eprintln"), (R::PrintMacro, "dbg")],
    ),
    ("let v = §vec![0; 4];", &[(R::VecMacro, "vec")]),
    ("let s = §format!(\"{}\", n);", &[(R::FormatMacro, "format")]),
    ("§my_macro!(n);", &[(R::OtherMacro, "my_macro")]),
    // Patterns.
    ("match p { §Some(v, w) => v, _ => 1 }", &[(R::OtherPattern, "")]),
    ("let P(a, .., §..) = p;", &[(R::RestPattern, "")]),
    ("match n { §ref v @ 1 => v, _ => 2 }", &[(R::RefBinding, "")]),
    ("let f = |§ref v: u32| 1;", &[(R::RefBinding, "")]),
    (
        "match (1, 2, 3) { (.., 1, §..) => {} _ => {} } let [a, .., §..] = x;",
        &[(R::RestPattern, ""), (R::RestPattern, "")],
    ),
    (
        "match n { §'a' => {} §\"s\" => {} _ => {} }",
        &[(R::StringPattern, ""), (R::StringPattern, "")],
    ),
    (
        "let §5 = n; let (§1..=2, §Some(b)) = (n, n);",
        &[(R::RefutableLet, ""); 3],
    ),
    (
        "match n { §const { 3 } => {} 1..=§const { 9 } => {} _ => {} }",
        &[(R::OtherPattern, ""), (R::OtherPattern, "")],
    ),
    ("let §my_pattern!() = n;", &[(R::LetPattern, "")]),
    // Types.
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
        "let y: §Option = n; let z: §std::result::Result<u8> = n;",
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
    (
        "let y: §Wrapping<u32> = n; let z = §std::num::Wrapping(n);",
        &[(R::WrappingType, "Wrapping"), (R::WrappingType, "Wrapping")],
    ),
    (
        "let y: §PhantomData<f32> = n;",
        &[(R::PhantomType, "PhantomData")],
    ),
    ("let y = §Saturating(n);", &[(R::SaturatingType, "Saturating")]),
    (
        "let y: Option<§NonZeroU32> = n; let z = §NonZero::new(n); let w: §NonZero<u8> = z;",
        &[
            (R::NonZeroType, "NonZeroU32"),
            (R::NonZeroType, "NonZero"),
            (R::NonZeroType, "NonZero"),
        ],
    ),
    ("let y: §*mut f32 = n;", &[(R::RawPointer, "")]),
    ("let y: §fn(f32) -> f32 = n;", &[(R::FnPointer, "")]),
    // Where what was chosen is called, a branch's own names are those of others.
    (
        "let f: fn(u32) -> u32 = if n > 1 { let g = |v: u32| v * 2; §g } else { square };",
        &[(R::BranchFunction, "")],
    ),
    (
        "let f: fn(u32) -> u32 = match n { 0 => { use a::cube as g; §g } _ => square };",
        &[(R::BranchFunction, "")],
    ),
    (
        "let f: fn(u32) -> u32 = match n { 0 => { let g = 3; x[g] = 1.0; cube } _ => square };",
        &[],
    ),
    ("let y: &§dyn Real = n;", &[(R::TraitObject, "")]),
    ("let y: §impl Real = n;", &[(R::ImplTrait, "")]),
    ("let y: §[f32] = n;", &[(R::BareSlice, "")]),
    ("let y: §! = n;", &[(R::NeverType, "")]),
    ("let y: §my_type!(f32) = n;", &[(R::TypeMacro, "")]),
    ("let y: Cell<§Item = f32> = n;", &[(R::AssocArg, "")]),
    // Several at once, each where it stands.
    (
        "let f = §async { };\n    let v = §vec![1];\n\n    if §async { } { §print!() }\n",
        &[
            (R::AsyncBlock, ""),
            (R::VecMacro, "vec"),
            (R::AsyncBlock, ""),
            (R::PrintMacro, "print"),
        ],
    ),
];
