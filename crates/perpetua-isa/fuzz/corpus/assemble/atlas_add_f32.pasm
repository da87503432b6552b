.program atlas_add_f32
.buffer a: f32 read
.buffer b: f32 read
.buffer out: f32 readwrite
    setge.u64 p0, r255, len(out)
    @p0 exit
    ldg.f32 r0, a[r255]
    ldg.f32 r1, b[r255]
    add.f32 r3, r0, r1
    stg.f32 out[r255], r3
