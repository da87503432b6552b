//! A tile of the grid as an actor: a block that holds its part of the field in registers and works through a log of
//! orders, which `conductor` brings.
//!
//! A subgroup is a strip 64 cells wide and as high as a lane has rows; a lane holds two cells of each row, a *patch*. Neighbours
//! beside come by shuffles, those above and below through shared memory. A tile knows `span` cells more than it owns on
//! each side; each step what it knows shrinks by one, and after `span` steps it gets its halo anew from those who own it:
//! patches lie on a board, twice, each of its vectors with the number of the exchange as its tag. A tile that sends exchange
//! n + 2 has received n + 1 from all its neighbours, who by then had taken n: so two of each are enough.

use perpetua::kernel::atomic::{Ordering, Scope};
use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

use crate::actors::order::{FILL, MEDIUM, PAINT, PARK, PROBE, RUN, SAVE, SOURCE};
use crate::kernels::{leave, swing};

use super::conductor::{await_orders, conduct, get, load_number, order_word, put, tell};

/// A word with the bits of two.
#[device]
#[inline(always)]
fn wide(low: u32, high: u32) -> f64 {
    f64::from_bits(low as u64 | ((high as u64) << 32))
}

/// Whether a cell lies in a box of which `from` is the first and `to` the first beyond.
#[device]
#[inline(always)]
fn within(x: i32, y: i32, from_x: u32, to_x: u32, from_y: u32, to_y: u32) -> bool {
    x >= from_x as i32 && x < to_x as i32 && y >= from_y as i32 && y < to_y as i32
}

/// What fills a cell after an order: its slot in the table of media.
#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an order's words")]
fn filled(
    kind: u32,
    slot: u32,
    x: i32,
    y: i32,
    w1: u32,
    w2: u32,
    w3: u32,
    w4: u32,
    w5: u32,
    w6: u32,
    w7: u32,
) -> u32 {
    let mut now = slot;
    if kind == FILL && within(x, y, w2, w3, w4, w5) {
        now = w1;
    }
    if kind == PAINT {
        let across = x as f64 - wide(w2, w3);
        let down = y as f64 - wide(w4, w5);
        if across * across + down * down <= wide(w6, w7) {
            now = w1;
        }
    }
    now
}

macro_rules! tiles {
    (
        $(#[$about:meta])*
        $name:ident: $rows:tt rows,
        top $ta:ident $tb:ident, bottom $ba:ident $bb:ident, north $noa:ident $nob:ident, south $soa:ident $sob:ident;
        rows { $($row:tt: $ua:ident $ub:ident, $a:ident $b:ident, $da:ident $db:ident, $pa:ident $pb:ident,
            $ka:ident $kb:ident, $la:ident $lb:ident, $na:ident $nb:ident, $wb:ident $ea:ident;)* }
        patches of $tall:tt rows, $vectors:tt vectors {
            $($off:tt, $bits:tt: $receives:ident $sends:ident $place:ident {
                $($v:tt: $vec:ident = $f0:ident $f1:ident $f2:ident;)*
            })*
        }
    ) => {
        $(#[$about])*
        #[kernel(interpret)]
        #[allow(
            clippy::too_many_arguments,
            clippy::identity_op,
            clippy::manual_div_ceil,
            clippy::int_plus_one,
            clippy::collapsible_else_if,
            clippy::collapsible_if,
            unused_assignments,
            reason = "a kernel's arguments are its buffers and its scene; the first row's number is 0"
        )]
        pub(crate) fn $name(
            orders: &[U32x4],
            log: &mut [U32x4],
            board: &mut [U32x4],
            progress: &mut [u32],
            reports: &mut [U32x4],
            receipts: &mut [U32x4],
            probes: &mut [U32x4],
            now_in: &[f32],
            before_in: &[f32],
            now_out: &mut [f32],
            before_out: &mut [f32],
            cells: &mut [u32],
            media: &[f32],
            drive: &[u32],
            width: u32,
            height: u32,
            edge: f32,
            across: u32,
            count: u32,
            span: u32,
            first_step: u32,
            first_entry: u32,
            first_order: u32,
            log_mask: u32,
            ring_mask: u32,
            drive_mask: u32,
            chunk: u32,
            ahead: u32,
            patience: u32,
        ) {
            // The first and the last row of each strip, of odd steps and of even ones; its cells of even columns, then of odd.
            let edges = shared_array::<[f32; 4096]>();
            // Stiffnesses of 256 slots, then what is kept in each.
            let table = shared_array::<[f32; 512]>();
            // What sources add in the steps of a round: two rounds of 8 steps, of 8 numbers each: nothing, then 4 sources.
            let drives = shared_array::<[f32; 128]>();
            // Sixteen orders, and how many came, of even looks and of odd ones.
            let desk = shared_array::<[u32; 208]>();
            let lane = local_id_x() as u32 & 31;
            let strip = local_id_y() as u32 & 15;
            let strips = block_dim_y() as u32;
            let tile = block_idx_x() as u32;
            if tile == count {
                conduct(
                    orders, log, progress, reports, receipts, desk, strip, lane, count, first_step, first_entry,
                    first_order, log_mask, ring_mask, chunk, ahead, patience,
                );
                return;
            }
            let w = width as usize;
            let (right, bottom) = (width as i32 - 1, height as i32 - 1);
            let high = $rows * strips;
            // Where the lane's patch lies, in the tile and in the grid: the first tile begins before the grid, by its halo.
            let at_x = 2 * lane;
            let at_y = $rows * strip;
            let x = ((tile % across) * (64 - 2 * span) + at_x) as i32 - span as i32;
            let y = ((tile / across) * (high - 2 * span) + at_y) as i32 - span as i32;
            let exists = x >= 0 && x <= right && y + $rows > 0 && y <= bottom;
            let has_b = exists && x < right;
            let mine = at_x >= span && at_x < 64 - span;
            let central = at_x >= 2 * span && at_x < 64 - 2 * span;
            // The patches' places on the board; which of the lane's rows are the tile's own.
            let patches_x = (width + 1) / 2;
            let patches = patches_x * ((height + ($tall - 1)) / $tall);
            let mut own_rows = 0u32;
            $(
                let patch_y = y + $off;
                let row = at_y + $off;
                let there = exists && patch_y >= 0 && patch_y <= bottom;
                let owned = there && mine && row >= span && row < high - span;
                let inner = central && row >= 2 * span && row + $tall <= high - 2 * span;
                let $sends = owned && !inner;
                let $receives = there && !owned;
                let $place = if there { (patch_y as u32 / $tall) * patches_x + x as u32 / 2 } else { 0 };
                if owned {
                    own_rows |= $bits;
                }
            )*
            let private = (tile * strips + strip) * (2 * $rows * 32) + lane;
            let west_lane = (lane + 31) & 31;
            let east_lane = (lane + 1) & 31;
            // Past the tile's edge anything will do: there nothing is known.
            let above = if strip > 0 { (strip * 2 - 1) * 64 + lane } else { lane };
            let below = if strip + 1 < strips { (strip * 2 + 2) * 64 + lane } else { (strip * 2 + 1) * 64 + lane };
            let own_edges = strip * 128 + lane;
            // The place of row 0 in the fields, where it is inside.
            let first_row = y * width as i32 + x;
            // Cells outside the grid stay at rest: nothing is kept there, and nothing pulls.
            $(
                let mut $a = 0.0f32;
                let mut $b = 0.0f32;
                let mut $pa = 0.0f32;
                let mut $pb = 0.0f32;
                let mut $ka = 0.0f32;
                let mut $kb = 0.0f32;
                let mut $la = 0.0f32;
                let mut $lb = 0.0f32;
                if exists && y + $row >= 0 && y + $row <= bottom {
                    let at = (first_row + $row * width as i32) as usize;
                    $a = now_in[at];
                    $pa = before_in[at];
                    if has_b {
                        $b = now_in[at + 1];
                        $pb = before_in[at + 1];
                    }
                }
            )*
            // The media's numbers.
            let thread = strip * 32 + lane;
            let mut slot = thread;
            while slot < 512 {
                table[slot as usize] = media[slot as usize];
                slot += strips * 32;
            }
            // Cells where the field is held at zero, a bit each, and the sources that drive cells, four bits each.
            let mut walls = 0u32;
            let mut driven = 0u64;
            // Whether one of the lane's columns, or of its rows, lies on the grid's border.
            let at_left = x == 0;
            let side_a = exists && (x == 0 || x == right);
            let side_b = exists && x + 1 == right;
            let flat = exists && (y <= 0 || y + $rows > bottom);
            let mut step = first_step;
            let mut entry = first_entry;
            // The entries before this one lie on the desk.
            let mut known = first_entry;
            let mut looks = 0u32;
            let mut margin = span;
            let mut round = 1u32;
            let mut flip = 0u32;
            if thread < 64 {
                let source = thread & 7;
                let mut amount = 0.0f32;
                if source > 0 && source < 5 {
                    let row = (step + thread / 8) & drive_mask;
                    amount = f32::from_bits(load_number(drive, (row * 4 + source - 1) as usize));
                }
                drives[(64 + thread) as usize] = amount;
            }
            let mut stays = true;
            while stays {
                if entry == known {
                    looks += 1;
                    known = await_orders(log, desk, strip, lane, entry, looks & 1, log_mask, patience);
                }
                let kind = order_word(orders, desk, entry, 0);
                let w1 = order_word(orders, desk, entry, 1);
                if kind == RUN {
                    // What some of the strip's lanes need, all of them go through.
                    let has_flat = subgroup_any(flat);
                    let has_sides = subgroup_any(side_a || side_b);
                    let has_walls = subgroup_any(walls != 0);
                    let has_sources = subgroup_any(driven != 0);
                    for _ in 0..w1 {
                        if margin == 0 {
                            // The halo of the exchange that has begun behind the last step.
                            let base = ((round & 1) * $vectors) * patches;
                            $(
                                let mut waits = $receives;
                                while waits {
                                    $(let $vec = get(board, (base + $v * patches + $place) as usize);)*
                                    let mut came = true;
                                    $(came = came && $vec.w == round;)*
                                    if came {
                                        $(
                                            $f0 = f32::from_bits($vec.x);
                                            $f1 = f32::from_bits($vec.y);
                                            $f2 = f32::from_bits($vec.z);
                                        )*
                                        waits = false;
                                    }
                                }
                            )*
                            round += 1;
                            margin = span;
                            if thread < 64 {
                                let source = thread & 7;
                                let mut amount = 0.0f32;
                                if source > 0 && source < 5 {
                                    let row = (step + thread / 8) & drive_mask;
                                    amount = f32::from_bits(load_number(drive, (row * 4 + source - 1) as usize));
                                }
                                drives[((round & 1) * 64 + thread) as usize] = amount;
                            }
                        }
                        let half = flip * 2048;
                        edges[(half + own_edges) as usize] = $ta;
                        edges[(half + own_edges + 32) as usize] = $tb;
                        edges[(half + own_edges + 64) as usize] = $ba;
                        edges[(half + own_edges + 96) as usize] = $bb;
                        // What needs no other strip comes before the meeting.
                        $(
                            let $wb = subgroup_shuffle($b, west_lane);
                            let $ea = subgroup_shuffle($a, east_lane);
                        )*
                        meet();
                        let $noa = edges[(half + above) as usize];
                        let $nob = edges[(half + above + 32) as usize];
                        let $soa = edges[(half + below) as usize];
                        let $sob = edges[(half + below + 32) as usize];
                        $(
                            let mut $na = swing($a, $pa, $ua + $da + $wb + $b - 4.0 * $a, $ka, $la);
                            let mut $nb = swing($b, $pb, $ub + $db + $a + $ea - 4.0 * $b, $kb, $lb);
                        )*
                        if has_sources {
                            let amounts = (round & 1) * 64 + (span - margin) * 8;
                            $(
                                let source_a = (driven >> (8 * $row)) as u32 & 15;
                                let source_b = (driven >> (8 * $row + 4)) as u32 & 15;
                                $na += drives[(amounts + source_a) as usize];
                                $nb += drives[(amounts + source_b) as usize];
                            )*
                        }
                        if has_walls {
                            $(
                                $na = if (walls >> (2 * $row)) & 1 == 1 { 0.0 } else { $na };
                                $nb = if (walls >> (2 * $row + 1)) & 1 == 1 { 0.0 } else { $nb };
                            )*
                        }
                        if has_sides {
                            $(
                                let inside = if at_left { $b } else { $wb };
                                let out_a = leave($a, inside, edge);
                                let out_b = leave($b, $a, edge);
                                $na = if side_a { out_a } else { $na };
                                $nb = if side_b { out_b } else { $nb };
                            )*
                        }
                        if has_flat {
                            $(
                                // The strip's rows are the same for all its lanes.
                                let yy = y + $row;
                                if yy == 0 || yy == bottom {
                                    let inner_a = if yy == 0 { $da } else { $ua };
                                    let inner_b = if yy == 0 { $db } else { $ub };
                                    let inner_west = subgroup_shuffle(inner_b, west_lane);
                                    let aside = if at_left { inner_b } else { inner_west };
                                    let inside_a = if side_a { aside } else { inner_a };
                                    let inside_b = if side_b { inner_a } else { inner_b };
                                    // Cells outside the grid stay at rest.
                                    $na = if exists { leave($a, inside_a, edge) } else { 0.0 };
                                    $nb = if has_b { leave($b, inside_b, edge) } else { 0.0 };
                                }
                            )*
                        }
                        $(
                            $pa = $a;
                            $pb = $b;
                            $a = $na;
                            $b = $nb;
                        )*
                        flip = 1 - flip;
                        step += 1;
                        margin -= 1;
                        if margin == 0 {
                            let base = ((round & 1) * $vectors) * patches;
                            $(
                                if $sends {
                                    $(
                                        put(
                                            board,
                                            (base + $v * patches + $place) as usize,
                                            U32x4 { x: $f0.to_bits(), y: $f1.to_bits(), z: $f2.to_bits(), w: round },
                                        );
                                    )*
                                }
                            )*
                        }
                    }
                } else if kind <= PAINT {
                    let w2 = order_word(orders, desk, entry, 2);
                    let w3 = order_word(orders, desk, entry, 3);
                    let w4 = order_word(orders, desk, entry, 4);
                    let w5 = order_word(orders, desk, entry, 5);
                    let w6 = order_word(orders, desk, entry, 6);
                    let w7 = order_word(orders, desk, entry, 7);
                    if kind == MEDIUM && thread == 0 {
                        table[(w1 & 255) as usize] = f32::from_bits(w2);
                        table[(256 + (w1 & 255)) as usize] = f32::from_bits(w3);
                    }
                    meet();
                    walls = 0;
                    $(
                        let yy = y + $row;
                        if exists && yy >= 0 && yy <= bottom {
                            let keep = media[512 + x as usize] * media[512 + w + yy as usize];
                            let cell = (private + (2 * $row) * 32) as usize;
                            let slot = filled(kind, cells[cell], x, yy, w1, w2, w3, w4, w5, w6, w7);
                            cells[cell] = slot;
                            $ka = keep * table[(256 + (slot & 255)) as usize];
                            $la = (0.5 + 0.5 * $ka) * table[(slot & 255) as usize];
                            walls |= ((slot == 0) as u32) << (2 * $row);
                        }
                        if has_b && yy >= 0 && yy <= bottom {
                            let keep = media[512 + x as usize + 1] * media[512 + w + yy as usize];
                            let cell = (private + (2 * $row + 1) * 32) as usize;
                            let slot = filled(kind, cells[cell], x + 1, yy, w1, w2, w3, w4, w5, w6, w7);
                            cells[cell] = slot;
                            $kb = keep * table[(256 + (slot & 255)) as usize];
                            $lb = (0.5 + 0.5 * $kb) * table[(slot & 255) as usize];
                            walls |= ((slot == 0) as u32) << (2 * $row + 1);
                        }
                    )*
                } else if kind == SOURCE {
                    let w2 = order_word(orders, desk, entry, 2);
                    let w3 = order_word(orders, desk, entry, 3);
                    let w4 = order_word(orders, desk, entry, 4);
                    let w5 = order_word(orders, desk, entry, 5);
                    $(
                        if (driven >> (8 * $row)) as u32 & 15 == w1 + 1 {
                            driven &= !(15u64 << (8 * $row));
                        }
                        if within(x, y + $row, w2, w3, w4, w5) {
                            driven |= ((w1 + 1) as u64) << (8 * $row);
                        }
                        if (driven >> (8 * $row + 4)) as u32 & 15 == w1 + 1 {
                            driven &= !(15u64 << (8 * $row + 4));
                        }
                        if within(x + 1, y + $row, w2, w3, w4, w5) {
                            driven |= ((w1 + 1) as u64) << (8 * $row + 4);
                        }
                    )*
                } else if kind == PROBE {
                    let w2 = order_word(orders, desk, entry, 2);
                    let w3 = order_word(orders, desk, entry, 3);
                    let (to_x, to_y) = (w1 as i32, w2 as i32);
                    if (to_x == x || to_x == x + 1) && to_y >= y && to_y < y + $rows && (own_rows >> (to_y - y) as u32) & 1 == 1 {
                        let mut value = 0.0f32;
                        $(
                            if to_y == y + $row {
                                value = if to_x == x { $a } else { $b };
                            }
                        )*
                        let answer = U32x4 { x: value.to_bits(), y: step, z: 0, w: w3 + 1 };
                        tell(probes, (w3 & ring_mask) as usize, answer);
                    }
                } else if kind == SAVE || kind == PARK {
                    $(
                        if (own_rows >> $row) & 1 == 1 && y + $row <= bottom {
                            let at = (first_row + $row * width as i32) as usize;
                            now_out[at] = $a;
                            before_out[at] = $pa;
                            if has_b {
                                now_out[at + 1] = $b;
                                before_out[at + 1] = $pb;
                            }
                        }
                    )*
                    thread_fence_system();
                    meet();
                    if kind == PARK {
                        stays = false;
                    }
                }
                entry += 1;
                if thread == 0 {
                    // One tile more is through with it. Relaxed: what it has saved was fenced in front of a meeting.
                    let _ = atomic_add_explicit(
                        &mut progress[((entry - 1) & log_mask) as usize],
                        1,
                        Ordering::Relaxed,
                        Scope::Device,
                    );
                }
            }
        }
    };
}

tiles! {
    /// Two rows a lane.
    two: 2 rows,
    top a0 b0, bottom a1 b1, north noa nob, south soa sob;
    rows {
        0: noa nob, a0 b0, a1 b1, pa0 pb0, ka0 kb0, la0 lb0, na0 nb0, wb0 ea0;
        1: a0 b0, a1 b1, soa sob, pa1 pb1, ka1 kb1, la1 lb1, na1 nb1, wb1 ea1;
    }
    patches of 2 rows, 3 vectors {
        0, 3: receives0 sends0 place0 {
            0: v0 = a0 b0 pa0;
            1: v1 = pb0 a1 b1;
            2: v2 = pa1 pb1 pb1;
        }
    }
}

tiles! {
    /// Four rows a lane.
    four: 4 rows,
    top a0 b0, bottom a3 b3, north noa nob, south soa sob;
    rows {
        0: noa nob, a0 b0, a1 b1, pa0 pb0, ka0 kb0, la0 lb0, na0 nb0, wb0 ea0;
        1: a0 b0, a1 b1, a2 b2, pa1 pb1, ka1 kb1, la1 lb1, na1 nb1, wb1 ea1;
        2: a1 b1, a2 b2, a3 b3, pa2 pb2, ka2 kb2, la2 lb2, na2 nb2, wb2 ea2;
        3: a2 b2, a3 b3, soa sob, pa3 pb3, ka3 kb3, la3 lb3, na3 nb3, wb3 ea3;
    }
    patches of 4 rows, 6 vectors {
        0, 15: receives0 sends0 place0 {
            0: v0 = a0 b0 pa0;
            1: v1 = pb0 a1 b1;
            2: v2 = pa1 pb1 a2;
            3: v3 = b2 pa2 pb2;
            4: v4 = a3 b3 pa3;
            5: v5 = pb3 pb3 pb3;
        }
    }
}

tiles! {
    /// Eight rows a lane, in two patches.
    eight: 8 rows,
    top a0 b0, bottom a7 b7, north noa nob, south soa sob;
    rows {
        0: noa nob, a0 b0, a1 b1, pa0 pb0, ka0 kb0, la0 lb0, na0 nb0, wb0 ea0;
        1: a0 b0, a1 b1, a2 b2, pa1 pb1, ka1 kb1, la1 lb1, na1 nb1, wb1 ea1;
        2: a1 b1, a2 b2, a3 b3, pa2 pb2, ka2 kb2, la2 lb2, na2 nb2, wb2 ea2;
        3: a2 b2, a3 b3, a4 b4, pa3 pb3, ka3 kb3, la3 lb3, na3 nb3, wb3 ea3;
        4: a3 b3, a4 b4, a5 b5, pa4 pb4, ka4 kb4, la4 lb4, na4 nb4, wb4 ea4;
        5: a4 b4, a5 b5, a6 b6, pa5 pb5, ka5 kb5, la5 lb5, na5 nb5, wb5 ea5;
        6: a5 b5, a6 b6, a7 b7, pa6 pb6, ka6 kb6, la6 lb6, na6 nb6, wb6 ea6;
        7: a6 b6, a7 b7, soa sob, pa7 pb7, ka7 kb7, la7 lb7, na7 nb7, wb7 ea7;
    }
    patches of 4 rows, 6 vectors {
        0, 15: receives0 sends0 place0 {
            0: v0 = a0 b0 pa0;
            1: v1 = pb0 a1 b1;
            2: v2 = pa1 pb1 a2;
            3: v3 = b2 pa2 pb2;
            4: v4 = a3 b3 pa3;
            5: v5 = pb3 pb3 pb3;
        }
        4, 240: receives1 sends1 place1 {
            0: v0 = a4 b4 pa4;
            1: v1 = pb4 a5 b5;
            2: v2 = pa5 pb5 a6;
            3: v3 = b6 pa6 pb6;
            4: v4 = a7 b7 pa7;
            5: v5 = pb7 pb7 pb7;
        }
    }
}
