//! The options of `#[kernel]` in a file: they hold, and wrong ones are refused where they stand.

use std::fs;

use crate::folder::{Folder, text};

/// The sample of the page on the language that has this kernel, without the host's part.
fn sample(kernel: &str) -> String {
    let page = include_str!("../../../../docs/book/src/language.md");
    let of = format!("fn {kernel}(");
    let code = page.split("```rust\n").find(|code| code.contains(&of)).unwrap();
    code.split_once("\nlet device").unwrap().0.to_owned()
}

/// Kernels whose lanes meet fit their buffers, too, and dynamic shared memory has the size that is named.
#[test]
fn lanes_that_meet_have_blocks_that_fit_and_the_memory_that_is_named() {
    let folder = Folder::new();
    let code = "#[kernel]
fn sums(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    y[i] = x[i] + block_dim_x() as u32;
    sync_threads();
    y[i] += subgroup_add(1);
}

#[kernel]
fn turned(x: &mut [u32]) {
    let part = shared_slice::<u32>();
    let lane = local_id_x();
    part[lane] = x[lane];
    sync_threads();
    x[lane] = part[x.len() - 1 - lane];
}
";
    fs::write(folder.path().join("m.rs"), code).unwrap();
    let ran = |args: &str| {
        let output = folder.run(args);
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (_, said) = ran("m.rs sums --buffer x=range:64 --buffer y=zeros:64");
    assert!(said.contains("block (64, 1, 1)"), "{said}");
    let (printed, _) = ran("m.rs turned --buffer x=range:4 --shared 16");
    assert_eq!(printed, "x = [3 2 1 0]\n");
    for shared in ["", " --shared 8"] {
        let output = folder.run(&format!("m.rs turned --buffer x=range:4{shared}"));
        let said = text(&output.stderr);
        let bytes = if shared.is_empty() { 0 } else { 8 };
        let expect = format!(
            "`turned` ended with a fault: `part` has the dynamic shared memory of the launch, {bytes} bytes; --shared BYTES gives it more"
        );
        assert!(!output.status.success() && said.contains(&expect), "{said}");
    }
}

/// What the attribute's options say holds for files, too.
#[test]
fn options_of_the_attribute_are_kept() {
    let folder = Folder::new();
    let smooth = sample("smooth");
    fs::write(folder.path().join("s.rs"), &smooth).unwrap();
    for (name, edge) in [("w", "wrap"), ("i", "interior"), ("c", "constant(9.0)")] {
        let text = smooth.replace("edge = clamp", &format!("edge = {edge}"));
        fs::write(folder.path().join(format!("{name}.rs")), text).unwrap();
    }
    fs::write(folder.path().join("b.rs"), sample("block_sum")).unwrap();
    let grid = "--arg width=3 --arg height=3 --buffer a=range:3x3 --buffer b=zeros:3x3";
    let sum = "--buffer x=ones:1000 --buffer out=zeros:1";
    for (args, expect) in [
        (
            format!("s.rs {grid}"),
            "b = [[1.   1.75 2.5 ]\n     [3.25 4.   4.75]\n     [5.5  6.25 7.  ]]\n",
        ),
        (
            format!("w.rs {grid}"),
            "b = [[3.   3.25 3.5 ]\n     [3.75 4.   4.25]\n     [4.5  4.75 5.  ]]\n",
        ),
        (
            format!("i.rs {grid}"),
            "b = [[0. 0. 0.]\n     [0. 4. 0.]\n     [0. 0. 0.]]\n",
        ),
        (
            format!("c.rs {grid}"),
            "b = [[5.5  3.75 6.  ]\n     [4.75 4.   5.75]\n     [7.   6.75 7.5 ]]\n",
        ),
        (format!("b.rs {sum} --lanes 1000"), "out = [1000]\n"),
        (format!("b.rs {sum} --lanes 1000 --block 64"), "out = [1000]\n"),
    ] {
        let output = folder.run(&args);
        assert_eq!(text(&output.stdout), expect, "{args}: {}", text(&output.stderr));
    }
    let ran = |args: &str| folder.command(args).output().unwrap();
    for args in [
        format!("s.rs {grid} --check"),
        format!("b.rs {sum} --lanes 1000 --check"),
    ] {
        let output = ran(&args);
        assert!(
            output.status.success(),
            "{args}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    let output = folder.run(&format!("b.rs {sum} --block 32"));
    let said = text(&output.stderr);
    assert!(said.contains("compiled for blocks of [64, 1, 1] lanes"), "{said}");
    for (args, expect) in [
        ("emit b.rs --target ptx", ".reqntid 64, 1, 1"),
        ("emit b.rs --target wgsl", "@workgroup_size(64, 1, 1)"),
        ("emit b.rs --target wgsl --block 64", "@workgroup_size(64, 1, 1)"),
        (
            "emit b.rs --target wgsl --block 32",
            "`block_sum` requires blocks of 64,1,1: leave it out",
        ),
        ("explain b.rs", "kernel `block_sum`"),
        ("explain s.rs", "kernel `smooth`"),
    ] {
        let output = folder.program(args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(expect), "{args}: {said}");
    }
}

#[test]
fn options_of_the_attribute_that_are_wrong_are_underlined() {
    let folder = Folder::new();
    for (options, underlined, expect) in [
        (
            "blok_size = 64",
            "blok_size",
            "unknown option `blok_size`: `#[kernel]` takes `block_size = (x, y)`, `contract`, `interpret`, `tile = (x, y)`, `halo = n`, \
             `edge = clamp`, `crate = path`",
        ),
        (
            "block_size = 0",
            "0",
            "sizes are one to three numbers, none of them 0: write `(16, 16)`",
        ),
        (
            "block_size",
            "block_size",
            "`block_size` is written `block_size = (16, 16)`",
        ),
        ("contract = 1", "contract", "`contract` is written `contract`"),
        (
            "contract, contract",
            "contract",
            "`contract` is given twice: leave one out",
        ),
        (
            "edge = clamp",
            "edge",
            "`tile`, `halo` and `edge` are for stencils: add a parameter `pos: GridPos`",
        ),
        (
            "edge = nonsense",
            "edge",
            "`edge` is written `edge = interior`, `edge = clamp`, `edge = wrap` or `edge = constant(0.0)`",
        ),
        ("tile = 16", "tile", "`tile` is written `tile = (16, 16)`"),
        ("halo = (1, 2)", "halo", "`halo` is written `halo = 1`"),
    ] {
        let code = format!("#[kernel({options})]\nfn k(y: &mut [f32]) {{\n    y[0] = 1.0;\n}}\n");
        fs::write(folder.path().join("o.rs"), code).unwrap();
        let column = 10 + options.rfind(underlined).unwrap();
        let carets = " ".repeat(column - 1) + &"^".repeat(underlined.len());
        let line = format!("#[kernel({options})]");
        let shown = format!("error: {expect}\n --> o.rs:1:{column}\n  |\n1 | {line}\n  | {carets}\n");
        for args in ["run o.rs --buffer y=zeros:1", "emit o.rs", "explain o.rs"] {
            let output = folder.program(args);
            let said = text(&output.stderr);
            assert!(
                !output.status.success() && said.contains(&shown),
                "{args}: {said}\n{shown}"
            );
        }
    }
    let code = "#[device(inline)]\nfn f() {}\n#[kernel]\nfn k(y: &mut [f32]) {\n    y[0] = 1.0;\n}\n";
    fs::write(folder.path().join("o.rs"), code).unwrap();
    let said = text(&folder.run("o.rs --buffer y=zeros:1").stderr);
    let expect = "error: unknown option `inline`: this takes only `crate = path`\n --> o.rs:1:10\n";
    assert!(said.contains(expect), "{said}");
}

/// A kernel a file: places are judged before the first is written, and what a killed run left there is removed.
#[test]
#[cfg(unix)]
fn kernels_go_to_files_of_their_own() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join("out").join(name);
    fs::create_dir(folder.path().join("out")).unwrap();
    for name in ["saxpy.perpetua-Xy12zz.part.wgsl", "mine.part.wgsl"] {
        fs::write(at(name), "half").unwrap();
    }
    let kernel = |name: &str| format!("#[kernel]\nfn {name}(y: &mut [u32]) {{\n    y[0] = 1;\n}}\n");
    fs::write(folder.path().join("two.rs"), kernel("saxpy") + &kernel("tiles")).unwrap();
    let emit = || folder.program("emit two.rs --target wgsl --out-dir out");
    let output = emit();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&fs::read(at("saxpy.wgsl")).unwrap()).contains("@compute"));
    assert!(!at("saxpy.perpetua-Xy12zz.part.wgsl").exists() && at("mine.part.wgsl").exists());
    for entry in fs::read_dir(folder.path().join("out")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fs::create_dir(at("tiles.wgsl")).unwrap();
    let said = text(&emit().stderr);
    assert!(
        said.contains("--out-dir out/tiles.wgsl: this is a folder"),
        "{said}"
    );
    assert!(!at("saxpy.wgsl").exists());
}

/// Generic arguments are what could stand in the file: its structs, arrays, tuples, constants and device functions.
#[test]
fn generic_arguments_are_names_of_the_file() {
    let folder = Folder::new();
    let code = "mod shapes {
    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    pub struct Pair { pub a: u32, pub b: u32 }
    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    pub struct Both<T> { pub a: T, pub b: T }
    pub const COUNT: usize = 2;
}
use shapes::{Both, COUNT, Pair};
#[device]
trait Sum: Copy { fn sum(self) -> u32; }
#[device]
impl Sum for Pair { fn sum(self) -> u32 { self.a + self.b } }
#[device]
impl<T: Sum, const N: usize> Sum for [T; N] {
    fn sum(self) -> u32 {
        let mut all = 0;
        for i in 0..N { all += self[i].sum(); }
        all
    }
}
#[device]
impl Sum for Both<u32> { fn sum(self) -> u32 { self.a * self.b } }
#[device]
fn twice(v: u32) -> u32 { v * 2 }
#[kernel]
fn sums<T: Sum, const N: usize, F: Fn(u32) -> u32>(x: &[T], y: &mut [u32], f: F) {
    let i = global_id_x();
    if i < y.len() { y[i] = f(x[i].sum()) + N as u32; }
}
";
    fs::write(folder.path().join("m.rs"), code).unwrap();
    let check = |generics: &str, columns: u32, expect: &str| {
        let kernel = format!("sums::<{}>", generics.replace(' ', ""));
        let output = folder.run(&format!(
            "m.rs {kernel} --buffer x=ones:2x{columns} --buffer y=zeros:2"
        ));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(said.contains(expect), "{kernel}: {said}");
    };
    check("Pair, COUNT, twice", 2, "y = [6 6]");
    check("shapes::Pair, { COUNT + 1 }, crate::twice", 2, "y = [7 7]");
    check("Both<u32>, 0, twice", 2, "y = [2 2]");
    check("[Pair; 3], 1, twice", 6, "y = [13 13]");
    check(
        "Pear, 1, twice",
        2,
        "`T` is given `Pear`: there is no type `Pear` here",
    );
    check("Pair, COUNTS, twice", 2, "`N` is given `COUNTS`: ");
    check("Pair, 1, thrice", 2, "`F` is given `thrice`: ");
    check(
        "Pair, 1, 7",
        2,
        "`F` takes a device function of the file, without generic parameters, found `7`",
    );
}
