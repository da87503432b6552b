; c = alpha a b + beta c: a has m x k elements, b k x n, c m x n, rows first; 16 x 16 tiles in memory of the block.
.program atlas_gemm_f32
.block 16, 16
.buffer a: f32
.buffer b: f32
.buffer c: f32
.param m: u32
.param n: u32
.param k: u32
.param alpha: f32
.param beta: f32
.shared ta: f32[256]
.shared tb: f32[256]

    mad.u32 r0, %ctaid.x, 16, r252  ; column
    mad.u32 r1, %ctaid.y, 16, %tid.y ; row
    mul.u32 r2, %tid.y, 16
    add.u32 r3, r2, r252            ; this lane's place in the tiles
    mov.f32 r4, 0.0
    mov.u32 r5, 0                   ; where the tiles begin
    setlt.u32 p1, r0, n
    setlt.u32 p2, r1, m
tile:
    setge.u32 p0, r5, k
@p0 bra done
    add.u32 r6, r5, r252
    setlt.u32 p3, r6, k
    and.pred p3, p3, p2
    mov.f32 r7, 0.0
    mad.u32 r8, r1, k, r6
@p3 ldg.f32 r7, a[r8]
    sts.f32 ta[r3], r7
    add.u32 r6, r5, %tid.y
    setlt.u32 p3, r6, k
    and.pred p3, p3, p1
    mov.f32 r7, 0.0
    mad.u32 r8, r6, n, r0
@p3 ldg.f32 r7, b[r8]
    sts.f32 tb[r3], r7
    bar
    mov.u32 r9, 0
inner:
    lds.f32 r10, ta[r2 + r9]
    mad.u32 r11, r9, 16, r252
    lds.f32 r12, tb[r11]
    fma.f32 r4, r10, r12, r4
    add.u32 r9, r9, 1
    setlt.u32 p0, r9, 16
@p0 bra inner
    bar
    add.u32 r5, r5, 16
    bra tile
done:
    and.pred p0, p1, p2
    mad.u32 r8, r1, n, r0
@!p0 exit
    ldg.f32 r7, c[r8]
    mul.f32 r7, r7, beta
    fma.f32 r7, r4, alpha, r7
    stg.f32 c[r8], r7
