//! Cells of memory that somebody else owns.

use std::sync::Arc;

use super::{Cell, Check, fails, same, same_all};
use crate::device::Device;
use crate::error::Error;
use crate::ptr::MemoryKind;

pub(super) fn cells() -> Vec<Cell> {
    vec![
        Cell::new("memory/adopted memory", adopted),
        Cell::new("memory/errors of adoption", adoption_errors),
    ]
}

/// Tells by its last clone that the owner was dropped.
type Flag = Arc<()>;

/// Buffers of ours stand for memory of somebody else's, where they have addresses.
fn adopted(device: &Device) -> Check {
    let device = super::open_again(device)?;
    let theirs = device.upload(&(0..1000u32).collect::<Vec<_>>())?;
    device.synchronize()?;
    let Some(address) = theirs.ptr().address() else {
        // SAFETY: nothing is adopted where there are no addresses.
        let refused = unsafe { device.adopt::<u32>(1 << 20, 10, ()) };
        return fails("adopted by an address", refused, |e| {
            matches!(e, Error::Unsupported { .. })
        });
    };
    let (held, flag) = (Arc::strong_count, Flag::default());
    let before = device.pool_stats(MemoryKind::Device);
    // SAFETY: the owner keeps the buffer, whose elements from 100 on these are; nobody uses it meanwhile.
    let ours = unsafe { device.adopt::<u32>(address + 400, 900, (theirs, Flag::clone(&flag)))? };
    same(
        "its pool is not asked",
        device.pool_stats(MemoryKind::Device),
        before,
    )?;
    same("its address", ours.ptr().address(), Some(address + 400))?;
    same_all("adopted", &ours.read()?, &(100..1000).collect::<Vec<_>>())?;
    let (part, copy) = (ours.slice(7..107)?, device.alloc::<u32>(100)?);
    part.fill(3)?;
    copy.copy_from(&part)?;
    // SAFETY: as above; `ours` keeps the memory.
    let again = unsafe { device.adopt::<u32>(address + 404, 900, ours.clone())? };
    fails(
        "overlapping, by another way",
        again.slice(..100)?.copy_from(&ours.slice(..100)?),
        |e| matches!(e, Error::InvalidState { .. }),
    )?;
    drop((ours, again));
    same_all("copied", &copy.read()?, &[3; 100])?;
    same("a part keeps the owner", held(&flag), 2)?;
    let graph = device.create_stream()?.capture(|stream| stream.fill(&part, 8))?;
    drop(part);
    same("a graph keeps the owner", held(&flag), 2)?;
    device.default_stream().launch_graph(&graph)?;
    drop(graph);
    device.synchronize()?;
    drop(copy);
    // What holds memory for submitted work lets go of it when that is waited for.
    device.default_stream().record()?.synchronize()?;
    device.synchronize()?;
    same("nobody keeps the owner", held(&flag), 1)?;
    let after = device.pool_stats(MemoryKind::Device);
    same("the owner has given back", after.in_use, 0)
}

fn adoption_errors(device: &Device) -> Check {
    let theirs = device.upload(&[1u32, 2, 3, 4])?;
    let address = theirs.ptr().address().unwrap_or(1 << 20);
    let flag = Flag::default();
    let adopt = |address: u64, len: usize| {
        // SAFETY: each of these fails, so nothing is adopted.
        let refused = unsafe { device.adopt::<u32>(address, len, Flag::clone(&flag)) };
        refused.map(drop)
    };
    fails("a null address", adopt(0, 4), |e| {
        matches!(e, Error::InvalidState { .. })
    })?;
    fails("beyond the address space", adopt(u64::MAX - 3, 4), |e| {
        matches!(e, Error::InvalidState { .. })
    })?;
    fails("an odd address", adopt(address + 2, 1), |e| {
        matches!(e, Error::AddressAlignment { needed: 4, .. })
    })?;
    fails("too many bytes", adopt(address, usize::MAX), |e| {
        matches!(e, Error::Limit { .. })
    })?;
    same("owners are dropped on errors", Arc::strong_count(&flag), 1)?;
    // SAFETY: nothing lies there.
    let empty = unsafe { device.adopt::<u32>(0, 0, Flag::clone(&flag))? };
    same_all("nothing at the null address", &empty.read()?, &[])?;
    same("of nothing, too", Arc::strong_count(&flag), 1)
}
