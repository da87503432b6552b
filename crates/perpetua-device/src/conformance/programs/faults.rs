//! Kernels that fault in hard places, each for 3 groups of 64 lanes: where `bad` holds, `FAULT` stands for something
//! that faults. Lanes with odd numbers do, or only lane `only`. Read as text, not compiled as Rust.

#[derive(GpuType)]
#[repr(u8)]
enum Turn {
    Left = 0,
    Right = 1,
}

#[device]
fn faults(only: u32) -> bool {
    let i = global_id_x() as u32;
    (i % 2 == 1 && only == u32::MAX) || i == only
}

/// In the middle of nested loops.
#[kernel]
fn nested_loops(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let t = local_id_x() as u32;
    let mut s = 0u32;
    'outer: for a in 0..5u32 {
        for b in 0..t % 4 + 2 {
            let bad = a == 3 && b == 1 && faults(only);
            s = s.wrapping_add(FAULT);
            if s % 7 == 3 && a < 2 {
                continue 'outer;
            }
            out[global_id_x()] = s;
        }
    }
    out[global_id_x()] = s;
}

/// In a loop that would go on for long.
#[kernel]
fn long_loop(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let t = local_id_x() as u32;
    let mut s = 0u32;
    let mut k = 0u32;
    loop {
        k += 1;
        let bad = k == 50 + t && faults(only);
        s = s.wrapping_mul(3).wrapping_add(FAULT);
        if k == 4000 {
            break;
        }
    }
    out[global_id_x()] = s;
}

/// Before a barrier that all lanes must reach.
#[kernel]
fn before_barrier(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x() as u32;
    let bad = faults(only);
    tile[t as usize] = FAULT;
    sync_threads();
    let v = tile[63 - t as usize];
    sync_threads();
    tile[t as usize] = v;
    sync_threads();
    out[global_id_x()] = tile[t as usize ^ 1];
}

/// In a loop with barriers.
#[kernel]
fn loop_with_barriers(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x() as u32;
    let mut s = t;
    for k in 0..6u32 {
        tile[t as usize] = s;
        sync_threads();
        let bad = k == 3 && faults(only);
        let mut j = 0u32;
        while j < t % 5 + 1 {
            j += 1;
            s = s.wrapping_add(FAULT);
        }
        s ^= tile[(t as usize + 1) % 64];
        sync_threads();
    }
    out[global_id_x()] = s;
}

/// In a loop with barriers whose length nobody knows before.
#[kernel]
fn open_loop_with_barriers(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x() as u32;
    let mut k = 0u32;
    let mut n = x.len() as u32 % 100 - 65;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        k += 1;
        tile[t as usize] = k;
        sync_threads();
        let bad = k == 20 && faults(only);
        k = tile[63 - t as usize] + FAULT / u32::MAX;
        sync_threads();
    }
    out[global_id_x()] = k;
}

/// In a function called in a loop, one arm of a match.
#[device]
fn step(x: &[u32], e: &[Turn], bad: bool, k: u32) -> u32 {
    let t = local_id_x() as u32;
    match k % 4 {
        0 => 1,
        1 => {
            for j in 0..3u32 {
                if j == 2 {
                    return FAULT;
                }
            }
            2
        }
        _ => k,
    }
}

#[kernel]
fn in_function(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let mut s = 0u32;
    for k in 0..9u32 {
        s = s.wrapping_add(step(x, e, k == 5 && faults(only), k));
    }
    out[global_id_x()] = s;
}

/// In conditions: of a loop, and of a branch around a store.
#[kernel]
fn in_conditions(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let t = local_id_x() as u32;
    let bad = faults(only);
    let mut k = 0u32;
    while k < 10 && (k != 4 || FAULT != 12_345) {
        k += 1;
        if k < 3 || FAULT % 2 == 0 {
            out[global_id_x()] = k;
        }
    }
}

/// In a loop with barriers that goes on until all lanes have said that they are done.
#[kernel]
fn loop_that_waits_for_all(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let tile = shared_array::<[u32; 64]>();
    let done = shared_array::<[u32; 1]>();
    let t = local_id_x() as u32;
    tile[t as usize] = 0;
    let mut k = 0u32;
    let mut s = 0u32;
    loop {
        k += 1;
        let bad = k == 4 && faults(only);
        s = s.wrapping_add(FAULT);
        if k == 6 {
            tile[t as usize] = 1;
        }
        sync_threads();
        if t == 0 {
            let mut sum = 0u32;
            for j in 0..64usize {
                sum += tile[j];
            }
            done[0] = sum;
        }
        sync_threads();
        let lanes = done[0];
        sync_threads();
        if lanes == 64 {
            break;
        }
    }
    out[global_id_x()] = s;
}

/// Before a loop with barriers, by the lane that says how many turns it takes; and what it says next is asked right behind.
#[kernel]
fn before_loop_that_asks(x: &[u32], e: &[Turn], out: &mut [u32], only: u32) {
    let turns = shared_array::<[u32; 2]>();
    let t = local_id_x() as u32;
    if t == 0 {
        turns[0] = 0;
        turns[1] = 0;
    }
    sync_threads();
    let bad = faults(only);
    let v = FAULT;
    if t == 13 {
        turns[0] = 5;
        turns[1] = 3 + v / u32::MAX;
    }
    sync_threads();
    let first = turns[0];
    sync_threads();
    let second = turns[1];
    sync_threads();
    let mut k = 0u32;
    loop {
        k += 1;
        if t == 0 {
            turns[0] = k;
        }
        sync_threads();
        if k == first + second {
            break;
        }
    }
    out[global_id_x()] = turns[0];
}
