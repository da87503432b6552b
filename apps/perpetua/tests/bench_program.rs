//! `perpetua bench` as a user meets it: the table, the files beside it, and what it says when something is wrong.
#![cfg(feature = "kernels")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

fn bench(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perpetua"));
    command.current_dir(folder).arg("bench").args(args);
    command.args(["--backend", "cpu", "--seconds", "0.001"]);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each kind with a small shape: what its rows are called, and how many there are of a shape and type.
#[test]
fn each_kind_has_a_table_a_file_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, shape, types, names) in [
        ("gemm", "33x20x17", "f32,f16", &["product"][..]),
        ("attention", "40x32", "f32", &["full", "causal"]),
        (
            "norm",
            "7x100",
            "f32,bf16",
            &["softmax", "layer norm", "RMS norm", "cross entropy"],
        ),
        ("quant", "32x256", "q4_k,q8_0", &["vector", "matrix"]),
        (
            "memory",
            "1",
            "f32",
            &["copy", "fill", "scale", "from the host", "to the host"],
        ),
    ] {
        let (csv, svg) = (format!("{kind}.csv"), format!("{kind}.svg"));
        let args = [
            kind, "--shape", shape, "--type", types, "--csv", &csv, "--plot", &svg,
        ];
        let output = bench(folder.path(), &args);
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        let is_file = |line: &str| line.starts_with("wrote ");
        assert!(
            output.status.success() && errors.lines().all(is_file),
            "{kind}: {errors}"
        );
        assert!(
            out.contains("at best: a copy") && out.contains("of best"),
            "{out}"
        );
        let csv = std::fs::read_to_string(folder.path().join(csv)).unwrap();
        let count = types.split(',').count() * names.len();
        assert_eq!(csv.lines().count(), 1 + count, "{csv}");
        for row in csv.lines().skip(1) {
            let cells: Vec<&str> = row.rsplit(',').collect();
            let [reached, bytes, _, seconds, at, of, name, ..] = cells[..] else {
                panic!("{row}");
            };
            assert!(
                names.contains(&name) && types.contains(of) && at == shape,
                "{row}"
            );
            assert!(seconds.parse::<f64>().unwrap() > 0.0 && bytes.parse::<f64>().unwrap() > 0.0);
            // Of this device it is known but for tensor cores, and for what comes from the host.
            let is_known = !name.ends_with("the host") && (kind, of) != ("gemm", "f16");
            assert_eq!(!reached.is_empty(), is_known, "{row}");
        }
        let svg = std::fs::read_to_string(folder.path().join(svg)).unwrap();
        assert_eq!(svg.contains("at best, f32"), kind != "memory", "{kind}");
    }
}

#[test]
fn a_plot_may_be_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["memory", "--shape", "1", "--plot", "memory.png"];
    let output = bench(folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = std::fs::File::open(folder.path().join("memory.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert!(info.width > 1000 && info.height == 920, "{info:?}");
    // The first curve's colour is there, on white.
    let colors: std::collections::HashSet<&[u8]> = pixels.chunks(3).collect();
    assert!(colors.contains(&[0x00, 0x72, 0xb2][..]) && colors.contains(&[255; 3][..]));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (
            &["gemm", "--shape", "3x4"][..],
            "--shape 3x4: a shape of this kind has 1 or 3 sizes, not 2",
        ),
        (
            &["norm", "--shape", "3"],
            "a shape of this kind has 2 sizes, not 1",
        ),
        (&["norm", "--shape", "3x0"], "sizes are whole numbers from 1 on"),
        (
            &["gemm", "--type", "f64"],
            "there are f32, tf32, f16, bf16, e4m3, i8",
        ),
        (
            &["quant", "--type", "q2_k"],
            "there are q4_0, q8_0, q4_k, q5_k, q6_k",
        ),
        (&["memory", "--plot", "x.bmp"], ".svg"),
        (&["convolution"], "unrecognized subcommand"),
    ] {
        let output = bench(folder.path(), args);
        let errors = text(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(expected),
            "{args:?}: {errors}"
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn what_is_tuned_is_kept_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("choices.txt");
    let tune = |choices: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perpetua"));
        command
            .current_dir(folder.path())
            .env("PERPETUA_CHOICES", choices);
        command.args([
            "bench", "gemm", "--shape", "33x20x17", "--type", "f16,f32", "--tune",
        ]);
        command
            .args(["--backend", "cpu", "--seconds", "0.001"])
            .output()
            .unwrap()
    };
    for _twice in 0..2 {
        let output = tune(&file);
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{errors}");
        assert!(
            out.contains("f16 33x20x17: tiles of 128 x ") && out.contains("choices.txt"),
            "{out}"
        );
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(kept.lines().count(), 2, "{kept}");
        assert!(kept.contains("\tcolumns F16 F16 NN 33x20x17 1\t128x"), "{kept}");
    }
    std::fs::write(&file, "mine\n").unwrap();
    let output = tune(&file);
    let errors = text(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("its first line is not"),
        "{errors}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
    let output = tune(Path::new("off"));
    let errors = text(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("PERPETUA_CHOICES=FILE"),
        "{errors}"
    );
}
