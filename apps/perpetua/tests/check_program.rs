//! `perpetua check`: of files, and of packages as cargo and their programs answer.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const TEXT: &str = "use perpetua::prelude::*;

#[kernel]
fn fine(y: &mut [u64]) {
    y[0] = 1;
}

#[kernel]
fn stepped(x: &mut [f32]) {
    x[0] = x[1].half_up();
}

#[kernel]
fn counted(x: &[u32], y: &mut [f64]) {
    y[0] = x[0] as f64;
}

#[kernel]
fn parted(x: &mut [f32]) {
    if global_id_x() > 3 {
        sync_threads();
    }
    x[0] = 1.0;
}

#[kernel]
fn generic<T: Copy>(x: &mut [T]) {
    x[0] = x[1];
}
";

fn check(folder: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
        .arg("check")
        .args(args)
        .current_dir(folder)
        .env("CARGO", folder.join("cargo"))
        .output()
        .unwrap();
    assert!(output.stdout.is_empty());
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn kernels_of_files_are_refused_where_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.rs"), TEXT).unwrap();
    let (passed, said) = check(folder.path(), &["k.rs"]);
    let expected = "note: `generic` of k.rs was checked as `generic::<f32>`
error: `f32` has no method `half_up` in kernels: write it as a `#[device]` function
  --> k.rs:10:12
   |
10 |     x[0] = x[1].half_up();
   |            ^^^^^^^^^^^^^^

error: the barrier is not reached by all lanes of a block together: they part at the `if` in line 20, because `global_id_x()` is each lane's own (line 20); move the barrier out of it
  --> k.rs:21:9
   |
21 |         sync_threads();
   |         ^^^^^^^^^^^^^^^

note: of 5 kernels, 1 not for MSL: `--on msl` shows which and why
error: 2 of 5 kernels refused
";
    assert_eq!((passed, &*said), (false, expected));
    fs::write(
        folder.path().join("fine.rs"),
        &TEXT[..TEXT.find("#[kernel]\nfn stepped").unwrap()],
    )
    .unwrap();
    let (passed, said) = check(folder.path(), &["fine.rs"]);
    assert_eq!((passed, &*said), (true, "1 kernel checked, none refused\n"));
    let (passed, said) = check(folder.path(), &["k.rs", "--on", "msl"]);
    assert!(!passed && said.contains("needs f64, which MSL lacks"), "{said}");
    assert!(said.contains("error: 3 of 5 kernels refused"), "{said}");
}

#[test]
fn what_is_refused_leaves_the_other_kernels_to_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let text = "use perpetua::prelude::*;

#[device]
fn named(x: u32) -> String {
    x.to_string()
}

#[kernel]
fn calls(y: &mut [u32]) {
    let name = named(y[0]);
}

#[kernel]
fn fine(y: &mut [u32]) {
    y[0] = 1;
}

#[kernel]
fn narrow<T: Copy, const N: usize>(x: &[T], y: &mut [T]) {
    y[0] = x[N].halves();
}

#[kernel]
fn even<const N: usize>(y: &mut [u32]) {
    let all = [1u32; N];
    y[0] = all[3];
}

#[kernel]
fn always<const N: usize>(y: &mut [u32]) {
    y[N] = 1.5f32.half_up() as u32;
}
";
    fs::write(folder.path().join("k.rs"), text).unwrap();
    let (passed, said) = check(folder.path(), &["k.rs"]);
    assert!(!passed);
    for part in [
        "the type `String`",
        "`named` cannot be used in a kernel: it is refused where it stands\n  --> k.rs:10:",
        "note: `narrow` of k.rs is generic and was not checked",
        "note: `even` of k.rs was checked as `even::<4>`",
        "`f32` has no method `half_up` in kernels",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        said.ends_with("; of the other kernels, 2 of 4 refused\n"),
        "{said}"
    );
}

/// Each file that cannot be read is told beside what is refused in the others.
#[test]
fn files_that_are_missing_leave_the_others_to_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.rs"), TEXT).unwrap();
    fs::write(folder.path().join("torn.rs"), "fn {").unwrap();
    fs::write(folder.path().join("none.rs"), "fn f() {}").unwrap();
    let (passed, said) = check(
        folder.path(),
        &["k.rs", "missing.rs", "torn.rs", "none.rs", "x.py"],
    );
    assert!(!passed);
    for part in [
        "--> k.rs:10:12",
        "--> torn.rs:1:",
        "error: missing.rs: No such file or directory (os error 2), torn.rs has a mistake, none.rs has no function marked #[kernel] or \
         #[ring_kernel], x.py: `perpetua check` takes Rust files, as k.rs, or options of `cargo build`, as -p NAME; of the other kernels, 2 of 5 \
         refused",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let (passed, said) = check(folder.path(), &["x.py"]);
    let expect =
        "error: x.py: `perpetua check` takes Rust files, as k.rs, or options of `cargo build`, as -p NAME\n";
    assert!(!passed);
    assert_eq!(said, expect);
}

#[test]
fn programs_of_packages_answer_and_none_runs() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let script = |name: &str, text: &str| {
        fs::write(place(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(place(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let built = |name: &str| {
        let path = place(name);
        format!(
            r#"echo '{{"reason":"compiler-artifact","executable":"{}"}}'"#,
            path.display()
        )
    };
    script(
        "cargo",
        &format!(
            "echo \"$@\" >> {}\nif [ $1 = locate-project ]; then echo {}; else\n{}\n{}\n{}\necho '{{\"reason\":\"build-finished\"}}'\nfi",
            place("asked").display(),
            place("Cargo.toml").display(),
            built("other"),
            built("one"),
            built("two"),
        ),
    );
    // One that does not know what is asked runs.
    script("other", &format!("touch {}", place("ran").display()));
    let answer = |lines: &str| {
        let text = lines.replace('|', r"\037");
        // In pieces: a program that holds all of it is taken for one that answers.
        let mark = ["PERPETUA_CHECK_KERNELS_1", "is answered"].join(" ");
        format!("# {mark}\nprintf '{text}' >> $PERPETUA_CHECK_KERNELS_1")
    };
    let start = TEXT.find("x[1].half_up()").unwrap();
    let refused = format!("refused||k.rs|10|{start}|{}|no method: write one\\n", start + 14);
    script(
        "one",
        &answer(&format!("kernel|fine|k.rs|4\\nkernel|stepped|k.rs|9\\n{refused}")),
    );
    script(
        "two",
        &answer(&format!("kernel|generic::<f32>|k.rs|25\\n{refused}")),
    );
    fs::write(place("k.rs"), TEXT).unwrap();

    let (passed, said) = check(folder.path(), &["-p", "demo"]);
    let path = place("k.rs");
    let expected = format!(
        "error: no method: write one\n  --> {}:10:12\n   |\n10 |     x[0] = x[1].half_up();\n   |            ^^^^^^^^^^^^^^\n\nerror: 2 of 3 kernels refused\n",
        path.display()
    );
    assert_eq!((passed, &*said), (false, &*expected));
    assert!(!place("ran").exists());
    let asked = fs::read_to_string(place("asked")).unwrap();
    let expected = "locate-project --workspace --message-format=plain\n\
        build --message-format=json-render-diagnostics --bins --examples --tests -p demo\n";
    assert_eq!(asked, expected);

    script("one", "true");
    script("two", "true");
    let (passed, said) = check(folder.path(), &["--lib"]);
    assert!(!passed, "{said}");
    assert!(said.contains("none of 3 programs knows its kernels"), "{said}");
    assert!(
        fs::read_to_string(place("asked"))
            .unwrap()
            .ends_with("diagnostics --lib\n")
    );
}
