; y = running sums of x, a block of 256 at a time, each block by itself (Hillis and Steele).
.program scan
.block 256
.buffer x: u32
.buffer y: u32
.shared sums: u32[256]

    mov.u32 r0, 0
    setlt.u64 p1, r255, len(x)
@p1 ldg.u32 r0, x[r255]
    sts.u32 sums[r252], r0
    bar
    mov.u32 r1, 1
step:
    setge.u32 p0, r1, 256
@p0 bra done
    setge.u32 p2, r252, r1
    sub.u32 r2, r252, r1
    mov.u32 r3, 0
@p2 lds.u32 r3, sums[r2]
    bar
    add.u32 r0, r0, r3
    sts.u32 sums[r252], r0
    bar
    add.u32 r1, r1, r1
    bra step
done:
@p1 stg.u32 y[r255], r0
