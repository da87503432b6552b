//! Kernels whose loops take many turns: `n` in all, which every lane counts. Read as text, not compiled as Rust.

#[kernel]
fn one(n: u32, out: &mut [u32]) {
    let mut turns = 0u32;
    while turns < n {
        turns += 1;
    }
    out[global_id_x()] = turns;
}

/// Left and gone on with early, in a loop around it.
#[kernel]
fn nested(n: u32, out: &mut [u32]) {
    let mut turns = 0u32;
    while turns < n {
        let mut inner = 0u32;
        loop {
            inner += 1;
            turns += 1;
            if inner % 2 == 1 && turns < n {
                continue;
            }
            if inner >= 400 || turns >= n {
                break;
            }
        }
    }
    out[global_id_x()] = turns;
}

/// No way out of the loop but the end of the kernel.
#[kernel]
fn returns(n: u32, out: &mut [u32]) {
    let mut turns = 0u32;
    loop {
        if turns >= n {
            out[global_id_x()] = turns;
            return;
        }
        turns += 1;
    }
}

#[device]
fn counted(n: u32) -> u32 {
    let mut turns = 0u32;
    loop {
        turns += 1;
        if turns >= n {
            return turns;
        }
    }
}

#[kernel]
fn in_a_function(n: u32, out: &mut [u32]) {
    out[global_id_x()] = counted(n);
}

/// With a barrier in each turn, and a loop inside whose turns differ between lanes.
#[kernel]
fn barriers(n: u32, out: &mut [u32]) {
    let mut turns = 0u32;
    let mut mine = 0u32;
    let own = thread_idx_x() as u32 % 8;
    while turns < n {
        sync_threads();
        let mut k = 0u32;
        while k < own {
            k += 1;
        }
        mine += k;
        turns += 8;
    }
    sync_threads();
    out[global_id_x()] = if mine == (n + 7) / 8 * own { n } else { mine };
}
