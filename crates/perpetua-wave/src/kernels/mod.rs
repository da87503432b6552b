//! The acoustic wave equation by finite differences in time (leapfrog in time, five points in the plane, seven in space:
//! R. Courant, K. Friedrichs, H. Lewy, Mathematische Annalen 100, 1928), as kernels that do all of a time step in one
//! launch. Must not know scenes, nor how launches are put together.
//!
//! Two buffers hold the field: `current` at this step, `other` at the step before, which becomes the step after. Each
//! lane reads and writes its own cell of `other` only. The rows beyond the grid's last record the probes.
//!
//! Of each family there is a kernel for one medium all over, with sources in one box (`open_*`), and one that reads
//! a byte a cell (`media_*`): which row of the table of media the cell has, and whether a source drives it.

use perpetua::prelude::*;

pub(super) mod full;
pub(super) mod half;

/// Slots of the table of media: their stiffnesses come first, then what a step keeps in each, then the profile of columns,
/// rows and layers.
pub(super) const SLOTS: usize = 256;
/// The slot of cells where the field is zero.
pub(super) const REFLECTOR: u8 = 0;
/// The slots from here on are driven by sources.
pub(super) const FIRST_DRIVEN: u8 = 240;
/// Driven slots, and numbers in a row of the table of drives.
pub(super) const DRIVEN: usize = 16;

/// The field of a cell at the next step. `around` is the sum of its neighbours less as many times itself, `stiffness`
/// the squared Courant number, `keep` what is left of the field's change after a step's damping: (1 - d) / (1 + d).
#[device]
#[inline(always)]
fn leap(now: f32, before: f32, around: f32, stiffness: f32, keep: f32) -> f32 {
    swing(now, before, around, keep, (0.5 + 0.5 * keep) * stiffness)
}

/// The same with what its neighbours pull at it: `(0.5 + 0.5 keep) stiffness`.
/// Wave fronts decay into denormals, which stall some processors: what is too small to matter becomes zero.
#[device]
#[inline(always)]
pub(super) fn swing(now: f32, before: f32, around: f32, keep: f32, pull: f32) -> f32 {
    let next = now + keep * (now - before) + pull * around;
    if next.abs() < 1e-30 { 0.0 } else { next }
}

/// The field of a cell on the border at the next step: what comes from inside goes out (one-way wave equation,
/// upwind); with `edge` zero it stays at rest.
#[device]
#[inline(always)]
pub(super) fn leave(now: f32, inside: f32, edge: f32) -> f32 {
    let next = now + edge * (inside - now);
    if next.abs() < 1e-30 { 0.0 } else { next }
}

/// The kernel that does `steps` steps in the plane, in tall tiles or `low` ones; `None` where there is none for so many.
pub(super) fn tiles<const MEDIA: bool, const PROBES: bool>(
    f16: bool,
    low: bool,
    steps: u32,
) -> Option<KernelFn> {
    use full::blocked as full;
    use half::blocked as half;
    Some(match (f16, low, steps) {
        (false, false, 2) => full::tall::kernel::<2, MEDIA, PROBES>(),
        (false, false, 4) => full::tall::kernel::<4, MEDIA, PROBES>(),
        (false, false, 8) => full::tall::kernel::<8, MEDIA, PROBES>(),
        (false, true, 2) => full::low::kernel::<2, MEDIA, PROBES>(),
        (false, true, 4) => full::low::kernel::<4, MEDIA, PROBES>(),
        (false, true, 8) => full::low::kernel::<8, MEDIA, PROBES>(),
        (true, false, 2) => half::tall::kernel::<2, MEDIA, PROBES>(),
        (true, false, 4) => half::tall::kernel::<4, MEDIA, PROBES>(),
        (true, false, 8) => half::tall::kernel::<8, MEDIA, PROBES>(),
        (true, true, 2) => half::low::kernel::<2, MEDIA, PROBES>(),
        (true, true, 4) => half::low::kernel::<4, MEDIA, PROBES>(),
        (true, true, 8) => half::low::kernel::<8, MEDIA, PROBES>(),
        _ => return None,
    })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use perpetua_device::Dim3;
    use perpetua_device::native::{NativeArg, NativeLaunch};

    use super::*;

    /// The lanes, of those in the grid, that native code runs without checks.
    fn unproven(kernel: KernelFn, extent: [u32; 3], block: [u32; 3], values: &[[u8; 4]], media: bool) -> u64 {
        let cells = extent.iter().product::<u32>() as usize;
        let (mut now, mut other) = (vec![0.0f32; cells], vec![0.0f32; cells]);
        let (mut bytes, mut table) = (vec![0u8; cells], vec![0.0f32; 1024]);
        let (mut drive, mut positions, mut record) = (vec![0.0f32; 256], vec![0u32; 1], vec![0.0f32; 16]);
        fn buffer<T>(values: &mut [T]) -> NativeArg<'static> {
            NativeArg::Buffer {
                ptr: values.as_mut_ptr().cast(),
                len: values.len(),
            }
        }
        let mut args = vec![buffer(&mut now), buffer(&mut other)];
        if media {
            args.push(buffer(&mut bytes));
        }
        args.extend([
            buffer(&mut table),
            buffer(&mut drive),
            buffer(&mut positions),
            buffer(&mut record),
        ]);
        args.extend(values.iter().map(|v| NativeArg::Value(v)));
        let lanes = LaunchConfig::volume(Dim3::from(extent), Dim3::from(block));
        let (grid, block) = (lanes.grid, lanes.block);
        let launch = NativeLaunch {
            grid,
            block,
            shared_bytes: 0,
            overlaps: &[],
        };
        lanes.lanes() - kernel.proven(&launch, &args).unwrap_or(0)
    }

    #[test]
    fn all_lanes_run_without_checks_on_the_cpu() {
        let n = |v: u32| v.to_le_bytes();
        let x = |v: f32| v.to_le_bytes();
        let open = [
            n(64),
            n(40),
            x(0.2),
            x(0.4),
            n(3),
            n(0),
            n(20),
            n(21),
            n(10),
            n(11),
        ];
        assert_eq!(
            unproven(full::open_2d::kernel(), [64, 41, 1], [64, 1, 1], &open, false),
            0,
            "open_2d"
        );
        let media = [n(64), n(40), x(0.4), n(3), n(0)];
        assert_eq!(
            unproven(full::media_2d::kernel(), [64, 41, 1], [64, 1, 1], &media, true),
            0,
            "media_2d"
        );
    }
}
