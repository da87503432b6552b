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

/// The gradient of the softmax of a row, or of its logarithm, by the result `y` and the result's gradient.
pub fn softmax_backward(y: &[f64], dy: &[f64], logarithm: bool) -> Vec<f64> {
    let pairs = || y.iter().zip(dy);
    match logarithm {
        true => {
            let sum: f64 = dy.iter().sum();
            pairs().map(|(y, dy)| dy - y.exp() * sum).collect()
        }
        false => {
            let sum: f64 = pairs().map(|(y, dy)| y * dy).sum();
            pairs().map(|(y, dy)| y * (dy - sum)).collect()
        }
    }
}

/// The gradient of the layer norm of a row, or of its RMS norm where it is not `centred`, and what the row adds to that of the weights.
pub fn norm_backward(
    row: &[f64],
    weight: &[f64],
    dy: &[f64],
    epsilon: f64,
    centred: bool,
) -> (Vec<f64>, Vec<f64>) {
    let mean_of = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let mean = if centred { mean_of(row) } else { 0.0 };
    let squares: Vec<f64> = row.iter().map(|x| (x - mean).powi(2)).collect();
    let scale = 1.0 / (mean_of(&squares) + epsilon).sqrt();
    let normed: Vec<f64> = row.iter().map(|x| (x - mean) * scale).collect();
    let slopes: Vec<f64> = dy.iter().zip(weight).map(|(dy, w)| dy * w).collect();
    let plain = if centred { mean_of(&slopes) } else { 0.0 };
    let times = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a * b).collect() };
    let along = mean_of(&times(&slopes, &normed));
    let dx = slopes
        .iter()
        .zip(&normed)
        .map(|(g, n)| scale * (g - plain - n * along));
    (dx.collect(), times(dy, &normed))
}

/// The cross entropy of a row of scores with a label, smoothed, and the logarithm of the sum of exponentials; NaN for a label that is no column.
pub fn cross_entropy(row: &[f64], label: usize, smoothing: f64) -> (f64, f64) {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let log = most + row.iter().map(|x| (x - most).exp()).sum::<f64>().ln();
    let mut loss = log - (1.0 - smoothing) * row.get(label).copied().unwrap_or(f64::NAN);
    if smoothing > 0.0 {
        loss -= smoothing * row.iter().sum::<f64>() / row.len() as f64;
    }
    (loss, log)
}

/// The gradient of [`cross_entropy`].
pub fn cross_entropy_backward(row: &[f64], label: usize, smoothing: f64) -> Vec<f64> {
    let wanted = |i: usize| smoothing / row.len() as f64 + if i == label { 1.0 - smoothing } else { 0.0 };
    let shares = softmax(row, false).into_iter().enumerate();
    shares
        .map(|(i, share)| {
            if label < row.len() {
                share - wanted(i)
            } else {
                f64::NAN
            }
        })
        .collect()
}

/// The logarithm of the sum of the exponentials of one query's scores; -inf where there are none.
pub fn attention_log(query: &[f64], keys: &[f64], score: impl Fn(usize, f64) -> f64) -> f64 {
    let scores = keys.chunks(query.len().max(1)).enumerate().map(|(i, key)| {
        let product = key.iter().zip(query).map(|(a, b)| a * b).sum::<f64>();
        score(i, product)
    });
    let scores: Vec<f64> = scores.collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match scores.is_empty() {
        true => most,
        false => most + scores.iter().map(|x| (x - most).exp()).sum::<f64>().ln(),
    }
}

/// What the queries of one head add to gradients of attention, from rows of `dim` columns: of Q, K and V, each number with the sum of the magnitudes of what it is a sum of, to which errors are in proportion. `score` makes a score of the
/// numbers of a query and a key and their product, with the score's derivative by it; `None` where the key is not seen.
pub fn attention_backward(
    dim: usize,
    [q, k, v, dout]: [&[f64]; 4],
    score: impl Fn(usize, usize, f64) -> Option<(f64, f64)>,
) -> [Vec<(f64, f64)>; 3] {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
    let mut all = [q, k, v].map(|x| vec![(0.0, 0.0); x.len()]);
    let mut add = |which: usize, row: usize, of: &[f64], by: f64, size: f64| {
        for (to, x) in all[which][row * dim..(row + 1) * dim].iter_mut().zip(of) {
            to.0 += by * x;
            to.1 += (size * x).abs();
        }
    };
    let rows = |x: &[f64]| x.len().checked_div(dim).unwrap_or(0);
    for i in 0..rows(q) {
        let row = |x: &'_ [f64], i: usize| x[i * dim..(i + 1) * dim].to_vec();
        let (query, slope) = (row(q, i), row(dout, i));
        let seen: Vec<(usize, f64, f64)> = (0..rows(k))
            .filter_map(|j| score(i, j, dot(&query, &row(k, j))).map(|(s, rate)| (j, s, rate)))
            .collect();
        let shares = softmax(&seen.iter().map(|(_, s, _)| *s).collect::<Vec<f64>>(), false);
        let weighed = |of: &dyn Fn(&[f64]) -> f64| -> f64 {
            seen.iter()
                .zip(&shares)
                .map(|((j, ..), share)| share * of(&row(v, *j)))
                .sum()
        };
        let (mean, most) = (weighed(&|v| dot(v, &slope)), weighed(&|v| size(v, &slope)));
        for ((j, _, rate), share) in seen.iter().zip(&shares) {
            let value = row(v, *j);
            let by = share * rate * (dot(&value, &slope) - mean);
            let of = share * rate * (size(&value, &slope) + most);
            add(0, i, &row(k, *j), by, of);
            add(1, *j, &query, by, of);
            add(2, *j, &slope, *share, *share);
        }
    }
    all
}

/// The places of the `k` first numbers of a row: the greatest, or the `least`, of equal ones the first, NaN in front of all.
pub fn top_k(row: &[f64], k: usize, least: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..row.len()).collect();
    let key = |i: &usize| match (row[*i].is_nan(), least) {
        (true, _) => f64::INFINITY,
        // Zeros are equal.
        (false, true) => 0.0 - row[*i],
        (false, false) => row[*i] + 0.0,
    };
    places.sort_by(|a, b| {
        let nan = |i: &usize| row[*i].is_nan();
        nan(b).cmp(&nan(a)).then(key(b).total_cmp(&key(a)))
    });
    places.truncate(k);
    places
}

/// A head's columns with pairs turned: by its position times each pair's part of a turn. Pairs are neighbours, or half of the columns that turn apart; columns behind those stay.
pub fn rotary(head: &[f64], turns: &[f64], interleaved: bool) -> Vec<f64> {
    let mut all = head.to_vec();
    for (i, turn) in turns.iter().enumerate() {
        let (near, far) = match interleaved {
            true => (2 * i, 2 * i + 1),
            false => (i, i + turns.len()),
        };
        let (sine, cosine) = (turn.fract() * std::f64::consts::TAU).sin_cos();
        all[near] = head[near] * cosine - head[far] * sine;
        all[far] = head[near] * sine + head[far] * cosine;
    }
    all
}
