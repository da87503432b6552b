//! Cells of faults: each is reported once, with kernel, line, lane and operands; nothing hangs, and the device works on.

use perpetua_ir::fault::Fault;
use perpetua_ir::ir::FaultKind;
use perpetua_ir::ops::BinaryOp;

use super::kernels::{self, FAULT_LINE, SOURCE};
use super::{Cell, Check, Failure, Need, same};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Error;
use crate::future::block_on;

pub(super) fn cells() -> Vec<Cell> {
    let cells = vec![
        Cell::new("faults/index out of bounds", out_of_bounds),
        Cell::new("faults/division by zero", |d| division(d, BinaryOp::Div)),
        Cell::new("faults/remainder by zero", |d| division(d, BinaryOp::Rem)),
        Cell::new("faults/MIN / -1", |d| overflow(d, BinaryOp::Div)),
        Cell::new("faults/MIN % -1", |d| overflow(d, BinaryOp::Rem)),
        Cell::new("faults/unreachable enum value", unreachable_enum),
        Cell::new("faults/half the lanes before a barrier", before_barrier),
        Cell::new("faults/in an endless loop", in_loop),
        Cell::new(
            "faults/reported once, at the next synchronisation or read",
            reported_once,
        ),
        Cell::new("faults/stay with their stream", own_stream),
        Cell::new("faults/in graphs", in_graphs),
        Cell::new("faults/the first of several kernels", first_of_several),
    ];
    cells.into_iter().map(|c| c.needs(Need::Compute)).collect()
}

// What a result that should be a fault is.
fn fault<T>(what: &str, result: crate::Result<T>) -> Result<Fault, Failure> {
    match result {
        Err(Error::Fault(fault)) => Ok(*fault),
        Err(error) => Err(Failure(format!("{what}: the wrong error: {error}"))),
        Ok(_) => Err(Failure(format!("{what}: no fault was reported"))),
    }
}

// Checks everything but the lane.
fn is_at(fault: &Fault, kernel: &str, kind: FaultKind, operands: &[i64]) -> Check {
    same("kernel", fault.kernel.as_str(), kernel)?;
    same("source", &*fault.source, SOURCE)?;
    same("kind", fault.site.kind, kind)?;
    same("line", fault.site.line, FAULT_LINE)?;
    same("number of operands", fault.site.operands.len(), operands.len())?;
    for (i, expect) in operands.iter().enumerate() {
        same("operand", fault.operands[i] as i64, *expect)?;
    }
    Ok(())
}

fn out_of_bounds(device: &Device) -> Check {
    let kernel = kernels::out_of_bounds(device)?;
    let out = device.full(100, 9u32)?;
    device.launch(&kernel, LaunchConfig::new(3, 32), args![&out, 4u32])?;
    device.synchronize()?;
    // One lane of many is beyond the end: the report must name it.
    let part = out.slice(..95)?;
    device.launch(&kernel, LaunchConfig::new(3, 32), args![&part, 0u32])?;
    let found = fault("95 places, 96 lanes", device.synchronize())?;
    is_at(&found, "out_of_bounds", FaultKind::IndexOutOfBounds, &[95, 95])?;
    same("subject", found.site.subject.as_str(), "out")?;
    same("lane", (found.block, found.thread), ([2, 0, 0], [31, 0, 0]))?;
    let expect: Vec<u32> = (0..95).chain(91..=95).collect();
    same(
        "every other store happened, that one did not",
        out.read()?,
        expect,
    )
}

fn division(device: &Device, op: BinaryOp) -> Check {
    let kernel = kernels::divide(device, op)?;
    let x = device.upload(&[-7i32, 100, 9, 8])?;
    let d = device.upload(&[2i32, 7, 0, 3])?;
    let out = device.full(4, 55i32)?;
    device.launch(&kernel, LaunchConfig::new(1, 32), args![&x, &d, &out])?;
    let found = fault("a zero divisor", device.synchronize())?;
    is_at(&found, "divide", FaultKind::DivisionByZero, &[9])?;
    same("lane", (found.block, found.thread), ([0; 3], [2, 0, 0]))?;
    let expect = match op {
        BinaryOp::Div => vec![-3, 14, 55, 2],
        _ => vec![-1, 2, 55, 2],
    };
    same("the other lanes", out.read()?, expect)
}

fn overflow(device: &Device, op: BinaryOp) -> Check {
    let kernel = kernels::divide(device, op)?;
    let x = device.upload(&[i32::MIN, i32::MIN, i32::MAX])?;
    let d = device.upload(&[1i32, -1, -1])?;
    let out = device.full(3, 55i32)?;
    device.launch(&kernel, LaunchConfig::new(1, 32), args![&x, &d, &out])?;
    let found = fault("MIN by -1", device.synchronize())?;
    is_at(
        &found,
        "divide",
        FaultKind::DivisionOverflow,
        &[i32::MIN.into(), -1],
    )?;
    same("lane", found.thread, [1, 0, 0])?;
    let expect = match op {
        BinaryOp::Div => vec![i32::MIN, 55, -i32::MAX],
        _ => vec![0, 55, 0],
    };
    same("the other lanes", out.read()?, expect)
}

fn unreachable_enum(device: &Device) -> Check {
    let kernel = kernels::unreachable_enum(device)?;
    let x = device.upload(&[0u32, 2, 77, 1])?;
    let out = device.full(4, 55u32)?;
    device.launch(&kernel, LaunchConfig::new(1, 4), args![&x, &out])?;
    let found = fault("a value of 77", device.synchronize())?;
    is_at(&found, "unreachable_enum", FaultKind::UnreachableEnum, &[77])?;
    same("lane", found.thread, [2, 0, 0])?;
    same("the other lanes", out.read()?, vec![0, 2, 55, 1])
}

fn before_barrier(device: &Device) -> Check {
    let kernel = kernels::fault_before_barrier(device)?;
    let out = device.full(640, 55u32)?;
    device.launch(&kernel, LaunchConfig::linear(640, 64), args![&out])?;
    let found = fault("odd lanes", device.synchronize())?;
    is_at(
        &found,
        "fault_before_barrier",
        FaultKind::IndexOutOfBounds,
        &[1 << 20, 640],
    )?;
    same("an odd lane", found.thread[0] % 2, 1)?;
    let expect: Vec<u32> = (0..640).map(|i| if i % 2 == 0 { 7 } else { 55 }).collect();
    same("even lanes wrote, odd ones did not", out.read()?, expect)
}

fn in_loop(device: &Device) -> Check {
    let kernel = kernels::fault_in_loop(device)?;
    let out = device.zeros::<u32>(64)?;
    device.launch(&kernel, LaunchConfig::new(1, 64), args![&out])?;
    let found = fault("the end of the buffer", device.synchronize())?;
    is_at(&found, "fault_in_loop", FaultKind::IndexOutOfBounds, &[64, 64])?;
    // Place i was reached by lanes 0 to i.
    same("what was written before", out.read()?, (1..=64).collect())
}

fn reported_once(device: &Device) -> Check {
    let kernel = kernels::out_of_bounds(device)?;
    let out = device.zeros::<u32>(4)?;
    let go = || device.launch(&kernel, LaunchConfig::new(1, 1), args![&out, 4u32]);
    let clean = |what: &str| match device.synchronize() {
        Ok(()) => Ok(()),
        Err(error) => Err(Failure(format!("after {what}: reported again: {error}"))),
    };
    go()?;
    fault("synchronise", device.default_stream().synchronize())?;
    clean("synchronise")?;
    go()?;
    fault(
        "awaited synchronise",
        block_on(device.default_stream().synchronize_async()),
    )?;
    clean("awaited synchronise")?;
    go()?;
    fault("device's synchronise", block_on(device.synchronize_async()))?;
    clean("device's synchronise")?;
    go()?;
    fault("read", out.read())?;
    clean("read")?;
    go()?;
    fault("awaited read", block_on(out.read_async()))?;
    clean("awaited read")?;
    same("the device works on", out.read()?, vec![0; 4])
}

fn own_stream(device: &Device) -> Check {
    let kernel = kernels::out_of_bounds(device)?;
    let (bad, good) = (device.create_stream()?, device.create_stream()?);
    let out = device.zeros::<u32>(4)?;
    device.synchronize()?;
    bad.launch(&kernel, LaunchConfig::new(1, 1), args![&out, 9u32])?;
    good.launch(&kernel, LaunchConfig::new(1, 1), args![&out, 0u32])?;
    good.synchronize()?;
    let found = fault("the stream of the fault", bad.synchronize())?;
    is_at(&found, "out_of_bounds", FaultKind::IndexOutOfBounds, &[9, 4])?;
    bad.synchronize()?;
    Ok(())
}

fn in_graphs(device: &Device) -> Check {
    let kernel = kernels::out_of_bounds(device)?;
    let stream = device.create_stream()?;
    let out = device.zeros::<u32>(4)?;
    device.synchronize()?;
    let graph = stream.capture(|s| s.launch(&kernel, LaunchConfig::new(1, 1), args![&out, 6u32]))?;
    stream.synchronize()?;
    for _ in 0..2 {
        stream.launch_graph(&graph)?;
        let found = fault("replay", stream.synchronize())?;
        is_at(&found, "out_of_bounds", FaultKind::IndexOutOfBounds, &[6, 4])?;
    }
    Ok(())
}

fn first_of_several(device: &Device) -> Check {
    let first = kernels::divide(device, BinaryOp::Div)?;
    let second = kernels::out_of_bounds(device)?;
    let (x, d, out) = (
        device.upload(&[3i32])?,
        device.upload(&[0i32])?,
        device.zeros::<i32>(1)?,
    );
    let places = device.zeros::<u32>(1)?;
    device.launch(&first, LaunchConfig::new(1, 1), args![&x, &d, &out])?;
    device.launch(&second, LaunchConfig::new(1, 1), args![&places, 1u32])?;
    let found = fault("two kernels", device.synchronize())?;
    same("the first one", found.kernel.as_str(), "divide")?;
    Ok(device.synchronize()?)
}
