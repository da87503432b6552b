//! Genomes in an index and in a model.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 157: NVBIO's FM-index

/// 64 letters of two bits, and how many of each stand before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Rank {
    counts: [u32; 4],
    letters: [u64; 2],
}

#[device]
impl Rank {
    /// How many of the first `len` letters are this one.
    fn count(&self, letter: u8, len: u32) -> u32 {
        let same = |plane: u64, bit: u8| if bit == 1 { plane } else { !plane };
        let [low, high] = self.letters;
        let hits = same(low, letter & 1) & same(high, letter >> 1);
        self.counts[letter as usize] + (hits & ((1u64 << len) - 1)).count_ones()
    }

    fn letter(&self, at: u32) -> u8 {
        let [low, high] = self.letters.map(|plane| (plane >> at & 1) as u8);
        high << 1 | low
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Header {
    /// The first row of each letter.
    firsts: [u32; 5],
    /// The row whose letter is the end of the text.
    primary: u32,
}

const SAMPLE: u32 = 4;

#[device]
fn occurrences(header: &Header, ranks: &[Rank], letter: u8, row: u32) -> u32 {
    // The end's place holds no letter.
    let row = if row > header.primary { row - 1 } else { row };
    header.firsts[letter as usize] + ranks[row as usize / 64].count(letter, row % 64)
}

/// The rows that begin with a pattern.
#[device]
fn search_rows(header: &Header, ranks: &[Rank], pattern: &[u8]) -> Option<(u32, u32)> {
    let mut rows = (0, header.firsts[4]);
    for letter in pattern.iter().rev().copied() {
        rows = (
            occurrences(header, ranks, letter, rows.0),
            occurrences(header, ranks, letter, rows.1),
        );
        if rows.0 >= rows.1 {
            return None;
        }
    }
    Some(rows)
}

#[kernel]
fn fm_locate(
    header: Header,
    ranks: &[Rank],
    samples: &[u32],
    length: usize,
    patterns: &[u8],
    counts: &mut [u32],
    places: &mut [u32],
) {
    let id = global_id_x();
    let Some(pattern) = patterns.chunks_exact(length).nth(id) else {
        return;
    };
    let Some((first, end)) = search_rows(&header, ranks, pattern) else {
        counts[id] = 0;
        return;
    };
    counts[id] = end - first;
    let mut least = u32::MAX;
    for row in first..end {
        let (mut at, mut steps) = (row, 0);
        let place = loop {
            if at == header.primary {
                break steps;
            }
            if at % SAMPLE == 0 {
                break samples[(at / SAMPLE) as usize] + steps;
            }
            let before = if at > header.primary { at - 1 } else { at };
            let letter = ranks[before as usize / 64].letter(before % 64);
            at = occurrences(&header, ranks, letter, at);
            steps += 1;
        };
        least = least.min(place);
    }
    places[id] = least;
}

#[test]
fn fm_locate_finds_every_pattern() {
    let mut random = Random(157);
    let text: Vec<u8> = (0..500)
        .map(|i| {
            if i % 90 < 40 {
                (i % 7 % 4) as u8
            } else {
                random.below(4) as u8
            }
        })
        .collect();
    let mut suffixes: Vec<usize> = (0..=text.len()).collect();
    suffixes.sort_by_key(|s| &text[*s..]);
    let primary = suffixes.iter().position(|s| *s == 0).unwrap() as u32;
    let letters: Vec<u8> = suffixes.iter().filter(|s| **s > 0).map(|s| text[s - 1]).collect();
    let mut firsts = [1u32; 5];
    for k in 0..4 {
        firsts[k + 1] = firsts[k] + text.iter().filter(|c| usize::from(**c) == k).count() as u32;
    }
    let ranks: Vec<Rank> = (0..=letters.len() / 64)
        .map(|b| {
            let count = |k: u8| letters[..64 * b].iter().filter(|c| **c == k).count() as u32;
            let mut rank = Rank {
                counts: [0, 1, 2, 3].map(count),
                letters: [0; 2],
            };
            for (k, letter) in letters.iter().skip(64 * b).take(64).enumerate() {
                rank.letters[0] |= u64::from(letter & 1) << k;
                rank.letters[1] |= u64::from(letter >> 1) << k;
            }
            rank
        })
        .collect();
    let samples: Vec<u32> = suffixes
        .iter()
        .step_by(SAMPLE as usize)
        .map(|s| *s as u32)
        .collect();
    let header = Header { firsts, primary };
    let length = 5;
    let patterns: Vec<u8> = (0..120)
        .flat_map(|i| match i % 3 {
            0 => (0..length).map(|_| random.below(4) as u8).collect::<Vec<_>>(),
            _ => text[random.below(text.len() - length)..][..length].to_vec(),
        })
        .collect();
    let (mut counts, mut places) = (Vec::new(), Vec::new());
    for pattern in patterns.chunks(length) {
        counts.push(text.windows(length).filter(|w| w == &pattern).count() as u32);
        places.push(text.windows(length).position(|w| w == pattern).unwrap_or(0) as u32);
    }
    everywhere(|run| {
        let (numbers, least) = (run.zeros::<u32>(120), run.zeros::<u32>(120));
        run.launch(
            fm_locate::kernel(),
            LaunchConfig::linear(120, 32),
            args![
                header,
                &run.upload(&ranks),
                &run.upload(&samples),
                length,
                &run.upload(&patterns),
                &numbers,
                &least
            ],
        );
        run.holds(&numbers, &counts);
        run.holds(&least, &places);
    });
}

// 158: gpuPairHMM

const LONGEST: usize = 48;
const GAP_CONTINUES: f32 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    read: u32,
    read_len: u32,
    haplotype: u32,
    haplotype_len: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Chances {
    matched: f32,
    inserted: f32,
    deleted: f32,
}

#[device]
fn error_of(quality: u8) -> f32 {
    10.0f32.powf(-f32::from(quality) / 10.0)
}

/// A lane for each letter of the read; the haplotype goes by, a letter a step.
#[kernel(block_size = 64)]
fn pair_hmm(
    pairs: &[Pair],
    reads: &[u8],
    qualities: &[u8],
    haplotypes: &[u8],
    gap_opens: u8,
    likelihoods: &mut [f32],
) {
    let diagonals = shared_array::<[[Chances; LONGEST + 1]; 3]>();
    let sum = shared_array::<[f32; 1]>();
    let lane = local_id_x();
    let pair = pairs[group_id_x()];
    let read = &reads[pair.read as usize..][..pair.read_len as usize];
    let quality = &qualities[pair.read as usize..][..pair.read_len as usize];
    let haplotype = &haplotypes[pair.haplotype as usize..][..pair.haplotype_len as usize];
    let start = Chances {
        deleted: 1.0 / haplotype.len() as f32,
        ..Default::default()
    };
    if lane <= LONGEST {
        for diagonal in diagonals.iter_mut() {
            diagonal[lane] = if lane == 0 { start } else { Chances::default() };
        }
    }
    if lane == 0 {
        sum[0] = 0.0;
    }
    sync_threads();
    let opens = error_of(gap_opens);
    let stays = 1.0 - 2.0 * opens;
    for step in 0..read.len() + haplotype.len() - 1 {
        let [now, before, earlier] = [step % 3, (step + 2) % 3, (step + 1) % 3];
        if let Some((letter, quality)) = read.get(lane).zip(quality.get(lane)) {
            let column = step.checked_sub(lane).filter(|column| *column < haplotype.len());
            if let Some(column) = column {
                let error = error_of(*quality);
                let emission = match (*letter, haplotype[column]) {
                    (b'N', _) | (_, b'N') => 1.0 - error,
                    (a, b) if a == b => 1.0 - error,
                    _ => error / 3.0,
                };
                // A row's own letter is at its lane's number and one: row zero is before the read.
                let corner = if column == 0 && lane > 0 {
                    Chances::default()
                } else {
                    diagonals[earlier][lane]
                };
                let above = diagonals[before][lane];
                let left = if column == 0 {
                    Chances::default()
                } else {
                    diagonals[before][lane + 1]
                };
                let own = Chances {
                    matched: emission
                        * (stays * corner.matched
                            + (1.0 - GAP_CONTINUES) * (corner.inserted + corner.deleted)),
                    inserted: above.matched * opens + above.inserted * GAP_CONTINUES,
                    deleted: left.matched * opens + left.deleted * GAP_CONTINUES,
                };
                diagonals[now][lane + 1] = own;
                if lane + 1 == read.len() {
                    sum[0] += own.matched + own.inserted;
                }
            }
        }
        sync_threads();
    }
    if lane == 0 {
        likelihoods[group_id_x()] = sum[0].log10();
    }
}

#[test]
fn pair_hmm_sums_all_alignments() {
    let mut random = Random(158);
    let (mut reads, mut qualities, mut haplotypes, mut pairs) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut expected = Vec::new();
    for i in 0..20usize {
        let haplotype: Vec<u8> = (0..20 + random.below(60))
            .map(|_| b"ACGTN"[random.below(41) / 10])
            .collect();
        let len = (1 + random.below(LONGEST)).min(haplotype.len());
        let mut read = haplotype[random.below(haplotype.len() - len + 1)..][..len].to_vec();
        for letter in read.iter_mut().step_by(3 + i) {
            *letter = b"ACGT"[random.below(4)];
        }
        let quality: Vec<u8> = (0..len).map(|_| 5 + random.below(35) as u8).collect();
        let error = |q: u8| 10f64.powf(-f64::from(q) / 10.0);
        let open = error(30);
        // Full matrices: match, insertion, deletion.
        let columns = haplotype.len();
        let mut m = vec![vec![[0.0f64; 3]; columns + 1]; len + 1];
        m[0].iter_mut().for_each(|c| c[2] = 1.0 / columns as f64);
        for r in 1..=len {
            for c in 1..=columns {
                let (a, b) = (read[r - 1], haplotype[c - 1]);
                let e = error(quality[r - 1]);
                let emit = if a == b || a == b'N' || b == b'N' {
                    1.0 - e
                } else {
                    e / 3.0
                };
                let (d, u, l) = (m[r - 1][c - 1], m[r - 1][c], m[r][c - 1]);
                m[r][c] = [
                    emit * ((1.0 - 2.0 * open) * d[0] + 0.9 * (d[1] + d[2])),
                    u[0] * open + u[1] * 0.1,
                    l[0] * open + l[2] * 0.1,
                ];
            }
        }
        expected.push(
            (1..=columns)
                .map(|c| m[len][c][0] + m[len][c][1])
                .sum::<f64>()
                .log10(),
        );
        pairs.push(Pair {
            read: reads.len() as u32,
            read_len: len as u32,
            haplotype: haplotypes.len() as u32,
            haplotype_len: columns as u32,
        });
        reads.extend(read);
        qualities.extend(quality);
        haplotypes.extend(haplotype);
    }
    everywhere(|run| {
        let likelihoods = run.zeros::<f32>(20);
        run.launch(
            pair_hmm::kernel(),
            LaunchConfig::new(20, 64),
            args![
                &run.upload(&pairs),
                &run.upload(&reads),
                &run.upload(&qualities),
                &run.upload(&haplotypes),
                30u8,
                &likelihoods
            ],
        );
        run.near(&likelihoods, &expected, 1e-4);
    });
}
