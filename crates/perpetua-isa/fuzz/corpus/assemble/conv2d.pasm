; y = bias + the correlation of x with w; a lane an element of y. x: inputs x height x width, w: outputs x inputs x kh x kw, bias: outputs,
; y: outputs x rows x columns, where rows = (height + 2 pad - kh) / stride + 1, and so for columns. What is outside of x counts as zero.
.program atlas_conv2d_f32
.buffer x: f32
.buffer w: f32
.buffer bias: f32
.buffer y: f32
.param inputs: u32
.param height: u32
.param width: u32
.param kh: u32
.param kw: u32
.param stride: u32
.param pad: u32

    setge.u64 p0, r255, len(y)
@p0 exit
    mov.u32 r0, %gid
    mov.u32 r1, pad
    mad.u32 r2, r1, 2, height
    sub.u32 r2, r2, kh
    div.u32 r2, r2, stride
    add.u32 r2, r2, 1               ; rows
    mad.u32 r3, r1, 2, width
    sub.u32 r3, r3, kw
    div.u32 r3, r3, stride
    add.u32 r3, r3, 1               ; columns
    rem.u32 r5, r0, r3              ; column
    div.u32 r4, r0, r3
    rem.u32 r6, r4, r2              ; row
    div.u32 r4, r4, r2              ; output
    mul.u32 r5, r5, stride
    mul.u32 r6, r6, stride
    ldg.f32 r20, bias[r4]
    mul.u32 r7, r4, inputs
    mov.u32 r8, 0                   ; input
input:
    setge.u32 p0, r8, inputs
@p0 bra done
    mov.u32 r9, 0                   ; row of w
row:
    setge.u32 p0, r9, kh
@p0 bra next_input
    add.u32 r11, r6, r9
    sub.u32 r11, r11, pad           ; row of x; beyond all where it lies above
    mov.u32 r10, 0                  ; column of w
column:
    setge.u32 p0, r10, kw
@p0 bra next_row
    add.u32 r12, r5, r10
    sub.u32 r12, r12, pad
    setlt.u32 p1, r11, height
    setlt.u32 p2, r12, width
    and.pred p1, p1, p2
    mad.u32 r13, r8, height, r11
    mad.u32 r13, r13, width, r12
    mov.f32 r21, 0.0
@p1 ldg.f32 r21, x[r13]
    add.u32 r13, r7, r8
    mad.u32 r13, r13, kh, r9
    mad.u32 r13, r13, kw, r10
    ldg.f32 r22, w[r13]
    fma.f32 r20, r21, r22, r20
    add.u32 r10, r10, 1
    bra column
next_row:
    add.u32 r9, r9, 1
    bra row
next_input:
    add.u32 r8, r8, 1
    bra input
done:
    stg.f32 y[r255], r20
