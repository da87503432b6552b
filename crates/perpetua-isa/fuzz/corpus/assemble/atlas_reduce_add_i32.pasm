.program atlas_reduce_add_i32
.buffer a: i32 read
.buffer out: i32 readwrite
    mov.i32 r0, 0
    mov.u64 r1, r255
    mov.u64 r2, %ntid.x
    mov.u64 r3, %nctaid.x
    mul.u64 r2, r2, r3
next:
    setge.u64 p0, r1, len(a)
    @p0 bra done
    ldg.i32 r4, a[r1]
    add.i32 r0, r0, r4
    add.u64 r1, r1, r2
    bra next
done:
    grid_add.i32 out[0], r0
