//! Kernels with matrices that lanes hold together: what each lane brings and what it gets. Read as text, not compiled as Rust.

#[kernel(block_size = 64)]
fn of_f16(a: &[u32], b: &[u32], c: &[f32], out: &mut [f32]) {
    let lane = global_id_x();
    let left = [a[4 * lane], a[4 * lane + 1], a[4 * lane + 2], a[4 * lane + 3]];
    let right = [b[2 * lane], b[2 * lane + 1]];
    let sums = [c[4 * lane], c[4 * lane + 1], c[4 * lane + 2], c[4 * lane + 3]];
    let sums = matrix_multiply_f16(left, right, sums);
    for i in 0..4 {
        out[4 * lane + i] = sums[i];
    }
}

#[kernel(block_size = 64)]
fn of_bf16(a: &[u32], b: &[u32], c: &[f32], out: &mut [f32]) {
    let lane = global_id_x();
    let left = [a[4 * lane], a[4 * lane + 1], a[4 * lane + 2], a[4 * lane + 3]];
    let right = [b[2 * lane], b[2 * lane + 1]];
    let sums = [c[4 * lane], c[4 * lane + 1], c[4 * lane + 2], c[4 * lane + 3]];
    let sums = matrix_multiply_bf16(left, right, sums);
    for i in 0..4 {
        out[4 * lane + i] = sums[i];
    }
}

#[kernel(block_size = 64)]
fn of_tf32(a: &[u32], b: &[u32], c: &[f32], out: &mut [f32]) {
    let lane = global_id_x();
    let left = [a[4 * lane], a[4 * lane + 1], a[4 * lane + 2], a[4 * lane + 3]];
    let right = [b[2 * lane], b[2 * lane + 1]];
    let sums = [c[4 * lane], c[4 * lane + 1], c[4 * lane + 2], c[4 * lane + 3]];
    let sums = matrix_multiply_tf32(left, right, sums);
    for i in 0..4 {
        out[4 * lane + i] = sums[i];
    }
}

/// Rows from registers, and the same from shared memory, where a GPU loads them as matrices.
#[kernel(block_size = 64)]
fn distributed(x: &[u32], rows: &mut [u32], columns: &mut [u32], loaded: &mut [u32], turned: &mut [u32]) {
    let room = shared_array::<[[u32; 4]; 64]>();
    let at = local_id_x() % 64;
    let lane = global_id_x();
    let brought = [x[4 * lane], x[4 * lane + 1], x[4 * lane + 2], x[4 * lane + 3]];
    let (by_rows, by_columns) = (matrix_rows(brought), matrix_columns(brought));
    // Each subgroup's lanes lie the other way round, so that each reads what another has brought.
    room[at ^ 31] = brought;
    sync_threads();
    let read = room[at ^ 31];
    let (from_rows, from_columns) = (matrix_rows(read), matrix_columns(read));
    for i in 0..4 {
        rows[4 * lane + i] = by_rows[i];
        columns[4 * lane + i] = by_columns[i];
        loaded[4 * lane + i] = from_rows[i];
        turned[4 * lane + i] = from_columns[i];
    }
}

/// What was loaded before memory changed is what counts.
#[kernel(block_size = 64)]
fn changed(x: &[u32], out: &mut [u32]) {
    let room = shared_array::<[[u32; 4]; 64]>();
    let at = local_id_x() % 64;
    let lane = global_id_x();
    room[at] = [x[4 * lane], x[4 * lane + 1], x[4 * lane + 2], x[4 * lane + 3]];
    sync_threads();
    let read = room[at];
    sync_threads();
    room[at ^ 1] = [0; 4];
    sync_threads();
    let rows = matrix_rows(read);
    for i in 0..4 {
        out[4 * lane + i] = rows[i];
    }
}
