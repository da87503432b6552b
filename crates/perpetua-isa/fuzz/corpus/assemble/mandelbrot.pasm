; out = how many steps each point of the plane stays near zero, at most `most`; `width` points a row.
.program mandelbrot
.buffer out: u32
.param width: u32
.param left: f32
.param top: f32
.param step: f32
.param most: u32

    setge.u64 p0, r255, len(out)
@p0 exit
    mov.u32 r0, %gid
    rem.u32 r1, r0, width
    div.u32 r2, r0, width
    cvt.f32.u32 r1, r1
    cvt.f32.u32 r2, r2
    fma.f32 r1, r1, step, left
    fma.f32 r2, r2, step, top
    mov.f32 r3, 0.0
    mov.f32 r4, 0.0
    mov.u32 r9, 0
    mov.u32 r10, most
turn:
    mul.f32 r5, r3, r3
    mul.f32 r6, r4, r4
    add.f32 r7, r5, r6
    setgt.f32 p0, r7, 4.0
@p0 bra done
    mul.f32 r8, r3, r4
    sub.f32 r3, r5, r6
    add.f32 r3, r3, r1
    fma.f32 r4, r8, 2.0, r2
    add.u32 r9, r9, 1
    loop r10, turn
    sub.u32 r9, r9, 1
done:
    stg.u32 out[r255], r9
