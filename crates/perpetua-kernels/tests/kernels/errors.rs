//! What is said of wrong arguments.

use half::f16;
use libtest_mimic::Failed;
use perpetua_device::{BackendKind, args};
use perpetua_kernels::{
    ArgmaxKernel, DropoutKernel, Factors, GatherKernel, GemmKernel, Kernel, RandomKernel, ReduceKernel,
    RotaryKernel, SoftmaxKernel, TopKKernel, TransposeKernel,
};

use crate::harness::Case;

pub(crate) fn errors(case: &mut Case) -> Result<(), Failed> {
    let stream = case.device.default_stream();
    let buffer = case.device.zeros::<f32>(12)?;
    let check = |kernel: &dyn Kernel, args: &[perpetua_device::KernelArg<'_>], expect: &str| match kernel
        .launch(&stream, args)
    {
        Err(error) if error.to_string() == expect => Ok(()),
        other => Err(Failed::from(format!("{other:?}, not: {expect}"))),
    };
    let product = GemmKernel::tiled(3, 4, 5, 16);
    check(
        &product,
        args![&buffer, &buffer, &buffer],
        "`gemm_tiled`: `A` of shape [3, 5] takes 15 elements, but the buffer has 12 of type f32; pass a longer buffer, or another shape or pitch",
    )?;
    check(
        &GemmKernel::naive(2, 2, 2).with_pitches(2, 9, 2),
        args![&buffer, &buffer.slice(..8)?, &buffer],
        "`gemm_naive`: `B` of shape [2, 2] with a pitch of 9 takes 11 elements, but the buffer has 8 of type f32; pass a longer buffer, or another shape or pitch",
    )?;
    check(
        &product.with_pitches(4, 4, 4),
        args![&buffer, &buffer, &buffer],
        "`gemm_tiled`: rows of `A` have 5 elements, but lie 4 apart; the pitch must be at least 5",
    )?;
    check(
        &GemmKernel::tensor_core(1, 2, 3).with_element(perpetua_kernels::Element::F32),
        args![&buffer, &buffer, &buffer],
        "`gemm_tensor_core` does not compute with F32, but with F16 and Bf16; choose one of them, or another kernel",
    )?;
    let bytes = case.device.zeros::<i8>(48)?;
    check(
        &GemmKernel::staged(8, 5, 1)
            .with_factors(Factors::I8)
            .with_scales(2.0, 0.0),
        args![&bytes, &bytes, &case.device.zeros::<i32>(48)?],
        "`gemm_staged`: products of integers are multiplied with alpha 1 and added to C times beta 0 or 1, not 2 and 0; scale C in another kernel",
    )?;
    check(
        &GemmKernel::staged(8, 5, 1).with_factors(Factors::E4m3),
        args![&bytes, &bytes, &case.device.zeros::<f16>(48)?],
        "`gemm_staged`: `A` is a buffer of i8, but the kernel was made for E4m3; pass a buffer of that, or make it with `with_element` or `with_factors`",
    )?;
    check(
        &GemmKernel::tiled(1, 1, (1 << 31) + 1, 64),
        args![&buffer, &buffer, &buffer],
        "`gemm_tiled`: `A` of shape [1, 2147483649] has more elements than the kernel can count; make it smaller",
    )?;
    check(
        &SoftmaxKernel::new(2, 3),
        args![&buffer],
        "`softmax` takes 2 buffers (x, y), 1 given",
    )?;
    check(
        &SoftmaxKernel::new(2, 3),
        args![&buffer, 1.0f32],
        "`softmax`: `y` is a value of type f32; pass a buffer of shape [2, 3]",
    )?;
    let wrong = case.device.zeros::<u32>(12)?;
    // Over wgpu lanes do not meet in subgroups.
    let meets = u8::from(case.device.backend() != BackendKind::Wgpu);
    check(
        &SoftmaxKernel::new(2, 3),
        args![&buffer, &wrong],
        &format!(
            "argument 5 of kernel `softmax_f32_1_32_8_{meets}_0` is a buffer of u32, but the parameter is `y: &mut [f32]`: make the buffer with the parameter's element type"
        ),
    )?;
    check(
        &TopKKernel::new(2, 3, 4),
        args![&buffer, &buffer, &wrong],
        "`top_k`: the number of columns is 3; it must be 4 to 4294967294",
    )?;
    check(
        &TopKKernel::new(2, 3, 2),
        args![&buffer, &buffer, &buffer],
        "`top_k`: `indices` is a buffer of f32, but the kernel was made for u32; pass a buffer of that, or make it with `with_element` or `with_factors`",
    )?;
    check(
        &ArgmaxKernel::new(2, 0),
        args![&buffer, &wrong],
        "`argmax`: the number of columns is 0; it must be 1 to 4294967294",
    )?;
    check(
        &RotaryKernel::new(1, 1, 8).with_turning(10),
        args![&buffer, &wrong, &wrong, &buffer],
        "`rotary`: the number of columns that turn is 10; it must be even, and at most 8",
    )?;
    check(
        &DropoutKernel::new(4, 1.0, 0, 0),
        args![&buffer, &buffer],
        "`dropout`: numbers are dropped with a probability of 1; give one from 0 to below 1",
    )?;
    check(
        &RandomKernel::uniform(4, 0, 0).starting_at(u32::MAX),
        args![&buffer],
        "`random`: how many numbers is 4; it must be at most 1: take another stream for more",
    )?;
    check(
        &ReduceKernel::sum(&[3, 4], &[2]),
        args![&buffer, &buffer],
        "`reduce_across`: an axis is 2; it must be below 2",
    )?;
    check(
        &ReduceKernel::sum(&[3, 4], &[1]).with_strides(&[5, 1]),
        args![&buffer, &buffer],
        "`reduce_along`: `x` of shape [1, 14] takes 14 elements, but the buffer has 12 of type f32; pass a longer buffer, or another shape or pitch",
    )?;
    check(
        &TransposeKernel::of::<u16>(2, 3),
        args![&buffer, &buffer],
        "`transpose`: bytes of an element of `x` is 4; it must be 2",
    )?;
    check(
        &GatherKernel::of::<f32>([3, 4], 2),
        args![&buffer, &buffer, &buffer],
        "`gather`: `indices` is a buffer of f32, but the kernel was made for u32; pass a buffer of that, or make it with `with_element` or `with_factors`",
    )
}
