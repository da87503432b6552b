//! Reading and writing a row by the lanes that work on it. Must not know what it is for.

use perpetua::prelude::*;

use crate::element::Piece;

/// Numbers that a lane reads at a time of what does not stay in registers.
pub(super) const TURN: usize = 8;

/// Which row a lane works on, with which number among the row's lanes, and how many pieces the row has: none where there is no such row.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) within: usize,
    pub(super) end: usize,
}

/// Where this lane works.
#[device]
pub(super) fn place<const LANES: usize>(rows: usize, pieces: usize) -> Place {
    let lane = local_id_x();
    let row = group_id_x() * (block_dim_x() as usize / LANES) + lane / LANES;
    Place {
        row,
        within: lane % LANES,
        end: if row < rows { pieces } else { 0 },
    }
}

/// The `COUNT` numbers that are a lane's from the piece number `first` of its row on, each further piece `LANES` on; `absent` behind the row's end.
/// The row's first piece is number `from`.
#[device]
pub(super) fn fetch<M: Piece, const N: usize, const LANES: usize, const COUNT: usize>(
    x: &[M],
    from: usize,
    first: usize,
    end: usize,
    absent: f32,
) -> [f32; COUNT] {
    fetch_by::<M, N, LANES, COUNT>(x, from, first, end, absent, N == 1)
}

/// The same where nothing else is fetched beside it, which would wait for it.
#[device]
pub(super) fn fetch_alone<M: Piece, const N: usize, const LANES: usize, const COUNT: usize>(
    x: &[M],
    from: usize,
    first: usize,
    end: usize,
    absent: f32,
) -> [f32; COUNT] {
    fetch_by::<M, N, LANES, COUNT>(x, from, first, end, absent, true)
}

/// `at_once`: most lanes have all of the numbers, which are read without asking for each.
#[device]
fn fetch_by<M: Piece, const N: usize, const LANES: usize, const COUNT: usize>(
    x: &[M],
    from: usize,
    first: usize,
    end: usize,
    absent: f32,
    at_once: bool,
) -> [f32; COUNT] {
    let mut numbers = [0.0f32; COUNT];
    if at_once && first + (COUNT / N - 1) * LANES < end {
        for i in 0..COUNT / N {
            let piece = x[from + first + i * LANES].spread();
            for j in 0..N {
                numbers[i * N + j] = piece[j];
            }
        }
    } else {
        numbers = [absent; COUNT];
        for i in 0..COUNT / N {
            let at = first + i * LANES;
            if at < end {
                let piece = x[from + at].spread();
                for j in 0..N {
                    numbers[i * N + j] = piece[j];
                }
            }
        }
    }
    numbers
}

/// Writes what [`fetch`] reads.
#[device]
pub(super) fn store<M: Piece, const N: usize, const LANES: usize, const COUNT: usize>(
    y: &mut [M],
    from: usize,
    first: usize,
    end: usize,
    numbers: [f32; COUNT],
) {
    for i in 0..COUNT / N {
        let at = first + i * LANES;
        if at < end {
            let mut piece = [0.0f32; 8];
            for j in 0..N {
                piece[j] = numbers[i * N + j];
            }
            y[from + at] = M::gather(piece);
        }
    }
}
