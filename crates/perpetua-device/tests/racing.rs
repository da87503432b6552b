//! Streams that use one buffer with no event between them: what they read is unspecified, and nothing else goes wrong. Run
//! by itself it sees values; under ThreadSanitizer, which `cargo xtask test` runs it under and where kernels are interpreted, every
//! access.
#![cfg(feature = "cpu")]

mod at_once;

use perpetua_device::*;

use at_once::{ROUNDS, at_once};

/// Bytes of a small buffer, whose copies run on the thread that submits them, and of a large one, whose do not.
const SIZES: [usize; 2] = [4 << 10, 300 << 10];

const ADD: &str = "\
kernel add(x: buffer<u32, read_write>) {
  %0: u32 = thread_idx.x
  %1: u32 = block_idx.x
  %2: u32 = block_dim.x
  %3: u32 = mul %1, %2
  %4: u32 = add %3, %0
  %5: u32 = load x[%4]
  %6: u32 = const 1
  %7: u32 = add %5, %6
  store x[%4], %7
}
";

/// Copies, fills and reads of one buffer at the same time.
fn transfers(device: &Device) -> Result<()> {
    for bytes in SIZES {
        let (one, two) = (device.zeros::<u8>(bytes)?, device.full(bytes, 1u8)?);
        device.synchronize()?;
        let whole = bytes - 3;
        at_once(
            device,
            &[
                &|stream, round| stream.fill(&one, round),
                &|stream, _| stream.copy(&two, &one),
                &|stream, round| stream.write(&one.slice(3..)?, &vec![round; whole]),
                &|stream, round| stream.fill(&one.slice(..whole / 4 * 4)?.cast::<u32>()?, round.into()),
                &|stream, _| stream.copy(&one, &two),
                &|stream, _| {
                    let seen = stream.read(&one)?;
                    assert!(seen.iter().all(|byte| *byte < ROUNDS));
                    Ok(())
                },
                &|stream, _| {
                    let seen = future::block_on(stream.read_async(&one))?;
                    assert!(seen.iter().all(|byte| *byte < ROUNDS));
                    Ok(())
                },
            ],
        )?;
        one.fill(7)?;
        assert!(one.read()?.iter().all(|byte| *byte == 7));
    }
    Ok(())
}

#[test]
fn transfers_of_streams_race_on_the_cpu() -> Result<()> {
    transfers(&Device::new(BackendKind::Cpu, 0)?)
}

#[test]
fn transfers_of_streams_race_on_the_null_backend() -> Result<()> {
    transfers(&Device::new(BackendKind::Null, 0)?)
}

#[test]
fn the_host_races_with_streams_for_mapped_memory() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    let mapped = device.mapped::<u32>(1024)?;
    let small = device.mapped::<u16>(1024)?;
    let add = device
        .compile(&KernelSource::IrText(ADD), &CompileOptions::default())?
        .only()?;
    at_once(
        &device,
        &[
            &|stream, round| stream.fill(&mapped, round.into()),
            &|stream, round| stream.fill(&small, round.into()),
            &|stream, _| stream.launch(&add, LaunchConfig::linear(1024, 64), args![&mapped]),
            &|_, round| {
                for i in 0..1024 {
                    mapped.load(i)?;
                    mapped.store(i, round.into())?;
                    // Two bytes are never torn.
                    let seen = small.load(i)?;
                    assert!(seen < 256 || seen == 0xffff, "{seen:x}");
                    small.store(i, 0xffff)?;
                }
                Ok(())
            },
        ],
    )
}

#[test]
fn kernels_race_with_transfers() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    for (interpret, bytes) in [
        (false, SIZES[0]),
        (false, SIZES[1]),
        (true, SIZES[0]),
        (true, SIZES[1]),
    ] {
        let options = CompileOptions {
            interpret,
            ..CompileOptions::default()
        };
        let add = device.compile(&KernelSource::IrText(ADD), &options)?.only()?;
        let len = bytes / 4;
        let (one, two) = (device.zeros::<u32>(len)?, device.zeros::<u32>(len)?);
        device.synchronize()?;
        let launch = |stream: &Stream| stream.launch(&add, LaunchConfig::linear(len, 64), args![&one]);
        at_once(
            &device,
            &[
                &|stream, _| launch(stream),
                &|stream, _| launch(stream),
                &|stream, round| stream.fill(&one, round.into()),
                &|stream, _| stream.copy(&one, &two),
                &|stream, _| stream.read(&one).map(drop),
            ],
        )?;
    }
    Ok(())
}
