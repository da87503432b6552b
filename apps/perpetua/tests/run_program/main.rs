//! `perpetua run` as a user meets it: what it computes, draws and writes, and what it says when something is wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;
mod folder;
mod options;
#[cfg(unix)]
mod readme;
mod records;
mod shown;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use folder::{Folder, text};

/// Kernels of several kinds in one file.
pub(crate) const KERNELS: &str = "use perpetua::prelude::*;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Place {
    x: f32,
    y: f32,
}

#[kernel]
fn shift(by: Place, all: &mut [Place]) {
    let i = global_id_x();
    if i < all.len() {
        all[i] = Place { x: all[i].x + by.x, y: all[i].y + by.y };
    }
}

#[kernel]
fn fill<T: Element>(value: T, y: &mut [T]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = value;
    }
}

#[kernel]
fn tiles(y: &mut [u32], columns: usize) {
    let (column, row) = (global_id_x(), global_id_y());
    if column < columns && row * columns + column < y.len() {
        y[row * columns + column] = (10 * row + column) as u32;
    }
}

#[kernel]
fn race(y: &mut [u32]) {
    y[0] = global_id_x() as u32;
}
";

#[test]
fn kernels_run_and_arrays_are_printed() {
    let folder = Folder::new();
    for (args, expect) in [
        (
            "k.rs saxpy --arg a=2.0 --buffer x=range:10 --buffer y=ones:10",
            "y = [ 1.  3.  5.  7.  9. 11. 13. 15. 17. 19.]\n",
        ),
        (
            "k.rs shift --arg by=1,-1 --buffer all=zeros:2",
            "all = [[ 1. -1.]\n       [ 1. -1.]]\n",
        ),
        (
            "k.rs fill::<u8> --arg value=7 --buffer y=zeros:3",
            "y = [7 7 7]\n",
        ),
        (
            "k.rs tiles --arg columns=3 --buffer y=zeros:2x3",
            "y = [[ 0  1  2]\n     [10 11 12]]\n",
        ),
        (
            "k.rs tiles --arg columns=3 --buffer y=zeros:2x3 --grid 1 --block 1,2",
            "y = [[ 0  0  0]\n     [10  0  0]]\n",
        ),
    ] {
        let output = folder.run(args);
        assert_eq!(text(&output.stdout), expect, "{args}: {}", text(&output.stderr));
        assert!(output.status.success());
    }
}

#[test]
fn files_and_pictures_are_written() {
    let folder = Folder::new();
    let ran = |args: &str| {
        let output = folder.run(args);
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
    };
    ran("k.rs saxpy --arg a=1 --buffer x=range:4 --buffer y=zeros:2x2 --out y=y.npy");
    ran("k.rs saxpy --arg a=1 --buffer x=y.npy --buffer y=y.npy --out y=y.npy");
    let array = folder.read("y.npy");
    assert!(
        text(&array).contains("'descr': '<f4', 'fortran_order': False, 'shape': (2, 2,)"),
        "{}",
        text(&array)
    );
    let values: Vec<u8> = [0.0f32, 2.0, 4.0, 6.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert!(array.ends_with(&values));

    ran("k.rs tiles --arg columns=6 --buffer y=zeros:24 --size 6x4 --picture y");
    ran("k.rs tiles --arg columns=6 --buffer y=zeros:4x6 --picture y=z.png");
    assert_eq!(folder.read("y.png"), folder.read("z.png"));
    let picture = folder.read("y.png");
    let mut reader = png::Decoder::new(std::io::Cursor::new(&picture))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!((reader.info().width, reader.info().height), (6, 4));
    let light = |pixel: usize| {
        pixels[3 * pixel..3 * pixel + 3]
            .iter()
            .map(|c| u32::from(*c))
            .sum::<u32>()
    };
    assert!(light(0) < light(7) && light(7) < light(23));
}

#[test]
fn what_is_wrong_is_said_with_its_remedy() {
    let folder = Folder::new();
    fs::write(
        folder.path().join("bad.rs"),
        "#[kernel]\nfn k(y: &mut [u32]) {\n    y[0] = \"a\";\n}\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("type.rs"),
        "#[kernel]\nfn k(y: &mut [u32], n: f32) {\n    y[0] = n;\n}\n",
    )
    .unwrap();
    for (name, text) in [
        ("cfg.rs", "#[cfg(nope)]\n#[kernel]\nfn k(y: &mut [u32]) {}\n"),
        (
            "double.rs",
            "#[device]\nfn d() {}\n#[device]\nfn d() {}\n#[kernel]\nfn k(y: &mut [u32]) {}\n",
        ),
        ("bytes.rs", "#[kernel]\nfn k(y: &mut [u8]) { y[0] = 1; }\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::write(folder.path().join("no.npy"), "nothing").unwrap();
    fs::write(
        folder.path().join("none.rs"),
        "#[kernel]\nfn k(y: &mut [f32]) {\n    let v: Option<f32> = None;\n    y[0] = v.unwrap();\n    y[1] = 1.0;\n}\n",
    )
    .unwrap();
    let x = "--buffer x=range:4";
    for (args, expect) in [
        ("nowhere.rs", "nowhere.rs: No such file"),
        (
            "k.rs",
            "k.rs has several kernels: say which of saxpy, shift, fill, tiles, race",
        ),
        ("cfg.rs", "nobody says here whether `nope` holds"),
        ("double.rs", "error: `d` is defined here a second time"),
        (
            "k.rs saxpy --arg a=1 --buffer x=zeros:1 --buffer y=range:9000000000",
            "at most 8589934592 elements",
        ),
        (
            "bytes.rs --buffer y=range:300",
            "range:300: its last number is 299, and u8 holds 255 at most",
        ),
        ("k.rs axpy", "k.rs has no kernel `axpy`; it has: saxpy, shift"),
        (
            "k.rs fill",
            "`fill` is generic: name its arguments, as 'fill::<T>'",
        ),
        ("k.rs saxpy", "the parameter `a: f32` needs --arg a="),
        ("k.rs saxpy --arg a=1", "the buffer `x` (f32) needs --buffer x="),
        (
            "k.rs saxpy",
            "needs --arg a=…; the buffer `x` (f32) needs --buffer x=…; the buffer `y` (f32) needs --buffer y=…",
        ),
        ("k.rs saxpy --arg a", "`a` has no `=`: write NAME="),
        (
            "k.rs saxpy --arg b=1",
            "kernel `saxpy` has no parameter `b`; it has: a",
        ),
        (
            "k.rs saxpy --arg x=1",
            "--arg x: `x` is a buffer: give it with --buffer x=",
        ),
        (
            "k.rs saxpy --buffer a=zeros:1",
            "--buffer a: `a` is no buffer: give it with --arg a=",
        ),
        ("k.rs saxpy --buffer z=zeros:1", "has no buffer `z`; it has: x, y"),
        ("k.rs saxpy --arg a=much", "--arg a: `much` is not a float"),
        ("k.rs saxpy --arg a=1 --buffer x=zero:4", "zero:4: No such file"),
        (
            "k.rs saxpy --arg a=1 --buffer x=no.npy",
            "--buffer x: no.npy: this is no .npy file",
        ),
        (
            "k.rs saxpy --arg a=1 --buffer x=ones:-1",
            "`-1` is not a number of elements",
        ),
        (
            "k.rs saxpy --arg a=1,5",
            "--arg a: `f32` takes one number, `1,5` has 2: decimals stand behind a point",
        ),
        ("k.rs shift --arg by=1", "--arg by: `Place` takes 2 numbers"),
        (
            "k.rs tiles --arg columns=-1 --buffer y=zeros:1",
            "--arg columns: -1 does not fit u64",
        ),
        (
            "k.rs tiles --arg columns=2 --buffer y=zeros:4",
            "say how many lanes to run with --lanes",
        ),
        (
            "k.rs race --buffer y=zeros:1 --size 5",
            "`5` is no size: write WIDTHxHEIGHT",
        ),
        (
            "k.rs race --buffer y=zeros:1 --picture y",
            "--picture y: 1 pixels have no rows and columns",
        ),
        (
            "k.rs race --buffer y=zeros:2x2 --picture y --size 3x3",
            "3 x 3 are not the 4 pixels",
        ),
        (
            "k.rs race --buffer y=zeros:1 --block 0",
            "a block needs a lane at least along each axis",
        ),
        (
            "k.rs race --buffer y=zeros:1 --lanes 4,0",
            "--lanes is 0 along an axis",
        ),
        (
            "k.rs race --buffer y=zeros:1 --grid 0",
            "--grid is 0 along an axis",
        ),
        (
            "k.rs race --buffer y=zeros:1 --lanes 1,1,1,1",
            "--lanes has 4 sizes; there are one to three",
        ),
        (
            "k.rs race --buffer y=zeros:1 --buffer y=zeros:2",
            "--buffer y: it is given twice",
        ),
        ("k.rs saxpy --arg a=1 --arg a=2", "--arg a: it is given twice"),
        (
            "k.rs saxpy --arg a=1e999",
            "--arg a: `1e999` is more than f32 holds",
        ),
        ("k.rs saxpy --arg a=", "`a=` has nothing behind its `=`"),
        (
            "k.rs race --buffer y=zeros:1 --out y=",
            "`y=` has nothing behind its `=`",
        ),
        (
            "k.rs saxpy --arg a=1 --buffer x=zeros:1 --buffer y=zeros:1000000000 --picture y",
            "--picture y: 1000000000 pixels have no rows and columns",
        ),
        ("k.rs race --buffer y=zeros:1 --block 2000", "2000"),
        (
            "k.rs race --buffer y=zeros:1 --out y=no/y.npy",
            "--out no/y.npy: there is no folder no",
        ),
        (
            "k.rs race --buffer y=zeros:1 --out y=k.rs",
            "--out k.rs: this is where the kernel lies",
        ),
        (
            "k.rs race --buffer y=zeros:1 --out y=type.rs",
            "--out type.rs: what is written is NPY: name it type.npy",
        ),
        (
            "k.rs race --buffer y=zeros:1 --picture y=notes.md",
            "--picture notes.md: what is written is PNG: name it notes.png",
        ),
        ("k.rs race --buffer y=zeros:1 --ulp 1", "--check"),
        ("bad.rs", "--> bad.rs:3:12"),
        ("type.rs --arg n=1 --buffer y=zeros:1", "--> type.rs:3:12"),
        (
            "type.rs --arg n=1 --buffer y=zeros:1",
            "expected `u32`, found `f32`: convert with `as u32`",
        ),
        // Faults lead to their line.
        (
            "none.rs --buffer y=zeros:2",
            "called `Option::unwrap()` on a `None` value",
        ),
        ("none.rs --buffer y=zeros:2", "--> none.rs:4:5"),
        (
            &format!("k.rs saxpy --arg a=1 {x} --buffer y=zeros:9"),
            "the length of `x` is 4 but the index is 4 (kernel `saxpy`, k.rs:7, block (0, 0, 0), lane (4, 0, 0))\n",
        ),
        (
            &format!("k.rs saxpy --arg a=1 {x} --buffer y=zeros:9"),
            "--> k.rs:7:21\n",
        ),
        (
            &format!("k.rs saxpy --arg a=1 {x} --buffer y=zeros:9"),
            "error: `saxpy` ended with a fault",
        ),
    ] {
        let output = folder.run(args);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
        assert!(output.stdout.is_empty(), "{args}");
    }
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "bad.rs",
            "bytes.rs",
            "cfg.rs",
            "double.rs",
            "k.rs",
            "no.npy",
            "none.rs",
            "type.rs"
        ]
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_buffer_that_memory_does_not_hold_is_an_error() {
    let folder = Folder::new();
    for content in ["zeros:4294967296", "range:4294967296"] {
        let script = format!(
            "ulimit -v 8000000; exec {} run k.rs 'fill::<u32>' --arg value=1 --buffer y={content} --backend cpu",
            env!("CARGO_BIN_EXE_perpetua")
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(
            output.status.code() == Some(1) && said.contains("17179869184 bytes are not to be had here"),
            "{said}"
        );
    }
}

/// A fault of one lane does not end another's loop: that is told, and a limit ends it.
#[test]
fn a_launch_that_does_not_end_is_told_and_can_be_limited() {
    let folder = Folder::new();
    let endless = "#[kernel]\nfn k(y: &mut [u32]) {\n    let i = global_id_x();\n    loop {\n        y[i] += 1;\n    }\n}\n";
    fs::write(folder.path().join("endless.rs"), endless).unwrap();
    let line = "endless.rs --buffer y=zeros:4 --lanes 8 --backend cpu";
    let output = folder
        .command(&format!("{line} --time-limit 300ms"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("error: `k` did not end within 300ms (--time-limit)"),
        "{said}"
    );
    // The limit ends the test where nothing is said.
    let line = format!("{line} --time-limit 60s");
    let mut child = folder.command(&line).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = lines.any(|line| line.unwrap().starts_with("`k` goes on after 5 s: "));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told);
}

/// A path of Windows has a colon, and is no kind of content.
#[test]
#[cfg(unix)]
fn a_files_name_may_have_a_colon() {
    let folder = Folder::new();
    for (kernel, content, expect) in [
        (
            "saxpy --arg a=1 --buffer x=zeros:2 --buffer y=",
            "ones:2",
            "y = [1. 1.]\n",
        ),
        (
            "shift --arg by=1,-1 --buffer all=",
            "ones:2",
            "all = [[2. 0.]\n       [2. 0.]]\n",
        ),
    ] {
        let buffer = kernel.rsplit("--buffer ").next().unwrap().trim_end_matches('=');
        let made = folder.run(&format!("k.rs {kernel}{content} --out {buffer}=C:\\x.npy"));
        assert!(made.status.success(), "{}", text(&made.stderr));
        let again = kernel.replace("by=1,-1", "by=0,0");
        let read = folder.run(&format!("k.rs {again}C:\\x.npy"));
        assert_eq!(text(&read.stdout), expect, "{}", text(&read.stderr));
    }
}

#[test]
fn a_file_that_changes_runs_again() {
    let folder = Folder::new();
    let mut child = folder
        .command("k.rs fill::<u32> --arg value=1 --buffer y=zeros:2 --backend cpu --watch")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Where nothing more comes, the end of what is said ends the test.
    let watchdog = {
        let (id, (over, is_over)) = (child.id(), std::sync::mpsc::channel::<()>());
        std::thread::spawn(move || {
            if is_over.recv_timeout(Duration::from_secs(300)) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("sh").args(["-c", &format!("kill -9 {id}")]).status();
            }
        });
        over
    };
    let mut said = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut printed = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    // A file that is half written is none that a test waits for.
    let path = folder.path().join("k.rs");
    let replace = |text: String| {
        fs::write(path.with_extension("new"), text).unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
    };
    let mut until = |expect: &str| said.by_ref().find(|line| line.contains(expect)).is_some();
    assert!(until("waiting until k.rs changes"));
    assert_eq!(printed.next().unwrap(), "y = [1 1]");
    // A mistake is told, and waited with.
    replace(KERNELS.replace("y[i] = value;", "y[i] = worth;"));
    assert!(until("worth") && until("waiting until k.rs changes"));
    replace(KERNELS.replace("y[i] = value;", "y[i] = value; y[0] = value;"));
    assert_eq!(printed.next().unwrap(), "y = [1 1]");
    // What does not end is given up when the file changes.
    assert!(until("waiting until k.rs changes"));
    replace(KERNELS.replace("y[i] = value;", "loop { y[i] = value; }"));
    assert!(until("fill_u32: grid"));
    replace(KERNELS.replace("y[i] = value;", "y[i] = value + value;"));
    assert!(until("k.rs has changed: what ran is ended"));
    assert_eq!(printed.next().unwrap(), "y = [2 2]");
    // A file that is gone is told, and waited for.
    assert!(until("waiting until k.rs changes"));
    fs::remove_file(&path).unwrap();
    assert!(until("k.rs is gone: waiting until it is there again"));
    replace(KERNELS.replace("y[i] = value;", "y[i] = value + 2;"));
    assert_eq!(printed.next().unwrap(), "y = [3 3]");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(watchdog);
}
