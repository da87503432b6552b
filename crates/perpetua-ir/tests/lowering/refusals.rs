//! What is refused, with its line and what to write instead. Most of it rustc would refuse too; here it comes from
//! text that no compiler has seen.

use perpetua_ir::front::rust::Instantiation;

use crate::run::lowered;

/// The error of a kernel with this body.
fn check(body: &str, expected: &str) {
    check_text(
        &format!("#[kernel] fn k(x: &mut [f32], n: i32, y: &[u32]) {{ {body} }}"),
        expected,
    );
}

pub(crate) fn check_text(text: &str, expected: &str) {
    let found = lowered(text, "k", &Instantiation::default()).err();
    assert_eq!(found.as_deref(), Some(expected), "{text}");
}

#[test]
fn types_must_agree() {
    check(
        "x[0] = n;",
        "program.rs:1: mismatched types: expected `f32`, found `i32`: convert with `as f32`",
    );
    check(
        "x[n] = 1.0;",
        "program.rs:1: an index has type `i32`, not `usize`: convert with `as usize`",
    );
    check(
        "let a = 1u8 + n;",
        "program.rs:1: mismatched types: expected `u8`, found `i32`: convert with `as u8`",
    );
    check(
        "let a = if n > 0 { 1 } else { 2.0 };",
        "program.rs:1: mismatched types: expected `{integer}`, found `{float}`",
    );
    check(
        "if n { }",
        "program.rs:1: mismatched types: expected `bool`, found `i32`",
    );
    check(
        "let a: i32 = 'a: loop { break 'a ({ if n > 0 { break; } 3 }) };",
        "program.rs:1: mismatched types: expected `()`, found `{integer}`",
    );
    check(
        "let a = [1, 2].iter().map(|v| v.max(3)).sum::<i32>();",
        "program.rs:1: can't call method `max` on ambiguous numeric type `{integer}`: specify a type, as in `1_i32` or `let x: i32`",
    );
    check(
        "let a: u8 = 256;",
        "program.rs:1: the literal `256` is out of range for `u8`: use a wider type",
    );
    check(
        "let a: i8 = -129;",
        "program.rs:1: the literal `-129` is out of range for `i8`: use a wider type",
    );
    check(
        "let a = -y[0];",
        "program.rs:1: `-` does not work on `u32`: it needs a signed integer or a float",
    );
    check(
        "let a = x[0] & 1.0;",
        "program.rs:1: `&` does not work on `f32`: convert with `as`",
    );
    check(
        "let a = true as f32;",
        "program.rs:1: `bool` cannot be cast to `f32`: cast to an integer first",
    );
    check(
        "let a = n as bool;",
        "program.rs:1: `i32` cannot be cast to `bool`: compare with `!= 0`",
    );
    check(
        "let a = f32::from(n);",
        "program.rs:1: `i32` is not converted to `f32` without loss: use `as f32`",
    );
    check(
        "let a = 2.0.sqrt();",
        "program.rs:1: can't call method `sqrt` on ambiguous numeric type `{float}`: specify a type, as in `1_f32` or `let x: f32`",
    );
    check(
        "let a = (1.0f64).rotate_left(3);",
        "program.rs:1: `f64` has no method `rotate_left` in kernels: the integer types have it: convert with `as`",
    );
    check("let a = f32::HUGE;", "program.rs:1: `f32` has no constant `HUGE`");
    check(
        "let a; ",
        "program.rs:1: the type of a value is not known: annotate it: `let x: T = …`",
    );
    check(
        "let a = (1, 2).2;",
        "program.rs:1: `({integer}, {integer})` has no field `2`",
    );
    check(
        "for i in 0.0..1.0 { }",
        "program.rs:1: a range counts `f64`: ranges count integers",
    );
}

#[test]
fn places_must_be_stored_to_rightly() {
    check(
        "y[0] = 1;",
        "program.rs:1: a store through `&[u32]`, which is read-only: use `&mut`",
    );
    check(
        "let a = 1; a = 2;",
        "program.rs:1: `a` is changed but is not `mut`: declare it as `mut a`",
    );
    check(
        "n += 1;",
        "program.rs:1: `n` is changed but is not `mut`: declare it as `mut n`",
    );
    check(
        "let a = 1; let b = &mut a;",
        "program.rs:1: `a` is changed but is not `mut`: declare it as `mut a`",
    );
    check(
        "let mut a = 1u32; atomic_add(&mut a, 1);",
        "program.rs:1: `atomic_add` works on memory that only one lane sees: use a buffer parameter or a shared array",
    );
    check(
        "let b = 1.0; let mut r = &x[0]; let a = *r; r = &b;",
        "program.rs:1: which place a reference means is chosen at run time: let the references be elements of an array, and choose an index there",
    );
}

#[test]
fn matches_must_cover_everything() {
    check(
        "match n { 0 => {} 1..=5 => {} }",
        "program.rs:1: the `match` does not cover `-2147483648`: add an arm `_ => …`",
    );
    check(
        "match n > 0 { true => {} }",
        "program.rs:1: the `match` does not cover `false`: add an arm `_ => …`",
    );
    check(
        "match (n, n > 0) { (0, _) => {} (_, true) => {} (1, false) => {} }",
        "program.rs:1: the `match` does not cover `(-2147483648, false)`: add an arm `_ => …`",
    );
    check(
        "match n as u8 { 0..=254 => {} }",
        "program.rs:1: the `match` does not cover `255`: add an arm `_ => …`",
    );
    check(
        "match n as u8 { 300 => {} _ => {} }",
        "program.rs:1: the pattern's value 300 is out of range for `u8`",
    );
    check(
        "match n { a if a > 0 => {} }",
        "program.rs:1: the `match` does not cover `-2147483648`: add an arm `_ => …`",
    );
    check(
        "match x[0] { 1 => {} _ => {} }",
        "program.rs:1: mismatched types: expected `f32`, found `{integer}`",
    );
    check_text(
        "#[derive(Clone, Copy, GpuType)] #[repr(u8)] enum E { A, B, C }
         #[kernel] fn k(e: E) { match e { E::A | E::C => {} } }",
        "program.rs:2: the `match` does not cover `E::B`: add an arm `_ => …`",
    );
}

#[test]
fn names_must_lead_somewhere() {
    check("let a = WIDTH;", "program.rs:1: there is no `WIDTH` here");
    check("helper(1);", "program.rs:1: there is no function `helper` here");
    check_text(
        "fn helper() {} #[kernel] fn k() { helper(); }",
        "program.rs:1: `helper` cannot be used in a kernel: it is a function without `#[device]`: add it",
    );
    check_text(
        "#[device] impl Total for [f32] { fn total(&self) -> f32 { 1.0 } } #[kernel] fn k(x: &[f32]) { }",
        "program.rs:1: an `impl` block of a slice is outside the kernel language: implement the trait for arrays, `impl<const N: usize> Trait for [T; N]`, or write a `#[device]` function that takes the slice",
    );
    check_text(
        "struct S { a: f32 } #[kernel] fn k(s: S) { }",
        "program.rs:1: `S` cannot be used in a kernel: it lacks `#[derive(Clone, Copy, GpuType)]` and `#[repr(C)]`: add both",
    );
    check_text(
        "const A: u32 = B; const B: u32 = A; #[kernel] fn k() { let a = A; }",
        "program.rs:1: the constant `B`: `A` leads in a circle",
    );
    check_text(
        "const A: u32 = 1 / 0; #[kernel] fn k() { let a = A; }",
        "program.rs:1: the constant `A`: the constant has a fault: division_by_zero: constants are computed from constants",
    );
    check_text(
        "#[kernel] fn other() {} #[kernel] fn k() { other(); }",
        "program.rs:1: `other` is a kernel, and kernels are not called: move its code to a function with `#[device]`",
    );
    check_text(
        "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { a: f32 } #[kernel] fn k(s: S) { let b = s.norm(); }",
        "program.rs:1: `S` has no method `norm` that kernels can call: write `#[device]` before the `impl` block of `S` that has it",
    );
}

/// What a misspelt name is like: a local in scope, an item of the kind that is wanted, a function of the language.
#[test]
fn misspelt_names_are_told_with_the_nearest_one() {
    let text = |body: &str| {
        format!(
            "const LIMIT: u32 = 1; #[device] fn twice(x: u32) -> u32 {{ 2 * x }} #[derive(Clone, Copy, GpuType)] #[repr(C)] struct Pair {{ a: u32 }}
             #[kernel] fn k(values: &mut [u32], n: u32) {{ {{ let inner = 1; }} {body} }}"
        )
    };
    for (body, expect) in [
        (
            "values[0] = LIMITS;",
            "there is no `LIMITS` here: did you mean `LIMIT`?",
        ),
        (
            "values[0] = vales[1];",
            "there is no `vales` here: did you mean `values`?",
        ),
        ("values[0] = inne;", "there is no `inne` here"),
        (
            "values[0] = twise(n);",
            "there is no function `twise` here: did you mean `twice`?",
        ),
        (
            "values[global_idx()] = n;",
            "there is no function `global_idx` here: did you mean `global_id_x`?",
        ),
        ("values[0] = rand();", "there is no function `rand` here"),
        (
            "let p: Pear = values[0];",
            "there is no type `Pear` here: did you mean `Pair`?",
        ),
    ] {
        check_text(&text(body), &format!("program.rs:2: {expect}"));
    }
}

#[test]
fn what_leads_out_of_the_file_is_told_so_beside_globs() {
    let leads_out = "leads out of `program.rs`: only this file and crates with device functions are read: move the definition here, or use `#[kernel]` in its crate";
    for (uses, name, expect) in [
        ("use perpetua::prelude::*;", "WIDTH", "there is no `WIDTH` here"),
        (
            "use perpetua::prelude::*; use std::f32::consts::*;",
            "WIDTH",
            "there is no `WIDTH` here",
        ),
        (
            "mod a { pub mod b { pub const C: u32 = 1; } } use a::*; use elsewhere::*;",
            "WIDTH",
            &format!("`WIDTH` {leads_out}"),
        ),
        ("use elsewhere::WIDTH;", "WIDTH", &format!("`WIDTH` {leads_out}")),
        ("", "elsewhere::WIDTH", &format!("`elsewhere::WIDTH` {leads_out}")),
        (
            "mod a { pub const SIZE: u32 = 1; }",
            "a::WIDTH",
            "there is no `WIDTH` in `a`",
        ),
        (
            "mod a { pub const WIDHT: u32 = 1; }",
            "crate::a::WIDTH",
            "there is no `WIDTH` in `crate::a`: did you mean `WIDHT`?",
        ),
    ] {
        check_text(
            &format!("{uses} #[kernel] fn k() {{ let a = {name}; }}"),
            &format!("program.rs:1: {expect}"),
        );
    }
    let found = lowered(
        "mod a { pub mod b { pub const C: u32 = 1; } } use a::*; use b::*; #[kernel] fn k(x: &mut [u32]) { x[0] = C; }",
        "k",
        &Instantiation::default(),
    );
    assert!(found.is_ok(), "{found:?}");
}

#[test]
fn what_is_derived_is_asked_for() {
    let kernel = |attribute: &str, body: &str| {
        format!(
            "use perpetua::prelude::*; {attribute} #[derive(Clone, Copy, Default, PartialOrd, GpuType)] #[repr(C)] struct S {{ a: f32, b: [u32; 2] }}
             #[kernel] fn k(s: &mut [S], x: &mut [u32]) {{ {body} }}"
        )
    };
    let (less, default) = ("x[0] = (s[0] < s[1]) as u32;", "s[0] = S::default();");
    check_text(
        &kernel("", less),
        "program.rs:2: `<` does not work on `S` and `S`: write `#[device] impl PartialOrd<S> for S`, or `#[device]` before `#[derive(PartialOrd)]` of `S`",
    );
    check_text(
        &kernel("", default).replace("Default, ", ""),
        "program.rs:2: `S` has no function `default` that kernels can call: write `#[device]` before `impl S`, the block that has it, or before `#[derive(Default)]` of `S`",
    );
    for (attribute, body) in [("#[device]", less), ("#[device]", default), ("", default)] {
        let found = lowered(&kernel(attribute, body), "k", &Instantiation::default());
        assert!(found.is_ok(), "{found:?}");
    }
}

#[test]
fn what_is_compared_by_a_function_is_asked_for() {
    let found = |eq: &str, body: &str| {
        format!(
            "use perpetua::prelude::*; #[derive(Clone, Copy, PartialEq, PartialOrd, GpuType)] #[repr(C)] struct H {{ a: f16 }}
             #[derive(Clone, Copy, GpuType)] #[repr(i8)] enum E {{ A, B }}
             {eq} {{ fn eq(&self, o: &E) -> bool {{ true }} }} impl PartialOrd for E {{ fn lt(&self, o: &E) -> bool {{ true }} }}
             #[kernel] fn k(e: E, h: &[H], x: &mut [u32]) {{ x[0] = u32::from({body}); }}"
        )
    };
    check_text(
        &found("impl PartialEq for E", "e == E::A"),
        "program.rs:4: `eq` cannot be used in a kernel: it is a method without `#[device]`: add it",
    );
    check_text(
        &found("#[device] impl PartialEq for E", "e < E::A"),
        "program.rs:4: `lt` cannot be used in a kernel: it is a method without `#[device]`: add it",
    );
    check_text(
        &found("#[device] impl PartialEq for E", "h[0] == h[1]"),
        "program.rs:4: `H` holds a `f16`, which is compared by a function: write `#[device]` before `#[derive(PartialEq)]` of `H`, or before `impl PartialEq for H`",
    );
    let fine = lowered(
        &found("#[device] impl PartialEq for E", "e == E::A"),
        "k",
        &Instantiation::default(),
    );
    assert!(fine.is_ok(), "{fine:?}");
}

#[test]
fn calls_must_end() {
    check_text(
        "#[device] fn f(a: u32) -> u32 { if a == 0 { 0 } else { g(a - 1) } }
         #[device] fn g(a: u32) -> u32 { f(a) }
         #[kernel] fn k(x: &mut [u32]) { x[0] = f(3); }",
        "program.rs:2: `f` calls itself: there is no recursion on devices: write a loop",
    );
    check_text(
        "#[device] fn f<T: Default>() -> u32 { 1 } #[kernel] fn k(x: &mut [u32]) { x[0] = f(); }",
        "program.rs:1: the generic argument `T` of `f` cannot be inferred: write it: `f::<…>(…)`",
    );
    check_text(
        "#[device] fn f(a: u32) -> u32 { a } #[kernel] fn k(x: &mut [u32]) { x[0] = f(1, 2); }",
        "program.rs:1: `f` takes 1 arguments, 2 were given",
    );
    check_text(
        "#[kernel] fn k(p: (u32, f32)) { }",
        "program.rs:1: a tuple in the arguments of a kernel, whose layout Rust leaves open, is outside the kernel language: take arrays, such as `&[[u32; 2]]`, or a struct with `#[derive(Clone, Copy, GpuType)] #[repr(C)]`",
    );
}

#[test]
fn structs_with_usize_have_no_narrow_layout_in_buffers() {
    let text = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { n: usize } #[kernel] fn k(s: &mut [S]) { s[0].n = 1; }";
    let narrow = Instantiation {
        pointer_width: 32,
        ..Instantiation::default()
    };
    assert!(lowered(text, "k", &Instantiation::default()).is_ok());
    assert_eq!(
        lowered(text, "k", &narrow).map_err(|e| e.to_string()),
        Err("program.rs:1: the field `n` of `S` holds `usize` or `isize`, whose size differs between host and device: use u32 or u64".into())
    );
    // In a kernel's own variables, also inside others.
    let own = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { n: usize } #[derive(Clone, Copy, GpuType)] #[repr(C)] struct T { s: S, x: f32 } \
               #[kernel] fn k(x: &mut [f32]) { let t = T { s: S { n: x.len() }, x: 1.0 }; x[0] = t.s.n as f32 + t.x; }";
    for how in [Instantiation::default(), narrow] {
        assert!(lowered(own, "k", &how).is_ok());
    }
}

#[test]
fn closures_and_patterns_are_refused_by_name() {
    check(
        "let c = 3u32; let d = c(1);",
        "program.rs:1: `c` is called and is a `u32`: call a closure, or a `#[device]` function by its name",
    );
    check(
        "let f = |a: f32| a; let b = f(1.0, 2.0);",
        "program.rs:1: `f` takes 1 arguments, 2 were given",
    );
    check(
        "let mut a = 1; let f = move || a + 1; a = 5; x[0] = (f() + a) as f32;",
        "program.rs:1: a `move` closure takes a copy of `a`, which changes: without `move` the closure changes `a` itself; for a copy of its own write `let mut copy = a;` before, name `copy` in the closure, and remove `move`",
    );
    check(
        "match y { [a, b] => {} [_, .., (1..)] => {} [] => {} }",
        "program.rs:1: the `match` does not cover `[0]`: add an arm `_ => …`",
    );
    check(
        "let [a, b] = [1, 2, 3];",
        "program.rs:1: a pattern of 2 elements meets a `[{integer}; 3]`: a pattern is for all elements, or has `..`, and for 256 at most",
    );
    check(
        "let a: f32 = std::array::from_fn(|i| 1.0);",
        "program.rs:1: mismatched types: expected `f32`, found `[{float}; _]`",
    );
    check(
        "let a = std::array::from_fn(|i| 1.0f32);",
        "program.rs:1: how many elements the array has is not known: give the type: `let a: [f32; 4] = …`",
    );
    check(
        "let a = n.try_into().unwrap();",
        "program.rs:1: what `try_into` converts to is not known here: name the type: `u8::try_from(value)`",
    );
    check(
        "let a = n?;",
        "program.rs:1: `?` stands behind a `i32`: it takes an `Option` or a `Result`",
    );
    check(
        "let a = y.get(0).flatten();",
        "program.rs:1: `Option<&u32>` has no method `flatten` in kernels: use `match`, `if let` or `?`",
    );
    check(
        "let a = match y.first() { Some(3) => 1, None => 2 };",
        "program.rs:1: the `match` does not cover `Some(0)`: add an arm `_ => …`",
    );
}

#[test]
fn members_are_refused_by_their_type() {
    let types = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { a: f32 }
        #[device] trait A { fn of(self) -> f32; } #[device] trait B { fn of(self) -> f32; }
        #[device] impl A for S { fn of(self) -> f32 { 1.0 } } #[device] impl B for S { fn of(self) -> f32 { 2.0 } }";
    let check = |body: &str, expected: &str| {
        check_text(
            &format!("{types}\n#[kernel] fn k(s: S, x: &mut [f32]) {{ {body} }}"),
            expected,
        );
    };
    check(
        "x[0] = s.of();",
        "program.rs:4: `S` has `of` of both `A` and `B`: say which: `<S as A>::of`",
    );
    check(
        "let t = s + s;",
        "program.rs:4: `+` does not work on `S` and `S`: write `#[device] impl Add<S> for S`",
    );
    check(
        "let t = s[0];",
        "program.rs:4: `S` cannot be indexed: index slices and arrays, or write `#[device] impl Index<usize> for S`",
    );
    check(
        "let t = Default::default();",
        "program.rs:4: which type's `Default::default` is meant is not known here: name the type: `T::default(…)`",
    );
}

#[test]
fn iterators_that_know_no_places_are_not_asked_by_them() {
    let own = "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct Up { at: u32 }
        #[device] impl Iterator for Up { type Item = u32; fn next(&mut self) -> Option<u32> { self.at += 1; Some(self.at) } }";
    let refused = "gives one item after the other, and here they are asked for otherwise";
    for body in [
        "for v in up.into_iter().rev() { y[0] = v; }",
        "for v in (0..3).chain(up) { y[0] = v; }",
        "for v in up.into_iter().cycle() { y[0] = v; }",
        "y[0] = up.into_iter().len() as u32;",
        "let mut it = up.into_iter(); it.next(); y[0] = it.clone().take(2).sum();",
        "y[0] = u32::from((0..3).eq(up));",
        "let mut it = up.into_iter(); y[0] = it.next_back().unwrap();",
        "let mut r = 1..y[0]; for v in (&mut r).into_iter().rev() { y[0] = v + r.start; }",
    ] {
        let text = format!("{own} #[kernel] fn k(y: &mut [u32]) {{ let up = Up {{ at: 0 }}; {body} }}");
        let error = lowered(&text, "k", &Instantiation::default())
            .err()
            .unwrap_or_default();
        assert!(error.contains(refused), "{body}: {error}");
    }
}

/// Each takes the two before it: computed anew each time, the last would take longer than anybody waits.
#[test]
fn constants_are_computed_once() {
    let pairs = |n: u32| {
        let chain: String = (2..n)
            .map(|i| format!("const C{i}: u32 = C{} ^ C{}; ", i - 1, i - 2))
            .collect();
        let last = n - 1;
        format!(
            "const C0: u32 = 1; const C1: u32 = 2; {chain} #[kernel] fn k(y: &mut [u32]) {{ y[0] = C{last}; }}"
        )
    };
    let found = |text: &str| lowered(text, "k", &Instantiation::default());
    assert!(found(&pairs(40)).is_ok());
    let circle =
        "const A: u32 = B + C; const B: u32 = A + C; const C: u32 = A + B; #[kernel] fn k() { let a = A; }";
    for (text, expect) in [
        (circle, "leads in a circle"),
        (
            &pairs(300),
            "in a circle, or more than 64 definitions lead to one another: define one of them by its value",
        ),
    ] {
        let error = found(text).err().unwrap_or_default();
        assert!(error.ends_with(expect), "{error}");
    }
}
