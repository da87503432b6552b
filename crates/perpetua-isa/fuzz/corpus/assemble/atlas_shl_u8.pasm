.program atlas_shl_u8
.buffer a: u8 read
.buffer b: u32 read
.buffer out: u8 readwrite
    setge.u64 p0, r255, len(out)
    @p0 exit
    ldg.u8 r0, a[r255]
    ldg.u32 r1, b[r255]
    shl.u8 r3, r0, r1
    stg.u8 out[r255], r3
