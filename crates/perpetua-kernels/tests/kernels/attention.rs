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

/// The same in stages, with what a weight may be off by as a part of itself.
pub(crate) fn in_stages(case: &mut Case) -> Result<(), Failed> {
    let has_them = match case.device.backend() {
        BackendKind::Cpu => true,
        _ => case.device.info().capabilities.contains(&Capability::Stages),
    };
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
        Some(_) => case.one_of(&[64, 128]),
        None => case.one_of(&[1, 32, 40, 64, 65, 128, 200, 256]),
    };
    let [queries, keys] = [(); 2].map(|()| match stages {
        Some(_) => case.one_of(&[1, 65, 128, 200, 400]),
        None => case.one_of(&[0, 1, 3, 63, 64, 65, 100, 130]),
    });
    let causal = case.chance(2);
    let scale = case.one_of(&[0.1f32, 0.3]);
    let lengths: Option<Vec<[usize; 2]>> = (stages.is_none() && case.chance(3)).then(|| {
        (0..batch)
            .map(|_| [case.below(queries + 1), case.below(keys + 1)])
            .collect()
    });

    let mut numbers = |rows: usize| -> Vec<f32> {
        (0..rows * dim)
            .map(|_| T::of(2.0 * case.number()).number())
            .collect()
    };
    let q = numbers(batch * heads * queries);
    let (k, v) = (
        numbers(batch * key_heads * keys),
        numbers(batch * key_heads * keys),
    );
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
    let stream = case.device.default_stream();
    match &lengths {
        None => kernel.launch(
            &stream,
            args![&q_buffer.part, &k_buffer.part, &v_buffer.part, &out.part],
        )?,
        Some(lengths) => {
            let words: Vec<u32> = lengths.iter().flatten().map(|n| *n as u32).collect();
            let words = case.device.upload(&words)?;
            let args = args![&q_buffer.part, &k_buffer.part, &v_buffer.part, &words, &out.part];
            kernel = kernel.with_lengths();
            kernel.launch(&stream, args)?;
        }
    }

    let (q, k, v) = (in_f64(&q), in_f64(&k), in_f64(&v));
    let mut expected = Vec::new();
    for entry in 0..batch {
        let [query_end, key_end] = lengths.as_ref().map_or([queries, keys], |all| all[entry]);
        for head in 0..heads {
            for query in 0..queries {
                let at = ((entry * heads + head) * queries + query) * dim;
                let from = (entry * key_heads + head / group) * keys * dim;
                let seen = match causal {
                    true => (query + 1 + key_end).saturating_sub(query_end).min(key_end),
                    false => key_end,
                };
                if query >= query_end {
                    // Not written.
                    expected.extend(vec![(-3.0, 0.0); dim]);
                    continue;
                }
                let part = |x: &[f64]| x[from..from + seen * dim].to_vec();
                let row = reference::attention(&q[at..at + dim], &part(&k), &part(&v), scale.into());
                // Scores are sums of `dim` products of at most 4, values at most 2.
                let bound =
                    2.0 * 6e-8 * (f64::from(scale) * 4.0 * dim as f64 * 8.0 + keys as f64 / 8.0 + 20.0);
                let bound = bound + 2.0 * stages.unwrap_or(0.0);
                expected.extend(row.into_iter().map(|x| (x, bound)));
            }
        }
    }
    compare::<T>(&format!("{kernel:?}"), &out.read()?, &expected)
}
