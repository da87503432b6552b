; hologram's instructions of the Atlas group, as macros: `.include "atlas"` brings them, from anywhere.
; A lane's class (0 to 95) is kept in r250, its phase in r251, both u32; r248, r249 and p15 are used between. Classes are u32.
; Programs that use `nbrcount` and `nbrget` declare the table of neighbours: `.const nbr: u32 = …`, those of all classes one after the
; other, and `.const nbr_start: u32 = …`, where those of each class begin, and the end: 97 numbers. Those that use `resaccum`
; declare `.buffer residues: f64`, 96 for each lane of the grid.

.macro atlas_start              ; class and phase begin at 0
    mov.u32 r250, 0
    mov.u32 r251, 0
.endmacro

.macro clsget d                 ; d = the lane's class
    mov.u32 \d, r250
.endmacro

.macro clsset src               ; the lane's class = src
    mov.u32 r250, \src
.endmacro

.macro clsof d, h2, m, l        ; d = the class of a byte of components h2 (0 to 3), m (0 to 2) and l (0 to 7)
    mul.u32 r249, \h2, 24
    mad.u32 r249, \m, 8, r249
    add.u32 \d, r249, \l
.endmacro

.macro mirror d, src            ; d = the class that is paired with src: three on, or back, in a group of six
    rem.u32 r249, \src, 6
    setlt.u32 p15, r249, 3
    sub.u32 r249, \src, 3
    add.u32 \d, \src, 3
    sel.u32 \d, p15, \d, r249
.endmacro

.macro unitytest p, epsilon     ; p = whether the lane's class is one of unity; epsilon is not used, as in hologram
    seteq.u32 \p, r250, 1
    seteq.u32 p15, r250, 4
    or.pred \p, \p, p15
.endmacro

.macro nbrcount class, d        ; d = how many neighbours the class has
    ldc.u32 r249, nbr_start[\class]
    ldc.u32 r248, nbr_start[\class + 1]
    sub.u32 \d, r248, r249
.endmacro

.macro nbrget class, index, d   ; d = a neighbour of the class, 0 where there is none of this index
    ldc.u32 r249, nbr_start[\class]
    ldc.u32 r248, nbr_start[\class + 1]
    sub.u32 r248, r248, r249
    setlt.u32 p15, \index, r248
    add.u32 r249, r249, \index
    mov.u32 \d, 0
@p15 ldc.u32 \d, nbr[r249]
.endmacro

.macro resaccum class, value    ; adds an f64 to the lane's residue of the class
    mov.u32 r249, %gid
    mad.u32 r249, r249, 96, \class
    ldg.f64 r248, residues[r249]
    add.f64 r248, r248, \value
    stg.f64 residues[r249], r248
.endmacro

.macro phaseget d               ; d = the lane's phase
    mov.u32 \d, r251
.endmacro

.macro phaseadv delta           ; the lane's phase goes on, modulo 768
    add.u32 r251, r251, \delta
    rem.u32 r251, r251, 768
.endmacro

.macro boundmap class, page, byte, d    ; d = the address of a coordinate in the boundary pool
    mul.u32 r249, \class, 12288
    mad.u32 r249, \page, 256, r249
    add.u32 \d, r249, \byte
.endmacro
