; out[0] grows by the dot product of x and y. Blocks add up in any order.
.program dot
.buffer x: f32
.buffer y: f32
.buffer out: f32

    mov.f32 r0, 0.0
    mov.u64 r10, r255
    ; The step is the number of lanes.
    mov.u64 r11, %ntid.x
    mov.u64 r12, %nctaid.x
    mul.u64 r11, r11, r12
next:
    setge.u64 p0, r10, len(x)
@p0 bra done
    ldg.f32 r1, x[r10]
    ldg.f32 r2, y[r10]
    fma.f32 r0, r1, r2, r0
    add.u64 r10, r10, r11
    bra next
done:
    grid_add.f32 out[0], r0
