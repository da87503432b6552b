//! `--check`: one launch on everything there is.

use std::fs;

use crate::folder::{Folder, text};

/// What is given with --check and not done is refused by name.
#[test]
fn a_check_writes_nothing_and_says_so() {
    let folder = Folder::new();
    for option in ["--out y=y.npy", "--picture y", "--device 1"] {
        let line = format!("k.rs race --buffer y=zeros:1 --check {option}");
        let output = folder.command(&line).output().unwrap();
        let said = text(&output.stderr);
        let name = option.split(' ').next().unwrap();
        assert!(
            !output.status.success() && said.contains("cannot be used with") && said.contains(name),
            "{said}"
        );
    }
}

/// The interpreter and the CPU are everywhere; which others there are, the machine says.
#[test]
fn all_backends_are_compared_and_races_found() {
    let folder = Folder::new();
    let output = folder
        .command("k.rs saxpy --arg a=2 --buffer x=random:1000 --buffer y=ones:1000 --check")
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(
        said.starts_with("interpreter ") && said.contains("\ncpu          y: the same to the bit"),
        "{said}"
    );
    for backend in ["cuda", "wgpu"] {
        assert!(said.contains(&format!("\n{backend} ")), "{said}");
    }
    let output = folder
        .command("k.rs race --lanes 8 --buffer y=zeros:1 --check")
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("race"), "{said}");
    let output = folder.program("run k.rs saxpy --arg a=2 --buffer x=ones:4 --buffer y=ones:8 --check");
    let said = text(&output.stderr);
    let expect = "`saxpy` ended with a fault in the interpreter";
    assert!(!output.status.success() && said.contains(expect), "{said}");
}

/// What a backend lacks is no difference.
#[test]
fn a_backend_that_cannot_run_a_kernel_is_left_out() {
    let folder = Folder::new();
    let code =
        "#[kernel]\nfn waves(y: &mut [f64]) {\n    let i = global_id_x();\n    y[i] = (i as f64).sin();\n}\n";
    fs::write(folder.path().join("wide.rs"), code).unwrap();
    let output = folder.program("run wide.rs --buffer y=zeros:4 --check");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(
        said.contains("\ncpu          y: the same to the bit") && said.contains("\nwgpu         skipped: "),
        "{said}"
    );
}
