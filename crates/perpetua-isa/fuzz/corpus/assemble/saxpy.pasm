; y = a x + y
.program saxpy
.buffer x: f32
.buffer y: f32
.param a: f32

    setge.u64 p0, r255, len(x)
@p0 exit
    ldg.f32 r0, x[r255]
    ldg.f32 r1, y[r255]
    fma.f32 r1, a, r0, r1
    stg.f32 y[r255], r1
