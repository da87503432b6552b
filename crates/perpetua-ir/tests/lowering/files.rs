//! Files that rustc does not see: conditions on items, and names that are given twice.

use perpetua_cpu::interp::{Arg, BufferRef};
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, kernels_in_files};

use crate::run::{kernel, launch, lowered};

fn check(text: &str, expect: Result<&[&str], &[(&str, &str)]>) {
    match (kernels_in_file(text, "k.rs"), expect) {
        (Ok(found), Ok(expect)) => {
            let found: Vec<&str> = found.iter().map(|kernel| &*kernel.path).collect();
            assert_eq!(found, expect, "{text}");
        }
        (Err(error), Err(expect)) => {
            let found = error.refusals.iter();
            let found: Vec<_> = found.map(|r| (&text[r.place.clone()], r.text.as_str())).collect();
            assert_eq!(found.len(), expect.len(), "{found:?}");
            for ((place, said), (at, part)) in found.iter().zip(expect) {
                assert!(place == at && said.contains(part), "{text}: {place}: {said}");
            }
        }
        (Ok(_), Err(_)) => panic!("{text} was read"),
        (Err(error), Ok(_)) => panic!("{text}: {error}"),
    }
}

const K: &str = "#[kernel] fn k(y: &mut [f32]) { y[0] = 1.0; }";

fn holds(condition: &str, expect: bool) {
    let expect: &[&str] = if expect { &["k"] } else { &[] };
    check(&format!("#[cfg({condition})] {K}"), Ok(expect));
    check(&format!("#![cfg({condition})] {K}"), Ok(expect));
    let twice = format!("#[cfg(all())] #[cfg({condition})] {K} #[cfg(not({condition}))] fn k() {{}}");
    check(&twice, Ok(expect));
    // Without its attribute it is no kernel.
    let bare = K.trim_start_matches("#[kernel]");
    check(
        &format!("#[cfg_attr({condition}, inline, kernel)] {bare}"),
        Ok(expect),
    );
}

/// What stands in a function's body has its names there, and no others.
#[test]
fn items_stand_inside_functions() {
    let body = |after: &str| {
        format!(
            "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct P {{ x: f32 }}
             #[device] impl P {{
                 fn one(self) -> f32 {{ const A: f32 = 1.0; A * self.x }}
                 fn two(self) -> f32 {{ const A: f32 = 2.0; A * self.x + OUTER }}
             }}
             const OUTER: f32 = 0.5;
             #[kernel] fn k(y: &mut [f32]) {{
                 const N: usize = 3;
                 #[device] fn inner(p: P) -> f32 {{ p.two() + self::OUTER }}
                 y[N] = inner(P {{ x: 1.0 }}) + P {{ x: 2.0 }}.one();
             }}
             #[kernel] fn other(y: &mut [f32]) {{ {after} }}"
        )
    };
    let lowered = |text: &str| -> Vec<String> {
        let kernels = kernels_in_file(text, "k.rs").unwrap();
        let all = kernels.iter().map(|kernel| {
            match perpetua_ir::front::rust::lower(&kernel.function, &kernel.how) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            }
        });
        all.collect()
    };
    assert_eq!(lowered(&body("y[0] = OUTER;")), ["", ""]);
    let [k, other] = &lowered(&body("y[N] = OUTER;"))[..] else {
        panic!("two kernels")
    };
    assert!(
        k.is_empty() && other.contains("there is no `N` here"),
        "{k} {other}"
    );
}

#[test]
fn what_does_not_hold_is_not_there() {
    let os = std::env::consts::OS;
    holds("true", true);
    holds("false", false);
    holds("test", false);
    holds("debug_assertions", true);
    holds("not(feature = \"fast\")", true);
    holds("any(feature = \"a\", feature = \"b\")", false);
    holds("any()", false);
    holds("all(unix, not(windows))", cfg!(unix));
    holds(&format!("target_os = \"{os}\""), true);
    holds("target_os = \"none\"", false);
    holds("target_pointer_width = \"64\"", usize::BITS == 64);
    check(
        &format!("#[cfg(test)] mod tests {{ {K} nonsense!(); }} mod real {{ {K} }}"),
        Ok(&["real::k"]),
    );
    check(
        "#[derive(Clone, Copy, GpuType)] #[repr(C)] struct S { #[cfg(test)] s: String, x: f32 }
         #[device] impl S { #[cfg(test)] fn f(&self) -> String { 1 } #[cfg(not(test))] fn f(&self) -> f32 { self.x } }
         #[kernel] fn k(y: &mut [f32], #[cfg(test)] s: String) { y[0] = 1.0; }",
        Ok(&["k"]),
    );
}

#[test]
fn what_nobody_knows_is_refused_where_it_stands() {
    let unknown = "nobody says here whether";
    check(&format!("#[cfg(nope)] {K}"), Err(&[("nope", unknown)]));
    check(
        &format!("#[cfg(any(unix, tokio_unstable))] {K} #[cfg_attr(loom, kernel)] fn l() {{}}"),
        Err(&[("tokio_unstable", unknown), ("loom", unknown)]),
    );
    check(
        &format!("#[cfg(target_env = \"gnu\")] {K}"),
        Err(&[("target_env", "whether `target_env = \"gnu\"` holds")]),
    );
    check(
        &format!("#[cfg(not(test, doc))] {K}"),
        Err(&[("not", "`not` takes one condition")]),
    );
}

fn doubles(text: &str, expect: &[&str]) {
    let text = format!("{text} {K}");
    let found = match kernels_in_file(&text, "k.rs") {
        Ok(_) => Vec::new(),
        Err(error) => error.refusals,
    };
    let found: Vec<String> = found
        .iter()
        .map(|r| format!("{}: {}", r.place.start, r.text))
        .collect();
    assert_eq!(found, expect, "{text}");
}

#[test]
fn a_name_that_is_given_twice_is_refused_at_both_places() {
    doubles(
        "#[device] fn d(x: f32) -> f32 { x } #[device] fn d(x: f32) -> f32 { x }",
        &[
            "49: `d` is defined here a second time: rename one",
            "13: `d` is defined here first",
        ],
    );
    doubles(
        "const A: f32 = 1.0; static A: f32 = 1.0;",
        &[
            "27: `A` is defined here a second time: rename one",
            "6: `A` is defined here first",
        ],
    );
    doubles(
        "fn k() {}",
        &[
            "23: `k` is defined here a second time: rename one",
            "3: `k` is defined here first",
        ],
    );
    doubles(
        "struct S; mod S {}",
        &[
            "14: `S` is defined here a second time: rename one",
            "7: `S` is defined here first",
        ],
    );
    doubles(
        "impl S { fn f() {} } struct S(f32); impl S { fn f() {} }",
        &[
            "48: `f` is defined here a second time: rename one",
            "12: `f` is defined here first",
        ],
    );
    doubles(
        "struct S { x: f32 } fn S() {}",
        &["23: `S` names a type here, too, and a file of kernels has one meaning for a name: rename one"],
    );
}

#[test]
fn names_apart_are_no_doubles() {
    doubles(
        "mod a { fn k() {} } mod k {} mod b { fn k() {} } mod d; fn d() {}",
        &[],
    );
    doubles(
        "const _: () = (); const _: () = (); trait T { fn f(); } impl T for S { fn f() {} } struct S; impl S { fn f() {} }",
        &[],
    );
    doubles(
        "impl S<f32> { fn f() {} } impl S<u32> { fn f() {} } struct S<T>(T);",
        &[],
    );
}

#[test]
fn a_missing_end_is_shown_where_it_belongs() {
    check(
        "#[kernel] fn k(y: &mut [f32]) {\n    let z = y[1]\n\n    y[0] = z;\n}",
        Err(&[("\n", "expected `;`")]),
    );
    let error = kernels_in_file("fn k() {\n    let z = 1\n}", "k.rs").unwrap_err();
    assert_eq!(error.to_string(), "k.rs:2: expected `;`");
}

/// What the kernels of `src/k.rs` and of its modules are called; or the first file with mistakes, their lines and their texts.
fn of_files(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let read = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        Ok(found.map(|(_, text)| (*text).to_owned()))
    };
    let all = kernels_in_files(files[0].1, files[0].0, &read).map_err(|e| e.to_string())?;
    let lowered = all.iter().map(|kernel| {
        let lowered = perpetua_ir::front::rust::lower(&kernel.function, &kernel.how);
        lowered
            .map(|_| kernel.path.clone())
            .map_err(|e| format!("{}:{}: {}", e.file, e.line, e.cause))
    });
    lowered.collect()
}

#[test]
fn modules_stand_in_files_of_their_own() {
    let root = "mod math; mod inner { pub mod deep; } #[path = \"other/far.rs\"] mod far; use math::twice;
        #[kernel] fn k(y: &mut [f32]) { y[0] = twice(y[1]) + inner::deep::ONE + far::near::three(y[2]); }";
    let math = "mod more; #[device] pub fn twice(x: f32) -> f32 { more::sum(x, x) }";
    let more = "#[device] pub fn sum(a: f32, b: f32) -> f32 { a + b }";
    let near = "#[device] pub fn three(x: f32) -> f32 {\n    x * 3.0\n}\n#[kernel] fn own(y: &mut [f32]) { y[0] = three(2.0); }";
    let files = [
        ("src/k.rs", root),
        ("src/math.rs", math),
        ("src/math/more.rs", more),
        ("src/inner/deep/mod.rs", "pub const ONE: f32 = 1.0;"),
        ("src/other/far.rs", "pub mod near;"),
        ("src/other/near.rs", near),
    ];
    assert_eq!(
        of_files(&files),
        Ok(vec!["far::near::own".to_owned(), "k".to_owned()])
    );
    // The first file may be a module itself.
    let own = [(
        "src/k.rs",
        "mod math; #[kernel] fn k(y: &mut [f32]) { y[0] = math::f(y[1]); }",
    )];
    let own = [
        own[0],
        ("src/k/math.rs", "#[device] pub fn f(x: f32) -> f32 { x }"),
    ];
    assert_eq!(of_files(&own), Ok(vec!["k".to_owned()]));
}

#[test]
fn mistakes_name_the_file_of_their_module() {
    let root = "mod math;\n#[kernel] fn k(y: &mut [f32]) { y[0] = math::f(y[1]); }";
    let with = |math| of_files(&[("k.rs", root), ("math.rs", math)]).unwrap_err();
    let refused = with("\n\n#[device] pub async fn f(x: f32) -> f32 { x }");
    assert!(refused.starts_with("math.rs:3: an `async fn`"), "{refused}");
    let unread = with("\nfn f( {");
    assert!(unread.starts_with("math.rs:2: "), "{unread}");
    let late = with("#[device]\npub fn f(x: f32) -> f32 {\n    x.nothing()\n}");
    assert!(late.starts_with("math.rs:3: "), "{late}");
    let missing = of_files(&[("k.rs", root)]).unwrap_err();
    assert!(
        missing.contains("`math::f` leads into `math`: its module is in another file, which was not found"),
        "{missing}"
    );
}

/// Where absolute paths begin.
const ROOT: &str = if cfg!(windows) { "C:/" } else { "/" };

#[test]
fn modules_end() {
    let check = |files: &[(&str, &str)], expect: &str| {
        let found = of_files(files).unwrap_err();
        assert!(found.contains(expect), "{found:.300}");
    };
    let twice = "#[path = \"k.rs\"] mod a; #[path = \"k.rs\"] mod b;";
    check(
        &[("k.rs", twice)],
        "k.rs:1: the file of the module `a` is within itself",
    );
    let about = "#[path = \"x/../k.rs\"] mod a;";
    check(&[("k.rs", about), ("x/../k.rs", about)], "is within itself");
    // No file is within itself, and each is read twice as often as the one before it.
    let chain = |count: usize, of: &dyn Fn(usize) -> String| -> Vec<(String, String)> {
        (0..count).map(|n| (format!("m{n}.rs"), of(n))).collect()
    };
    let check_chain = |files: &[(String, String)], expect: &str| {
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        check(&files, expect);
    };
    let doubling = |n: usize| format!("#[path = \"m{0}.rs\"] mod a; #[path = \"m{0}.rs\"] mod b;", n + 1);
    check_chain(
        &chain(30, &doubling),
        "more than 1024 files of modules are not read",
    );
    // What nests as deeply as one file may, again in every file.
    let deep = |n: usize| {
        let depth = if n == 0 { 1300 } else { 10 };
        let value = "(".repeat(3000) + "1.0" + &")".repeat(3000);
        let open = "mod m { ".repeat(depth);
        let path = format!("{ROOT}m{}.rs", n + 1);
        let next = if n < 5 {
            format!("#[path = \"{path}\"] mod next;")
        } else {
            String::new()
        };
        format!("{open} {next} {} const C: f32 = {value};", "}".repeat(depth))
    };
    let files: Vec<(String, String)> = chain(6, &deep)
        .into_iter()
        .map(|(name, text)| (format!("{ROOT}{name}"), text))
        .collect();
    check_chain(&files, "m1.rs:1: this nests too deeply");
}

#[test]
fn modules_are_looked_for_where_rustc_does() {
    let text = "pub const ONE: f32 = 1.0;";
    let check = |root: &str, file: &str, name: &str| {
        let root = format!("{root} #[kernel] fn k(y: &mut [f32]) {{ y[0] = {name}::ONE; }}");
        assert_eq!(
            of_files(&[("src/k.rs", &root), (file, text)]),
            Ok(vec!["k".to_owned()]),
            "{file}"
        );
    };
    let deep = "mod inner { pub mod deep; }";
    check(deep, "src/inner/deep.rs", "inner::deep");
    check(deep, "src/k/inner/deep.rs", "inner::deep");
    let written = "mod inner { #[path = \"far.rs\"] pub mod deep; }";
    check(written, "src/inner/far.rs", "inner::deep");
    check(written, "src/k/inner/far.rs", "inner::deep");
    let renamed = "#[path = \"other\"] mod inner { pub mod deep; }";
    check(renamed, "src/other/deep.rs", "inner::deep");
    let absolute = format!("{ROOT}far.rs");
    check(&format!("#[path = \"{absolute}\"] mod far;"), &absolute, "far");
}

#[test]
fn a_module_that_cannot_be_read_is_told() {
    let read = |path: &str| Err(format!("{path}: permission denied"));
    let error = kernels_in_files("\nmod math;", "k.rs", &read).unwrap_err();
    assert_eq!(error.to_string(), "k.rs:2: math.rs: permission denied");
}

#[test]
fn functions_have_items_of_their_own() {
    let text = "const N: usize = 2;
        #[device] fn f(x: f32) -> f32 { const N: usize = 4; let a = [x; N]; a[N - 1] + outer() }
        #[device] fn outer() -> f32 { N as f32 }
        #[kernel] fn k(y: &mut [f32]) {
            const M: usize = 3;
            #[device] fn g() -> f32 { 1.0 }
            let a = [f(2.0); M];
            y[0] = a[M - 1] + g();
        }";
    assert_eq!(of_files(&[("k.rs", text)]), Ok(vec!["k".to_owned()]));
}

#[test]
fn constants_are_what_device_functions_give() {
    let text = "
        mod shapes {
            #[derive(Clone, Copy, GpuType)] #[repr(C)] pub struct Pair { pub a: f32, pub b: f32 }
        }
        use shapes::Pair;
        #[device] impl Pair { const fn both(v: f32) -> Pair { Pair { a: v, b: v + 1.0 } } }
        #[device] impl shapes::Pair { const fn sum(self) -> f32 { self.a + self.b } }
        #[device] const fn squares(n: usize) -> [u32; 4] {
            let mut all = [0; 4];
            let mut i = 0;
            while i < n { all[i] = (i * i) as u32; i += 1; }
            all
        }
        const SQUARES: [u32; 4] = squares(4);
        const NINE: u32 = SQUARES[3];
        const PAIR: Pair = Pair::both(2.0);
        fn host() -> f32 { 1.0 }
        const HOST: f32 = host();
        #[kernel] fn k(x: &mut [f32]) { x[0] = NINE as f32 + SQUARES[2] as f32 * PAIR.sum(); }
        #[kernel] fn refused(x: &mut [f32]) { x[0] = HOST; }";
    let how = Instantiation::default();
    let found = kernel(text, "k", &how);
    let mut x = vec![0.0f32];
    launch(
        &found,
        [1, 1, 1],
        [1, 1, 1],
        &[Arg::Buffer(BufferRef::from_slice(&mut x))],
    )
    .unwrap();
    assert_eq!(x, [29.0]);
    let error = lowered(text, "refused", &how).unwrap_err();
    assert!(
        error.contains("the constant `HOST` is what `host` gives"),
        "{error}"
    );
}

/// Constants call functions without an attribute, which are computed here.
#[test]
fn constants_of_files_call_const_functions() {
    let text = "
        const fn cube(n: usize) -> usize { n * n * n }
        const N: usize = cube(2);
        const fn entry(at: u32) -> u32 {
            let mut v = at;
            let mut k = 0;
            while k < 8 {
                v = if v & 2 == 2 { v >> 1 ^ (0xEDB8_8320 & (v & 1).wrapping_neg()) } else if v & 1 == 1 { v >> 1 ^ 0xEDB8_8320 } else { v >> 1 };
                k += 1;
            }
            v
        }
        const fn table() -> [[u32; 2]; 256] {
            let mut all = [[0; 2]; 256];
            let mut i = 0;
            loop {
                if i == all.len() { return all; }
                all[i][0] = entry(i as u32);
                let (low, high) = (i % 16, i / 16);
                all[i][1] = match (low, high) {
                    (0 | 1, _) => 7,
                    (n @ 2..=9, 3) if n != 4 => n as u32,
                    _ => 'found: { if high == 5 { break 'found 55; } let mut k = 0; loop { k += 3; if k > low { break k as u32; } } },
                };
                i += 1;
            }
        }
        const TABLE: [[u32; 2]; 256] = table();
        const fn first<const M: usize>(of: &[u32; M], at: usize) -> u32 { let later; later = of[at]; later }
        const FIRST: u32 = first(&[4, 5, 6], 1);
        const BEYOND: u32 = first(&[4, 5, 6], 3);
        const fn endless() -> u32 { loop {} }
        const ENDLESS: u32 = endless();
        const fn changes(of: &mut [u32; 2]) { of[0] = 1; }
        const CHANGED: u32 = { let mut two = [2, 3]; changes(&mut two); two[0] };
        #[kernel] fn k(x: &mut [u32]) {
            let ones = [1; N];
            x[0] = ones.len() as u32 + FIRST;
            for (y, entry) in x[1..].iter_mut().zip(&TABLE) { *y = entry[0] ^ entry[1]; }
        }
        #[kernel] fn calls(x: &mut [u32]) { x[0] = entry(3); }
        #[kernel] fn beyond(x: &mut [u32]) { x[0] = BEYOND; }
        #[kernel] fn endless_one(x: &mut [u32]) { x[0] = ENDLESS; }
        #[kernel] fn changed(x: &mut [u32]) { x[0] = CHANGED; }";
    let how = Instantiation::default();
    let found = kernel(text, "k", &how);
    let mut x = vec![0u32; 257];
    launch(
        &found,
        [1, 1, 1],
        [1, 1, 1],
        &[Arg::Buffer(BufferRef::from_slice(&mut x))],
    )
    .unwrap();
    let entry = |at: u32| (0..8).fold(at, |v, _| if v & 1 == 1 { v >> 1 ^ 0xEDB8_8320 } else { v >> 1 });
    let second = |low: u32, high: u32| match (low, high) {
        (0 | 1, _) => 7,
        (2..=9, 3) if low != 4 => low,
        (_, 5) => 55,
        _ => (low / 3 + 1) * 3,
    };
    let table = (0..256).map(|i| entry(i) ^ second(i % 16, i / 16));
    let expected: Vec<u32> = std::iter::once(13).chain(table).collect();
    assert_eq!(x, expected);
    for (name, part) in [
        ("calls", "it is a function without `#[device]`"),
        (
            "beyond",
            "index out of bounds: the length is 3 but the index is 3",
        ),
        ("endless_one", "a constant takes more than 4194304 steps"),
        ("changed", "a constant is computed without `&mut`"),
    ] {
        let error = lowered(text, name, &how).unwrap_err();
        assert!(error.contains(part), "{name}: {error}");
    }
}
