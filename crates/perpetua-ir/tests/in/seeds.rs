//! The kernels that documents show.

#[kernel]
fn my_kernel(data: &mut [f32], n: i32) {
    let idx = block_idx_x() * block_dim_x() + thread_idx_x();
    if idx >= n {
        return;
    }
    data[idx as usize] = data[idx as usize] * 2.0;
}

#[kernel]
fn laplacian(input: &[f32], output: &mut [f32], pos: GridPos) {
    let lap = pos.north(input) + pos.south(input)
            + pos.east(input) + pos.west(input)
            - 4.0 * input[pos.idx()];
    output[pos.idx()] = lap;
}

#[kernel]
fn wave(now: &[f32], before: &[f32], next: &mut [f32], courant: f32, pos: GridPos) {
    let i = pos.idx();
    let lap = pos.north(now) + pos.south(now) + pos.east(now) + pos.west(now) - 4.0 * now[i];
    next[i] = 2.0 * now[i] - before[i] + courant * courant * lap;
}

#[kernel]
fn heat(t: &[f32], out: &mut [f32], k: f32, pos: GridPos) {
    let around = pos.up(t) + pos.down(t) + pos.north(t) + pos.south(t) + pos.east(t) + pos.west(t);
    out[pos.idx()] = t[pos.idx()] + k * (around - 6.0 * t[pos.idx()]);
}
