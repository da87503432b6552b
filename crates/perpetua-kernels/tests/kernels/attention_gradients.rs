//! Gradients of attention: of all kinds, in the same bits each time unless asked otherwise.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{AttentionKernel, Kernel, reference};

use crate::attention::has_stages;
use crate::harness::{Case, Stored, compare, in_f64};

pub(crate) fn attention(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    match case.below(4) {
        0 => attention_of::<f16>(case, false),
        1 => attention_of::<bf16>(case, false),
        _ => attention_of::<f32>(case, false),
    }
}

/// By tensor cores, where there are some.
pub(crate) fn tensor_cores(case: &mut Case) -> Result<(), Failed> {
    case.aligned = true;
    match case.below(2) {
        0 => attention_of::<f16>(case, false),
        _ => attention_of::<bf16>(case, false),
    }
}

/// By products in stages.
pub(crate) fn in_stages(case: &mut Case) -> Result<(), Failed> {
    let has_them = has_stages(case);
    case.aligned = true;
    match case.below(2) {
        _ if !has_them => Ok(()),
        0 => attention_of::<f16>(case, true),
        _ => attention_of::<bf16>(case, true),
    }
}

fn attention_of<T: Stored>(case: &mut Case, in_stages: bool) -> Result<(), Failed> {
    let (batch, key_heads, group) = (1 + case.below(2), 1 + case.below(2), case.one_of(&[1, 1, 3]));
    let heads = key_heads * group;
    let dim = match size_of::<T>() == 2 && case.aligned {
        true if in_stages => case.one_of(&[64, 128]),
        true => case.one_of(&[8, 32, 64, 64, 72, 96, 128, 128]),
        false => case.one_of(&[1, 32, 40, 64, 65, 128, 200, 256]),
    };
    let extents: &[usize] = match in_stages {
        true => &[1, 63, 64, 65, 129, 200, 300],
        false => &[0, 1, 3, 63, 64, 65, 100, 130, 140],
    };
    let (queries, keys) = (case.one_of(extents), case.one_of(extents));
    let causal = case.chance(2);
    let scale = case.one_of(&[0.1f32, 0.3]);
    let lengths: Option<Vec<[usize; 2]>> = case.chance(3).then(|| {
        (0..batch)
            .map(|_| [case.below(queries + 1), case.below(keys + 1)])
            .collect()
    });
    let window = case.chance(3).then(|| case.one_of(&[1usize, 2, 50, 130, 1000]));
    let cap = (!in_stages && case.chance(4)).then(|| case.one_of(&[1.5f32, 30.0]));
    let slopes: Option<Vec<f32>> =
        (!in_stages && case.chance(4)).then(|| (0..heads).map(|_| 0.05 * case.number()).collect());
    let atomic = !in_stages && case.chance(3);

    let mut numbers = |rows: usize| -> Vec<f32> {
        (0..rows * dim)
            .map(|_| T::of(2.0 * case.number()).number())
            .collect()
    };
    let (q, mut dout) = (numbers(batch * heads * queries), numbers(batch * heads * queries));
    let (k, v) = (
        numbers(batch * key_heads * keys),
        numbers(batch * key_heads * keys),
    );
    // What is no number reaches what its head's queries see, which is all here.
    if queries > 0 && !causal && window.is_none() && lengths.is_none() && case.chance(4) {
        let last = dout.len() - 1;
        dout[last] = f32::NAN;
    }
    let mut matrix = |values: &[f32]| case.matrix::<T>([values.len() / dim, dim, dim], values);
    let (q_buffer, k_buffer, v_buffer) = (matrix(&q)?, matrix(&k)?, matrix(&v)?);
    let (out, dout_buffer) = (matrix(&vec![0.0; q.len()])?, matrix(&dout)?);
    let (dq, dk, dv) = (
        matrix(&vec![-3.0; q.len()])?,
        matrix(&vec![-3.0; k.len()])?,
        matrix(&vec![-3.0; k.len()])?,
    );
    let rows = batch * heads * queries;
    let logs = case.matrix::<f32>([1, rows, rows], &vec![0.0; rows])?;

    let mut kernel = AttentionKernel::new(batch, heads, [queries, keys], dim)
        .with_key_heads(key_heads)
        .with_scale(scale)
        .with_logs()
        .with_element(T::ELEMENT);
    if in_stages {
        kernel = kernel.in_stages();
    }
    if causal {
        kernel = kernel.causal();
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
    all.extend([out.part.arg(), logs.part.arg()]);
    let stream = case.device.default_stream();
    kernel.launch(&stream, &all)?;
    all.extend([&dout_buffer.part, &dq.part, &dk.part, &dv.part].map(|buffer| buffer.arg()));
    let mut backward = kernel.backward();
    if atomic {
        backward = backward.with_atomic_sums();
    }
    backward.launch(&stream, &all)?;

    let [q, k, v, dout] = [q, k, v, dout].map(|x| in_f64(&x));
    let mut expected = [
        vec![(-3.0, 0.0); q.len()],
        vec![(0.0, 0.0); k.len()],
        vec![(0.0, 0.0); k.len()],
    ];
    for entry in 0..batch {
        let [query_end, key_end] = lengths.as_ref().map_or([queries, keys], |all| all[entry]);
        for head in 0..heads {
            let from = (entry * heads + head) * queries * dim;
            let q_part = from..from + query_end * dim;
            let from = (entry * key_heads + head / group) * keys * dim;
            let k_part = from..from + key_end * dim;
            let score = |query: usize, key: usize, product: f64| {
                let far = (key + query_end) as f64 - (query + key_end) as f64;
                if causal && far > 0.0 || window.is_some_and(|window| far + window as f64 <= 0.0) {
                    return None;
                }
                let score = f64::from(scale) * product;
                let slope = slopes.as_ref().map_or(0.0, |slopes| f64::from(slopes[head]));
                let capped = cap.map_or((score, 1.0), |cap| {
                    let part = (score / f64::from(cap)).tanh();
                    (f64::from(cap) * part, 1.0 - part * part)
                });
                Some((capped.0 + slope * far, f64::from(scale) * capped.1))
            };
            let given = [
                &q[q_part.clone()],
                &k[k_part.clone()],
                &v[k_part.clone()],
                &dout[q_part.clone()],
            ];
            let [of_q, of_k, of_v] = reference::attention_backward(dim, given, score);
            expected[0][q_part].copy_from_slice(&of_q);
            for (to, of) in expected[1..].iter_mut().zip([of_k, of_v]) {
                for (to, of) in to[k_part.clone()].iter_mut().zip(of) {
                    to.0 += of.0;
                    to.1 += of.1;
                }
            }
        }
        for of_keys in &mut expected[1..] {
            let layers = entry * key_heads..(entry + 1) * key_heads;
            for layer in layers {
                // Not written.
                of_keys[(layer * keys + key_end) * dim..(layer + 1) * keys * dim].fill((-3.0, 0.0));
            }
        }
    }
    // Scores are sums of `dim` products of at most 4. Results are rounded before gradients are computed by them, and so are weights and their gradients where they are
    // multiplied as such.
    let part =
        6e-8 * (f64::from(scale) * 4.0 * dim as f64 * 4.0 + keys as f64 / 8.0 + 60.0) + 4.0 * T::EPSILON;
    let part = part
        + if cap.is_some() || slopes.is_some() {
            1e-4
        } else {
            0.0
        };
    for of in &mut expected {
        for to in of.iter_mut() {
            to.1 *= part;
        }
    }
    let what = format!("{backward:?}");
    for (name, found, expected) in [
        ("Q", &dq, &expected[0]),
        ("K", &dk, &expected[1]),
        ("V", &dv, &expected[2]),
    ] {
        compare::<T>(&format!("gradient of {name}, {what}"), &found.read()?, expected)?;
    }
    if !case.chance(3) {
        return Ok(());
    }
    // Again, in the same bits.
    let before = [dq.read()?, dk.read()?, dv.read()?];
    backward.launch(&stream, &all)?;
    let after = [dq.read()?, dk.read()?, dv.read()?];
    let bits = |all: &[Vec<f32>]| -> Vec<u32> { all.iter().flatten().map(|x| x.to_bits()).collect() };
    let first = usize::from(atomic);
    match bits(&before[first..]) == bits(&after[first..]) {
        true => Ok(()),
        false => Err(format!("{what} gives other bits the second time").into()),
    }
}

/// The reference itself, by differences.
pub(crate) fn differences(case: &mut Case) -> Result<(), Failed> {
    let (queries, keys, dim) = (1 + case.below(3), 1 + case.below(4), 1 + case.below(4));
    let mut numbers = |n: usize| -> Vec<f64> { (0..n * dim).map(|_| f64::from(case.number())).collect() };
    let (given, dout) = ([numbers(queries), numbers(keys), numbers(keys)], numbers(queries));
    let cap = 0.7;
    let score = |product: f64| cap * (product / cap).tanh();
    let seen = |query: usize, key: usize| key <= query + 1;
    let along = |given: &[Vec<f64>; 3]| -> f64 {
        let mut sum = 0.0;
        for query in 0..queries {
            let end = keys.min(query + 2) * dim;
            let row = query * dim..(query + 1) * dim;
            let [q, k, v] = given;
            let out = reference::attention(&q[row.clone()], &k[..end], &v[..end], |_, x| score(x));
            sum += out.iter().zip(&dout[row]).map(|(a, b)| a * b).sum::<f64>();
        }
        sum
    };
    let [q, k, v] = &given;
    let found = reference::attention_backward(dim, [q, k, v, &dout], |i, j, x| {
        seen(i, j).then(|| (score(x), 1.0 - (x / cap).tanh().powi(2)))
    });
    for (which, found) in found.iter().enumerate() {
        for (at, (found, _)) in found.iter().enumerate() {
            let moved = [1e-5, -1e-5].map(|by| {
                let mut moved = given.clone();
                moved[which][at] += by;
                along(&moved)
            });
            let expected = (moved[0] - moved[1]) / 2e-5;
            if (found - expected).abs() > 1e-7 {
                return Err(format!("gradient {which} at {at} is {found}, not {expected}").into());
            }
        }
    }
    Ok(())
}
