//! What fuzzing has found and kept, run through the same functions (`fuzz/targets.rs`).
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../fuzz/targets.rs"]
mod targets;

fn each(folder: &str, run: fn(&[u8])) {
    let folder = format!("{}/fuzz/corpus/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut count = 0;
    for file in files {
        let path = file.expect("a file").path();
        run(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        count += 1;
    }
    assert!(count >= 290, "{folder} has {count} files");
}

#[test]
fn decoded() {
    each("decode", targets::decode);
}

#[test]
fn assembled() {
    each("assemble", targets::assemble);
}
