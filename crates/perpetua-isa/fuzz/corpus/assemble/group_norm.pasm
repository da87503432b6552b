; y = gamma (x - mean) / sqrt(variance + eps) + beta, of each group of channels of x, which lie one behind the other: a block a
; group of `channels` channels of `size` elements; `groups` groups make a sample; gamma and beta have one for each channel of a sample.
.program atlas_group_norm_f32
.buffer x: f32
.buffer gamma: f32
.buffer beta: f32
.buffer y: f32
.param groups: u32
.param channels: u32
.param size: u32
.param eps: f32

.macro over body                ; runs a macro for each element that is this lane's
    mov.u32 r2, %tid.x
each_\@:
    setge.u32 p0, r2, r7
@p0 bra end_\@
    add.u32 r3, r1, r2
    ldg.f32 r4, x[r3]
    \body
    add.u32 r2, r2, %ntid.x
    bra each_\@
end_\@:
.endmacro

.macro sum
    add.f32 r10, r10, r4
.endmacro

.macro spread
    sub.f32 r4, r4, r10
    fma.f32 r11, r4, r4, r11
.endmacro

.macro scaled
    sub.f32 r4, r4, r10
    mul.f32 r4, r4, r11
    div.u32 r6, r2, size
    rem.u32 r8, r253, groups
    mad.u32 r6, r8, channels, r6
    ldg.f32 r5, gamma[r6]
    ldg.f32 r6, beta[r6]
    fma.f32 r4, r4, r5, r6
    stg.f32 y[r3], r4
.endmacro

    mul.u32 r7, channels, size
    mul.u32 r1, r253, r7
    cvt.f32.u32 r12, r7
    mov.f32 r10, 0.0
    over sum
    group_add.f32 r10, r10
    div.f32 r10, r10, r12           ; the mean
    mov.f32 r11, 0.0
    over spread
    group_add.f32 r11, r11
    div.f32 r11, r11, r12           ; the variance
    add.f32 r11, r11, eps
    rsqrt.f32 r11, r11
    over scaled
