//! README's lines for a shell, as they stand: those of the program are run, of the others it is looked up whether what they name is there.

use std::fs;
use std::path::Path;

use super::folder::*;

/// Words that make a line end soon.
const SHORTER: [(&str, &str); 6] = [
    ("perpetua wave     ", "--steps 20"),
    ("perpetua wave --range ", "--steps 20"),
    ("perpetua wave --scene lens ", "--steps 20 --frames 2"),
    ("perpetua wave --size 4096 ", "--steps 2"),
    ("perpetua wave --resume ", "--steps 4"),
    (
        "perpetua wave bench",
        "--size 64 --cube 8 --scene none --seconds 0.01",
    ),
];

/// What needs a screen, or a program to look at.
const ELSEWHERE: [&str; 2] = ["perpetua wave --window", "perpetua top"];

#[test]
fn readmes_lines_run_as_they_stand() {
    let readme = include_str!("../../../../README.md");
    assert!(readme.lines().count() < 150, "a newcomer reads it to its end");
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(root.join("crates"), folder.path().join("crates")).unwrap();
    let blocks = |language: &'static str| {
        let all = readme.split("```").skip(1).step_by(2);
        all.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
    };
    let kernel = blocks("rust").next().unwrap();
    fs::write(folder.path().join("saxpy.rs"), kernel).unwrap();
    let lines: Vec<&str> = blocks("sh").flat_map(str::lines).collect();
    for start in SHORTER.iter().map(|(start, _)| start).chain(&ELSEWHERE) {
        let count = lines.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!(count, 1, "{start}");
    }
    let is_there = |feature: &str| match feature {
        "isa" => cfg!(feature = "isa"),
        "emit" => cfg!(feature = "actors"),
        _ => true,
    };
    for line in lines {
        let (words, comment) = line.split_once('#').unwrap_or((line, ""));
        let words = words.trim();
        if let Some(example) = words.split("--example ").nth(1) {
            let name = example.split(' ').next().unwrap();
            let examples = root.join("crates/perpetua/examples");
            let found = [format!("{name}.rs"), format!("{name}/main.rs")];
            assert!(found.iter().any(|file| examples.join(file).exists()), "{line}");
        }
        let Some(args) = words.strip_prefix("perpetua ") else {
            let tools = ["cargo ", "rustup ", "python3 ", "PERPETUA_TOP=1 cargo "];
            assert!(tools.iter().any(|tool| words.starts_with(tool)), "{line}");
            continue;
        };
        if ELSEWHERE.iter().any(|start| line.starts_with(start))
            || !is_there(args.split(' ').next().unwrap_or_default())
        {
            continue;
        }
        let shorter = SHORTER.iter().find(|(start, _)| line.starts_with(start));
        let more = shorter.map_or("", |(_, more)| more);
        let args = args.split(' ').filter(|arg| *arg != "--watch");
        let args: Vec<&str> = args.chain(more.split_whitespace()).collect();
        // Programs that tests build take a minute for so many cells.
        let args = args.join(" ").replace("--size 4096", "--size 256");
        let mut command = folder.words(&args);
        // What the program knows of its user stays here.
        let output = command.env("XDG_STATE_HOME", folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        if comment.trim().starts_with("y = ") {
            assert_eq!(text(&output.stdout).trim(), comment.trim());
        }
    }
    for file in ["y.npy", "y.png", "wave.png", "lens.png", "state.bin"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}
