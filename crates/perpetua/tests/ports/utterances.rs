//! What language and speech models say: the transducer loss, 4-bit weights, attention over pages, drafted tokens.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 221: the transducer loss

/// The sizes of a padded batch: frames, marks with the one in front, words of the vocabulary.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Lattice {
    frames: u32,
    marks: u32,
    words: u32,
}

#[device]
impl Lattice {
    fn at(self, batch: usize, t: usize, u: usize) -> usize {
        (batch * self.frames as usize + t) * self.marks as usize + u
    }

    fn blank(self, x: &[f32], place: usize) -> f32 {
        x[place * self.words as usize]
    }

    fn emit(self, x: &[f32], place: usize, label: u32) -> f32 {
        x[place * self.words as usize + label as usize]
    }
}

#[device]
fn log_add(a: f32, b: f32) -> f32 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[device]
fn joined(waited: Option<f32>, emitted: Option<f32>) -> Option<f32> {
    match (waited, emitted) {
        (Some(a), Some(b)) => Some(log_add(a, b)),
        (one, other) => one.or(other),
    }
}

/// Forward variables by the blocks of the first row, backward ones by those of the second.
#[kernel(block_size = 32)]
fn transducer(
    shape: Lattice,
    x: &[f32],
    labels: &[u32],
    frames: &[u32],
    marks: &[u32],
    alpha: &mut [f32],
    beta: &mut [f32],
    losses: &mut [f32],
) {
    let (batch, lane) = (group_id_x(), local_id_x());
    let (t_end, u_end) = (frames[batch] as usize, marks[batch] as usize);
    let labels = &labels[batch * (shape.marks as usize - 1)..][..u_end - 1];
    let diagonals = t_end + u_end - 1;
    if group_id_y() == 0 {
        for diagonal in 0..diagonals {
            for u in (lane..u_end.min(diagonal + 1)).step_by(32) {
                let t = diagonal - u;
                if t < t_end {
                    let waited = t.checked_sub(1).map(|t| {
                        let place = shape.at(batch, t, u);
                        alpha[place] + shape.blank(x, place)
                    });
                    let emitted = u.checked_sub(1).map(|u| {
                        let place = shape.at(batch, t, u);
                        alpha[place] + shape.emit(x, place, labels[u])
                    });
                    alpha[shape.at(batch, t, u)] = joined(waited, emitted).unwrap_or(0.0);
                }
            }
            sync_threads();
        }
    } else {
        for diagonal in (0..diagonals).rev() {
            for u in (lane..u_end.min(diagonal + 1)).step_by(32) {
                let t = diagonal - u;
                if t < t_end {
                    let place = shape.at(batch, t, u);
                    let blank = shape.blank(x, place);
                    let waited = (t + 1 < t_end).then(|| beta[shape.at(batch, t + 1, u)] + blank);
                    let emitted = labels
                        .get(u)
                        .map(|label| beta[shape.at(batch, t, u + 1)] + shape.emit(x, place, *label));
                    beta[place] = joined(waited, emitted).unwrap_or(blank);
                }
            }
            sync_threads();
        }
        if lane == 0 {
            losses[batch] = -beta[shape.at(batch, 0, 0)];
        }
    }
}

/// The gradient by the logarithms of the probabilities.
#[kernel]
fn transducer_gradient(
    shape: Lattice,
    x: &[f32],
    labels: &[u32],
    frames: &[u32],
    marks: &[u32],
    alpha: &[f32],
    beta: &[f32],
    losses: &[f32],
    gradient: &mut [f32],
) {
    let (u, t, batch) = (global_id_x(), global_id_y(), global_id_z());
    let (t_end, u_end) = (frames[batch] as usize, marks[batch] as usize);
    if t >= t_end || u >= u_end {
        return;
    }
    let place = shape.at(batch, t, u);
    let words = shape.words as usize;
    let common = alpha[place] + losses[batch];
    let after = match (t + 1 < t_end, u + 1 < u_end) {
        (true, _) => Some(beta[shape.at(batch, t + 1, u)]),
        (false, true) => None,
        (false, false) => Some(0.0),
    };
    if let Some(after) = after {
        gradient[place * words] = -(common + shape.blank(x, place) + after).exp();
    }
    if u + 1 < u_end {
        let label = labels[batch * (shape.marks as usize - 1) + u];
        let after = beta[shape.at(batch, t, u + 1)];
        gradient[place * words + label as usize] = -(common + shape.emit(x, place, label) + after).exp();
    }
}

#[test]
fn transducers_sum_over_all_paths() {
    let mut random = Random(221);
    let (batches, frames, marks, words) = (3, 13, 7, 5);
    let t_ends = [13u32, 9, 1];
    let u_ends = [5u32, 7, 1];
    let count = batches * frames * marks;
    let x: Vec<f32> = (0..count * words).map(|_| -0.1 - (random.bits() % 3000) as f32 / 1000.0).collect();
    let labels: Vec<u32> = (0..batches * (marks - 1)).map(|_| 1 + (random.bits() % 4) as u32).collect();

    let at = |b: usize, t: usize, u: usize| (b * frames + t) * marks + u;
    let log_sum = |terms: [f64; 2]| {
        let top = terms[0].max(terms[1]);
        if top.is_infinite() { top } else { top + terms.iter().map(|v| (v - top).exp()).sum::<f64>().ln() }
    };
    let mut losses = vec![0.0f64; batches];
    let mut gradient = vec![0.0f64; count * words];
    let none = f64::NEG_INFINITY;
    for b in 0..batches {
        let (te, ue) = (t_ends[b] as usize, u_ends[b] as usize);
        let blank = |t: usize, u: usize| f64::from(x[at(b, t, u) * words]);
        let emit = |t: usize, u: usize| f64::from(x[at(b, t, u) * words + labels[b * (marks - 1) + u] as usize]);
        let mut forward = vec![vec![none; ue]; te];
        let mut backward = vec![vec![none; ue + 1]; te + 1];
        backward[te][ue - 1] = 0.0;
        for t in 0..te {
            for u in 0..ue {
                let left = if t > 0 { forward[t - 1][u] + blank(t - 1, u) } else { none };
                let below = if u > 0 { forward[t][u - 1] + emit(t, u - 1) } else { none };
                forward[t][u] = if t + u == 0 { 0.0 } else { log_sum([left, below]) };
            }
        }
        for t in (0..te).rev() {
            for u in (0..ue).rev() {
                let right = backward[t + 1][u] + blank(t, u);
                let above = if u + 1 < ue { backward[t][u + 1] + emit(t, u) } else { none };
                backward[t][u] = log_sum([right, above]);
            }
        }
        losses[b] = -backward[0][0];
        for t in 0..te {
            for u in 0..ue {
                let from = at(b, t, u) * words;
                gradient[from] = -(forward[t][u] + blank(t, u) + backward[t + 1][u] - backward[0][0]).exp();
                if u + 1 < ue {
                    let label = labels[b * (marks - 1) + u] as usize;
                    gradient[from + label] = -(forward[t][u] + emit(t, u) + backward[t][u + 1] - backward[0][0]).exp();
                }
            }
        }
    }
    everywhere(|run| {
        let shape = Lattice { frames: frames as u32, marks: marks as u32, words: words as u32 };
        let (x, labels) = (run.upload(&x), run.upload(&labels));
        let (t_ends, u_ends) = (run.upload(&t_ends), run.upload(&u_ends));
        let (alpha, beta) = (run.zeros::<f32>(count), run.zeros::<f32>(count));
        let found = run.zeros::<f32>(batches);
        let config = LaunchConfig::new((batches as u32, 2), 32);
        run.launch(transducer::kernel(), config, args![shape, &x, &labels, &t_ends, &u_ends, &alpha, &beta, &found]);
        run.near(&found, &losses, 1e-5);
        let slopes = run.zeros::<f32>(count * words);
        let config = LaunchConfig::new((1, 4, batches as u32), (8, 4, 1));
        run.launch(
            transducer_gradient::kernel(),
            config,
            args![shape, &x, &labels, &t_ends, &u_ends, &alpha, &beta, &found, &slopes],
        );
        // Sums of up to 60 in f32 are off by some 1e-5, and so is what `exp` makes of them, which is at most 1.
        run.near(&slopes, &gradient, 1e-4);
    });
}

// 222: 4-bit weights in interleaved order

/// The column of each of a word's eight numbers: even ones in front.
const AWQ_ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

#[device]
fn nibbles(word: u32) -> [u32; 8] {
    let mut sorted = [0; 8];
    for (place, column) in AWQ_ORDER.iter().enumerate() {
        sorted[*column] = (word >> (4 * place)) & 15;
    }
    sorted
}

#[device]
fn offsets(words: [u32; 2]) -> [f32; 8] {
    let [q, z] = words.map(nibbles);
    std::array::from_fn(|k| q[k] as f32 - z[k] as f32)
}

#[kernel]
fn awq_unpack(group: usize, columns: usize, weights: &[u32], zeros: &[u32], scales: &[f16], out: &mut [f16]) {
    let (word, row) = (global_id_x(), global_id_y());
    let words = columns / 8;
    if word >= words || row >= out.len() / columns {
        return;
    }
    let offsets = offsets([weights[row * words + word], zeros[row / group * words + word]]);
    let scales = &scales[row / group * columns + word * 8..][..8];
    let out = &mut out[row * columns + word * 8..][..8];
    for ((out, offset), scale) in out.iter_mut().zip(offsets).zip(scales) {
        *out = f16::from_f32(offset) * *scale;
    }
}

/// A vector times the weights, a block for eight columns.
#[kernel(block_size = 64)]
fn awq_product(
    group: usize,
    columns: usize,
    x: &[f16],
    weights: &[u32],
    zeros: &[u32],
    scales: &[f16],
    y: &mut [f32],
) {
    let part = shared_array::<[[f32; 8]; 64]>();
    let (lane, word) = (local_id_x(), group_id_x());
    let words = columns / 8;
    let mut sums = [0.0f32; 8];
    for (row, x) in x.iter().enumerate().skip(lane).step_by(64) {
        let offsets = offsets([weights[row * words + word], zeros[row / group * words + word]]);
        let scales = &scales[row / group * columns + word * 8..][..8];
        for ((sum, offset), scale) in sums.iter_mut().zip(offsets).zip(scales) {
            *sum += x.to_f32() * offset * scale.to_f32();
        }
    }
    part[lane] = sums;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            let others = part[lane + half];
            for (sum, other) in part[lane].iter_mut().zip(others) {
                *sum += other;
            }
        }
        sync_threads();
        half /= 2;
    }
    if lane < 8 {
        y[word * 8 + lane] = part[0][lane];
    }
}

#[test]
fn interleaved_weights_are_unpacked_and_multiplied() {
    let mut random = Random(222);
    let (rows, group, columns) = (195, 65, 40);
    let words = columns / 8;
    let mut number = |n: u64| random.bits() % n;
    let weights: Vec<u32> = (0..rows * words).map(|_| number(1 << 32) as u32).collect();
    let zeros: Vec<u32> = (0..rows / group * words).map(|_| number(1 << 32) as u32).collect();
    let scales: Vec<f16> = (0..rows / group * columns).map(|_| f16::from_f32(number(1000) as f32 / 20000.0)).collect();
    let x: Vec<f16> = (0..rows).map(|_| f16::from_f32(number(2001) as f32 / 1000.0 - 1.0)).collect();

    let mut full = vec![f16::from_f32(0.0); rows * columns];
    let mut product = vec![0.0f64; columns];
    for row in 0..rows {
        for column in 0..columns {
            // Column 0 is the lowest number, column 1 the fifth, column 2 the second.
            let k = column % 8;
            let shift = 4 * (k / 2 + k % 2 * 4);
            let q = weights[row * words + column / 8] >> shift & 15;
            let z = zeros[row / group * words + column / 8] >> shift & 15;
            let scale = scales[row / group * columns + column];
            full[row * columns + column] = f16::from_f32((q as i32 - z as i32) as f32 * scale.to_f32());
            product[column] += f64::from(x[row].to_f32()) * f64::from(q as i32 - z as i32) * f64::from(scale.to_f32());
        }
    }
    everywhere(|run| {
        let (weights, zeros, scales) = (run.upload(&weights), run.upload(&zeros), run.upload(&scales));
        let out = run.zeros::<f16>(rows * columns);
        let config = LaunchConfig::tiled(words as u32, rows as u32, (8, 8));
        run.launch(awq_unpack::kernel(), config, args![group, columns, &weights, &zeros, &scales, &out]);
        run.holds(&out, &full);
        let (x, y) = (run.upload(&x), run.zeros::<f32>(columns));
        let config = LaunchConfig::new(words as u32, 64);
        run.launch(awq_product::kernel(), config, args![group, columns, &x, &weights, &zeros, &scales, &y]);
        // 195 terms below 0.75, each rounded a few times.
        run.near(&y, &product, 1e-4);
    });
}

// 223: attention over a cache in pages

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct PagedShape {
    heads: u32,
    kv_heads: u32,
    /// Places of a sequence in the tables of pages.
    pages: u32,
}

/// What all lanes have, put together.
#[device]
fn over_block(part: &mut [f32; 64], value: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let lane = local_id_x();
    sync_threads();
    part[lane] = value;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            part[lane] = join(part[lane], part[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    part[0]
}

#[device]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// One query a block. A page of keys has `HEAD / 4` rows of `PAGE` groups of four, a page of values `HEAD` rows of `PAGE`.
#[kernel(block_size = 64)]
fn paged<const HEAD: usize, const PAGE: usize>(
    scale: f32,
    shape: PagedShape,
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    tables: &[u32],
    lengths: &[u32],
    slopes: &[f32],
    out: &mut [f32],
) {
    let logits = shared_array::<[f32; 128]>();
    let part = shared_array::<[f32; 64]>();
    let (head, sequence, lane) = (group_id_x(), group_id_y(), local_id_x());
    let (heads, kv_heads) = (shape.heads as usize, shape.kv_heads as usize);
    let kv_head = head / (heads / kv_heads);
    let length = lengths[sequence] as usize;
    let table = &tables[sequence * shape.pages as usize..][..length.div_ceil(PAGE)];
    let own = (sequence * heads + head) * HEAD..(sequence * heads + head + 1) * HEAD;
    let query = &queries[own.clone()];
    let start = |page: u32| (page as usize * kv_heads + kv_head) * HEAD * PAGE;

    let mut greatest = f32::MIN;
    for position in (lane..length).step_by(64) {
        let keys = &keys[start(table[position / PAGE])..][..HEAD * PAGE];
        let groups = keys.chunks_exact(4).skip(position % PAGE).step_by(PAGE);
        let product: f32 = query.chunks_exact(4).zip(groups).map(|(q, k)| dot(q, k)).sum();
        let distance = (length - 1 - position) as f32;
        let logit = scale * product - slopes[head] * distance;
        logits[position] = logit;
        greatest = greatest.max(logit);
    }
    let greatest = over_block(part, greatest, f32::max);
    let mut total = 0.0;
    for position in (lane..length).step_by(64) {
        let weight = (logits[position] - greatest).exp();
        logits[position] = weight;
        total += weight;
    }
    let total = over_block(part, total, |a, b| a + b);

    let out = &mut out[own];
    for element in (lane..HEAD).step_by(64) {
        let mut sum = 0.0;
        for (page, weights) in table.iter().zip(logits[..length].chunks(PAGE)) {
            let values = &values[start(*page) + element * PAGE..][..PAGE];
            sum += dot(weights, values);
        }
        out[element] = sum / total;
    }
}

#[test]
fn attention_goes_over_pages() {
    let mut random = Random(223);
    let (heads, kv_heads, sequences, pages, stock) = (6usize, 2usize, 3usize, 15usize, 40usize);
    const HEAD: usize = 20;
    const PAGE: usize = 8;
    let lengths = [117u32, 1, 64];
    let mut number = || (random.bits() % 2001) as f32 / 1000.0 - 1.0;
    let queries: Vec<f32> = (0..sequences * heads * HEAD).map(|_| number()).collect();
    let keys: Vec<f32> = (0..stock * kv_heads * HEAD * PAGE).map(|_| number()).collect();
    let values: Vec<f32> = (0..stock * kv_heads * HEAD * PAGE).map(|_| number()).collect();
    let tables: Vec<u32> = (0..sequences * pages).map(|i| (i * 17 % stock) as u32).collect();
    let slopes: Vec<f32> = (0..heads).map(|h| 0.25 / (h + 1) as f32).collect();
    let scale = 0.2f32;

    let mut expected = vec![];
    for s in 0..sequences {
        for h in 0..heads {
            let length = lengths[s] as usize;
            let cell = |position: usize| {
                let page = tables[s * pages + position / PAGE] as usize;
                ((page * kv_heads + h / 3) * HEAD * PAGE, position % PAGE)
            };
            let weights: Vec<f64> = (0..length)
                .map(|position| {
                    let (from, slot) = cell(position);
                    let product: f64 = (0..HEAD)
                        .map(|e| {
                            let key = keys[from + (e / 4 * PAGE + slot) * 4 + e % 4];
                            f64::from(queries[(s * heads + h) * HEAD + e]) * f64::from(key)
                        })
                        .sum();
                    let bias = f64::from(slopes[h]) * (position as f64 - (length as f64 - 1.0));
                    (f64::from(scale) * product + bias).exp()
                })
                .collect();
            let total: f64 = weights.iter().sum();
            for e in 0..HEAD {
                let sum: f64 = (0..length)
                    .map(|position| {
                        let (from, slot) = cell(position);
                        weights[position] * f64::from(values[from + e * PAGE + slot])
                    })
                    .sum();
                expected.push(sum / total);
            }
        }
    }
    everywhere(|run| {
        let shape = PagedShape { heads: heads as u32, kv_heads: kv_heads as u32, pages: pages as u32 };
        let (queries, keys, values) = (run.upload(&queries), run.upload(&keys), run.upload(&values));
        let (tables, lengths, slopes) = (run.upload(&tables), run.upload(&lengths), run.upload(&slopes));
        let out = run.zeros::<f32>(sequences * heads * HEAD);
        run.launch(
            paged::kernel::<HEAD, PAGE>(),
            LaunchConfig::new((heads as u32, sequences as u32), 64),
            args![scale, shape, &queries, &keys, &values, &tables, &lengths, &slopes, &out],
        );
        // Logits of up to 30 are off by some 1e-6, and the mean of values below 1 by as much.
        run.near(&out, &expected, 2e-5);
    });
}

// 224: a tree of drafted tokens

/// A node's ancestors as bits, its depth, and the lists of children.
#[kernel]
fn drafts_tree(
    size: usize,
    parents: &[u32],
    masks: &mut [u32],
    depths: &mut [u32],
    first_child: &mut [i32],
    next_sibling: &mut [i32],
) {
    let (node, sequence) = (global_id_x(), global_id_y());
    if node >= size {
        return;
    }
    let parents = &parents[sequence * size..(sequence + 1) * size];
    let (mut mask, mut depth) = (1u32 << node, 0);
    let ancestors = std::iter::successors(Some(node), |at| (*at > 0).then(|| parents[*at] as usize));
    for ancestor in ancestors.skip(1) {
        mask |= 1 << ancestor;
        depth += 1;
    }
    let child = (node + 1..size).find(|other| parents[*other] as usize == node);
    let sibling = (node + 1..size).find(|other| node > 0 && parents[*other] == parents[node]);
    let place = sequence * size + node;
    masks[place] = mask;
    depths[place] = depth;
    first_child[place] = child.map_or(-1, |child| child as i32);
    next_sibling[place] = sibling.map_or(-1, |sibling| sibling as i32);
}

#[device]
fn node_of(index: i32) -> Option<usize> {
    usize::try_from(index).ok()
}

/// From the root on to the child that the model says, as long as there is one.
#[kernel]
fn drafts_verify(
    size: usize,
    steps: usize,
    tokens: &[u32],
    first_child: &[i32],
    next_sibling: &[i32],
    predicted: &[u32],
    accepted: &mut [i32],
    counts: &mut [u32],
    output: &mut [u32],
) {
    let sequence = global_id_x();
    if sequence >= counts.len() {
        return;
    }
    let own = sequence * size..(sequence + 1) * size;
    let (tokens, predicted) = (&tokens[own.clone()], &predicted[own.clone()]);
    let (children, siblings) = (&first_child[own.clone()], &next_sibling[own.clone()]);
    let output = &mut output[own];
    let accepted = &mut accepted[sequence * steps..(sequence + 1) * steps];
    accepted.fill(-1);
    accepted[0] = 0;
    let (mut at, mut count) = (0, 0);
    for slot in &mut accepted[1..] {
        let mut candidates = std::iter::successors(node_of(children[at]), |other| node_of(siblings[*other]));
        let Some(next) = candidates.find(|other| tokens[*other] == predicted[at]) else {
            break;
        };
        output[at] = predicted[at];
        at = next;
        *slot = next as i32;
        count += 1;
    }
    output[at] = predicted[at];
    counts[sequence] = count;
}

#[test]
fn drafts_are_followed_as_far_as_the_model_agrees() {
    let mut random = Random(224);
    let (sequences, size, steps) = (37, 21, 5);
    let parents: Vec<u32> = (0..sequences * size).map(|i| (random.bits() % (i % size).max(1) as u64) as u32).collect();
    let tokens: Vec<u32> = (0..sequences * size).map(|_| (random.bits() % 3) as u32).collect();
    let predicted: Vec<u32> = (0..sequences * size).map(|_| (random.bits() % 3) as u32).collect();

    let (mut masks, mut depths, mut first, mut next) = (vec![], vec![], vec![], vec![]);
    let mut accepted = vec![-1i32; sequences * steps];
    let mut counts = vec![0u32; sequences];
    let mut output = vec![0u32; sequences * size];
    for s in 0..sequences {
        let mut children = vec![vec![]; size];
        let mut lines: Vec<Vec<usize>> = vec![vec![0]];
        for node in 1..size {
            let parent = parents[s * size + node] as usize;
            children[parent].push(node);
            let mut line = lines[parent].clone();
            line.push(node);
            lines.push(line);
        }
        for node in 0..size {
            masks.push(lines[node].iter().map(|i| 1u32 << i).sum::<u32>());
            depths.push(lines[node].len() as u32 - 1);
            first.push(children[node].first().map_or(-1, |c| *c as i32));
            let brothers = &children[parents[s * size + node] as usize];
            let own = brothers.iter().position(|b| *b == node);
            next.push(own.and_then(|i| brothers.get(i + 1)).map_or(-1, |b| *b as i32));
        }
        let mut path = vec![0usize];
        while path.len() < steps {
            let last = path[path.len() - 1];
            let wanted = predicted[s * size + last];
            match children[last].iter().find(|c| tokens[s * size + **c] == wanted) {
                Some(c) => path.push(*c),
                None => break,
            }
        }
        counts[s] = path.len() as u32 - 1;
        for (k, node) in path.into_iter().enumerate() {
            accepted[s * steps + k] = node as i32;
            output[s * size + node] = predicted[s * size + node];
        }
    }
    everywhere(|run| {
        let (parents, tokens, predicted) = (run.upload(&parents), run.upload(&tokens), run.upload(&predicted));
        let nodes = sequences * size;
        let (m, d) = (run.zeros::<u32>(nodes), run.zeros::<u32>(nodes));
        let (f, n) = (run.zeros::<i32>(nodes), run.zeros::<i32>(nodes));
        let config = LaunchConfig::tiled(size as u32, sequences as u32, (32, 1));
        run.launch(drafts_tree::kernel(), config, args![size, &parents, &m, &d, &f, &n]);
        run.holds(&m, &masks);
        run.holds(&d, &depths);
        run.holds(&f, &first);
        run.holds(&n, &next);
        let (a, c, o) = (run.zeros::<i32>(sequences * steps), run.zeros::<u32>(sequences), run.zeros::<u32>(nodes));
        run.launch(
            drafts_verify::kernel(),
            LaunchConfig::linear(sequences, 32),
            args![size, steps, &tokens, &f, &n, &predicted, &a, &c, &o],
        );
        run.holds(&a, &accepted);
        run.holds(&c, &counts);
        run.holds(&o, &output);
    });
}
