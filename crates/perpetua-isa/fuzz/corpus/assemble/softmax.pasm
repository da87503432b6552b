; y = softmax of each row of x; a block a row, `columns` elements each.
.program softmax
.buffer x: f32
.buffer y: f32
.param columns: u32

.macro over body                ; runs a macro for each element of the row that is this lane's
    mov.u32 r2, %tid.x
each_\@:
    setge.u32 p0, r2, columns
@p0 bra end_\@
    add.u32 r3, r1, r2
    \body
    add.u32 r2, r2, %ntid.x
    bra each_\@
end_\@:
.endmacro

.macro highest
    ldg.f32 r4, x[r3]
    max.f32 r10, r10, r4
.endmacro

.macro power
    ldg.f32 r4, x[r3]
    sub.f32 r4, r4, r10
    exp.f32 r4, r4
.endmacro

.macro sum
    power
    add.f32 r11, r11, r4
.endmacro

.macro share
    power
    div.f32 r4, r4, r11
    stg.f32 y[r3], r4
.endmacro

    mul.u32 r1, r253, columns
    mov.f32 r10, -inf
    over highest
    group_max.f32 r10, r10
    mov.f32 r11, 0.0
    over sum
    group_add.f32 r11, r11
    over share
