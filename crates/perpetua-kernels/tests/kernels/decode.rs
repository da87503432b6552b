//! Attention of one query an entry to keys in pages.

use half::{bf16, f16};
use libtest_mimic::Failed;
use perpetua_device::args;
use perpetua_kernels::{Kernel, PagedAttentionKernel, Pages, reference};

use crate::attention::has_stages;
use crate::harness::{Case, Stored, compare, in_f64};

pub(crate) fn paged(case: &mut Case) -> Result<(), Failed> {
    case.aligned = case.chance(2);
    match case.below(4) {
        0 => paged_of::<f32>(case, false),
        1 => paged_of::<f16>(case, false),
        _ => paged_of::<bf16>(case, false),
    }
}

/// In stages, with entries that end in each part of their keys, and before.
pub(crate) fn in_stages(case: &mut Case) -> Result<(), Failed> {
    case.aligned = true;
    match has_stages(case) {
        false => Ok(()),
        true if case.chance(2) => paged_of::<f16>(case, true),
        true => paged_of::<bf16>(case, true),
    }
}

fn paged_of<T: Stored>(case: &mut Case, in_stages: bool) -> Result<(), Failed> {
    let (mut batch, key_heads, group) = (
        case.below(4),
        1 + case.below(2),
        case.one_of(&[1, 1, 3, 4, 11, 70]),
    );
    let heads = key_heads * group;
    let mut dim = case.one_of(&[1, 8, 40, 64, 96, 128, 128, 256]);
    let mut rows = case.one_of(&[1, 7, 16, 48, 64]);
    let mut of_entry = case.one_of(&[0, 1, 3, 700 / rows]);
    if in_stages {
        (batch, dim, rows) = (5, case.one_of(&[64, 128, 256]), case.one_of(&[16, 48, 64]));
        of_entry = 700 / rows;
    }
    let count = batch * of_entry + 2;
    let pages = Pages {
        count,
        rows,
        of_entry,
    };
    // Each entry has pages of its own, and the last ones are nobody's.
    let mut order: Vec<u32> = (0..count as u32).collect();
    for i in (1..count).rev() {
        order.swap(i, case.below(i + 1));
    }
    let lengths: Vec<u32> = (0..batch)
        .map(|entry| {
            let some = case.below(of_entry * rows + 1);
            match [0, 32, 100, 257, of_entry * rows].get(entry) {
                Some(length) if in_stages => *length as u32,
                _ => case.one_of(&[0, 1, of_entry * rows, some]) as u32,
            }
        })
        .collect();
    // An entry has no more keys than its pages.
    let length_of = |entry: usize| (lengths[entry] as usize).min(of_entry * rows);
    let mut table = order[..batch * of_entry].to_vec();
    let mut is_bad = vec![false; batch];
    for entry in 0..batch {
        let used = length_of(entry).div_ceil(rows);
        // Behind its length an entry may have any number, and one that is none before it makes it none.
        if used < of_entry {
            table[entry * of_entry + used] = u32::MAX;
        }
        if used > 0 && case.chance(8) {
            table[entry * of_entry + case.below(used)] = count as u32;
            is_bad[entry] = true;
        }
    }
    let scale = case.one_of(&[0.1f32, 0.3]);
    let window = case.chance(3).then(|| case.one_of(&[1usize, 5, 100]));
    let mut numbers = |rows: usize| -> Vec<f32> {
        (0..rows * dim)
            .map(|_| T::of(2.0 * case.number()).number())
            .collect()
    };
    let mut q = numbers(batch * heads);
    let (mut k, mut v) = (
        numbers(count * rows * key_heads),
        numbers(count * rows * key_heads),
    );
    // What is not a key of an entry is not read.
    for page in 0..count {
        let owner = (0..batch * of_entry).find(|at| table[*at] == page as u32);
        let length = owner.map_or(0, |at| {
            length_of(at / of_entry).saturating_sub(at % of_entry * rows)
        });
        let (from, to) = (page * rows + length.min(rows), (page + 1) * rows);
        k[from * key_heads * dim..to * key_heads * dim].fill(f32::NAN);
        v[from * key_heads * dim..to * key_heads * dim].fill(f32::NAN);
    }
    // What is no number stays in its head.
    if !q.is_empty() && case.chance(4) {
        q[0] = f32::NAN;
    }
    let mut matrix = |values: &[f32]| case.matrix::<T>([values.len() / dim, dim, dim], values);
    let (q_buffer, k_buffer, v_buffer) = (matrix(&q)?, matrix(&k)?, matrix(&v)?);
    let out = matrix(&vec![-3.0; q.len()])?;
    let (table_buffer, lengths_buffer) = (case.device.upload(&table)?, case.device.upload(&lengths)?);
    let mut kernel = PagedAttentionKernel::new(batch, heads, dim, pages)
        .with_key_heads(key_heads)
        .with_scale(scale)
        .with_element(T::ELEMENT);
    if let Some(window) = window {
        kernel = kernel.with_window(window);
    }
    if in_stages {
        kernel = kernel.in_stages();
    }
    let args = args![
        &q_buffer.part,
        &k_buffer.part,
        &v_buffer.part,
        &table_buffer,
        &lengths_buffer,
        &out.part
    ];
    kernel.launch(&case.device.default_stream(), args)?;

    let (q, k, v) = (in_f64(&q), in_f64(&k), in_f64(&v));
    let mut expected = Vec::new();
    for entry in 0..batch {
        let length = length_of(entry);
        let hidden = window.map_or(0, |window| length.saturating_sub(window));
        // A page that no key in the window is on is not looked up.
        let is_bad = is_bad[entry]
            && (hidden..length).any(|key| table[entry * of_entry + key / rows] as usize >= count);
        for head in 0..heads {
            let at = (entry * heads + head) * dim;
            if is_bad {
                expected.extend(vec![(f64::NAN, 0.0); dim]);
                continue;
            }
            let part = |x: &[f64]| -> Vec<f64> {
                let row = |key: usize| {
                    let page = table[entry * of_entry + key / rows] as usize;
                    ((page * rows + key % rows) * key_heads + head / group) * dim
                };
                (hidden..length)
                    .flat_map(|key| x[row(key)..row(key) + dim].to_vec())
                    .collect()
            };
            let row = reference::attention(&q[at..at + dim], &part(&k), &part(&v), |_, product| {
                f64::from(scale) * product
            });
            // Scores are sums of `dim` products of at most 4, values at most 2, and weights may be rounded.
            let bound = 2.0 * 6e-8 * (f64::from(scale) * 4.0 * dim as f64 * 8.0 + length as f64 / 8.0 + 40.0)
                + 4.0 * if size_of::<T>() == 2 { T::EPSILON } else { 0.0 };
            expected.extend(row.into_iter().map(|x| (x, bound)));
        }
    }
    compare::<T>(&format!("{kernel:?}"), &out.read()?, &expected)
}
