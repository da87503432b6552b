; ax, ay, az = accelerations of bodies at px, py, pz of mass m, softened by eps.
.program nbody
.buffer px: f32
.buffer py: f32
.buffer pz: f32
.buffer m: f32
.buffer ax: f32
.buffer ay: f32
.buffer az: f32
.param eps: f32

    setge.u64 p0, r255, len(px)
@p0 exit
    ldg.f32 r0, px[r255]
    ldg.f32 r1, py[r255]
    ldg.f32 r2, pz[r255]
    mov.f32 r3, 0.0
    mov.f32 r4, 0.0
    mov.f32 r5, 0.0
    mul.f32 r6, eps, eps
    mov.u32 r7, len(px)
body:
    seteq.u32 p0, r7, 0
@p0 bra done
    sub.u32 r7, r7, 1
    call pull
    bra body
done:
    stg.f32 ax[r255], r3
    stg.f32 ay[r255], r4
    stg.f32 az[r255], r5

; Adds what body r7 pulls at (r0, r1, r2) to (r3, r4, r5).
.func pull
    ldg.f32 r10, px[r7]
    ldg.f32 r11, py[r7]
    ldg.f32 r12, pz[r7]
    ldg.f32 r13, m[r7]
    sub.f32 r10, r10, r0
    sub.f32 r11, r11, r1
    sub.f32 r12, r12, r2
    fma.f32 r14, r10, r10, r6
    fma.f32 r14, r11, r11, r14
    fma.f32 r14, r12, r12, r14
    sqrt.f32 r15, r14
    mul.f32 r14, r14, r15
    div.f32 r13, r13, r14
    fma.f32 r3, r10, r13, r3
    fma.f32 r4, r11, r13, r4
    fma.f32 r5, r12, r13, r5
    ret
