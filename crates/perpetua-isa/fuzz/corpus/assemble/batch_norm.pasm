; y = gamma (x - mean) / sqrt(variance + eps) + beta, with the mean and the variance of each channel given; a channel has `size` elements,
; a sample as many channels as gamma has.
.program atlas_batch_norm_f32
.buffer x: f32
.buffer mean: f32
.buffer variance: f32
.buffer gamma: f32
.buffer beta: f32
.buffer y: f32
.param size: u32
.param eps: f32

    setge.u64 p0, r255, len(y)
@p0 exit
    mov.u64 r0, r255
    mov.u32 r2, size
    cvt.u64.u32 r1, r2
    div.u64 r0, r0, r1
    rem.u64 r0, r0, len(gamma)      ; channel
    ldg.f32 r3, x[r255]
    ldg.f32 r4, mean[r0]
    sub.f32 r3, r3, r4
    ldg.f32 r4, variance[r0]
    add.f32 r4, r4, eps
    rsqrt.f32 r4, r4
    mul.f32 r3, r3, r4
    ldg.f32 r4, gamma[r0]
    ldg.f32 r5, beta[r0]
    fma.f32 r3, r3, r4, r5
    stg.f32 y[r255], r3
