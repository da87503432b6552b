.program atlas_gelu_f16
.buffer a: f16 read
.buffer out: f16 readwrite
    setge.u64 p0, r255, len(out)
    @p0 exit
    ldg.f16 r0, a[r255]
    gelu.f16 r3, r0
    stg.f16 out[r255], r3
