//! Factors of matrices: small ones, a block each, and sparse ones.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Div, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 170: Cholesky's factors

#[device]
trait Real: GpuType + PartialOrd + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    const ZERO: Self;
    fn root(self) -> Self;
}

#[device]
impl Real for f32 {
    const ZERO: Self = 0.0;

    fn root(self) -> Self {
        self.sqrt()
    }
}

#[device]
impl Real for f64 {
    const ZERO: Self = 0.0;

    fn root(self) -> Self {
        self.sqrt()
    }
}

/// A block a matrix, a lane a row: the lower triangles become factors. The first pivot that is not positive is told, from 1.
#[kernel(block_size = 32)]
fn cholesky<T: Real>(n: usize, matrices: &mut [T], info: &mut [u32]) {
    let a = shared_array::<[[T; 32]; 32]>();
    let row = local_id_x();
    let matrix = &mut matrices[group_id_x() * n * n..(group_id_x() + 1) * n * n];
    if row < n {
        a[row][..n].copy_from_slice(&matrix[row * n..(row + 1) * n]);
    }
    sync_threads();
    let mut failed = 0;
    for k in 0..n {
        let pivot = a[k][k];
        let positive = pivot > T::ZERO;
        if !positive && failed == 0 {
            failed = k as u32 + 1;
        }
        sync_threads();
        if positive && (k..n).contains(&row) {
            a[row][k] = a[row][k] / pivot.root();
        }
        sync_threads();
        if positive && row < n {
            for j in k + 1..=row {
                a[row][j] = a[row][j] - a[row][k] * a[j][k];
            }
        }
        sync_threads();
    }
    if row < n {
        matrix[row * n..=row * n + row].copy_from_slice(&a[row][..=row]);
    }
    if row == 0 {
        info[group_id_x()] = failed;
    }
}

#[test]
fn factors_of_matrices_give_them_back() {
    let mut random = Random(170);
    let (n, count) = (20usize, 5usize);
    let mut matrices = Vec::new();
    for m in 0..count {
        let b: Vec<f64> = (0..n * n).map(|_| random.between(-1.0, 1.0)).collect();
        for i in 0..n {
            for j in 0..n {
                let product: f64 = (0..n).map(|k| b[i * n + k] * b[j * n + k]).sum();
                // The last one has a negative pivot.
                let diagonal = if m + 1 == count && i == 7 { -40.0 } else { 2.0 };
                matrices.push(product + if i == j { diagonal } else { 0.0 });
            }
        }
    }
    let good = (count - 1) * n * n;
    let mut expected = matrices[..good].to_vec();
    for a in expected.chunks_mut(n * n) {
        for i in 0..n {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
                let rest = a[i * n + j] - sum;
                a[i * n + j] = if i == j { rest.sqrt() } else { rest / a[j * n + j] };
            }
        }
    }
    let narrow: Vec<f32> = matrices.iter().map(|v| *v as f32).collect();
    everywhere(|run| {
        let config = LaunchConfig::new(count as u32, 32);
        let (wide, info) = (run.upload(&matrices), run.zeros::<u32>(count));
        run.launch(cholesky::kernel::<f64>(), config, args![n, &wide, &info]);
        run.holds(&info, &[0, 0, 0, 0, 8]);
        let close =
            |found: f64, expected: f64, part: f64| (found - expected).abs() < part * expected.abs().max(1.0);
        let found = run.read(&wide);
        assert!(
            (0..good).all(|i| close(found[i], expected[i], 1e-12)),
            "on {}",
            run.place()
        );
        let small = run.upload(&narrow);
        run.launch(cholesky::kernel::<f32>(), config, args![n, &small, &info]);
        run.holds(&info, &[0, 0, 0, 0, 8]);
        let found = run.read(&small);
        assert!(
            (0..good).all(|i| close(found[i].into(), expected[i], 1e-4)),
            "on {}",
            run.place()
        );
    });
}

// 164: Ginkgo's ParILU

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Entry {
    row: u32,
    column: u32,
    value: f32,
}

/// One sweep: each element of `L` (rows, with its diagonal) and `U` (columns) from what the others have by now.
#[kernel]
fn sweep(
    entries: &[Entry],
    l_starts: &[u32],
    l_columns: &[u32],
    l_values: &mut [f32],
    u_starts: &[u32],
    u_rows: &[u32],
    u_values: &mut [f32],
) {
    let Some(Entry { row, column, value }) = entries.get(global_id_x()).copied() else {
        return;
    };
    let (mut l, l_end) = (
        l_starts[row as usize] as usize,
        l_starts[row as usize + 1] as usize,
    );
    let (mut u, u_end) = (
        u_starts[column as usize] as usize,
        u_starts[column as usize + 1] as usize,
    );
    let mut sum = value;
    while l < l_end && u < u_end {
        match l_columns[l].cmp(&u_rows[u]) {
            Ordering::Less => l += 1,
            Ordering::Greater => u += 1,
            Ordering::Equal if l_columns[l] == row.min(column) => break,
            Ordering::Equal => {
                sum -= atomic_load(&l_values[l]) * atomic_load(&u_values[u]);
                l += 1;
                u += 1;
            }
        }
    }
    if row > column {
        let quotient = sum / atomic_load(&u_values[u]);
        if quotient.is_finite() {
            atomic_store(&mut l_values[l], quotient);
        }
    } else if sum.is_finite() {
        atomic_store(&mut u_values[u], sum);
    }
}

#[test]
fn sweeps_come_to_an_incomplete_factorization() {
    let mut random = Random(164);
    let n = 60u32;
    let mut matrix: BTreeMap<(u32, u32), f32> = (0..n).map(|i| ((i, i), 8.0)).collect();
    for _ in 0..250 {
        let at = (random.below(60) as u32, random.below(60) as u32);
        if at.0 != at.1 {
            matrix.insert(at, random.between(-1.0, 1.0) as f32);
        }
    }
    let entries: Vec<Entry> = matrix
        .iter()
        .map(|(&(row, column), &value)| Entry { row, column, value })
        .collect();
    let (mut l_starts, mut l_columns, mut l_values) = (vec![0u32], Vec::new(), Vec::new());
    let (mut u_starts, mut u_rows, mut u_values) = (vec![0u32], Vec::new(), Vec::new());
    for line in 0..n {
        for e in entries.iter().filter(|e| e.row == line && e.column <= line) {
            l_columns.push(e.column);
            l_values.push(if e.column == line { 1.0f32 } else { e.value });
        }
        l_starts.push(l_columns.len() as u32);
        for e in entries.iter().filter(|e| e.column == line && e.row <= line) {
            u_rows.push(e.row);
            u_values.push(e.value);
        }
        u_starts.push(u_rows.len() as u32);
    }
    // Gauss' elimination where the matrix has elements, row by row.
    let mut factors: BTreeMap<(u32, u32), f64> = matrix.iter().map(|(k, v)| (*k, f64::from(*v))).collect();
    for i in 0..n {
        for k in 0..i {
            let Some(&element) = factors.get(&(i, k)) else {
                continue;
            };
            let factor = element / factors[&(k, k)];
            factors.insert((i, k), factor);
            for j in k + 1..n {
                let upper = factors.get(&(k, j)).copied();
                if let (Some(upper), Some(element)) = (upper, factors.get_mut(&(i, j))) {
                    *element -= factor * upper;
                }
            }
        }
    }
    let lower: Vec<f64> = (0..n)
        .flat_map(|i| {
            factors
                .range((i, 0)..(i, i))
                .map(|(_, v)| *v)
                .chain([1.0])
                .collect::<Vec<_>>()
        })
        .collect();
    let upper: Vec<f64> = (0..n)
        .flat_map(|j| {
            (0..=j)
                .filter_map(|i| factors.get(&(i, j)).copied())
                .collect::<Vec<_>>()
        })
        .collect();
    everywhere(|run| {
        let uploaded = run.upload(&entries);
        let (ls, lc, lv) = (
            run.upload(&l_starts),
            run.upload(&l_columns),
            run.upload(&l_values),
        );
        let (us, ur, uv) = (run.upload(&u_starts), run.upload(&u_rows), run.upload(&u_values));
        for _ in 0..30 {
            let config = LaunchConfig::linear(entries.len(), 64);
            run.launch(
                sweep::kernel(),
                config,
                args![&uploaded, &ls, &lc, &lv, &us, &ur, &uv],
            );
        }
        run.near(&lv, &lower, 1e-5);
        run.near(&uv, &upper, 1e-5);
    });
}
