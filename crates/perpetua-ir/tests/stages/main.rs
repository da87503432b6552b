//! Products in stages: what the verifier refuses, how the text form says them, that the interpreter computes them and reports who waits for ever,
//! and that lanes which fault keep nobody waiting.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chains;
mod elements;

use half::bf16;
use perpetua_cpu::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig};
use perpetua_ir::ir::Kernel;
use perpetua_ir::verify::verify;

const HEAD: &str = "kernel k(a: buffer<bf16, read>, b: buffer<bf16, read>, c: buffer<f32, read_write>, m: u64, n: u64, k: u64, l: u64, d: u64)";
const BLOCK: &str = "block_size(256, 1, 1)";
const STAGES: &str = "stages(2, bf16, along(64, a, m, k, k), along(64, b, n, k, k))";

/// A chain: of 64 rows of A with 64 of B, and of weights with 64 rows of B again, 64 columns of it.
const CHAIN: &str =
    "stages(2, bf16, along(64, a, m, k, k), along(64, b, n, k, k), across(64, b, n, k, k), 128 deep)";

/// Twins: of 64 rows of A with 64 of B, and of these with those.
const TWINS: &str = "stages(2, bf16, along(64, a, m, k, k), along(64, b, n, k, k), twins, along(64, b, n, k, k), along(64, a, m, k, k), 128 deep)";

/// One of the matrices in A with one of those in B.
const LAYERS: &str = "stages(2, bf16, along(64, a, m, k, k, l, d), along(64, b, n, k, k, l, d))";

/// So many stages filled and multiplied, one behind the other; `before` and `behind` stand around the `if`, `last` at the end of the code of
/// those that multiply.
fn body(filled: usize, multiplied: usize, [before, last, behind]: [&str; 3]) -> String {
    let mut text = format!(
        "%0: u32 = const 0\n  %1: u32 = const 64\n  {before}\n  %2: bool = is_producer\n  if %2 {{\n"
    );
    for i in 0..filled {
        text += &format!(
            "    %{}: u32 = const {}\n    fill_stage %0, %0, %{}\n",
            10 + i,
            64 * i,
            10 + i
        );
    }
    text += "  } else {\n    %50: [[[f32; 2]; 2]; 8] = zero\n";
    for i in 0..multiplied {
        text += &format!(
            "    %{}: [[[f32; 2]; 2]; 8] = multiply_stage %{}\n",
            51 + i,
            50 + i
        );
    }
    text + &format!("    {last}\n  }}\n  {behind}")
}

fn text(head: &str, attributes: &str, body: &str) -> String {
    dense(&format!("{head} {attributes} {{\n  {body}\n}}\n"))
}

/// The text with its values numbered without gaps, in the order in which they come.
fn dense(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        out += &format!("%{at}{rest}");
    }
    out
}

fn ordinary(body: &str) -> String {
    text(HEAD, &format!("{BLOCK} {STAGES}"), body)
}

/// Stores this lane's first sum, of the last of so many products, at its number, if `at` says nothing else.
fn stores(multiplied: usize, at: &str) -> String {
    let sums = 50 + multiplied;
    format!(
        "%80: u32 = thread_idx.x\n    {at}\n    %82: [[f32; 2]; 2] = extract %{sums}.0\n    %83: [f32; 2] = extract %82.0\n    %84: f32 = extract %83.0\n    store c[%81], %84"
    )
}

const OWN: &str = "%81: u32 = sub %80, %85";

/// Runs a kernel on a 64 x `k` matrix of numbers times the transpose of another one; gives what it did and C.
fn run(body: &str, k: usize, len: usize) -> (Result<(), InterpError>, Vec<f32>) {
    run_with(STAGES, body, k, len)
}

fn run_with(stages: &str, body: &str, k: usize, len: usize) -> (Result<(), InterpError>, Vec<f32>) {
    let text = text(HEAD, &format!("{BLOCK} {stages}"), body);
    let verified = verify(text.parse::<Kernel>().unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap();
    let interpreter = Interpreter::new(&verified).unwrap();
    let mut a: Vec<u16> = (0..64 * k)
        .map(|i| bf16::from_f32((i % 11) as f32).to_bits())
        .collect();
    let mut b: Vec<u16> = (0..64 * k)
        .map(|i| bf16::from_f32((i % 7) as f32).to_bits())
        .collect();
    let mut c = vec![-1.0f32; len];
    let (sixty_four, k, one) = (64u64.to_ne_bytes(), (k as u64).to_ne_bytes(), 1u64.to_ne_bytes());
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut a)),
        Arg::Buffer(BufferRef::from_slice(&mut b)),
        Arg::Buffer(BufferRef::from_slice(&mut c)),
        Arg::Value(&sixty_four),
        Arg::Value(&sixty_four),
        Arg::Value(&k),
        Arg::Value(&one),
        Arg::Value(&k),
    ];
    let done = interpreter.launch(&LaunchConfig::new([1, 1, 1], [256, 1, 1], &args));
    (done, c)
}

#[test]
fn text_reads_as_it_prints() {
    let stages = "stages(3, f16, across(128, a, m, k, k), along(256, b, n, k, k))";
    let head = HEAD.replace("bf16", "f16");
    let pairs = stages.replace("k, k))", "k, k), pairs)");
    for text in [
        ordinary(&body(1, 1, [""; 3])),
        text(&head, stages, "return"),
        text(&head, &pairs, "return"),
        text(HEAD, &format!("{BLOCK} {CHAIN}"), "return"),
        text(HEAD, &format!("{BLOCK} {TWINS}"), "return"),
        text(HEAD, LAYERS, "return"),
        text(
            HEAD,
            "stages(2, e4m3, along(64, a, m, k, k), along(64, b, n, k, k))",
            "return",
        ),
        text(
            HEAD,
            "stages(2, tf32, along(64, a, m, k, k), along(64, b, n, k, k), 64 deep)",
            "return",
        ),
    ] {
        let kernel: Kernel = text.parse().unwrap();
        assert_eq!(
            kernel.to_string().parse::<Kernel>().as_ref(),
            Ok(&kernel),
            "{kernel}"
        );
    }
    for (stages, expected) in [
        ("stages(2, bf16, along(64, a, m, k, k))", "`,`"),
        (
            "stages(2, bf16, beside(64, a, m, k, k), along(64, b, n, k, k))",
            "`along` or `across`",
        ),
        (
            "stages(2, f64, along(64, a, m, k, k), along(64, b, n, k, k))",
            "what is multiplied, such as `bf16` or `e4m3`",
        ),
        (
            "stages(2, bf16, along(64, a, m, k, x), along(64, b, n, k, k))",
            "the name of a parameter",
        ),
    ] {
        let error = text(HEAD, stages, "return")
            .parse::<Kernel>()
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: String, expected: &str| {
        let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        match verify(kernel) {
            Err(errors) if errors.to_string().contains(expected) => {}
            Err(errors) => panic!("{errors}\nnot: {expected}"),
            Ok(_) => panic!("passed: {expected}\n{text}"),
        }
    };
    let declared =
        |stages: &str, expected: &str| refused(text(HEAD, &format!("{BLOCK} {stages}"), "return"), expected);
    declared(
        "stages(0, bf16, along(64, a, m, k, k), along(64, b, n, k, k))",
        "the number of stages is 0",
    );
    declared(
        "stages(2, bf16, along(192, a, m, k, k), along(64, b, n, k, k))",
        "it is a multiple of 64 up to 128",
    );
    declared(
        "stages(2, tf32, along(64, a, m, k, k), along(64, b, n, k, k))",
        "the left factor is no parameter of type &[f32]",
    );
    for (element, memory) in [("tf32", "f32"), ("e4m3", "u8"), ("e5m2", "u8"), ("i8", "i8")] {
        for (left, right) in [("across", "along"), ("along", "across")] {
            let stages =
                format!("{BLOCK} stages(2, {element}, {left}(64, a, m, k, k), {right}(64, b, n, k, k))");
            refused(
                text(&HEAD.replace("bf16", memory), &stages, "return"),
                &format!("factors of {element} are two, whose depth goes along rows"),
            );
        }
    }
    refused(
        text(
            &HEAD.replace("bf16", "f32"),
            &format!(
                "{BLOCK} {}",
                CHAIN.replace("bf16", "tf32").replace("128 deep", "64 deep")
            ),
            "return",
        ),
        "factors of tf32 are two",
    );
    let of_int = format!("{BLOCK} {}", STAGES.replace("bf16", "i8"));
    refused(
        text(&HEAD.replace("bf16", "i8"), &of_int, &body(1, 1, [""; 3])),
        "adds to the sums of a lane, which are [[[i32; 2]; 2]; 8]",
    );
    declared(
        "stages(2, bf16, along(96, a, m, k, k), along(64, b, n, k, k))",
        "the extent of the left factor is 96",
    );
    declared(
        "stages(2, bf16, along(64, c, m, k, k), along(64, b, n, k, k))",
        "the left factor is no parameter of type &[bf16]",
    );
    declared(
        "stages(2, bf16, along(64, a, m, k, k), along(64, b, n, k, a))",
        "pitch and layers of the right factor",
    );
    declared(
        "stages(2, bf16, along(64, a, m, k, k), along(64, b, n, k, k), 128 deep)",
        "stages are 128 deep, of bf16 64 are possible, and in a chain of three factors, or of twins, 256",
    );
    declared(&CHAIN.replace("128 deep", "96 deep"), "stages are 96 deep");
    declared(
        &CHAIN.replace("across(64", "across(320"),
        "the extent of the third factor is 320",
    );
    declared(
        &CHAIN.replace("along(64, b", "along(256, b"),
        "a right factor of an extent of up to 128",
    );
    declared(&CHAIN.replace("128 deep", "pairs"), "have no pairs of blocks");
    declared(
        &CHAIN.replace("across(64, b", "across(64, c"),
        "the third factor is no parameter",
    );
    let weighs = body(1, 1, ["", "%60: [[[f32; 2]; 2]; 8] = weigh_stage %50, %51", ""]);
    refused(
        ordinary(&weighs),
        "`weigh_stage` needs a third factor or twins: call `stage_third` or `stage_twins`",
    );
    for twin in ["multiply_twin %50", "weigh_twin %50, %51"] {
        let twin = body(1, 1, ["", &format!("%60: [[[f32; 2]; 2]; 8] = {twin}"), ""]);
        refused(ordinary(&twin), "needs twins: call `stage_twins`");
    }
    refused(
        text(HEAD, &format!("{BLOCK} {TWINS}"), &weighs),
        "which are [[[f32; 2]; 2]; 16], and weights, which are [[[f32; 2]; 2]; 8] here",
    );
    for other in [
        TWINS.replace("twins, along(64", "twins, along(128"),
        TWINS.replace("twins, along", "twins, across"),
        TWINS.replace("twins", "across(64, b, n, k, k), twins"),
    ] {
        declared(&other, "twins are two products of the same extents");
    }
    declared(
        &TWINS.replace("along(64, b, n, k, k), twins", "along(192, b, n, k, k), twins"),
        "a right factor of an extent of up to 128",
    );
    declared(&TWINS.replace("128 deep", "pairs"), "have no pairs of blocks");
    let chain = CHAIN.replace("along(64, b", "along(128, b");
    refused(
        text(HEAD, &format!("{BLOCK} {chain}"), &weighs),
        "`multiply_stage` adds to the sums of a lane, which are [[[f32; 2]; 2]; 16] here",
    );
    let wide = weighs
        .replacen("zero\n", "zero\n    %49: [[[f32; 2]; 2]; 16] = zero\n", 1)
        .replace("%50, %51", "%50, %49");
    refused(
        text(HEAD, &format!("{BLOCK} {CHAIN}"), &wide),
        "which are [[[f32; 2]; 2]; 8], and weights, which are [[[f32; 2]; 2]; 8] here",
    );
    refused(
        text(
            HEAD,
            &format!("{BLOCK} {CHAIN}"),
            &body(
                1,
                1,
                [
                    "%3: [[[f32; 2]; 2]; 8] = zero\n  %4: [[[f32; 2]; 2]; 8] = weigh_stage %3, %3",
                    "",
                    "",
                ],
            ),
        ),
        "the second one multiplies",
    );
    declared(
        "stages(16, bf16, along(64, a, m, k, k), along(256, b, n, k, k))",
        "use fewer",
    );
    refused(
        text(HEAD, &format!("block_size(128, 1, 1) {STAGES}"), "return"),
        "fix the block size at 256",
    );
    refused(
        format!("shared s: [f32]\n{}", ordinary("return")),
        "has no dynamic shared memory",
    );
    refused(text(HEAD, BLOCK, &body(1, 1, [""; 3])), "call `stage_factors`");

    let placed = |text: &str, expected: &str| refused(ordinary(text), expected);
    placed(
        "%0: u32 = const 0\n  fill_stage %0, %0, %0",
        "stands in the code of a team",
    );
    placed(
        &body(1, 1, ["", "fill_stage %0, %0, %0", ""]),
        "the second one multiplies",
    );
    placed(&body(1, 1, ["", "barrier", ""]), "whose teams have parted");
    placed(&body(1, 1, ["", "", "barrier"]), "whose teams have parted");
    placed(&body(1, 1, ["", "", "%3: bool = is_producer"]), "asked once");
    placed(
        &body(1, 1, ["", "%3: bool = not %2", ""]),
        "the condition of one `if`",
    );
    placed(
        "%0: [[[f32; 2]; 2]; 16] = zero\n  %1: bool = is_producer\n  if %1 {\n  } else {\n    %2: [[[f32; 2]; 2]; 16] = multiply_stage %0\n  }",
        "adds to the sums of a lane, which are [[[f32; 2]; 2]; 8]",
    );
    // What a function does is seen, too.
    let inner = "fn inner() {\n  barrier\n}\nfn outer() {\n  %0: () = call inner()\n}\n";
    let calls = body(1, 1, ["", "%3: () = call outer()", ""]);
    refused(
        format!("{inner}{}", ordinary(&calls)),
        "`inner` brings lanes together whose teams have parted",
    );
    let early = body(1, 1, [""; 3]).replacen("  } else", "    return\n  } else", 1);
    placed(&early, "must not return while they are on their way");
    let paired = format!("{BLOCK} stages(2, bf16, along(64, a, m, k, k), along(128, b, n, k, k), pairs)");
    let code = "%0: bool = is_producer\n  if %0 {\n  } else {\n    return\n  }";
    refused(text(HEAD, &paired, code), "must not return");
    declared(
        "stages(2, bf16, along(64, a, m, k, k), across(64, b, n, k, k), pairs)",
        "cannot divide an extent of 64",
    );
    // Not all lanes of the team would come.
    let some = "%60: u32 = thread_idx.x\n    %61: bool = lt %60, %1\n    if %61 {\n      %62: [[[f32; 2]; 2]; 8] = multiply_stage %51\n    }";
    placed(&body(2, 1, ["", some, ""]), "thread_idx.x");
    // All of them do in what the launch decides.
    let all = "%60: u32 = block_idx.x\n    %61: bool = lt %60, %1\n    if %61 {\n      %62: [[[f32; 2]; 2]; 8] = multiply_stage %51\n    }";
    verify(ordinary(&body(2, 1, ["", all, ""])).parse::<Kernel>().unwrap()).unwrap();
}

#[test]
fn products_are_computed() {
    for turns in 1..5 {
        let k = 64 * turns - 24;
        let body = body(turns, turns, ["%85: u32 = const 128", &stores(turns, OWN), ""]);
        let (done, c) = run(&body, k, 128);
        done.unwrap();
        for (lane, found) in c.into_iter().enumerate() {
            // Of a lane's sums the first one.
            let (row, column) = (lane / 4 + lane / 32 * 8, lane % 4 * 2);
            let sum: usize = (0..k).map(|i| (row * k + i) % 11 * ((column * k + i) % 7)).sum();
            assert_eq!(found, sum as f32, "lane {lane} of {turns} turns");
        }
    }
}

/// Of four matrices of 60 rows the third one's are taken, or the fourth one's: behind the last row are zeros, and no other matrix is read.
#[test]
fn layers_are_told_apart() {
    let k = 64usize;
    let (rows, apart, layers) = (60usize, 60 * k, 4usize);
    for [of_left, of_right] in [[2usize, 3], [3, 0], [4, 1]] {
        let body = body(1, 1, ["%85: u32 = const 128", &stores(1, OWN), ""]).replace(
            "    fill_stage %0, %0, %10",
            &format!("    %90: u32 = const {of_left}\n    %91: u32 = const {of_right}\n    fill_stage_of %90, %91, %0, %0, %10"),
        );
        let text = text(HEAD, &format!("{BLOCK} {LAYERS}"), &body);
        let verified = verify(text.parse::<Kernel>().unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap();
        let number = |i: usize, by: usize| match i / apart {
            layer if layer == if by == 11 { of_left } else { of_right } => (i % by) as f32,
            _ => f32::NAN,
        };
        let stored = |by: usize| -> Vec<u16> {
            (0..layers * apart)
                .map(|i| bf16::from_f32(number(i, by)).to_bits())
                .collect()
        };
        let (mut a, mut b, mut c) = (stored(11), stored(7), vec![-1.0f32; 128]);
        let words = [rows, rows, k, layers, apart].map(|n| (n as u64).to_ne_bytes());
        let mut args = vec![
            Arg::Buffer(BufferRef::from_slice(&mut a)),
            Arg::Buffer(BufferRef::from_slice(&mut b)),
            Arg::Buffer(BufferRef::from_slice(&mut c)),
        ];
        args.extend(words.iter().map(|word| Arg::Value(word)));
        let interpreter = Interpreter::new(&verified).unwrap();
        interpreter
            .launch(&LaunchConfig::new([1, 1, 1], [256, 1, 1], &args))
            .unwrap();
        for (lane, found) in c.into_iter().enumerate() {
            let (row, column) = (lane / 4 + lane / 32 * 8, lane % 4 * 2);
            let sum: f32 = (0..k)
                .map(|i| {
                    number(of_left * apart + row * k + i, 11) * number(of_right * apart + column * k + i, 7)
                })
                .sum();
            // There are four matrices: what the fifth would be is zeros.
            let expected = if row < rows && of_left < layers { sum } else { 0.0 };
            assert_eq!(found, expected, "lane {lane} of {of_left} and {of_right}");
        }
    }
}

#[test]
fn waiting_for_ever_is_reported() {
    // Two stages are filled before anyone multiplies.
    for (filled, multiplied, expected) in [
        (1, 2, "one that multiplies for a stage that is full"),
        (0, 1, "one that multiplies for a stage that is full"),
        (4, 1, "the one that fills stages for a stage that is free"),
    ] {
        let (done, _) = run(&body(filled, multiplied, [""; 3]), 64, 1);
        match done {
            Err(error @ InterpError::Deadlock { .. }) => {
                assert!(error.to_string().contains(expected), "{error}")
            }
            other => panic!("{filled} and {multiplied}: {other:?}"),
        }
    }
    for (filled, multiplied) in [(2, 2), (2, 0), (3, 1)] {
        run(&body(filled, multiplied, [""; 3]), 64, 1).0.unwrap();
    }
}

#[test]
fn a_lane_that_faults_keeps_nobody_waiting() {
    // Lane 200 stores outside of C after the first of three products, or all lanes of the team do.
    let one = "%81: u32 = sub %80, %85";
    let all = "%81: u32 = add %1, %85";
    for (at, len) in [(one, 72), (all, 100)] {
        let first = stores(1, at);
        let more =
            "%52: [[[f32; 2]; 2]; 8] = multiply_stage %51\n    %53: [[[f32; 2]; 2]; 8] = multiply_stage %52";
        let last = format!("{first}\n    {more}");
        let (done, _) = run(&body(3, 1, ["%85: u32 = const 128", &last, ""]), 192, len);
        match done {
            Err(InterpError::Fault(fault)) => {
                assert!(fault.to_string().contains("index out of bounds"), "{fault}")
            }
            other => panic!("{other:?}"),
        }
    }
}
