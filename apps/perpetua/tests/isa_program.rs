//! `perpetua isa` as a user meets it: each command, what it writes, and what it says when something is wrong.
#![cfg(feature = "isa")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::process::{Command, Output};

const SAXPY: &str = ".program saxpy
.buffer x: f32
.buffer y: f32
.param a: f32
    setge.u64 p0, r255, len(y)
@p0 exit
    ldg.f32 r0, x[r255]
    ldg.f32 r1, y[r255]
    fma.f32 r1, a, r0, r1
    stg.f32 y[r255], r1
";

/// Each lane takes a block of the pool and reads what it has written there.
const HEAP: &str = ".program heap_user
.pool heap
.buffer out: u32
    setge.u64 p0, r255, len(out)
@p0 exit
    pool_alloc r0, heap, 16
    add.u32 r1, r252, 7
    pool_store.u32 heap[r0 + 1], r1
    pool_load.u32 r2, heap[r0 + 1]
    stg.u32 out[r252], r2
";

const KERNELS: &str = "#[kernel]
fn twice(x: &mut [f32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i] *= 2.0;
    }
}

#[kernel]
fn fill<const N: u32>(x: &mut [u32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i] = N;
    }
}
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("saxpy.pasm", SAXPY), ("heap.pasm", HEAP), ("k.rs", KERNELS)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Folder(folder)
    }

    fn isa(&self, args: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .arg("isa")
            .args(args.split(' '))
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// What a command prints that succeeds.
    fn prints(&self, args: &str) -> String {
        let output = self.isa(args);
        assert!(
            output.status.success(),
            "{args}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// A command that fails and says so.
    fn fails(&self, args: &str, expect: &str) {
        let output = self.isa(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
    }
}

#[test]
fn forms_are_one_program() {
    let folder = Folder::new();
    folder.prints("asm saxpy.pasm");
    folder.prints("asm saxpy.pasm --out other.pisa");
    let read = |name: &str| fs::read(folder.0.path().join(name)).unwrap();
    assert_eq!(read("saxpy.pisa"), read("other.pisa"));
    let text = folder.prints("disasm saxpy.pisa");
    assert!(text.contains("fma.f32 r1, a, r0, r1"), "{text}");
    fs::write(folder.0.path().join("again.pasm"), &text).unwrap();
    assert_eq!(folder.prints("disasm again.pasm"), text);
    assert_eq!(
        folder.prints("verify saxpy.pisa"),
        "saxpy: ok, 6 instructions, 2 buffers, 1 parameter\n"
    );
    let whole = read("saxpy.pisa");
    for len in [1, 4, 5, whole.len() - 1] {
        fs::write(folder.0.path().join("cut.pisa"), &whole[..len]).unwrap();
        folder.fails("verify cut.pisa", "cut.pisa: ");
    }
    folder.fails(
        "asm saxpy.pisa --out other.pisa",
        "is a program's binary form already",
    );
    folder.fails("asm saxpy.pasm --out saxpy.pasm", "this is where the text lies");
    folder.fails("asm saxpy.pasm --out none/x.pisa", "there is no folder");
    folder.fails(
        "asm saxpy.pasm --out x.rs",
        "what is written is PISA: name it x.pisa",
    );
    folder.fails(
        "disasm saxpy.pisa --out x.md",
        "what is written is PASM: name it x.pasm",
    );
    folder.prints("disasm saxpy.pisa --out shown.pasm");
    assert_eq!(read("shown.pasm"), text.as_bytes());
    folder.fails(
        "disasm saxpy.pisa --out saxpy.pisa",
        "this is where the program lies",
    );
    fs::write(folder.0.path().join("empty.pasm"), "").unwrap();
    folder.fails("verify empty.pasm", "there is no program in this text");
    folder.fails(
        "verify saxpi",
        "there is no file `saxpi`, and no program of this name in the library: did you mean `saxpy`?",
    );
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_the_folder() {
    let folder = Folder::new();
    let inner = folder.0.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(folder.0.path().join("outer"), "    mov.u32 r0, 1\n").unwrap();
    fs::write(inner.join("here"), "    mov.u32 r0, 2\n").unwrap();
    for (link, to) in [("out", "../outer"), ("within", "here")] {
        std::os::unix::fs::symlink(to, inner.join(link)).unwrap();
        fs::write(
            inner.join(format!("{link}.pasm")),
            format!(".include \"{link}\"\n"),
        )
        .unwrap();
    }
    folder.prints("verify inner/within.pasm");
    folder.fails("verify inner/out.pasm", "a link to a file that lies elsewhere");
}

// The verifier refuses it: its register holds nothing.
#[test]
fn what_cannot_run_can_be_looked_at() {
    let folder = Folder::new();
    let program: perpetua::isa::Program = ".program unread\n.buffer o: u32\n    stg.u32 o[0], r7\n"
        .parse()
        .unwrap();
    let mut forged = program.clone();
    forged.memories[0].name = "o: u32\n.buffer x".into();
    for (name, program) in [("unread.pisa", program), ("forged.pisa", forged)] {
        fs::write(folder.0.path().join(name), program.encode()).unwrap();
    }
    let text = folder.prints("disasm unread.pisa");
    assert!(
        text.starts_with("; It is no program that can run: unread: ")
            && text.contains("\n    stg.u32 o[0], r7\n"),
        "{text}"
    );
    folder.fails("verify unread.pisa", "r7 is read");
    folder.fails("disasm forged.pisa", "cannot be called");
}

#[test]
fn an_untrusted_program_ends() {
    let folder = Folder::new();
    let endless = ".program endless\n.buffer o: u32\nagain:\n    stg.u32 o[0], 1\n    bra again\n";
    let fence = ".program fence\n.buffer o: u32\n    stg.u32 o[0], 1\n    fence_system\n";
    for (name, text) in [("endless.pasm", endless), ("fence.pasm", fence)] {
        fs::write(folder.0.path().join(name), text).unwrap();
    }
    let on = "--buffer o=zeros:8 --lanes 8 --backend cpu";
    folder.fails(
        &format!("run endless.pasm {on} --untrusted --budget 10000"),
        "endless.pasm:4",
    );
    folder.fails(
        &format!("run endless.pasm {on} --untrusted --budget 10000"),
        "its budget of 10000 instructions was spent",
    );
    folder.fails(
        &format!("run endless.pasm {on} --untrusted --budget 10000"),
        "--budget N gives it more",
    );
    folder.fails(
        &format!("run endless.pasm {on} --untrusted --memory 16"),
        "have 32 bytes, an untrusted program may have 16: --memory 32",
    );
    folder.fails(&format!("run endless.pasm {on} --budget 10000"), "--untrusted");
    folder.prints("verify endless.pasm --untrusted");
    // Every lane has its budget: the grid ends with its time.
    folder.fails(
        &format!("run endless.pasm {on} --untrusted --budget 4000000000 --time-limit 1s"),
        "did not end within 1s (--time-limit)",
    );
    folder.prints("verify fence.pasm");
    folder.fails("verify fence.pasm --untrusted", "fence.pasm:4");
    folder.fails(
        "verify fence.pasm --untrusted",
        "fence_system\n  |     ^^^^^^^^^^^^",
    );
}

#[test]
fn a_program_runs_on_what_is_named() {
    let folder = Folder::new();
    let on = "--lanes 4 --backend cpu";
    let saxpy = format!("run saxpy.pasm --buffer x=range:4 --buffer y=ones:4 --param a=2 {on}");
    let printed = folder.prints(&saxpy);
    assert!(printed.contains("y = [1. 3. 5. 7.]"), "{printed}");
    folder.prints(&format!("{saxpy} --out y=y.npy"));
    let two =
        ".program two\n.buffer a: u32\n.buffer b: u32\n    stg.u32 a[r252], r252\n    stg.u32 b[r252], 7\n";
    fs::write(folder.0.path().join("two.pasm"), two).unwrap();
    let printed = folder.prints(&format!(
        "run two.pasm --buffer a=zeros:4 --buffer b=zeros:4 --out a=a.npy {on}"
    ));
    assert!(
        printed.contains("b = [7 7 7 7]") && !printed.contains("a ="),
        "{printed}"
    );
    let printed = folder.prints(&format!(
        "run saxpy.pasm --buffer x=ones:4 --buffer y=y.npy --arg a=1 {on}"
    ));
    assert!(printed.contains("y = [2. 4. 6. 8.]"), "{printed}");
    folder.fails(
        "run saxpy.pasm --buffer x=ones:4",
        "the buffer `y` (f32) needs --buffer y=…; the parameter `a: f32` needs --param a=…; the launch needs --lanes X,Y,Z",
    );
    let said = String::from_utf8_lossy(&folder.isa(&saxpy).stderr).into_owned();
    assert!(said.contains("saxpy: grid (1, 1, 1), block (4, 1, 1)"), "{said}");
    for (more, expect) in [
        ("--param b=1", "saxpy has no parameter `b`: it has a"),
        ("--param a=3", "--param a=… is there twice"),
        ("--buffer x=ones:4", "--buffer x=… is there twice"),
        ("--pool p=64", "saxpy has no pool: leave --pool p out"),
        ("--out y=none/y.npy", "there is no folder"),
    ] {
        folder.fails(&format!("{saxpy} {more}"), expect);
    }
    folder.fails(
        "run saxpy.pasm --buffer x=ones:4 --buffer y=ones:4 --param a=1 --lanes 0",
        "--lanes is 0",
    );
    folder.fails(
        "run saxpy.pasm --buffer x=ones:4 --buffer y=ones:4 --param a=1e39 --lanes 4",
        "`1e39` is more than f32 holds",
    );
}

#[test]
fn lanes_are_those_that_are_named() {
    let folder = Folder::new();
    fs::write(
        folder.0.path().join("count.pasm"),
        ".program count\n.buffer o: u32\n    atom_add.u32 r0, o[0], 1\n",
    )
    .unwrap();
    // Options may stand in front of the program.
    for (lanes, count) in [("512", 512), ("64,64", 4096), ("8,8,4", 256)] {
        let printed = folder.prints(&format!(
            "run --backend cpu --lanes {lanes} count.pasm --buffer o=zeros:1"
        ));
        assert!(printed.contains(&format!("o = [{count}]")), "{printed}");
    }
    folder.fails(
        "run --lanes 1,1,1,1 count.pasm --buffer o=zeros:1",
        "--lanes has 4 sizes",
    );
}

#[test]
fn a_pool_has_the_size_that_is_named() {
    let folder = Folder::new();
    let heap = "run heap.pasm --buffer out=zeros:4 --lanes 4 --backend cpu";
    let printed = folder.prints(&format!("{heap} --pool heap=64K"));
    assert!(printed.contains("out = [ 7  8  9 10]"), "{printed}");
    folder.fails(heap, "the pool `heap` needs --pool heap=SIZE");
    for (pools, expect) in [
        ("heap=much", "`much` is no size"),
        ("heap=64 --pool stack=64", "has no pool `stack`: it has heap"),
        // Room for no block at all.
        ("heap=16", "a pool without room for 16 bytes"),
    ] {
        folder.fails(&format!("{heap} --pool {pools}"), expect);
    }
}

#[test]
fn a_kernel_is_captured() {
    let folder = Folder::new();
    let text = folder.prints("capture k.rs twice");
    assert!(text.contains(".program twice"), "{text}");
    folder.prints("capture k.rs twice --out twice.pisa");
    folder.prints("capture k.rs fill::<7> --out fill.pasm");
    assert_eq!(folder.prints("disasm twice.pisa"), text);
    let run = |program: &str, x: &str| {
        folder.prints(&format!("run {program} --buffer x={x} --lanes 3 --backend cpu"))
    };
    assert!(run("twice.pisa", "range:3").contains("x = [0. 2. 4.]"));
    assert!(run("fill.pasm", "zeros:3").contains("x = [7 7 7]"));
    folder.fails(
        "capture k.rs",
        "k.rs has several kernels: say which of twice, fill",
    );
    folder.fails("capture k.rs fill", "`fill` is generic");
    folder.fails("capture k.rs twice --out k.rs", "this is where the kernel lies");
    folder.fails(
        "capture k.rs twice --out x.rs",
        "what is written is PISA or PASM: name it x.pisa",
    );
    folder.fails("capture saxpy.pasm", "program of the instruction set is no Rust");
    let file = folder.0.path().join("f.rs");
    fs::write(file, "#[kernel]\nfn f(\n x: &mut [bool]) {}").unwrap();
    folder.fails("capture f.rs", "f.rs:3:2");
}

#[test]
fn explain_shows_a_kernel_and_what_fuses() {
    let folder = Folder::new();
    let kernel = folder.prints("explain saxpy.pasm");
    assert!(kernel.contains("fma"), "{kernel}");
    let fused = folder.prints("explain atlas_mul_f32:out=t atlas_add_f32:a=t");
    let after = fused.split("; fused").nth(1).unwrap();
    let loads = after
        .split("; as a kernel")
        .next()
        .unwrap()
        .matches("ldg.f32")
        .count();
    // Of `a` and `b`, once each: what goes into `t` is not loaded again.
    assert_eq!(loads, 2, "{fused}");
    folder.fails(
        "explain atlas_mul_f32:none=t",
        "atlas_mul_f32 has no buffer `none`",
    );
}

#[test]
fn the_mandelbrot_program_makes_a_picture() {
    let folder = Folder::new();
    let plane = "--param width=64 --param left=-2.2 --param top=-1.2 --param step=0.05 --param most=50 --lanes 3072 --backend cpu";
    folder.prints(&format!(
        "run mandelbrot --buffer out=zeros:48x64 {plane} --out out=m.png"
    ));
    let file = fs::File::open(folder.0.path().join("m.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!((reader.info().width, reader.info().height), (64, 48));
    let pixel = |row: usize, column: usize| &pixels[3 * (64 * row + column)..][..3];
    // The set's middle stays, the plane's corner leaves at once.
    assert_ne!(pixel(24, 40), pixel(0, 0));
    folder.fails(
        &format!("run mandelbrot --buffer out=zeros:3072 {plane} --out out=m.png"),
        "--out out: 3072 pixels have no rows and columns",
    );
}

#[test]
fn what_there_is_is_listed() {
    let folder = Folder::new();
    let all = folder.prints("list");
    for name in ["matmul", "atlas_add_{", "mandelbrot"] {
        assert!(all.contains(name), "{name}");
    }
    let some = folder.prints("list atlas_gelu");
    assert!(some.contains("gelu") && !some.contains("matmul"), "{some}");
    for expect in [
        "matmul: --buffer a=… (f32) --buffer b=… (f32) --buffer c=… (f32, written) --param n=… (u32) --lanes X,Y (in blocks of 16 x 16 x 1)",
        "atlas_sqrt_f64: --buffer a=… (f64) --buffer out=… (f64, written) --lanes X",
    ] {
        let one = folder.prints(&format!("list {}", expect.split(':').next().unwrap()));
        assert!(one.contains(&format!("    {expect}\n")), "{one}");
    }
    folder.fails("list nothing_like_that", "no program with `nothing_like_that`");
    assert!(folder.prints("spec").contains("pool_alloc"));
}

#[test]
fn the_bench_has_a_line_for_each_figure() {
    let folder = Folder::new();
    let text = folder.prints("bench --backend cpu --elements 1024 --seconds 0.001");
    for name in [
        "atlas_add_f32",
        "untrusted, ms",
        "(lane by lane: an interpreter",
        "(more, %: how much longer",
        "prepared program",
        "decode",
        "render as PTX",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    folder.fails("bench --backend cpu --seconds=-1", "--seconds -1");
    // Sizes of one's own, where there is a device beside the CPU.
    if cfg!(feature = "wgpu") {
        let text = folder.prints("bench --backend wgpu --elements 1024 --seconds 0.001 --sizes 333,555");
        for operation in ["element-wise", "reduction", "matrix product"] {
            let head = format!("{operation} ");
            let rows = text.lines().filter(|line| line.starts_with(&head));
            let sizes: Vec<&str> = rows
                .filter_map(|line| line[operation.len()..].split_whitespace().next())
                .collect();
            assert_eq!(sizes, ["333", "555"], "{operation}: {text}");
        }
    }
    folder.fails("bench --backend cpu --sizes 0", "0 is not in 1..");
}

/// Whoever reads what is printed may have enough of it before the files are written, which were asked for all the same.
#[test]
fn files_are_written_when_nobody_reads_the_rest() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let two =
        ".program two\n.buffer a: u32\n.buffer b: u32\n    stg.u32 a[r255], 1\n    stg.u32 b[r255], 2\n";
    fs::write(folder.0.path().join("two.pasm"), two).unwrap();
    let args = "isa run two.pasm --buffer a=zeros:4 --buffer b=zeros:4 --lanes 4 --out b=b.npy --backend cpu";
    let status = Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .args(args.split(' '))
        .current_dir(folder.0.path())
        .stdout(writer)
        .status()
        .unwrap();
    assert!(status.success() && folder.0.path().join("b.npy").exists());
    folder.fails(
        "bench --backend cpu --plot b.png",
        "--plot b.png: what is written is SVG",
    );
    folder.fails(
        "bench --backend cpu --plot b.svg",
        "--plot draws a GPU beside the CPU, and --backend names none",
    );
}

#[test]
fn programs_run_as_one() {
    let folder = Folder::new();
    let on = "--lanes 4 --backend cpu";
    let both = "run atlas_mul_f32:out=t atlas_add_f32:a=t --buffer a=range:4 --buffer b=ones:4";
    let printed = folder.prints(&format!("{both} --buffer t=zeros:4 --buffer out=zeros:4 {on}"));
    assert_eq!(printed, "t = [0. 1. 2. 3.]\nout = [1. 2. 3. 4.]\n");
    // A file among them, whose buffer is another's, and whose parameter is given.
    let with_file = "run saxpy.pasm atlas_neg_f32:a=y --buffer x=range:4 --buffer y=ones:4 --param a=2";
    let printed = folder.prints(&format!("{with_file} --buffer out=zeros:4 {on}"));
    assert!(printed.contains("out = [-1. -3. -5. -7.]"), "{printed}");
    folder.fails(
        &format!("{both} --buffer t=zeros:4 --buffer out=zeros:5 {on}"),
        "its lanes end beyond another length",
    );
    folder.fails(
        &format!("{both} --buffer t=zeros:4 --buffer out=zeros:4 --grid 1,2 --backend cpu"),
        "launch along x alone",
    );
    folder.fails(
        &format!("run saxpy.pasm dot --buffer x=ones:4 --buffer y=ones:4 --param a=2 {on}"),
        "an element-wise program runs straight on",
    );
}

#[test]
fn a_fault_is_underlined_in_the_text() {
    let folder = Folder::new();
    let beyond = ".program beyond\n.buffer x: f32\n    mov.f32 r0, 1.0\n    stg.f32 x[r255], r0\n";
    fs::write(folder.0.path().join("beyond.pasm"), beyond).unwrap();
    let on = "--buffer x=zeros:4 --lanes 64 --backend cpu";
    for said in [
        "index out of bounds: the length of `x` is 4 but the index is 4",
        "beyond.pasm:4:13\n",
        "4 |     stg.f32 x[r255], r0\n  |             ^\n",
        "`beyond` ended with a fault",
    ] {
        folder.fails(&format!("run beyond.pasm {on}"), said);
    }
    // The binary form has the line, and no text to show.
    folder.prints("asm beyond.pasm");
    folder.fails(&format!("run beyond.pisa {on}"), "beyond.pasm:4, block");
}
