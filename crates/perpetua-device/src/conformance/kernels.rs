//! The kernels that cells launch, built with the IR's builder. Each statement carries a line, so that faults have one.

use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::verify::verify;

use super::Failure;
use crate::device::Device;
use crate::kernel::Kernel as Compiled;

type Build = Result<(), TypeError>;

/// The name of the source file that the kernels claim.
pub(super) const SOURCE: &str = "conformance.rs";

/// Builds, verifies and compiles a kernel.
pub(super) fn compile(
    device: &Device,
    name: &str,
    build: impl FnOnce(&mut KernelBuilder) -> Build,
) -> Result<Compiled, Failure> {
    let mut k = KernelBuilder::new(name);
    k.set_source(SOURCE);
    k.set_line(1);
    build(&mut k).map_err(|e| Failure(format!("building kernel `{name}`: {e}")))?;
    let kernel = verify(k.finish()).map_err(|e| Failure(format!("verifying kernel `{name}`: {e}")))?;
    Ok(device.compile_ir(&kernel)?)
}

/// `then` for the lanes whose index in x is below the length of `buffer`; it gets the index.
pub(super) fn guarded(
    k: &mut KernelBuilder,
    buffer: Base,
    then: impl FnOnce(&mut KernelBuilder, Value) -> Build,
) -> Build {
    let i = k.global_id(Axis::X)?;
    let n = k.op(Op::Len(buffer, Scalar::U32))?;
    let inside = k.binary(BinaryOp::Lt, i, n)?;
    k.if_(inside, |k| then(k, i))
}

/// `out[i] = i`.
pub(super) fn index(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "index", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        guarded(k, out, |k, i| k.store(Place::element(out, i), i))
    })
}

/// `y[i] = x[i] * a + b`, wrapping.
pub(super) fn affine(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "affine", |k| {
        let x = k.buffer("x", Type::U32, Access::Read);
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let a = k.param("a", Type::U32);
        let b = k.param("b", Type::U32);
        guarded(k, y, |k, i| {
            let v = k.load(Place::element(x, i))?;
            let v = k.binary(BinaryOp::Mul, v, a)?;
            let v = k.binary(BinaryOp::Add, v, b)?;
            k.store(Place::element(y, i), v)
        })
    })
}

/// Adds 1 to `count[0]` in every lane.
pub(super) fn count(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "count", |k| {
        let count = k.buffer("count", Type::U32, Access::ReadWrite);
        let (zero, one) = (k.u32(0), k.u32(1));
        k.op(Op::Atomic(
            AtomicOp::Add,
            Place::element(count, zero),
            one,
            Sync::RELAXED,
        ))?;
        Ok(())
    })
}

/// Each lane of a 3-D grid writes its linear index to the place that it computes from its coordinates.
pub(super) fn volume(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "volume", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let size = [
            k.param("width", Type::U32),
            k.param("height", Type::U32),
            k.param("depth", Type::U32),
        ];
        let at = [
            k.global_id(Axis::X)?,
            k.global_id(Axis::Y)?,
            k.global_id(Axis::Z)?,
        ];
        let mut inside = k.bool(true);
        for (a, s) in at.into_iter().zip(size) {
            let one = k.binary(BinaryOp::Lt, a, s)?;
            inside = k.binary(BinaryOp::And, inside, one)?;
        }
        k.if_(inside, |k| {
            let plane = k.binary(BinaryOp::Mul, at[2], size[1])?;
            let row = k.binary(BinaryOp::Add, plane, at[1])?;
            let row = k.binary(BinaryOp::Mul, row, size[0])?;
            let i = k.binary(BinaryOp::Add, row, at[0])?;
            k.store(Place::element(out, i), i)
        })
    })
}

/// Each block of 64 lanes reverses its elements through shared memory, fixed or dynamic.
pub(super) fn reverse(device: &Device, dynamic: bool) -> Result<Compiled, Failure> {
    compile(device, if dynamic { "reverse_dynamic" } else { "reverse" }, |k| {
        let x = k.buffer("x", Type::U32, Access::ReadWrite);
        let tile = match dynamic {
            true => k.dynamic_shared("tile", Type::U32),
            false => k.shared("tile", Type::array(Type::U32, 64)),
        };
        let i = k.global_id(Axis::X)?;
        let t = k.builtin(Builtin::ThreadIdx(Axis::X));
        let v = k.load(Place::element(x, i))?;
        k.store(Place::element(tile, t), v)?;
        k.effect(DeviceOp::Barrier.into())?;
        let last = k.u32(63);
        let mirrored = k.binary(BinaryOp::Sub, last, t)?;
        let v = k.load(Place::element(tile, mirrored))?;
        k.store(Place::element(x, i), v)
    })
}

/// `out[t] = a[t] * 3 + b[63 - t]` for a block of 64 lanes, each of which loads before any stores.
pub(super) fn three_buffers(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "three_buffers", |k| {
        let a = k.buffer("a", Type::U32, Access::Read);
        let b = k.buffer("b", Type::U32, Access::Read);
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = k.builtin(Builtin::ThreadIdx(Axis::X));
        let (three, last) = (k.u32(3), k.u32(63));
        let mirrored = k.binary(BinaryOp::Sub, last, t)?;
        let (a, b) = (
            k.load(Place::element(a, t))?,
            k.load(Place::element(b, mirrored))?,
        );
        k.effect(DeviceOp::Barrier.into())?;
        let v = k.binary(BinaryOp::Mul, a, three)?;
        let v = k.binary(BinaryOp::Add, v, b)?;
        k.store(Place::element(out, t), v)
    })
}

/// `out[t] = t`, after a barrier where `on[0]` is 0.
pub(super) fn gated_barrier(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "gated_barrier", |k| {
        let on = k.buffer("on", Type::U32, Access::Read);
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (t, zero) = (k.builtin(Builtin::ThreadIdx(Axis::X)), k.u32(0));
        let v = k.load(Place::element(on, zero))?;
        let open = k.binary(BinaryOp::Eq, v, zero)?;
        k.if_(open, |k| k.effect(DeviceOp::Barrier.into()))?;
        k.store(Place::element(out, t), t)
    })
}

/// Line of the statement that faults in the kernels below.
pub(super) const FAULT_LINE: u32 = 42;

/// `out[i + offset] = i` in every lane.
pub(super) fn out_of_bounds(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "out_of_bounds", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let offset = k.param("offset", Type::U32);
        let i = k.global_id(Axis::X)?;
        let at = k.binary(BinaryOp::Add, i, offset)?;
        k.set_line(FAULT_LINE);
        k.store(Place::element(out, at), i)
    })
}

/// `out[i] = x[i] op d[i]`, which faults where `d` says so.
pub(super) fn divide(device: &Device, op: BinaryOp) -> Result<Compiled, Failure> {
    compile(device, "divide", |k| {
        let x = k.buffer("x", Type::I32, Access::Read);
        let d = k.buffer("d", Type::I32, Access::Read);
        let out = k.buffer("out", Type::I32, Access::ReadWrite);
        guarded(k, out, |k, i| {
            let x = k.load(Place::element(x, i))?;
            let d = k.load(Place::element(d, i))?;
            k.set_line(FAULT_LINE);
            let v = k.binary(op, x, d)?;
            k.set_line(FAULT_LINE + 1);
            k.store(Place::element(out, i), v)
        })
    })
}

/// Reports an unreachable enum value where `x[i]` is 3 or more; else `out[i] = x[i]`.
pub(super) fn unreachable_enum(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "unreachable_enum", |k| {
        let x = k.buffer("x", Type::U32, Access::Read);
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        guarded(k, out, |k, i| {
            let v = k.load(Place::element(x, i))?;
            let three = k.u32(3);
            let bad = k.binary(BinaryOp::Ge, v, three)?;
            k.if_(bad, |k| {
                k.set_line(FAULT_LINE);
                k.effect(Effect::fault(FaultKind::UnreachableEnum, vec![v]))
            })?;
            k.store(Place::element(out, i), v)
        })
    })
}

/// Blocks of 64: odd lanes fault, then all meet at a barrier, then even lanes write what lane 0 left in shared memory.
pub(super) fn fault_before_barrier(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "fault_before_barrier", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let tile = k.shared("tile", Type::array(Type::U32, 64));
        let i = k.global_id(Axis::X)?;
        let t = k.builtin(Builtin::ThreadIdx(Axis::X));
        let (zero, one, far) = (k.u32(0), k.u32(1), k.u32(1 << 20));
        let odd = k.binary(BinaryOp::And, t, one)?;
        let is_odd = k.binary(BinaryOp::Eq, odd, one)?;
        let seven = k.u32(7);
        k.store(Place::element(tile, t), seven)?;
        k.if_(is_odd, |k| {
            k.set_line(FAULT_LINE);
            k.store(Place::element(out, far), one)
        })?;
        k.effect(DeviceOp::Barrier.into())?;
        let v = k.load(Place::element(tile, zero))?;
        k.effect(DeviceOp::Barrier.into())?;
        k.store(Place::element(out, i), v)
    })
}

/// Each lane writes `out[i], out[i + 1], …` for ever, until it faults at the end.
pub(super) fn fault_in_loop(device: &Device) -> Result<Compiled, Failure> {
    compile(device, "fault_in_loop", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let at = k.local("at", Type::U32);
        let i = k.global_id(Axis::X)?;
        k.store(Place::local(at), i)?;
        let one = k.u32(1);
        k.loop_(|k| {
            let here = k.load(Place::local(at))?;
            k.set_line(FAULT_LINE);
            k.op(Op::Atomic(
                AtomicOp::Add,
                Place::element(out, here),
                one,
                Sync::RELAXED,
            ))?;
            k.set_line(FAULT_LINE + 1);
            let next = k.binary(BinaryOp::Add, here, one)?;
            k.store(Place::local(at), next)
        })
    })
}
