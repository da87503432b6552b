; y = running sums of x: one block goes through it, 256 elements at a time (Hillis and Steele), and takes the sum along.
.program scan
.block 256
.buffer x: u32
.buffer y: u32
.shared sums: u32[256]

    setne.u32 p0, %ctaid.x, 0       ; other blocks have nothing to do
@p0 exit
    mov.u32 r4, 0                   ; where the next 256 begin
    mov.u32 r5, 0                   ; the sum of all in front of them
part:
    setge.u32 p0, r4, len(x)
@p0 exit
    add.u32 r6, r4, r252
    mov.u32 r0, 0
    setlt.u32 p1, r6, len(x)
@p1 ldg.u32 r0, x[r6]
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
    add.u32 r0, r0, r5
@p1 stg.u32 y[r6], r0
    lds.u32 r3, sums[255]
    add.u32 r5, r5, r3
    bar                             ; all have read the sum
    add.u32 r4, r4, 256
    bra part
