//! The same computations in `f64` on the host, one number after the other: what tests compare with. Must not know kernels.

/// `op(A) op(B)` for row-major A (`m` x `k`, or `k` x `m` where it is transposed) and B (`k` x `n`, or `n` x `k`), and for each element
/// the sum of the products' magnitudes, to which errors are in proportion.
pub fn gemm([m, n, k]: [usize; 3], transposed: [bool; 2], a: &[f64], b: &[f64]) -> Vec<(f64, f64)> {
    let mut all = Vec::with_capacity(m * n);
    for row in 0..m {
        for column in 0..n {
            let products = (0..k).map(|i| {
                let left = if transposed[0] { i * m + row } else { row * k + i };
                let right = if transposed[1] {
                    column * k + i
                } else {
                    i * n + column
                };
                a[left] * b[right]
            });
            all.push(products.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs())));
        }
    }
    all
}

/// The softmax of a row, or its logarithm.
pub fn softmax(row: &[f64], logarithm: bool) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    let share = |x: &f64| {
        if logarithm {
            x - most - sum.ln()
        } else {
            (x - most).exp() / sum
        }
    };
    row.iter().map(share).collect()
}

/// The layer norm of a row.
pub fn layer_norm(row: &[f64], weight: &[f64], bias: &[f64], epsilon: f64) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
    let scale = 1.0 / (variance + epsilon).sqrt();
    let scaled = row.iter().zip(weight.iter().zip(bias));
    scaled.map(|(x, (w, b))| (x - mean) * scale * w + b).collect()
}

/// The RMS norm of a row.
pub fn rms_norm(row: &[f64], weight: &[f64], epsilon: f64) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    let scale = 1.0 / (mean + epsilon).sqrt();
    row.iter().zip(weight).map(|(x, w)| x * scale * w).collect()
}

/// The attention of one query to rows of keys and values, each as long as the query; zeros where there are none. `score` makes a score of the product with the key of a number.
pub fn attention(query: &[f64], keys: &[f64], values: &[f64], score: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    let dim = query.len().max(1);
    let product = |key: &[f64]| key.iter().zip(query).map(|(a, b)| a * b).sum::<f64>();
    let scores: Vec<f64> = keys
        .chunks(dim)
        .enumerate()
        .map(|(i, key)| score(i, product(key)))
        .collect();
    let mut all = vec![0.0; query.len()];
    for (weight, value) in softmax(&scores, false).into_iter().zip(values.chunks(dim)) {
        for (sum, x) in all.iter_mut().zip(value) {
            *sum += weight * x;
        }
    }
    all
}
