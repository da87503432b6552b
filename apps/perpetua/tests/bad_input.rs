//! What the program says to arguments and files that cannot be right: each ends with an error that names the cause, and writes nothing.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::Command;

#[test]
fn every_mistake_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let far =
        "size = [1.0, 1.0]\ncells = 48\n[[sources]]\nat = [9.0, 0.5]\nwave = \"sine\"\nfrequency = 1000.0\n";
    let long = "size = [1.0, 1.0]\ncells = 48\nduration = 1e300\n";
    let double =
        b"\x93NUMPY\x01\0\x3a\0{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n\0\0\0\0\0\0\0\0";
    let time = "size = [1.0, 1.0]\ncells = 48\ntime_step = 1e-3\n";
    let flat = "size = [1.0, 0.01]\ncells = 512\n";
    let source = |i: u32| {
        format!(
            "[[sources]]\nat = [0.5, {}]\nwave = \"impulse\"\n",
            0.05 * f64::from(i)
        )
    };
    let sources: String = (1..=17).map(source).collect();
    let many = format!("size = [1.0, 1.0]\ncells = 48\n{sources}");
    let files: [(&str, &[u8]); 14] = [
        ("key.toml", b"size = [1.0, 1.0]\n\"a\\nerror: b\" = 1\n"),
        ("short.txt", b"no state"),
        ("t.toml", b"["),
        ("long.toml", long.as_bytes()),
        ("far.toml", far.as_bytes()),
        ("time.toml", time.as_bytes()),
        ("flat.toml", flat.as_bytes()),
        ("many.toml", many.as_bytes()),
        ("empty.rs", b""),
        ("k.rs", b"#[kernel]\nfn k(y: &mut [u32]) { y[0] = 1; }\n"),
        (
            "open.rs",
            b"#[kernel]\nfn k(y: &mut [u32]) {\n    y[0] = (1;\n}\n",
        ),
        ("bin.rs", b"\xff\xfe"),
        ("double.npy", double),
        ("p.pasm", b".program p\n    frob.u32 r0\n"),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("dir")).unwrap();
    let count = || fs::read_dir(folder.path()).unwrap().count();
    let before = count();
    let check = |args: &str, expect: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(args.split(' ').map(|arg| if arg == "''" { "" } else { arg }))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
        assert!(
            output.status.code().is_some_and(|code| code < 3),
            "{args}: {:?}",
            output.status
        );
        assert_eq!(count(), before, "{args}");
    };
    for (args, expect) in [
        ("frobnicate", "unrecognized subcommand 'frobnicate'"),
        ("completions csh", "invalid value 'csh' for '<SHELL>'"),
        (
            "wave --backend tpu",
            "invalid value 'tpu' for '--backend <BACKEND>'",
        ),
        ("wave --backend cpu --device 7", "CPU device 7 not found"),
        ("wave --scene ''", "a value is required for '--scene <NAME|FILE>'"),
        (
            "wave --list-scenes --out x.png",
            "--out: --list-scenes runs nothing, so it would mean nothing",
        ),
        (
            "wave --print-scene --scene lens --size 100",
            "--size: --print-scene runs nothing",
        ),
        (
            "wave --print-scene --resume none.bin",
            "--resume: --print-scene runs nothing",
        ),
        (
            "wave lens",
            "a scene is named by an option: perpetua wave --scene lens",
        ),
        ("wave far.toml", "perpetua wave --scene far.toml"),
        ("wave --scene key.toml --backend cpu", "`a\\nerror: b`"),
        ("wave --checkpoint-every -1s", "as in 60s, 5m or 1h"),
        (
            "wave --resume short.txt",
            "short.txt: this is no checkpoint of a wave simulation",
        ),
        (
            "wave --scene lens --backend cpu --layer 3",
            "error: --layer 3: the scene has 1 layer",
        ),
        (
            "emit k.rs --target wgsl --block -1",
            "`-1`: it must be a whole number",
        ),
        (
            "emit k.rs --target wgsl --block 8x8",
            "a comma parts sizes here: 8,8",
        ),
        ("emit -", "-: name /dev/stdin, or ./- for a file of this name"),
        (
            "isa run p.pasm --untrusted --memory -1",
            "it must be a whole number from 0 to ",
        ),
        ("wave --scene dir", "--scene: dir is a folder; there are: "),
        ("wave --scene dir", "or name a file that ends in .toml or .png"),
        ("help wavve", "a similar subcommand exists: 'wave'"),
        ("wavve", "a similar subcommand exists: 'wave'"),
        (
            "wave bench --seconds -1",
            "invalid value '-1' for '--seconds <SECONDS>': it must be a number of seconds above 0, and below a million",
        ),
        ("wave --scene t.toml", "t.toml, line 1: "),
        (
            "wave --scene far.toml --backend cpu",
            "far.toml, line 4: `at` is at 9; the scene goes from 0 to 1",
        ),
        (
            "wave --backend cpu --size 0",
            "the size is 0; 8 to 1,048,576 cells are possible",
        ),
        ("wave --backend cpu --size 20000000", "the size is 20000000"),
        (
            "wave --size 99999999999999999999",
            "it must be a whole number from 8 to 1048576",
        ),
        ("wave --size 64.5", "it must be a whole number from 8 to 1048576"),
        ("wave --size -1", "it must be a whole number from 8 to 1048576"),
        (
            "wave --scene time.toml --backend cpu --size 60000",
            "--size 60000: the grid is [60000, 60000, 1] cells; at most 2,147,483,647 are possible: 46340 along x or less",
        ),
        ("wave --steps -1", "it must be a whole number from 0 to "),
        ("wave --layer -1", "it must be a whole number from 0 to "),
        (
            "wave --steps 18446744073709551615 --backend cpu",
            "at most 9007199254740992 are counted",
        ),
        (
            "wave --scene long.toml --backend cpu",
            "long.toml, line 3: `duration`: the duration is 1e300 s; it takes more than 9007199254740992 time steps",
        ),
        (
            "wave --scene time.toml --backend cpu",
            "time.toml, line 3: `time_step`: a time step of 1e-3 s is unstable",
        ),
        (
            "wave --scene flat.toml --backend cpu",
            "flat.toml, line 1: `size`: the grid's size in y is 5;",
        ),
        (
            "wave --scene flat.toml --backend cpu --size 100",
            "--size 100: the grid's size in y is 1;",
        ),
        (
            "wave --scene many.toml --backend cpu",
            "many.toml, line 51: the number of different sources",
        ),
        (
            "wave --scene many.toml --backend cpu --mode actors",
            "many.toml, line 15: the number of sources is 17; tile actors drive up to 4",
        ),
        ("wave --range 1e300", "it must be a number from 1.2e-38 to 3.4e38"),
        (
            "wave --frames 5 --backend cpu",
            "say where with --animate FILE or --video FILE",
        ),
        (
            "wave --device 7",
            "--backend auto takes the first that has devices",
        ),
        (
            "wave --out -",
            "--out -: name /dev/stdout, or ./- for a file of this name",
        ),
        ("wave --video v", "--video v: name a file that ends in .mp4, .m4v"),
        (
            "wave --video v.xyz",
            "--video v.xyz: name a file that ends in .mp4",
        ),
        ("wave --steps x", "invalid value 'x' for '--steps <STEPS>'"),
        (
            "wave --backend cpu --time-step nan",
            "it must be a number of seconds above 0, and finite",
        ),
        (
            "wave --backend cpu --time-step 0",
            "it must be a number of seconds above 0",
        ),
        ("wave --backend cpu --time-step 1", "the largest stable one is"),
        ("wave --frames 0", "0 is not in 1..=100000"),
        ("wave --range 0", "it must be a number above 0, and finite"),
        (
            "wave --backend cpu --out dir",
            "--out dir: this is a folder; name a file",
        ),
        (
            "wave --backend cpu --out ''",
            "a value is required for '--out <FILE>'",
        ),
        ("wave --resume none.bin", "reading none.bin: No such file"),
        ("wave --resume dir", "--resume: reading dir: Is a directory"),
        (
            "wave --resume /dev/zero",
            "--resume: reading /dev/zero: this is a device; name a file",
        ),
        (
            "wave --resume k.rs",
            "--resume k.rs: this is no checkpoint of a wave simulation",
        ),
        (
            "wave --backend cpu --checkpoint-every 1m",
            "say where with --checkpoint FILE",
        ),
        (
            "wave --backend cpu --plot p.svg --probes p.svg",
            "this is where --probes lies; name another file",
        ),
        ("wave --print-scene --scene none", "`none` is no built-in scene"),
        ("run saxpy.pasm", "`perpetua isa run saxpy.pasm` runs it"),
        (
            "isa run k.rs --lanes 1",
            "`perpetua run k.rs` launches its kernels",
        ),
        ("run k.rs --lanes 5x4", "a comma parts sizes here: 5,4"),
        (
            "run k.rs --buffer y=double.npy",
            "double.npy has elements of type f64, the buffer has u32: save its `.astype(\"u4\")`",
        ),
        (
            "wave --mode actors --video v.mp4",
            "--video: tile actors cannot do that yet",
        ),
        ("wave --mode fly", "[possible values: launch, actors]"),
        ("wave bench --size 0 --backend cpu", "the grid's size in x is 0"),
        ("wave bench --backend none", "invalid value 'none'"),
        (
            "bench crossover --backend cpu",
            "--backend cpu: it is the CPU, which GPUs are held against",
        ),
        (
            "bench crossover --plot c.gif",
            "--plot c.gif: what is written is SVG or PNG",
        ),
        ("bench crossover --sizes 0", "0 is not in 1..=268435456"),
        (
            "wave bench --size 64 256 --backend cpu",
            "unexpected argument '256'",
        ),
        (
            "wave bench --scene moon --backend cpu",
            "there is no scene `moon`",
        ),
        (
            "run k.rs --buffer y=/dev/zero --backend cpu",
            "--buffer y: /dev/zero: this is a device; name a file",
        ),
        (
            "run /dev/zero --backend cpu",
            "/dev/zero: this is a device; name a file",
        ),
        (
            "run k.rs --buffer y=ones:1 --time-limit 0s",
            "invalid value '0s' for '--time-limit <TIME>': it must be above 0",
        ),
        ("emit", "<FILE>"),
        ("emit none.rs", "none.rs: No such file"),
        ("emit dir", "dir: Is a directory"),
        ("emit empty.rs", "empty.rs has no function marked #[kernel]"),
        ("emit bin.rs", "bin.rs: stream did not contain valid UTF-8"),
        ("emit open.rs", "this `(` is not closed"),
        ("emit open.rs", "--> open.rs:3:12"),
        ("emit k.rs other", "k.rs has no kernel `other`; it has: k"),
        ("emit k.rs k::<f32", "lacks its closing >"),
        (
            "emit k.rs k::<f32>",
            "`k` is not generic: leave its arguments out",
        ),
        (
            "emit k.rs --target spirv",
            "[possible values: ptx, cuda-c, wgsl, msl, cpu, ir]",
        ),
        ("emit k.rs --sm 13", "`13` is no compute capability times ten"),
        (
            "emit k.rs --target wgsl --block 0",
            "a block needs a lane at least along each axis",
        ),
        (
            "emit k.rs --target wgsl --block 1,1,1,1",
            "these are 4 sizes; a block has one to three",
        ),
        (
            "emit k.rs --target ptx --block 64",
            "--block says something to --target wgsl only",
        ),
        ("emit k.rs --batched", "--handler <NAME>"),
        ("emit k.rs saxpy --batched", "cannot be used with"),
        (
            "emit k.rs --out-dir k.rs",
            "--out-dir k.rs: this is no folder; name one",
        ),
    ] {
        check(args, expect);
    }
    #[cfg(feature = "actors")]
    for (args, expect) in [
        (
            "emit k.rs --handler h",
            "k.rs has no function marked #[ring_kernel]",
        ),
        ("emit k.rs --handler h --out-dir dir", "cannot be used with"),
        (
            "top nobody",
            "invalid value 'nobody' for '[PID]': it must be the number of a process",
        ),
    ] {
        check(args, expect);
    }
    #[cfg(feature = "isa")]
    for (args, expect) in [
        ("isa run none.pasm --lanes 1", "none.pasm: No such file"),
        ("isa run p.pasm --lanes 1", "`frob.u32` is not an instruction"),
        ("isa asm p.pasm", "--> p.pasm:2:5"),
    ] {
        check(args, expect);
    }
}

/// Names that command terminals do nothing to one, also where mistakes are underlined: colours are on, as they are in a terminal.
#[test]
fn names_of_files_are_written_out() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "#[kernel]\nfn k(y: &mut [u32]) {\n    y[0] = \"a\";\n}\n";
    let wrong = "#[kernel]\nfn k(y: &mut [u32]) {\n    y[0] = 1.5;\n}\n";
    let good = "#[kernel]\nfn k(y: &mut [u32]) {\n    y[1] = 1;\n}\n";
    let program = ".program p\n.buffer x: u32\n    stg.u32 x[5], 1\n";
    let name = |kind: &str, extension: &str| format!("{kind}\u{1b}[35m\u{7}\n.{extension}");
    for (kind, extension, text) in [
        ("bad", "rs", bad),
        ("wrong", "rs", wrong),
        ("good", "rs", good),
        ("empty", "rs", ""),
        ("p", "pasm", program),
        ("q", "pasm", ".program q\n    frob.u32 r0\n"),
    ] {
        fs::write(folder.path().join(name(kind, extension)), text).unwrap();
    }
    let check = |command: &str, kind: &str, extension: &str, more: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(command.split(' '))
            .arg(name(kind, extension))
            .args(more.split_whitespace())
            .current_dir(folder.path())
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap();
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        let is_said = shown.contains(&format!("{kind}\\u{{1b}}[35m\\u{{7}}\\n.{extension}"));
        let commands = ["\u{1b}[35m", "\u{7}"].iter().any(|part| shown.contains(part));
        assert!(is_said && !commands, "{command} {kind}: {shown:?}");
    };
    for args in [
        &["run", "@", "--buffer", "y=no@.npy"][..],
        &["run", "@", "--buffer", "y=zeros:@"],
        &["run", "@", "--buffer", "@"],
        &["run", "@", "--buffer", "@=zeros:1"],
        &["run", "@", "--buffer", "y=zeros:1", "--arg", "@=1"],
        &["run", "@", "--buffer", "y=zeros:1", "--size", "@"],
        &["run", "@", "no@"],
        &["run", "@", "k::<@>", "--buffer", "y=zeros:1"],
        &["emit", "@", "--handler", "h@"],
        &["emit", "@", "--sm", "@"],
        &["emit", "@", "--target", "wgsl", "--block", "@"],
        &["emit", "@", "--target", "@"],
        &["explain", "@", "--@"],
        &["@"],
        &["wave", "--scene", "@"],
        &["wave", "--scene", "@.toml"],
        &["wave", "--size", "@"],
        &["wave", "--resume", "@"],
        &["wave", "bench", "--scene", "@"],
        &["isa", "run", "@.pasm"],
        &["isa", "lib", "@"],
        &["isa", "serve", "@"],
        &["top", "@"],
    ] {
        let bad = "a\u{1b}[35m\u{7}\n\u{202e}\u{200f}";
        let output = Command::new(env!("CARGO_BIN_EXE_perpetua"))
            .args(args.iter().enumerate().map(|(i, arg)| match (i, *arg) {
                (1, "@") if args[0] != "top" => name("good", "rs"),
                (_, arg) => arg.replace('@', bad),
            }))
            .current_dir(folder.path())
            .env("CLICOLOR_FORCE", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let commands = [
            "\u{1b}[35m",
            "\u{7}",
            "\n\u{202e}",
            "\n\\u{202e}",
            "\u{202e}",
            "\u{200f}",
        ];
        let commands = commands.iter().any(|part| said.contains(part));
        assert!(!output.status.success() && !commands, "{args:?}: {said:?}");
    }
    check("emit", "bad", "rs", "");
    check("emit", "wrong", "rs", "");
    check("emit", "empty", "rs", "");
    check("run", "bad", "rs", "--backend cpu --buffer y=ones:1");
    check("run", "good", "rs", "--backend cpu --buffer y=ones:1");
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        check("explain", "wrong", "rs", "");
        check("explain", "good", "rs", "");
    }
    if cfg!(feature = "isa") {
        check("isa capture", "wrong", "rs", "");
        check(
            "isa run",
            "p",
            "pasm",
            "--backend cpu --buffer x=ones:1 --lanes 1",
        );
        check("isa run", "q", "pasm", "--lanes 1");
    }
}
