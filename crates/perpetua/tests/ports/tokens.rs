//! Layers of networks: deformed convolutions, bags of rows, tokens drawn.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 144: torchvision's deform_conv2d

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Deform {
    channels: u32,
    height: u32,
    width: u32,
    kernel: [u32; 2],
    stride: u32,
    pad: u32,
    dilation: u32,
    offset_groups: u32,
}

#[device]
impl Deform {
    fn output(&self) -> [usize; 2] {
        let extent =
            |n: u32, k: u32| ((n + 2 * self.pad - self.dilation * (k - 1) - 1) / self.stride + 1) as usize;
        [
            extent(self.height, self.kernel[0]),
            extent(self.width, self.kernel[1]),
        ]
    }
}

#[device]
fn bilinear(image: &[f32], height: i32, width: i32, y: f32, x: f32) -> f32 {
    if y <= -1.0 || y >= height as f32 || x <= -1.0 || x >= width as f32 {
        return 0.0;
    }
    let (top, left) = (y.floor() as i32, x.floor() as i32);
    let (fy, fx) = (y - top as f32, x - left as f32);
    let corners = [
        (top, left, (1.0 - fy) * (1.0 - fx)),
        (top, left + 1, (1.0 - fy) * fx),
        (top + 1, left, fy * (1.0 - fx)),
        (top + 1, left + 1, fy * fx),
    ];
    corners
        .iter()
        .filter(|(y, x, _)| (0..height).contains(y) && (0..width).contains(x))
        .map(|&(y, x, weight)| weight * image[(y * width + x) as usize])
        .sum()
}

#[kernel]
fn deform_columns(shape: Deform, image: &[f32], offsets: &[f32], mask: &[f32], columns: &mut [f32]) {
    let [out_height, out_width] = shape.output();
    let (x, y, channel) = (global_id_x(), global_id_y(), global_id_z());
    if x >= out_width || y >= out_height || channel >= shape.channels as usize {
        return;
    }
    let plane = (shape.height * shape.width) as usize;
    let image = &image[channel * plane..][..plane];
    let [rows, taps] = shape.kernel.map(|k| k as usize);
    let group = channel / (shape.channels / shape.offset_groups) as usize;
    let out_plane = out_height * out_width;
    let pixel = y * out_width + x;
    for i in 0..rows {
        for j in 0..taps {
            let tap = group * rows * taps + i * taps + j;
            let weight = mask.get(tap * out_plane + pixel).copied().unwrap_or(1.0);
            let dy = offsets[2 * tap * out_plane + pixel];
            let dx = offsets[(2 * tap + 1) * out_plane + pixel];
            let place = |at: usize, tap: usize| {
                (at as u32 * shape.stride + tap as u32 * shape.dilation) as f32 - shape.pad as f32
            };
            let value = bilinear(
                image,
                shape.height as i32,
                shape.width as i32,
                place(y, i) + dy,
                place(x, j) + dx,
            );
            columns[(channel * rows * taps + i * taps + j) * out_plane + pixel] = weight * value;
        }
    }
}

#[test]
fn deform_columns_sample_between_pixels() {
    let mut random = Random(144);
    let shape = Deform {
        channels: 4,
        height: 9,
        width: 11,
        kernel: [3, 2],
        stride: 2,
        pad: 1,
        dilation: 2,
        offset_groups: 2,
    };
    // (9 + 2 - 4 - 1) / 2 + 1 and (11 + 2 - 2 - 1) / 2 + 1.
    let (oh, ow) = (4usize, 6usize);
    let mut some =
        |count: usize, by: f64| -> Vec<f32> { (0..count).map(|_| random.between(-by, by) as f32).collect() };
    let image = some(4 * 99, 1.0);
    let offsets = some(2 * 2 * 6 * oh * ow, 2.5);
    let mask = some(2 * 6 * oh * ow, 1.0);
    for masked in [false, true] {
        let mut expected = Vec::new();
        for c in 0..4 {
            for t in 0..6 {
                for p in 0..oh * ow {
                    let tap = c / 2 * 6 + t;
                    let y =
                        (p / ow * 2) as f64 + (t / 2 * 2) as f64 - 1.0 + f64::from(offsets[2 * tap * 24 + p]);
                    let x = (p % ow * 2) as f64 + (t % 2 * 2) as f64 - 1.0
                        + f64::from(offsets[(2 * tap + 1) * 24 + p]);
                    // Each pixel weighs as a tent.
                    let sum: f64 = (0..99)
                        .map(|i| {
                            let tent = |d: f64| (1.0 - d.abs()).max(0.0);
                            tent(y - (i / 11) as f64)
                                * tent(x - (i % 11) as f64)
                                * f64::from(image[c * 99 + i])
                        })
                        .sum();
                    expected.push(
                        sum * if masked {
                            f64::from(mask[tap * 24 + p])
                        } else {
                            1.0
                        },
                    );
                }
            }
        }
        everywhere(|run| {
            let columns = run.zeros::<f32>(expected.len());
            let mask = run.upload(if masked { &mask[..] } else { &[] });
            run.launch(
                deform_columns::kernel(),
                LaunchConfig::new((1, 1, 2), (8, 4, 2)),
                args![shape, &run.upload(&image), &run.upload(&offsets), &mask, &columns],
            );
            run.near(&columns, &expected, 1e-5);
        });
    }
}

// 145: PyTorch's EmbeddingBag

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u8)]
enum Mode {
    Sum,
    Mean,
    Max,
}

#[kernel]
fn embedding_bag(
    mode: Mode,
    padding: i64,
    width: usize,
    table: &[f16],
    indices: &[i64],
    offsets: &[i64],
    weights: &[f16],
    bags: &mut [f16],
    winners: &mut [i64],
) {
    let (feature, bag) = (global_id_x(), global_id_y());
    if feature >= width || bag >= offsets.len() {
        return;
    }
    let first = offsets[bag] as usize;
    let end = offsets.get(bag + 1).map_or(indices.len(), |next| *next as usize);
    let mut members = 0;
    let mut sum = 0.0f32;
    let mut best: Option<(f32, i64)> = None;
    for (position, &index) in indices.iter().enumerate().take(end).skip(first) {
        if index == padding {
            continue;
        }
        members += 1;
        let value = table[index as usize * width + feature].to_f32();
        match mode {
            Mode::Max => {
                if best.is_none_or(|(most, _)| value > most) {
                    best = Some((value, index));
                }
            }
            Mode::Sum if !weights.is_empty() => sum += value * weights[position].to_f32(),
            Mode::Sum | Mode::Mean => sum += value,
        }
    }
    let (value, winner) = match (mode, best) {
        (Mode::Mean, _) if members > 0 => (sum / members as f32, -1),
        (Mode::Max, Some((value, index))) => (value, index),
        (Mode::Max, None) => (0.0, -1),
        _ => (sum, -1),
    };
    bags[bag * width + feature] = f16::from_f32(value);
    winners[bag * width + feature] = winner;
}

#[test]
fn embedding_bag_pools_rows() {
    let mut random = Random(145);
    let (rows, width) = (20usize, 12usize);
    let mut some = |count: usize| -> Vec<f16> {
        (0..count)
            .map(|_| f16::from_f64(random.between(-2.0, 2.0)))
            .collect()
    };
    let (table, weights) = (some(rows * width), some(50));
    let indices: Vec<i64> = (0..50).map(|_| random.below(rows) as i64).collect();
    let offsets = [0i64, 3, 3, 17, 30, 49];
    let padding = indices[4];
    for (mode, weighted) in [
        (Mode::Sum, false),
        (Mode::Sum, true),
        (Mode::Mean, false),
        (Mode::Max, false),
    ] {
        let (mut bags, mut winners) = (Vec::new(), Vec::new());
        for bag in 0..6 {
            let range = offsets[bag] as usize..offsets.get(bag + 1).map_or(50, |o| *o as usize);
            let members: Vec<usize> = range.filter(|i| indices[*i] != padding).collect();
            for f in 0..width {
                let value = |i: &usize| f64::from(table[indices[*i] as usize * width + f]);
                let weight = |i: &usize| if weighted { f64::from(weights[*i]) } else { 1.0 };
                let sum: f64 = members.iter().map(|i| value(i) * weight(i)).sum();
                let most = members.iter().map(value).reduce(f64::max);
                let first = members.iter().find(|i| Some(value(i)) == most);
                bags.push(match mode {
                    Mode::Sum => sum,
                    Mode::Mean => sum / members.len().max(1) as f64,
                    Mode::Max => most.unwrap_or(0.0),
                });
                winners.push(if mode == Mode::Max {
                    first.map_or(-1, |i| indices[*i])
                } else {
                    -1
                });
            }
        }
        everywhere(|run| {
            let (found, chosen) = (run.zeros::<f16>(6 * width), run.zeros::<i64>(6 * width));
            let weights = run.upload(if weighted { &weights[..] } else { &[] });
            run.launch(
                embedding_bag::kernel(),
                LaunchConfig::tiled(width as u32, 6, (16, 2)),
                args![
                    mode,
                    padding,
                    width,
                    &run.upload(&table),
                    &run.upload(&indices),
                    &run.upload(&offsets),
                    &weights,
                    &found,
                    &chosen
                ],
            );
            run.near(&found, &bags, 1e-3);
            run.holds(&chosen, &winners);
        });
    }
}

// 146: FasterTransformer's top-p

const VOCABULARY: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Token {
    probability: f32,
    id: u32,
}

#[device]
impl Token {
    /// More probable ones first, then those with lower numbers.
    fn precedes(&self, other: &Token) -> bool {
        (other.probability, self.id) < (self.probability, other.id)
    }
}

/// What an operation makes of all lanes' values.
#[device]
fn reduced(part: &mut [f32; VOCABULARY], own: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let lane = local_id_x();
    part[lane] = own;
    sync_threads();
    let mut half = VOCABULARY / 2;
    while half > 0 {
        if lane < half {
            part[lane] = combine(part[lane], part[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    let all = part[0];
    sync_threads();
    all
}

#[kernel(block_size = 256)]
fn top_p(
    p: f32,
    temperature: f32,
    logits: &[f16],
    uniforms: &[f32],
    drawn: &mut [u32],
    logarithms: &mut [f32],
) {
    let part = shared_array::<[f32; VOCABULARY]>();
    let tokens = shared_array::<[Token; VOCABULARY]>();
    let (lane, row) = (local_id_x(), group_id_x());
    let logit = f32::from(logits[row * VOCABULARY + lane]) / temperature;
    let most = reduced(part, logit, f32::max);
    let weight = (logit - most).exp();
    let total = reduced(part, weight, |a, b| a + b);
    tokens[lane] = Token {
        probability: weight / total,
        id: lane as u32,
    };
    sync_threads();
    // Bitonic.
    let mut size = 2;
    while size <= VOCABULARY {
        let mut distance = size / 2;
        while distance > 0 {
            let other = lane ^ distance;
            if other > lane {
                let descending = lane & size == 0;
                if tokens[other].precedes(&tokens[lane]) == descending {
                    tokens.swap(lane, other);
                }
            }
            sync_threads();
            distance /= 2;
        }
        size *= 2;
    }
    if lane == 0 {
        let mut left = uniforms[row] * p;
        let chosen = tokens.iter().find(|token| {
            left -= token.probability;
            left <= 0.0
        });
        let token = chosen.copied().unwrap_or(tokens[VOCABULARY - 1]);
        drawn[row] = token.id;
        logarithms[row] = token.probability.ln();
    }
}

#[test]
fn top_p_draws_the_probable() {
    let mut random = Random(146);
    let rows = 24;
    let logits: Vec<f16> = (0..rows * VOCABULARY)
        .map(|_| f16::from_f64(random.between(-6.0, 6.0)))
        .collect();
    let uniforms: Vec<f32> = (0..rows).map(|_| random.unit() as f32).collect();
    let (p, temperature) = (0.8f32, 0.7f32);
    let expected: Vec<(u32, f64, f64)> = logits
        .chunks_exact(VOCABULARY)
        .zip(&uniforms)
        .map(|(row, u)| {
            let scaled: Vec<f64> = row
                .iter()
                .map(|l| f64::from(*l) / f64::from(temperature))
                .collect();
            let sum: f64 = scaled.iter().map(|l| l.exp()).sum();
            let mut order: Vec<usize> = (0..VOCABULARY).collect();
            order.sort_by(|a, b| scaled[*b].total_cmp(&scaled[*a]));
            let mut below = 0.0;
            for id in order {
                let share = scaled[id].exp() / sum;
                below += share;
                let slack = below - f64::from(u * p);
                if slack >= 0.0 {
                    return (id as u32, share.ln(), slack.min(share - slack));
                }
            }
            unreachable!()
        })
        .collect();
    everywhere(|run| {
        let (drawn, logarithms) = (run.zeros::<u32>(rows), run.zeros::<f32>(rows));
        run.launch(
            top_p::kernel(),
            LaunchConfig::new(rows as u32, 256),
            args![
                p,
                temperature,
                &run.upload(&logits),
                &run.upload(&uniforms),
                &drawn,
                &logarithms
            ],
        );
        let found = run.read(&drawn).into_iter().zip(run.read(&logarithms));
        for ((id, logarithm), (wanted, share, slack)) in found.zip(&expected) {
            assert!(
                id == *wanted || *slack < 1e-4,
                "{id} for {wanted} on {}",
                run.place()
            );
            assert!((f64::from(logarithm) - share).abs() < 1e-2, "on {}", run.place());
        }
    });
}
