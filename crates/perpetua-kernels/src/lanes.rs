//! What the lanes that work on the same have together. Must not know what it is.

use perpetua::prelude::*;

/// All that the `LANES` lanes of a row hold, combined, for each of them. Every lane of the block comes here. `MEETS` says that subgroups may
/// be used.
#[device]
pub(crate) fn across<T: SubgroupNumber + GpuType, const LANES: usize, const MEETS: bool>(
    part: &mut [T; 512],
    lane: usize,
    value: T,
    combine: impl Fn(T, T) -> T,
) -> T {
    if MEETS {
        // A row's lanes are whole subgroups, or a part of one. Numbers of 32 bits, in which the compiler of CUDA's texts divides as it compiles.
        let width = subgroup_size().min(LANES as u32);
        let mut all = value;
        let mut far = 1;
        while far < width {
            all = combine(all, subgroup_shuffle_xor(all, far));
            far *= 2;
        }
        let groups = LANES as u32 / width;
        if groups > 1 {
            let group = subgroup_id();
            if subgroup_lane() == 0 {
                part[group as usize] = all;
            }
            sync_threads();
            let first = (group / groups * groups) as usize;
            all = part[first];
            for i in 1..groups {
                all = combine(all, part[first + i as usize]);
            }
            // Nobody writes the next values before all have read these.
            sync_threads();
        }
        all
    } else {
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
        sync_threads();
        all
    }
}
