; bins[v] counts how often v is in data; 256 bins.
.program histogram
.buffer data: u8
.buffer bins: u32
.shared local: u32[256]

    mov.u32 r0, r252
zero:
    setge.u32 p0, r0, 256
@p0 bra zeroed
    sts.u32 local[r0], 0
    add.u32 r0, r0, r254
    bra zero
zeroed:
    bar
    mov.u64 r10, r255
    mov.u64 r11, %ntid.x
    mov.u64 r12, %nctaid.x
    mul.u64 r11, r11, r12
next:
    setge.u64 p0, r10, len(data)
@p0 bra counted
    ldg.u8 r1, data[r10]
    cvt.u32.u8 r1, r1
    atom_add.u32 r2, local[r1], 1
    add.u64 r10, r10, r11
    bra next
counted:
    bar
    mov.u32 r0, r252
out:
    setge.u32 p0, r0, 256
@p0 exit
    lds.u32 r1, local[r0]
    atom_add.u32 r2, bins[r0], r1
    add.u32 r0, r0, r254
    bra out
