//! Signals of pulsars: series folded at a period, and bands dispersed between the stars.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 240: a series folded at a period

const BINS: usize = 32;
const PARTS: usize = 8;

/// A phase of a full turn as all 32 bits, by the turns of a sample and how these change with each.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Candidate {
    turns: u32,
    drift: u32,
}

#[device]
impl Candidate {
    fn bin(self, sample: u32) -> usize {
        let pairs = sample.wrapping_mul(sample.wrapping_sub(1)) / 2;
        let phase = sample
            .wrapping_mul(self.turns)
            .wrapping_add(pairs.wrapping_mul(self.drift));
        (phase >> (32 - BINS.ilog2())) as usize
    }
}

/// A block for a part of the series: the mean of each bin in parts of 1/256. A row of blocks for each candidate.
#[kernel(block_size = 64)]
fn folding(candidates: &[Candidate], series: &[u8], profiles: &mut [[u32; BINS]]) {
    let sums = shared_array::<[u32; BINS]>();
    let counts = shared_array::<[u32; BINS]>();
    let lane = local_id_x();
    if lane < BINS {
        (sums[lane], counts[lane]) = (0, 0);
    }
    sync_threads();
    let candidate = candidates[group_id_y()];
    let per_part = series.len() / PARTS;
    let first = group_id_x() * per_part;
    for (i, value) in series[first..first + per_part]
        .iter()
        .enumerate()
        .skip(lane)
        .step_by(64)
    {
        let bin = candidate.bin((first + i) as u32);
        atomic_add(&mut sums[bin], u32::from(*value));
        atomic_add(&mut counts[bin], 1);
    }
    sync_threads();
    if lane < BINS {
        let mean = (sums[lane] * 256).checked_div(counts[lane]);
        profiles[group_id_y() * PARTS + group_id_x()][lane] = mean.unwrap_or_default();
    }
}

/// How far a pulse stands out: of bins from one on, so many, when the parts are moved by this much in all.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, GpuType)]
#[repr(C)]
struct Pulse {
    score: f32,
    shift: i32,
    width: u32,
    start: u32,
}

/// The best pulse for each shift, a block each, and each candidate.
#[kernel(block_size = 32)]
fn folding_search(most: i32, profiles: &[[u32; BINS]], pulses: &mut [Pulse]) {
    let profile = shared_array::<[u32; BINS]>();
    let best = shared_array::<[Pulse; BINS]>();
    let lane = local_id_x();
    let shift = group_id_x() as i32 - most;
    let parts = &profiles[group_id_y() * PARTS..(group_id_y() + 1) * PARTS];
    profile[lane] = parts
        .iter()
        .enumerate()
        .map(|(part, bins)| {
            let moved = lane as i32 + (part as i32 * shift).div_euclid(PARTS as i32);
            bins[moved.rem_euclid(BINS as i32) as usize]
        })
        .sum();
    sync_threads();
    let total: u32 = profile.iter().sum();
    let widths = std::iter::successors(Some(1usize), |width| (width * 2 < BINS).then_some(width * 2));
    let pulse = widths
        .map(|width| {
            let inside: u32 = profile.iter().cycle().skip(lane).take(width).sum();
            let excess = (inside * BINS as u32) as f32 - (total * width as u32) as f32;
            let score = excess / ((width * (BINS - width)) as f32).sqrt();
            Pulse {
                score,
                shift,
                width: width as u32,
                start: lane as u32,
            }
        })
        .reduce(|a, b| if b > a { b } else { a });
    best[lane] = pulse.unwrap();
    let mut half = BINS / 2;
    while half > 0 {
        sync_threads();
        if lane < half && best[lane + half] > best[lane] {
            best[lane] = best[lane + half];
        }
        half /= 2;
    }
    if lane == 0 {
        pulses[group_id_y() * (2 * most as usize + 1) + group_id_x()] = best[0];
    }
}

#[test]
fn pulses_are_found_by_folding() {
    let mut random = Random(240);
    let (len, most) = (2003usize, 6i32);
    // Some seventeen samples a turn.
    let truth = (1u32 << 28) - 12_345_678;
    let series: Vec<u8> = (0..len)
        .map(|i| {
            let phase = (i as u64 * u64::from(truth) % (1 << 32)) >> 27;
            let pulse = if (11..14).contains(&phase) { 60 } else { 0 };
            100 + pulse + (random.bits() % 40) as u8
        })
        .collect();
    // One that is a little slow, and one that drifts.
    let candidates = [
        Candidate {
            turns: truth - 180_000,
            drift: 0,
        },
        Candidate {
            turns: truth,
            drift: 97,
        },
    ];
    let mut profiles = vec![[0u32; BINS]; 2 * PARTS];
    for (c, candidate) in candidates.iter().enumerate() {
        for part in 0..PARTS {
            let mut bins = vec![vec![]; BINS];
            for i in part * 250..(part + 1) * 250 {
                let pairs = (i as u64 * (i as u64).saturating_sub(1)) / 2;
                let phase =
                    (i as u64 * u64::from(candidate.turns) + pairs * u64::from(candidate.drift)) % (1 << 32);
                bins[(phase * 32 / (1 << 32)) as usize].push(u32::from(series[i]));
            }
            for (bin, values) in bins.iter().enumerate() {
                let sum: u32 = values.iter().sum();
                profiles[c * PARTS + part][bin] = if values.is_empty() {
                    0
                } else {
                    sum * 256 / values.len() as u32
                };
            }
        }
    }
    // All scores of a candidate and a shift, in f64.
    let score = |c: usize, shift: i32, width: usize, start: usize| -> f64 {
        let summed: Vec<f64> = (0..BINS as i32)
            .map(|bin| {
                (0..PARTS as i32)
                    .map(|part| {
                        let moved = bin + (f64::from(part * shift) / 8.0).floor() as i32 + 64;
                        f64::from(profiles[c * PARTS + part as usize][moved as usize % BINS])
                    })
                    .sum()
            })
            .collect();
        let inside: f64 = (start..start + width).map(|bin| summed[bin % BINS]).sum();
        let expected = summed.iter().sum::<f64>() * width as f64;
        (inside * 32.0 - expected) / ((width * (BINS - width)) as f64).sqrt()
    };
    let mut greatest = vec![];
    for c in 0..2 {
        for shift in -most..=most {
            let mut best = f64::MIN;
            for width in [1, 2, 4, 8, 16] {
                for start in 0..BINS {
                    best = best.max(score(c, shift, width, start));
                }
            }
            greatest.push(best);
        }
    }
    everywhere(|run| {
        let (candidates, series) = (run.upload(&candidates), run.upload(&series));
        let found = run.zeros::<[u32; BINS]>(2 * PARTS);
        let config = LaunchConfig::new((PARTS as u32, 2), 64);
        run.launch(folding::kernel(), config, args![&candidates, &series, &found]);
        run.holds(&found, &profiles);
        let shifts = 2 * most as usize + 1;
        let pulses = run.zeros::<Pulse>(2 * shifts);
        let config = LaunchConfig::new((shifts as u32, 2), 32);
        run.launch(folding_search::kernel(), config, args![most, &found, &pulses]);
        for (i, pulse) in run.read(&pulses).into_iter().enumerate() {
            // Integers of up to 25 bits rounded to f32, a difference, a root and a quotient: some 1e-6 of the sums.
            let (c, shift) = (i / shifts, (i % shifts) as i32 - most);
            let own = score(c, shift, pulse.width as usize, pulse.start as usize);
            let near = |score: f64| (f64::from(pulse.score) - score).abs() < 0.005 * score.abs().max(1.0);
            assert!(
                pulse.shift == shift && near(own) && near(greatest[i]),
                "on {}: {pulse:?}",
                run.place()
            );
        }
    });
}

// 259: signals dispersed between the stars

/// Adds channels, each with its delay, for each time and each dispersion. Samples are packed to words, a time's words
/// together. The best sum of a dispersion is kept with its time, the first of equal ones.
#[kernel(block_size = (64, 1))]
fn dedispersion<const BITS: u32>(
    times: usize,
    dispersions: &[f32],
    delays: &[f32],
    dead: &[u32],
    words: &[u32],
    sums: &mut [u32],
    best: &mut [u32],
) {
    let (t, trial) = (global_id_x(), global_id_y());
    let each = (32 / BITS) as usize;
    let row = delays.len().div_ceil(each);
    let mut found = 0;
    if t < times {
        let sum: u32 = delays
            .iter()
            .enumerate()
            .filter(|(channel, _)| dead[channel / 32] >> (channel % 32) & 1 == 0)
            .map(|(channel, delay)| {
                let late = (dispersions[trial] * delay).round() as usize;
                let word = words[(t + late) * row + channel / each];
                word >> (channel % each) as u32 * BITS & ((1 << BITS) - 1)
            })
            .sum();
        sums[trial * times + t] = sum;
        found = sum << 16 | (0xffff - t as u32);
    }
    let greatest = subgroup_max(found);
    if subgroup_lane() == 0 {
        atomic_max(&mut best[trial], greatest);
    }
}

#[test]
fn dedispersion_adds_what_was_sent_together() {
    let mut random = Random(259);
    let (channels, times) = (43usize, 117usize);
    // Products are exact, halves among them.
    let dispersions = [0.0f32, 0.5, 1.0, 2.5, 4.0, 7.5];
    let delays: Vec<f32> = (0..channels).map(|c| (c * c) as f32 / 512.0).collect();
    let len = times + (7.5f32 * delays[channels - 1]).round() as usize;
    let dead: Vec<u32> = (0..channels.div_ceil(32))
        .map(|_| (random.bits() & random.bits()) as u32)
        .collect();
    for bits in [2u32, 8] {
        let samples: Vec<u32> = (0..len * channels)
            .map(|_| random.bits() as u32 % (1 << bits))
            .collect();
        let each = (32 / bits) as usize;
        let words: Vec<u32> = samples
            .chunks(channels)
            .flat_map(|row| {
                row.chunks(each)
                    .map(|part| part.iter().rev().fold(0, |word, s| word << bits | s))
                    .collect::<Vec<u32>>()
            })
            .collect();
        let (mut sums, mut best) = (vec![], vec![]);
        for dispersion in dispersions {
            let mut row = vec![0u32; times];
            for c in (0..channels).filter(|c| dead[c / 32] >> (c % 32) & 1 == 0) {
                // Half away from zero, of numbers that are not negative.
                let late = (f64::from(dispersion) * f64::from(delays[c]) + 0.5).floor() as usize;
                for (t, sum) in row.iter_mut().enumerate() {
                    *sum += samples[(t + late) * channels + c];
                }
            }
            let top = *row.iter().max().unwrap();
            let first = row.iter().position(|sum| *sum == top).unwrap();
            best.push(top << 16 | (0xffff - first as u32));
            sums.extend(row);
        }
        everywhere(|run| {
            let (trials, late, off, data) = (
                run.upload(&dispersions),
                run.upload(&delays),
                run.upload(&dead),
                run.upload(&words),
            );
            let (out, peaks) = (run.zeros::<u32>(sums.len()), run.zeros::<u32>(best.len()));
            let kernel = if bits == 2 {
                dedispersion::kernel::<2>()
            } else {
                dedispersion::kernel::<8>()
            };
            let config = LaunchConfig::tiled(times as u32, dispersions.len() as u32, (64, 1));
            run.launch(
                kernel,
                config,
                args![times, &trials, &late, &off, &data, &out, &peaks],
            );
            run.holds(&out, &sums);
            run.holds(&peaks, &best);
        });
    }
}
