//! Matrices that teams of lanes multiply in stages.

use perpetua_ir::back::{Capability, RenderError, Sm, ptx};
use perpetua_ir::ir::{Kernel, Scalar, StageElement};
use perpetua_ir::pass::checks::make_explicit;
use perpetua_ir::verify::{Verified, verify};
use perpetua_vendor_tools::{nvdisasm, ptxas};

/// A kernel for a shape of stages of `f16` or `bf16`, and perhaps pairs of blocks: two products; `keep` says whether the first one's sums are used beside the second one's.
fn kernel(
    element: &str,
    [left, right]: [u32; 2],
    [a, b]: [&str; 2],
    count: u32,
    pairs: bool,
    keep: bool,
) -> Verified {
    let (lanes, sums) = (128 + left * 2, format!("[[[f32; 2]; 2]; {}]", right / 8));
    let pairs = if pairs { ", pairs" } else { "" };
    let kept = match keep {
        true => {
            "%12: [[f32; 2]; 2] = extract %6.0\n    %13: [f32; 2] = extract %12.1\n    %14: f32 = extract %13.1\n    store c[%0], %14"
        }
        false => "",
    };
    let text = format!(
        "kernel k(a: buffer<{element}, read>, b: buffer<{element}, read>, c: buffer<f32, read_write>, n: u64) block_size({lanes}, 1, 1)
stages({count}, {element}, {a}({left}, a, n, n, n), {b}({right}, b, n, n, n){pairs}) {{
  local $total: {sums}
  %0: u32 = const 64
  %1: u32 = thread_idx.x
  %2: bool = is_producer
  if %2 {{
    fill_stage %0, %0, %0
    fill_stage %0, %0, %0
  }} else {{
    %3: {sums} = zero
    store $total, %3
    %4: {sums} = load $total
    %5: {sums} = multiply_stage %4
    store $total, %5
    %6: {sums} = load $total
    %7: {sums} = multiply_stage %6
    store $total, %7
    %8: {sums} = load $total
    %9: [[f32; 2]; 2] = extract %8.0
    %10: [f32; 2] = extract %9.1
    %11: f32 = extract %10.1
    store c[%1], %11
    {kept}
  }}
}}
"
    );
    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(kernel).unwrap()
}

#[test]
fn shapes_are_assembled() {
    let mut random = 7u32;
    for left in [64, 128] {
        for right in [64, 128, 192, 256] {
            let ways = [["along"; 2], ["across"; 2], ["along", "across"]][(left + right) as usize / 64 % 3];
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (element, keep) = (["f16", "bf16"][random as usize >> 16 & 1], random >> 17 & 1 == 1);
            let count = 1 + (random >> 20) % 3;
            let pairs = right % 128 == 0 && random >> 24 & 1 == 1;
            let kernel = kernel(element, [left, right], ways, count, pairs, keep);
            let source = ptx::render(&kernel, Sm::of_device(9, 0)).unwrap();
            let count = |what: &str| source.text.matches(what).count();
            assert_eq!(count("wgmma.mma_async"), 8, "{}", source.text);
            assert_eq!(
                count("setmaxnreg"),
                if left > 64 { 2 } else { 0 },
                "{}",
                source.text
            );
            let copies = |extent: u32, way: &str| if way == "across" { extent as usize / 64 } else { 1 };
            let shared = copies(if pairs { right / 2 } else { right }, ways[1]);
            let expected = 2 * (copies(left, ways[0]) + shared);
            assert_eq!(
                count(".multicast::cluster"),
                if pairs { 2 * shared } else { 0 },
                "{}",
                source.text
            );
            assert_eq!(
                count("barrier.cluster.wait"),
                if pairs { 2 } else { 0 },
                "{}",
                source.text
            );
            assert_eq!(count("cp.async.bulk.tensor.2d"), expected, "{}", source.text);
            let assembled = match ptxas(&source.text, "sm_90a").required("sm_90a") {
                Ok(Some(assembled)) => assembled,
                Ok(None) => continue,
                Err(e) => panic!("{e}\n{}", source.text),
            };
            // It says so where products wait for each other, or where lanes do not get the registers that they ask for: sums, and perhaps a
            // copy of them, need some.
            let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
            let complains = complaints.iter().any(|word| assembled.log.contains(word));
            let (has, needs) = (
                [255, 232][left as usize / 64 - 1],
                right / 2 * (1 + u32::from(keep)) + 40,
            );
            let usage = &assembled.usage[0];
            let is_fine = !complains && usage.stack_bytes == 0;
            assert!(
                is_fine || needs > has,
                "{left} x {right}: {usage:?}\n{}\n{}",
                assembled.log,
                source.text
            );
            if let Some(code) = nvdisasm(&assembled.cubin).required("stages").unwrap() {
                assert_eq!(
                    code.matches(&format!("HGMMA.64x{right}x16.F32")).count(),
                    8,
                    "{code}"
                );
            }
        }
    }
}

#[test]
fn other_generations_lack_them() {
    let kernel = kernel("f16", [64, 64], ["along"; 2], 2, false, false);
    for sm in [Sm::from(80), Sm::from(90), Sm::from(100), Sm::of_device(10, 0)] {
        match ptx::render(&kernel, sm) {
            Err(RenderError::Lacks { capability, .. }) => assert_eq!(capability, Capability::Stages),
            other => panic!("{other:?}"),
        }
    }
}

/// That all lanes of a team fault together is no reason for them to go: the others wait for them.
#[test]
fn lanes_that_fault_walk_on() {
    let kernel = kernel("f16", [64, 64], ["along"; 2], 2, false, false)
        .into_kernel()
        .to_string();
    let store = "    store c[%0], %11\n    %12: [[[f32; 2]; 2]; 8] = multiply_stage %8\n";
    let text = kernel.replace("    store c[%1], %11\n", store);
    assert_ne!(text, kernel);
    let explicit = make_explicit(&verify(text.parse::<Kernel>().unwrap()).unwrap());
    let text = explicit.kernel().to_string();
    let fault = text.split_once("fault index_out_of_bounds").unwrap().1;
    let more = fault.find("multiply_stage").unwrap();
    assert!(!fault[..more].contains("return"), "{text}");
}

/// The same for a block of a pair before its teams part: the other block waits for it.
#[test]
fn a_block_of_a_pair_that_faults_walks_on() {
    for pairs in [false, true] {
        let kernel = kernel("f16", [64, 128], ["along"; 2], 2, pairs, false)
            .into_kernel()
            .to_string();
        let load = "  %1: u32 = thread_idx.x\n  %2: u32 = block_idx.x\n  %3: f32 = load c[%2]\n";
        let (head, code) = kernel.split_once("  %1: u32 = thread_idx.x\n").unwrap();
        // Numbers behind it are greater by two.
        let code = (2..=11).rev().fold(code.to_owned(), |code, i| {
            code.replace(&format!("%{i}:"), &format!("%{}:", i + 2))
                .replace(&format!("%{i} "), &format!("%{} ", i + 2))
                .replace(&format!("%{i}\n"), &format!("%{}\n", i + 2))
                .replace(&format!("%{i}."), &format!("%{}.", i + 2))
        });
        let text = format!("{head}{load}{code}");
        let explicit =
            make_explicit(&verify(text.parse::<Kernel>().unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap());
        let text = explicit.kernel().to_string();
        let fault = text.split_once("fault index_out_of_bounds").unwrap().1;
        let parted = fault.find("is_producer").unwrap();
        assert_eq!(fault[..parted].contains("return"), !pairs, "{text}");
    }
}

/// Elements of other sizes than 16 bits: a stage is 128 bytes deep, and a product 32 of them.
#[test]
fn every_element_is_assembled() {
    for (i, element) in StageElement::ALL.into_iter().enumerate() {
        let [left, right] = [[128, 256], [128, 192], [64, 256], [128, 128]][i % 4];
        let (memory, sums) = (element.memory(), element.sums());
        let text = kernel(
            "f16",
            [left, right],
            ["along"; 2],
            2,
            i % 2 == 0 && right % 128 == 0,
            false,
        )
        .into_kernel()
        .to_string()
        .replace("stages(2, f16", &format!("stages(2, {element}"))
        .replace("buffer<f16", &format!("buffer<{memory}"))
        .replace("f32", sums.name());
        let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let verified = verify(kernel).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let source = ptx::render(&verified, Sm::of_device(9, 0)).unwrap().text;
        let word = match element {
            StageElement::I8 => "s8",
            other => other.name(),
        };
        let sum = if sums == Scalar::I32 { "s32" } else { "f32" };
        let product = format!("m64n{right}k{}.{sum}.{word}.{word} ", 32 / memory.size());
        assert_eq!(source.matches(&product).count(), 8, "{product}\n{source}");
        let assembled = match ptxas(&source, "sm_90a").required("sm_90a") {
            Ok(Some(assembled)) => assembled,
            Ok(None) => continue,
            Err(e) => panic!("{e}\n{source}"),
        };
        let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
        let complains = complaints.iter().find(|word| assembled.log.contains(**word));
        assert_eq!(
            (complains, assembled.usage[0].stack_bytes),
            (None, 0),
            "{}",
            assembled.log
        );
        if let Some(code) = nvdisasm(&assembled.cubin).required("stages").unwrap() {
            let instruction = match (sums, memory.size()) {
                (Scalar::I32, _) => "IGMMA",
                (_, 1) => "QGMMA",
                _ => "HGMMA",
            };
            let found = code
                .matches(&format!("{instruction}.64x{right}x{}", 32 / memory.size()))
                .count();
            assert_eq!(found, 8, "{code}");
        }
    }
}

/// Matrices of which a buffer holds several are copied by three numbers.
#[test]
fn layers_are_assembled() {
    let text = kernel("bf16", [128, 256], ["along", "across"], 2, true, false)
        .into_kernel()
        .to_string()
        .replace("a, n, n, n)", "a, n, n, n, n, n)")
        .replace("b, n, n, n)", "b, n, n, n, n, n)")
        .replace("fill_stage %0, %0, %0", "fill_stage_of %0, %0, %0, %0, %0");
    let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let source = ptx::render(&verify(kernel).unwrap(), Sm::of_device(9, 0))
        .unwrap()
        .text;
    assert_eq!(source.matches("cp.async.bulk.tensor.3d").count(), 6, "{source}");
    assert!(!source.contains("tensor.2d"), "{source}");
    let Some(assembled) = ptxas(&source, "sm_90a").required("sm_90a").unwrap() else {
        return;
    };
    if let Some(code) = nvdisasm(&assembled.cubin).required("layers").unwrap() {
        assert!(code.contains("UTMALDG.3D"), "{code}");
    }
}

/// A block does not end while stages are on their way to it that nobody multiplies.
#[test]
fn the_team_that_fills_waits_at_its_end() {
    let source = ptx::render(
        &kernel("f16", [64, 64], ["along"; 2], 2, false, false),
        Sm::of_device(9, 0),
    )
    .unwrap();
    let last = source.text.rfind("cp.async.bulk.tensor").unwrap();
    let other = last + source.text[last..].find("wgmma").unwrap();
    // Once for each stage, of the first round and of the one before.
    assert_eq!(
        source.text[last..other].matches("mbarrier.try_wait").count(),
        2,
        "{}",
        source.text
    );
}

/// Chains of three factors: of the second product the left factor is in registers.
#[test]
fn chains_are_assembled() {
    for (i, [left, right, third]) in [[64, 64, 64], [128, 128, 128], [128, 128, 64], [64, 64, 128]]
        .into_iter()
        .enumerate()
    {
        let (element, depth) = (["f16", "bf16"][i % 2], [64, 128][i / 2 % 2]);
        let [a, b, c] = [
            ["along"; 3],
            ["along", "along", "across"],
            ["across", "along", "across"],
            ["across"; 3],
        ][i];
        let (lanes, scores, sums) = (
            128 + left * 2,
            format!("[[[f32; 2]; 2]; {}]", right / 8),
            format!("[[[f32; 2]; 2]; {}]", third / 8),
        );
        let text = format!(
            "kernel k(a: buffer<{element}, read>, b: buffer<{element}, read>, c: buffer<f32, read_write>, n: u64) block_size({lanes}, 1, 1)
stages(2, {element}, {a}({left}, a, n, n, n), {b}({right}, b, n, n, n), {c}({third}, b, n, n, n), {depth} deep) {{
  local $total: {sums}
  %0: u32 = const 64
  %1: bool = is_producer
  if %1 {{
    fill_stage %0, %0, %0
    fill_stage %0, %0, %0
  }} else {{
    %2: {sums} = zero
    store $total, %2
    loop {{
      %3: {scores} = zero
      %4: {scores} = multiply_stage %3
      %5: {sums} = load $total
      %6: {sums} = weigh_stage %5, %4
      store $total, %6
      %7: [[f32; 2]; 2] = extract %6.0
      %8: [f32; 2] = extract %7.1
      %9: f32 = extract %8.1
      store c[%0], %9
      %10: u32 = block_idx.x
      %11: bool = lt %10, %0
      if %11 {{
        break 0
      }}
    }}
  }}
}}
"
        );
        let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let source = ptx::render(
            &verify(kernel).unwrap_or_else(|e| panic!("{e}\n{text}")),
            Sm::of_device(9, 0),
        )
        .unwrap();
        let count = |what: &str| source.text.matches(what).count();
        assert_eq!(
            count("wgmma.mma_async") as u32,
            (depth + right) / 16,
            "{}",
            source.text
        );
        assert_eq!(count("x2.f32") as u32, right / 4, "{}", source.text);
        let assembled = match ptxas(&source.text, "sm_90a").required("sm_90a") {
            Ok(Some(assembled)) => assembled,
            Ok(None) => continue,
            Err(e) => panic!("{e}\n{}", source.text),
        };
        let complaints = ["serializ", "C75", "setmaxnreg", "warning"];
        let complains = complaints.iter().find(|word| assembled.log.contains(**word));
        assert_eq!(
            (complains, assembled.usage[0].stack_bytes),
            (None, 0),
            "{}\n{}",
            assembled.log,
            source.text
        );
    }
}
