; Sorts blocks of 512 numbers in place, each by itself (bitonic); a lane a pair.
.program sort
.block 256
.buffer x: i32
.shared s: i32[512]

    mul.u32 r0, r253, 512
    add.u32 r0, r0, r252            ; the lane's first number
    mov.u32 r2, len(x)
    mov.i32 r3, 2147483647          ; stands behind all others
    mov.i32 r4, 2147483647
    setlt.u32 p1, r0, r2
@p1 ldg.i32 r3, x[r0]
    add.u32 r1, r0, 256
    setlt.u32 p2, r1, r2
@p2 ldg.i32 r4, x[r1]
    sts.i32 s[r252], r3
    sts.i32 s[r252 + 256], r4
    mov.u32 r5, 2                   ; length of what is sorted next
run:
    setgt.u32 p0, r5, 512
@p0 bra sorted
    shr.u32 r6, r5, 1               ; distance
pass:
    bar
    ; The pair: the lane's number with a zero put in at the distance's bit.
    sub.u32 r7, r6, 1
    and.u32 r8, r252, r7
    sub.u32 r9, r252, r8
    mad.u32 r8, r9, 2, r8
    add.u32 r9, r8, r6
    lds.i32 r10, s[r8]
    lds.i32 r11, s[r9]
    and.u32 r12, r8, r5
    seteq.u32 p3, r12, 0            ; upwards
    min.i32 r13, r10, r11
    max.i32 r14, r10, r11
    sel.i32 r10, p3, r13, r14
    sel.i32 r11, p3, r14, r13
    sts.i32 s[r8], r10
    sts.i32 s[r9], r11
    shr.u32 r6, r6, 1
    setgt.u32 p0, r6, 0
@p0 bra pass
    add.u32 r5, r5, r5
    bra run
sorted:
    bar
    lds.i32 r3, s[r252]
    lds.i32 r4, s[r252 + 256]
@p1 stg.i32 x[r0], r3
@p2 stg.i32 x[r1], r4
