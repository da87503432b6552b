; y = x with each element `scale` times in both directions, of pictures of height x width elements one behind the other.
.program atlas_nearest_upsample2d_f32
.buffer x: f32
.buffer y: f32
.param height: u32
.param width: u32
.param scale: u32

    setge.u64 p0, r255, len(y)
@p0 exit
    mov.u32 r0, %gid
    mul.u32 r1, width, scale
    mul.u32 r2, height, scale
    rem.u32 r3, r0, r1              ; column
    div.u32 r0, r0, r1
    rem.u32 r4, r0, r2              ; row
    div.u32 r0, r0, r2              ; picture
    div.u32 r3, r3, scale
    div.u32 r4, r4, scale
    mad.u32 r0, r0, height, r4
    mad.u32 r0, r0, width, r3
    ldg.f32 r5, x[r0]
    stg.f32 y[r255], r5
