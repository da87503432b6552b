//! Sums and maxima over the lanes of a row. Must not know what they are for.

use perpetua::prelude::*;

/// All that the `LANES` lanes of a row hold, combined, for each of them. Every lane of the block comes here.
#[device]
pub(crate) fn across<const LANES: usize>(
    part: &mut [f32; 256],
    lane: usize,
    value: f32,
    combine: impl Fn(f32, f32) -> f32,
) -> f32 {
    let within = lane % LANES;
    part[lane] = value;
    sync_threads();
    let mut half = LANES / 2;
    while half > 0 {
        if within < half {
            part[lane] = combine(part[lane], part[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    let all = part[lane - within];
    // Nobody writes the next values before all have read these.
    sync_threads();
    all
}
