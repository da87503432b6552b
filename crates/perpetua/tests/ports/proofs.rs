//! Functions that are hard on memory.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 106: Argon2d

/// A block of 1 KiB.
type Words = [u64; 128];

#[device]
fn blamka(x: u64, y: u64) -> u64 {
    let product = u64::from(x as u32) * u64::from(y as u32);
    x.wrapping_add(y).wrapping_add(product.wrapping_mul(2))
}

#[device]
fn quarter([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    for (first, second) in [(32, 24), (16, 63)] {
        a = blamka(a, b);
        d = (d ^ a).rotate_right(first);
        c = blamka(c, d);
        b = (b ^ c).rotate_right(second);
    }
    [a, b, c, d]
}

/// One round of the permutation: lane `k % 4` of a group of four mixes a column, then a diagonal. `at` says where word `w` of a
/// group is.
#[device]
fn permute(block: &mut Words, lane: usize, at: impl Fn(usize, usize) -> usize) {
    let (group, k) = (lane / 4, lane % 4);
    for turn in 0..2 {
        let places: [usize; 4] = std::array::from_fn(|row| at(group, row * 4 + (k + turn * row) % 4));
        let mixed = quarter(places.map(|p| block[p]));
        for (place, word) in places.into_iter().zip(mixed) {
            block[place] = word;
        }
        sync_threads();
    }
}

/// Which block of those so far, as Argon2d chooses for one lane.
#[device]
fn reference(random: u64, pass: u32, slice: u32, index: u32, segment: u32) -> u32 {
    let blocks = 4 * segment;
    let area = match pass {
        0 => slice * segment + index - 1,
        _ => blocks - segment + index - 1,
    };
    let x = random & 0xffff_ffff;
    let square = (x * x) >> 32;
    let back = (u64::from(area) * square) >> 32;
    let start = if pass == 0 || slice == 3 {
        0
    } else {
        (slice + 1) * segment
    };
    (start + area - 1 - back as u32) % blocks
}

#[kernel(block_size = 32)]
fn fill(passes: u32, segment: u32, memory: &mut [Words]) {
    let block = shared_array::<Words>();
    let lane = local_id_x();
    let blocks = 4 * segment as usize;
    let memory = &mut memory[group_id_x() * blocks..][..blocks];
    for pass in 0..passes {
        for slice in 0..4 {
            let first = if pass == 0 && slice == 0 { 2 } else { 0 };
            for index in first..segment {
                let current = (slice * segment + index) as usize;
                let previous = (current + blocks - 1) % blocks;
                let other = reference(memory[previous][0], pass, slice, index, segment) as usize;
                let mut mixed = [0u64; 4];
                for (k, word) in mixed.iter_mut().enumerate() {
                    let w = lane + 32 * k;
                    *word = memory[previous][w] ^ memory[other][w];
                    block[w] = *word;
                }
                sync_threads();
                permute(block, lane, |group, word| group * 16 + word);
                permute(block, lane, |group, word| group * 2 + word / 2 * 16 + word % 2);
                for (k, word) in mixed.iter().enumerate() {
                    let w = lane + 32 * k;
                    let fresh = block[w] ^ word;
                    memory[current][w] = if pass == 0 {
                        fresh
                    } else {
                        memory[current][w] ^ fresh
                    };
                }
                sync_threads();
            }
        }
    }
}

/// BLAKE2's round with multiplications, on sixteen words.
fn blake_round(v: &mut [u64; 16]) {
    let mut g = |a: usize, b: usize, c: usize, d: usize| {
        let f = |x: u64, y: u64| {
            x.wrapping_add(y)
                .wrapping_add(2u64.wrapping_mul((x & 0xffff_ffff) * (y & 0xffff_ffff)))
        };
        for (r, s) in [(32, 24), (16, 63)] {
            v[a] = f(v[a], v[b]);
            v[d] = (v[d] ^ v[a]).rotate_right(r);
            v[c] = f(v[c], v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(s);
        }
    };
    (0..4).for_each(|k| g(k, 4 + k, 8 + k, 12 + k));
    (0..4).for_each(|k| g(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4));
}

#[test]
fn argon2_fills_memory_as_its_specification() {
    let (instances, segment, passes) = (3usize, 5usize, 3u32);
    let blocks = 4 * segment;
    let mut random = Random(106);
    let mut memory = vec![[0u64; 128]; instances * blocks];
    for instance in memory.chunks_mut(blocks) {
        for block in &mut instance[..2] {
            block.iter_mut().for_each(|w| *w = random.bits());
        }
    }
    let mut expected = memory.clone();
    for memory in expected.chunks_mut(blocks) {
        for step in 2..blocks * passes as usize {
            let (pass, current) = (step / blocks, step % blocks);
            let previous = (current + blocks - 1) % blocks;
            let j1 = memory[previous][0] & 0xffff_ffff;
            let (slice, index) = (current / segment, current % segment);
            let area = (if pass == 0 { slice } else { 3 }) * segment + index - 1;
            let relative = area as u64 - 1 - ((area as u64 * (j1 * j1 >> 32)) >> 32);
            let start = if pass == 0 { 0 } else { (slice + 1) % 4 * segment };
            let other = (start + relative as usize) % blocks;
            let r: [u64; 128] = std::array::from_fn(|w| memory[previous][w] ^ memory[other][w]);
            let mut z = r;
            for row in 0..8 {
                let mut v: [u64; 16] = std::array::from_fn(|w| z[16 * row + w]);
                blake_round(&mut v);
                z[16 * row..16 * row + 16].copy_from_slice(&v);
            }
            for column in 0..8 {
                let at = |w: usize| 2 * column + 16 * (w / 2) + w % 2;
                let mut v: [u64; 16] = std::array::from_fn(|w| z[at(w)]);
                blake_round(&mut v);
                (0..16).for_each(|w| z[at(w)] = v[w]);
            }
            for w in 0..128 {
                memory[current][w] = if pass == 0 { 0 } else { memory[current][w] } ^ z[w] ^ r[w];
            }
        }
    }
    everywhere(|run| {
        let memory = run.upload(&memory);
        let config = LaunchConfig::new(instances as u32, 32);
        run.launch(fill::kernel(), config, args![passes, segment as u32, &memory]);
        run.holds(&memory, &expected);
    });
}
