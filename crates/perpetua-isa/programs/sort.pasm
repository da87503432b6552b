; Sorts x in place: one block, a lane a pair at a time (bitonic). The first pass over a run compares pairs that lie opposite of one another, so
; that all passes sort upwards: what would lie behind the end stays there, and need not exist.
.program sort
.block 256
.buffer x: i32

    setne.u32 p0, %ctaid.x, 0       ; other blocks have nothing to do
@p0 exit
    mov.u32 r0, len(x)
    mov.u32 r1, 1                   ; half the length of what is sorted next
run:
    setge.u32 p0, r1, r0
@p0 exit
    mov.u32 r2, r1                  ; distance
    add.u32 r3, r1, r1
    sub.u32 r3, r3, 1               ; in which bits the numbers of a pair differ
pass:
    bar
    mov.u32 r4, r252                ; the pair
pair:
    ; Its first element: the pair's number with a zero put in at the distance's bit.
    sub.u32 r5, r2, 1
    and.u32 r5, r4, r5
    sub.u32 r6, r4, r5
    mad.u32 r5, r6, 2, r5
    setge.u32 p0, r5, r0
@p0 bra passed
    xor.u32 r6, r5, r3
    setge.u32 p0, r6, r0
@p0 bra next
    ldg.i32 r7, x[r5]
    ldg.i32 r8, x[r6]
    min.i32 r9, r7, r8
    max.i32 r10, r7, r8
    stg.i32 x[r5], r9
    stg.i32 x[r6], r10
next:
    add.u32 r4, r4, 256
    bra pair
passed:
    shr.u32 r2, r2, 1
    mov.u32 r3, r2
    setgt.u32 p0, r2, 0
@p0 bra pass
    add.u32 r1, r1, r1
    bra run
