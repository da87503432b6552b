//! Attention: full and causal, with shared heads of keys, and entries of different lengths.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::{BackendKind, args};
use perpetua_ir::back::Capability;
use perpetua_kernels::{AttentionKernel, Kernel, reference};

use crate::harness::{Case, Stored, compare, in_f64};

pub(crate) fn attention(case: &mut Case) -> Result<(), Failed> {
    match case.below(4) {
        0 => attention_of::<f16>(case, None),
        1 => attention_of::<bf16>(case, None),
        _ => attention_of::<f32>(case, None),
    }
}

/// Whether the device multiplies in stages.
pub(crate) fn has_stages(case: &Case) -> bool {
    match case.device.backend() {
        BackendKind::Cpu => true,
        _ => case.device.info().capabilities.contains(&Capability::Stages),
    }
}

/// The same in stages, with what a weight may be off by as a part of itself.
pub(crate) fn in_stages(case: &mut Case) -> Result<(), Failed> {
    let has_them = has_stages(case);
    case.aligned = true;
    match case.below(2) {
        _ if !has_them => Ok(()),
        0 => attention_of::<f16>(case, Some(1.0 / 2048.0)),
        _ => attention_of::<bf16>(case, Some(1.0 / 256.0)),
    }
}

fn attention_of<T: Stored>(case: &mut Case, stages: Option<f64>) -> Result<(), Failed> {
    let (batch, key_heads, group) = (1 + case.below(2), 1 + case.below(2), case.one_of(&[1, 1, 3]));
    let heads = key_heads * group;
    let dim = match stages {
        Some(_) => case.one_of(&[64, 64, 128, 128, 256]),
        None => case.one_of(&[1, 32, 40, 64, 65, 128, 200, 256]),
    };
    let [queries, keys] = [(); 2].map(|()| match stages {
        Some(_) => case.one_of(&[1, 65, 128, 200, 400]),
        None => case.one_of(&[0, 1, 3, 63, 64, 65, 100, 130]),
    });
    let causal = case.chance(2);
    let scale = case.one_of(&[0.1f32, 0.3]);
    let lengths: Option<Vec<[usize; 2]>> = case.chance(3).then(|| {
        (0..batch)
            .map(|_| [case.below(queries + 1), case.below(keys + 1)])
            .collect()
    });

    let window = case.chance(3).then(|| case.one_of(&[1usize, 2, 50, 130, 1000]));
    let cap = case.chance(4).then(|| case.one_of(&[1.5f32, 30.0]));
    let slopes: Option<Vec<f32>> = case
        .chance(4)
        .then(|| (0..heads).map(|_| 0.05 * case.number()).collect());

    let mut numbers = |rows: usize| -> Vec<f32> {
        (0..rows * dim)
            .map(|_| T::of(2.0 * case.number()).number())
            .collect()
    };
    let q = numbers(batch * heads * queries);
    let (k, mut v) = (
        numbers(batch * key_heads * keys),
        numbers(batch * key_heads * keys),
    );
    // What is no number stays in its head, where all queries see it.
    if keys > 0 && !causal && window.is_none() && lengths.is_none() && case.chance(3) {
        let last = v.len() - keys * dim;
        v[last..last + dim].fill(f32::NAN);
    }
    let before = vec![-3.0f32; q.len()];
    let mut matrix = |values: &[f32]| case.matrix::<T>([values.len() / dim, dim, dim], values);
    let (q_buffer, k_buffer, v_buffer, out) = (matrix(&q)?, matrix(&k)?, matrix(&v)?, matrix(&before)?);

    let mut kernel = AttentionKernel::new(batch, heads, [queries, keys], dim)
        .with_key_heads(key_heads)
        .with_scale(scale)
        .with_element(T::ELEMENT);
    if causal {
        kernel = kernel.causal();
    }
    if stages.is_some() {
        kernel = kernel.in_stages();
    }
    if let Some(window) = window {
        kernel = kernel.with_window(window);
    }
    if let Some(cap) = cap {
        kernel = kernel.with_soft_cap(cap);
    }
    let words: Vec<u32> = lengths.iter().flatten().flatten().map(|n| *n as u32).collect();
    let words = case.device.upload(&words)?;
    let slopes_buffer = case.device.upload(slopes.as_deref().unwrap_or_default())?;
    let mut all = args![&q_buffer.part, &k_buffer.part, &v_buffer.part].to_vec();
    if lengths.is_some() {
        kernel = kernel.with_lengths();
        all.push(words.arg());
    }
    if slopes.is_some() {
        kernel = kernel.with_slopes();
        all.push(slopes_buffer.arg());
    }
    all.push(out.part.arg());
    let rows = batch * heads * queries;
    let logs = case.matrix::<f32>([1, rows, rows], &vec![-3.0; rows])?;
    let with_logs = case.chance(2);
    if with_logs {
        kernel = kernel.with_logs();
        all.push(logs.part.arg());
    }
    kernel.launch(&case.device.default_stream(), &all)?;

    let (q, k, v) = (in_f64(&q), in_f64(&k), in_f64(&v));
    let mut expected = Vec::new();
    let mut of_logs = Vec::new();
    for entry in 0..batch {
        let [query_end, key_end] = lengths.as_ref().map_or([queries, keys], |all| all[entry]);
        for head in 0..heads {
            for query in 0..queries {
                let at = ((entry * heads + head) * queries + query) * dim;
                let from = (entry * key_heads + head / group) * keys * dim;
                let ends = (query + 1 + key_end).saturating_sub(query_end);
                let seen = if causal { ends.min(key_end) } else { key_end };
                let hidden = window.map_or(0, |window| ends.saturating_sub(window).min(seen));
                if query >= query_end {
                    // Not written.
                    expected.extend(vec![(-3.0, 0.0); dim]);
                    of_logs.push((-3.0, 0.0));
                    continue;
                }
                let part = |x: &[f64]| x[from + hidden * dim..from + seen * dim].to_vec();
                let score = |key: usize, product: f64| {
                    let score = f64::from(scale) * product;
                    let score = cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh());
                    let far = (hidden + key + query_end) as f64 - (query + key_end) as f64;
                    score
                        + slopes
                            .as_ref()
                            .map_or(0.0, |slopes| f64::from(slopes[head]) * far)
                };
                let row = reference::attention(&q[at..at + dim], &part(&k), &part(&v), score);
                // Scores are sums of `dim` products of at most 4, values at most 2.
                let bound =
                    2.0 * 6e-8 * (f64::from(scale) * 4.0 * dim as f64 * 8.0 + keys as f64 / 8.0 + 20.0);
                let bound = bound
                    + if cap.is_some() || slopes.is_some() {
                        5e-5
                    } else {
                        0.0
                    };
                let log = reference::attention_log(&q[at..at + dim], &part(&k), score);
                of_logs.push(if with_logs { (log, bound) } else { (-3.0, 0.0) });
                let bound = bound + 2.0 * stages.unwrap_or(0.0);
                expected.extend(row.into_iter().map(|x| (x, bound)));
            }
        }
    }
    compare::<f32>(&format!("logarithms of {kernel:?}"), &logs.read()?, &of_logs)?;
    compare::<T>(&format!("{kernel:?}"), &out.read()?, &expected)
}
