//! Cells of memory: copies, fills, parts of buffers, pools, host memory.

use half::{bf16, f16};
use perpetua_ir::front::rust::GpuType;

use super::{Cell, Check, Failure, Need, fails, pattern, same, same_all};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::future::block_on;

use crate::ptr::MemoryKind;

const SIZES: [usize; 12] = [1, 2, 3, 4, 5, 7, 255, 256, 257, 4097, 65_537, (1 << 20) + 3];
const OFFSETS: [usize; 6] = [0, 1, 3, 4, 17, 256];

pub(super) fn cells() -> Vec<Cell> {
    vec![
        Cell::new("memory/copies at odd sizes and offsets", odd_copies),
        Cell::new(
            "memory/device to device at odd sizes and offsets",
            odd_device_copies,
        ),
        Cell::new("memory/fill patterns", fill_patterns),
        Cell::new("memory/bytes through the context", context_bytes),
        Cell::new("memory/zero-size buffers", zero_sizes),
        Cell::new("memory/every scalar type keeps its bits", scalar_types),
        Cell::new("memory/parts of parts", parts),
        Cell::new("memory/casts", casts),
        Cell::new("memory/zeros and full", zeros_and_full),
        Cell::new("memory/new memory has its content on every stream", new_memory),
        Cell::new("memory/many reads in flight", reads_in_flight),
        Cell::new("memory/drops in flight", drops_in_flight),
        Cell::new("memory/many small buffers", small_buffers),
        Cell::new("memory/pool reuses and trims", pool),
        Cell::new("memory/too large an allocation", too_large),
        Cell::new("memory/pinned buffers", pinned),
        Cell::new("memory/mapped buffers", mapped).needs(Need::MappedMemory),
        Cell::new("memory/several threads", threads),
    ]
}

fn odd_copies(device: &Device) -> Check {
    for size in SIZES {
        for offset in OFFSETS {
            let what = format!("{size} bytes at {offset}");
            let around = pattern(size + 300, 1);
            let buffer = device.upload(&around)?;
            let values = pattern(size, 2);
            let part = buffer.slice(offset..offset + size)?;
            part.write(&values)?;
            same_all(&what, &part.read()?, &values)?;
            let mut expect = around;
            expect[offset..offset + size].copy_from_slice(&values);
            same_all(&format!("around {what}"), &buffer.read()?, &expect)?;
        }
    }
    Ok(())
}

fn odd_device_copies(device: &Device) -> Check {
    for size in SIZES {
        for (from, to) in OFFSETS.into_iter().flat_map(|f| OFFSETS.map(|t| (f, t))) {
            let what = format!("{size} bytes from {from} to {to}");
            let (source, around) = (pattern(size + 300, 3), pattern(size + 300, 4));
            let (src, dst) = (device.upload(&source)?, device.upload(&around)?);
            dst.slice(to..to + size)?
                .copy_from(&src.slice(from..from + size)?)?;
            let mut expect = around;
            expect[to..to + size].copy_from_slice(&source[from..from + size]);
            same_all(&what, &dst.read()?, &expect)?;
        }
        // Within one buffer, beside each other.
        let bytes = pattern(2 * size, 5);
        let buffer = device.upload(&bytes)?;
        buffer.slice(size..)?.copy_from(&buffer.slice(..size)?)?;
        same_all("within a buffer", &buffer.read()?, &bytes[..size].repeat(2))?;
    }
    Ok(())
}

fn fill_patterns(device: &Device) -> Check {
    let stream = device.default_stream();
    for width in [1usize, 2, 4, 8, 16] {
        for (count, offset) in [(1, 0), (3, 1), (100, 4), (1000, 7), (4099, 256)] {
            let what = format!("{count} times {width} bytes at {offset}");
            let len = width * count;
            let around = pattern(len + 300, 6);
            let buffer = device.upload(&around)?;
            let bytes = pattern(width, 7);
            stream
                .inner()
                .fill(buffer.slice(offset..offset + len)?.ptr(), &bytes)?;
            let mut expect = around;
            expect[offset..offset + len].copy_from_slice(&bytes.repeat(count));
            same_all(&what, &buffer.read()?, &expect)?;
        }
    }
    // Elements whose size is no pattern's.
    let wide = device.full(1000, [1u32, 2, 3])?;
    same_all("12-byte elements", &wide.read()?, &vec![[1, 2, 3]; 1000])?;
    let buffer = device.zeros::<u8>(10)?;
    for len in [0usize, 3, 5, 17] {
        let what = format!("a pattern of {len} bytes");
        fails(&what, stream.inner().fill(buffer.ptr(), &pattern(len, 0)), |e| {
            matches!(e, Error::Limit { .. })
        })?;
    }
    fails(
        "10 bytes of 4 each",
        stream.inner().fill(buffer.ptr(), &[1, 2, 3, 4]),
        |e| {
            matches!(
                e,
                Error::Alignment {
                    found: 10,
                    needed: 4,
                    ..
                }
            )
        },
    )
}

fn context_bytes(device: &Device) -> Check {
    let context = device.context();
    let values = pattern(1003, 12);
    let (a, b) = (
        context.allocate(1003, MemoryKind::Device)?,
        context.allocate(1003, MemoryKind::Device)?,
    );
    context.copy_to_device(&values, &a)?;
    context.copy_device_to_device(&a, &b)?;
    context.free(a)?;
    let mut back = vec![0; 1001];
    block_on(context.copy_to_host(&b.slice(2..1003)?, &mut back))?;
    same_all("content", &back, &values[2..])?;
    let short = block_on(context.copy_to_host(&b, &mut back));
    fails("1003 bytes to 1001", short, |e| {
        matches!(e, Error::SizeMismatch { .. })
    })
}

fn zero_sizes(device: &Device) -> Check {
    let empty = device.upload::<u32>(&[])?;
    let other = device.alloc::<u32>(0)?;
    empty.write(&[])?;
    empty.fill(7)?;
    other.copy_from(&empty)?;
    same("content", other.read()?, vec![])?;
    same("asynchronous content", block_on(other.read_async())?, vec![])?;
    let some = device.upload(&[1u32, 2, 3])?;
    let none = some.slice(3..)?;
    none.copy_from(&empty)?;
    none.fill(9)?;
    same("part of nothing", none.slice(..)?.len(), 0)?;
    same("neighbours", some.read()?, vec![1, 2, 3])
}

fn scalar_types(device: &Device) -> Check {
    fn keeps<T: GpuType, B: PartialEq + std::fmt::Debug>(
        device: &Device,
        name: &str,
        values: &[T],
        bits: impl Fn(&T) -> B,
    ) -> Check {
        let found = device.upload(values)?.read()?;
        let as_bits = |v: &[T]| v.iter().map(&bits).collect::<Vec<B>>();
        same_all(name, &as_bits(&found), &as_bits(values))
    }
    let f32s = [0x7fc1_2345, 0x8000_0001, 0xff80_0000, 0x3f80_0000].map(f32::from_bits);
    let f64s = [0x7ff8_0000_1234_5678, 1, u64::MAX].map(f64::from_bits);
    let halves = [0x7e01, 1, 0xfc00];
    keeps(device, "bool", &[true, false, true], |v| *v)?;
    keeps(device, "i8", &[i8::MIN, -1, i8::MAX], |v| *v)?;
    keeps(device, "i16", &[i16::MIN, -1, i16::MAX], |v| *v)?;
    keeps(device, "i32", &[i32::MIN, -1, i32::MAX], |v| *v)?;
    keeps(device, "i64", &[i64::MIN, -1, i64::MAX], |v| *v)?;
    keeps(device, "u8", &[0u8, 128, 255], |v| *v)?;
    keeps(device, "u16", &[0u16, 1 << 15, u16::MAX], |v| *v)?;
    keeps(device, "u32", &[0u32, 1 << 31, u32::MAX], |v| *v)?;
    keeps(device, "u64", &[0u64, 1 << 63, u64::MAX], |v| *v)?;
    keeps(device, "f16", &halves.map(f16::from_bits), |v| v.to_bits())?;
    keeps(device, "bf16", &halves.map(bf16::from_bits), |v| v.to_bits())?;
    keeps(device, "f32", &f32s, |v| v.to_bits())?;
    keeps(device, "f64", &f64s, |v| v.to_bits())?;
    keeps(device, "[u16; 3]", &[[1u16, 2, 3], [4, 5, 6]], |v| *v)
}

fn parts(device: &Device) -> Check {
    let values: Vec<u32> = (0..1000).collect();
    let whole = device.upload(&values)?;
    let part = whole.slice(100..=899)?;
    let inner = part.slice(1..)?.slice(..7)?;
    same("part of a part", inner.read()?, (101..108).collect())?;
    drop((whole, part));
    inner.fill(5)?;
    same("after the whole was dropped", inner.read()?, vec![5; 7])?;
    let is_range = |e: &Error| {
        matches!(
            e,
            Error::OutOfRange {
                len: 7,
                unit: "elements",
                ..
            }
        )
    };
    fails("beyond the end", inner.slice(3..8), is_range)?;
    let (start, end) = (5, 4);
    fails("backwards", inner.slice(start..end), is_range)
}

fn casts(device: &Device) -> Check {
    let words = device.upload(&[0x0403_0201u32, 0x0807_0605])?;
    same(
        "as bytes",
        words.cast::<u8>()?.read()?,
        vec![1, 2, 3, 4, 5, 6, 7, 8],
    )?;
    same(
        "as one",
        words.cast::<u64>()?.read()?,
        vec![0x0807_0605_0403_0201],
    )?;
    let bytes = words.cast::<u8>()?;
    let is_alignment = |e: &Error| matches!(e, Error::Alignment { .. });
    fails("odd length", bytes.slice(..7)?.cast::<u32>(), is_alignment)?;
    fails("odd start", bytes.slice(1..5)?.cast::<u32>(), is_alignment)?;
    fails("to bool", bytes.cast::<bool>(), |e| {
        matches!(e, Error::InvalidState { .. })
    })
}

fn zeros_and_full(device: &Device) -> Check {
    // Memory that was something else before.
    drop(device.full(5000, 0xffu8)?);
    same_all("zeros", &device.zeros::<u32>(1250)?.read()?, &[0; 1250])?;
    same_all("bool", &device.alloc::<bool>(5000)?.read()?, &[false; 5000])?;
    same_all("full", &device.full(777, -2.5f32)?.read()?, &[-2.5; 777])
}

fn reads_in_flight(device: &Device) -> Check {
    let values: Vec<Vec<u8>> = (0..32).map(|i| pattern(1000 * i + 1, i as u8)).collect();
    let mut reads = Vec::new();
    for v in &values {
        let buffer = device.upload(v)?;
        reads.push(buffer.read_async());
        // A read gives what was there when it was submitted.
        buffer.fill(0)?;
    }
    // One future is dropped before it is done, the rest are taken last first.
    drop(reads.remove(5));
    let mut values = values;
    values.remove(5);
    for (i, (read, v)) in reads.into_iter().zip(&values).enumerate().rev() {
        same_all(&format!("read {i}"), &block_on(read)?, v)?;
    }
    Ok(())
}

fn drops_in_flight(device: &Device) -> Check {
    let values = pattern(1 << 20, 8);
    let result = device.alloc::<u8>(values.len())?;
    for round in 0..8u8 {
        // Each buffer is dropped while its copies may still run, and its memory asked for again at once.
        let a = device.upload(&values)?;
        let b = device.alloc::<u8>(values.len())?;
        b.copy_from(&a)?;
        drop(a);
        let c = device.full(values.len(), round)?;
        drop(c);
        result.copy_from(&b)?;
        drop(b);
    }
    same_all("the last copy", &result.read()?, &values)
}

fn small_buffers(device: &Device) -> Check {
    let mut kept: Vec<(Buffer<u32>, u32)> = Vec::new();
    for i in 0..2000u32 {
        kept.push((device.upload(&[i, !i])?, i));
        if i % 3 == 0 {
            kept.swap_remove((i as usize * 7) % kept.len());
        }
    }
    for (buffer, i) in kept.iter().step_by(37) {
        same("content", buffer.read()?, vec![*i, !*i])?;
    }
    Ok(())
}

fn pool(device: &Device) -> Check {
    // A device of its own: others' buffers do not count.
    let device = super::open_again(device)?;
    let before = device.pool_stats(MemoryKind::Device);
    let buffer = device.full(1 << 20, 1u8)?;
    let with = device.pool_stats(MemoryKind::Device);
    let holds = |ok: bool, what: &str| match ok {
        true => Ok(()),
        false => Err(Failure(format!("{what}: {with:?} after {before:?}"))),
    };
    holds(
        with.in_use >= before.in_use + (1 << 20),
        "in use grows by what is allocated",
    )?;
    holds(with.reserved >= with.in_use, "no more is in use than reserved")?;
    holds(with.peak >= with.in_use, "the peak is at least what is in use")?;
    holds(with.allocations > before.allocations, "allocations are counted")?;
    device.synchronize()?;
    drop(buffer);
    device.synchronize()?;
    let after = device.pool_stats(MemoryKind::Device);
    same("in use after the drop", after.in_use, before.in_use)?;
    let again = device.alloc::<u8>(1 << 20)?;
    let hits = device.pool_stats(MemoryKind::Device).hits;
    holds(hits > after.hits, "the same size again is a hit")?;
    device.synchronize()?;
    drop(again);
    device.synchronize()?;
    device.trim(0)?;
    let trimmed = device.pool_stats(MemoryKind::Device);
    holds(trimmed.reserved < with.reserved, "trimming gives memory back")?;
    same(
        "usable after a trim",
        device.upload(&[1u8, 2])?.read()?,
        vec![1, 2],
    )
}

fn too_large(device: &Device) -> Check {
    let is_right = |e: &Error| matches!(e, Error::OutOfMemory { .. } | Error::Limit { .. });
    fails("2^60 bytes", device.alloc::<u8>(1 << 60), is_right)?;
    fails("usize::MAX words", device.alloc::<u64>(usize::MAX), is_right)?;
    same("afterwards", device.upload(&[3u8])?.read()?, vec![3])
}

fn pinned(device: &Device) -> Check {
    let stream = device.create_stream()?;
    for len in [0usize, 1, 3, 1000, 100_003] {
        let values = pattern(len, 9);
        let mut from = device.pin(&values)?;
        let buffer = device.alloc::<u8>(len)?;
        from.copy_to(&stream, &buffer)?;
        stream.synchronize()?;
        same_all("copied from pinned", &stream.read(&buffer)?, &values)?;
        // No copy is in flight: the host may write again.
        from.as_mut_slice()?.fill(1);
        let back = from.read_from(&stream, &buffer)?.wait()?;
        same_all("read into pinned", &back, &values)?;
        let again = block_on(back.read_from(&stream, &buffer)?.wait_async())?;
        same_all("read into pinned, asynchronously", &again, &values)?;
    }
    let unequal = device.pin(&[1u8, 2])?;
    let buffer = device.alloc::<u8>(3)?;
    fails("unequal lengths", unequal.copy_to(&stream, &buffer), |e| {
        matches!(e, Error::SizeMismatch { .. })
    })
}

fn mapped(device: &Device) -> Check {
    let host = device.mapped::<u32>(100)?;
    same("fresh", host.load(99)?, 0)?;
    for i in 0..100 {
        host.store(i, i as u32 * 3)?;
    }
    let copy = device.alloc::<u32>(100)?;
    copy.copy_from(&host)?;
    let expect: Vec<u32> = (0..100).map(|i| i * 3).collect();
    same_all("the device sees it", &copy.read()?, &expect)?;
    copy.fill(8)?;
    host.copy_from(&copy)?;
    device.synchronize()?;
    same("the host sees it", host.load(50)?, 8)?;
    same(
        "as an atomic",
        host.atomics()[7].load(std::sync::atomic::Ordering::Acquire),
        8,
    )?;
    let odd = device.mapped::<[u8; 3]>(5)?;
    odd.store(2, [1, 2, 3])?;
    same(
        "odd elements",
        [odd.load(1)?, odd.load(2)?, odd.load(3)?],
        [[0; 3], [1, 2, 3], [0; 3]],
    )?;
    fails("beyond the end", host.load(100), |e| {
        matches!(e, Error::OutOfRange { .. })
    })
}

fn threads(device: &Device) -> Check {
    std::thread::scope(|scope| {
        let work = |salt: u8| {
            move || -> Check {
                let stream = device.create_stream()?;
                for round in 0..20 {
                    let values = pattern(1000 + 7 * round, salt);
                    let buffer = device.alloc::<u8>(values.len())?;
                    stream.write(&buffer, &values)?;
                    same_all("content", &stream.read(&buffer)?, &values)?;
                }
                Ok(())
            }
        };
        let all: Vec<_> = (0..4).map(|salt| scope.spawn(work(salt))).collect();
        all.into_iter().try_for_each(|t| {
            t.join()
                .unwrap_or_else(|_| Err(Failure("a thread panicked".into())))
        })
    })
}

/// What is made while the default stream is busy, or captures, has its content for a stream that waits for nothing.
fn new_memory(device: &Device) -> Check {
    const LEN: usize = 20_000;
    let device = super::open_again(device)?;
    let (default, other) = (device.default_stream(), device.create_stream()?);
    let busy = device.alloc::<u32>(16 << 20)?;
    let values: Vec<u32> = (0..LEN as u32).collect();
    let make = || {
        Ok::<_, Error>((
            device.alloc::<bool>(LEN)?,
            device.zeros::<u32>(LEN)?,
            device.full(LEN, 7u64)?,
            device.full(LEN, [1u32, 2, 3])?,
            device.upload(&values)?,
        ))
    };
    let mut kept = Vec::new();
    for captures in [false, true] {
        for _ in 0..3 {
            // The pool gives memory next that holds other bytes, which are no `bool`s.
            let used = [1, 4, 8, 12, 4].map(|size| device.full(LEN * size, 0xeeu8));
            used.into_iter().try_for_each(|used| used.map(drop))?;
            device.synchronize()?;
            (0..12).try_for_each(|i| busy.fill(i))?;
            let made = match captures {
                false => make()?,
                true => {
                    let mut made = None;
                    let graph = default.capture(|_| {
                        made = Some(make()?);
                        Ok(())
                    })?;
                    same("captured", graph.node_count(), 0)?;
                    made.ok_or_else(|| Failure("nothing was captured".into()))?
                }
            };
            let (flags, zeros, sevens, wide, uploaded) = &made;
            same_all("alloc of bool", &other.read(flags)?, &[false; LEN])?;
            same_all("zeros", &other.read(zeros)?, &[0; LEN])?;
            same_all("full", &other.read(sevens)?, &[7; LEN])?;
            same_all("full of 12 bytes", &other.read(wide)?, &[[1, 2, 3]; LEN])?;
            same_all("upload", &other.read(uploaded)?, &values)?;
            // And nothing comes behind what the other stream does next.
            other.fill(zeros, 9)?;
            kept.push(made);
        }
    }
    device.synchronize()?;
    for (_, zeros, ..) in &kept {
        same_all("written by the other stream", &zeros.read()?, &[9; LEN])?;
    }
    Ok(())
}
