//! Which buffers of a launch share bytes: found once for a launch, in front of every backend. Must not know backends, nor
//! what kernels do with their buffers.

use crate::ptr::DevicePtr;
use crate::signature::KernelArg;

/// Two arguments of a launch that share bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Position of the earlier argument, from 0.
    pub first: usize,
    /// Position of the later one.
    pub second: usize,
    /// Whether they are the same bytes, each from the same place on.
    pub same: bool,
}

/// All pairs of buffers that share bytes, in the order of their second, then of their first. Mostly there are none, and then
/// nothing is allocated.
pub(crate) fn overlaps(args: &[KernelArg<'_>]) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (second, b) in args.iter().enumerate() {
        let Some(b) = buffer(b) else { continue };
        for (first, a) in args.iter().take(second).enumerate() {
            if let Some(a) = buffer(a)
                && a.overlaps(b)
            {
                found.push(Overlap {
                    first,
                    second,
                    same: a.len() == b.len() && a.starts_with(b),
                });
            }
        }
    }
    found
}

fn buffer<'a>(arg: &KernelArg<'a>) -> Option<&'a DevicePtr> {
    match arg {
        KernelArg::Buffer(buffer) => Some(buffer.ptr),
        KernelArg::Value(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendKind, Device};

    #[test]
    fn every_pair_is_compared() -> crate::Result<()> {
        let device = Device::new(BackendKind::Null, 0)?;
        let (x, y) = (device.zeros::<u32>(8)?, device.zeros::<u32>(8)?);
        let part = |from: usize, to: usize| x.slice(from..to);
        let (low, high, middle, none) = (part(0, 4)?, part(4, 8)?, part(2, 6)?, part(3, 3)?);
        let check = |args: &[KernelArg<'_>], expect: &[(usize, usize, bool)]| {
            let found: Vec<_> = overlaps(args)
                .iter()
                .map(|o| (o.first, o.second, o.same))
                .collect();
            assert_eq!(found, expect);
        };
        check(crate::args![&x, 3u32, &y], &[]);
        check(crate::args![&low, &high, &none], &[]);
        check(crate::args![&x, &x], &[(0, 1, true)]);
        check(
            crate::args![&x, &x, &y, &x],
            &[(0, 1, true), (0, 3, true), (1, 3, true)],
        );
        check(
            crate::args![&low, 1u32, &middle, &high],
            &[(0, 2, false), (2, 3, false)],
        );
        check(crate::args![&x, &low], &[(0, 1, false)]);
        Ok(())
    }
}
