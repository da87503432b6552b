//! What language models say: attention over pages, and drafted tokens.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
        let shape = PagedShape {
            heads: heads as u32,
            kv_heads: kv_heads as u32,
            pages: pages as u32,
        };
        let (queries, keys, values) = (run.upload(&queries), run.upload(&keys), run.upload(&values));
        let (tables, lengths, slopes) = (run.upload(&tables), run.upload(&lengths), run.upload(&slopes));
        let out = run.zeros::<f32>(sequences * heads * HEAD);
        run.launch(
            paged::kernel::<HEAD, PAGE>(),
            LaunchConfig::new((heads as u32, sequences as u32), 64),
            args![
                scale, shape, &queries, &keys, &values, &tables, &lengths, &slopes, &out
            ],
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
    let parents: Vec<u32> = (0..sequences * size)
        .map(|i| (random.bits() % (i % size).max(1) as u64) as u32)
        .collect();
    let tokens: Vec<u32> = (0..sequences * size)
        .map(|_| (random.bits() % 3) as u32)
        .collect();
    let predicted: Vec<u32> = (0..sequences * size)
        .map(|_| (random.bits() % 3) as u32)
        .collect();

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
        let (parents, tokens, predicted) =
            (run.upload(&parents), run.upload(&tokens), run.upload(&predicted));
        let nodes = sequences * size;
        let (m, d) = (run.zeros::<u32>(nodes), run.zeros::<u32>(nodes));
        let (f, n) = (run.zeros::<i32>(nodes), run.zeros::<i32>(nodes));
        let config = LaunchConfig::tiled(size as u32, sequences as u32, (32, 1));
        run.launch(
            drafts_tree::kernel(),
            config,
            args![size, &parents, &m, &d, &f, &n],
        );
        run.holds(&m, &masks);
        run.holds(&d, &depths);
        run.holds(&f, &first);
        run.holds(&n, &next);
        let (a, c, o) = (
            run.zeros::<i32>(sequences * steps),
            run.zeros::<u32>(sequences),
            run.zeros::<u32>(nodes),
        );
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
