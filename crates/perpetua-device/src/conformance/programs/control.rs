//! Kernels that take control flow to its limits, each for 3 groups of 64 lanes. Read as text, not compiled as Rust.

#[derive(GpuType)]
#[repr(u8)]
enum Turn {
    Left = 0,
    Right = 1,
    Back = 5,
}

/// Three levels of loops with labels, left and continued across levels, by lane.
#[kernel]
fn labels(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut s = v;
    'outer: for a in 0..v % 7 + 2 {
        let mut b = 0u32;
        'middle: loop {
            b += 1;
            s = s.wrapping_mul(31).wrapping_add(b);
            if b > 9 {
                break;
            }
            let mut c = a;
            'inner: while c < 12 {
                c += 1;
                match (c + v) % 11 {
                    0 => continue 'inner,
                    1 if b > 3 => continue 'outer,
                    2 if b % 2 == 0 => continue 'middle,
                    3 => break 'middle,
                    4 if a > 4 => break 'outer,
                    5 if c > 6 => break,
                    _ => s ^= c << a,
                }
                s = s.rotate_left(3);
            }
            s = s.wrapping_add(1000);
        }
        s = s.wrapping_add(100_000);
    }
    out[i] = s;
}

/// Values of loops and blocks, nested in one another.
#[kernel]
fn valued(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut n = 0u32;
    let first = loop {
        n += 1;
        let inner = 'search: loop {
            let mut k = n;
            while k < 40 {
                if k.wrapping_mul(v) % 13 == 5 {
                    break 'search k;
                }
                k += 3;
            }
            break 0;
        };
        if inner > 0 {
            break inner * 100 + n;
        }
        if n > 5 {
            break n;
        }
    };
    let second = 'block: {
        if first % 2 == 0 {
            break 'block 1u32;
        }
        for k in 0..v % 9 {
            if k == 5 {
                break 'block 50 + k;
            }
        }
        if n == 1 { 7 } else { break 'block 8 }
    };
    let (a, b) = if second > 7 { (first, v & 255) } else { (v & 15, second) };
    out[i] = first.wrapping_mul(1000) ^ second ^ a.wrapping_mul(7) ^ b << 20;
}

/// Matches with many arms on many types.
#[kernel]
fn arms(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let byte = v as u8;
    let signed = v as i8;
    let wide = v as i32;
    let a = match byte {
        0 => 1,
        1 | 3 | 5 | 7 | 9 => 2,
        2..=8 => 3,
        10..100 => 4,
        255 => 5,
        k if k % 3 == 0 => 6 + k as u32,
        100..=200 => 7,
        _ => 8,
    };
    let b = match (signed, wide > 0, a) {
        (i8::MIN..=-1, true, _) => 10,
        (-128..=-100, false, 4) => 11,
        (k, false, 3 | 4) if k < -50 => 12,
        (0, _, n) => 13 + n,
        (_, false, n) => n,
        (k, true, _) => k as u32,
    };
    let turn = match v % 3 {
        0 => Turn::Left,
        1 => Turn::Right,
        _ => Turn::Back,
    };
    let c = match turn {
        Turn::Left => a,
        Turn::Right => {
            let mut t = 0;
            for k in 0..b % 10 {
                t += match k {
                    0 => 3,
                    4 => continue,
                    8 => break,
                    other => other,
                };
            }
            t
        }
        Turn::Back => return out[i] = 77,
    };
    let d = match wide {
        i32::MIN..=-1_000_000_000 => 1u32,
        -999_999_999..=-1 => 2,
        0..=1_000_000_000 => 3,
        1_000_000_001..=i32::MAX => 4,
    };
    out[i] = a.wrapping_mul(1_000_003) ^ b.wrapping_mul(10_007) ^ c.wrapping_mul(101) ^ d;
}

/// Short-circuit conditions whose operands do something.
#[kernel]
fn short_circuit(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut k = v % 100;
    let mut n = 0u32;
    let mut turns = 0u32;
    while turns < 20 && { n += k; n % 17 != 3 } || { k += 1; k % 5 == 0 && turns < 30 } {
        turns += 1;
        let both = k > 50 && { k -= 3; k % 2 == 0 } && { n += 7; n % 3 != 0 };
        let either = n % 4 == 1 || { k += 2; k > 90 } || both && { n ^= 5; true };
        n = n.wrapping_add(both as u32 * 1000 + either as u32 * 100);
        // What is not evaluated does not fault.
        if n == 0 || 1000 / n < 5 && v as usize >= x.len() || x[v as usize % x.len()] == v {
            n += 1;
        }
    }
    let far = 100_000usize;
    let safe = i < far || x[far] > 3;
    out[i] = n ^ k << 16 ^ turns << 24 ^ safe as u32;
}

/// Twelve levels of conditions and loops.
#[kernel]
fn deep(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut s = 0u32;
    if v & 1 == 0 {
        for a in 0..3u32 {
            if v & 2 == 0 {
                let mut b = 0u32;
                while b < 3 {
                    b += 1;
                    if v & 4 == 0 || a == 1 {
                        let mut turns = 0u32;
                        loop {
                            s += 1;
                            turns += 1;
                            if v & 8 == 0 {
                                for c in (0..4u32).rev() {
                                    if v & 16 == 0 {
                                        match c {
                                            0 => s += 10,
                                            1 => {
                                                if v & 32 == 0 {
                                                    s += 100;
                                                    for _ in 0..v >> 6 & 3 {
                                                        s = s.wrapping_mul(3);
                                                        if s % 7 == 0 {
                                                            s += 1;
                                                            continue;
                                                        }
                                                        s ^= 1 << a;
                                                    }
                                                } else {
                                                    break;
                                                }
                                            }
                                            _ => s = s.wrapping_add(b << c),
                                        }
                                    } else {
                                        s += 1000;
                                    }
                                }
                            }
                            if s % 3 != 1 || turns > 9 {
                                break;
                            }
                        }
                    }
                }
            } else {
                s += 5;
            }
        }
    } else {
        s = 9;
    }
    out[i] = s;
}

/// Ranges in all their forms at the ends of their types.
#[kernel]
fn limits(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let (lo, hi) = (v as i8, (v >> 8) as i8);
    let mut s = v;
    for k in lo..hi {
        s = s.wrapping_mul(3).wrapping_add(k as u32);
    }
    for k in (lo..=hi).rev() {
        s = s.wrapping_mul(5).wrapping_add(k as u32);
    }
    for k in (lo..=i8::MAX).step_by(7) {
        s = s.wrapping_mul(7).wrapping_add(k as u32);
    }
    for k in (i8::MIN..=hi).rev().step_by(9) {
        s = s.wrapping_mul(11).wrapping_add(k as u32);
    }
    for k in (0..=u8::MAX).step_by(51) {
        s = s.wrapping_mul(13).wrapping_add(k as u32);
    }
    for k in (u32::MAX - 3..=u32::MAX).rev() {
        s = s.wrapping_mul(17).wrapping_add(k);
    }
    for k in (i32::MIN..=i32::MIN + 5).step_by(2) {
        s = s.wrapping_mul(19).wrapping_add(k as u32);
    }
    for k in i32::MAX - 2..i32::MAX {
        s = s.wrapping_mul(23).wrapping_add(k as u32);
    }
    for k in (250u8..=255).rev().step_by(2) {
        s = s.wrapping_mul(29).wrapping_add(k as u32);
    }
    for k in (u16::MAX - 4..u16::MAX).step_by(3).rev() {
        s = s.wrapping_mul(31).wrapping_add(k as u32);
    }
    out[i] = s;
}

/// Small counters that wrap around, as often as the lane says.
#[kernel]
fn wrapping(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut k = v as u8;
    let mut turns = 0u32;
    loop {
        k = k.wrapping_add((v >> 8) as u8 | 1);
        turns += 1;
        if k == v as u8 {
            break;
        }
    }
    let mut j = v as i8;
    let mut s = 0u32;
    for _ in 0..v % 300 {
        j = j.wrapping_add(3);
        if j < 0 {
            s += 1;
        }
        j = j.wrapping_mul(5);
    }
    let mut h = v as i16;
    while h > -30_000 {
        h = h.wrapping_sub(1111);
        s = s.wrapping_add(h as u32);
    }
    let mut w = 0xffff_fff0u32.wrapping_add(v & 7);
    while w > 8 {
        w = w.wrapping_add(3);
        s ^= w;
    }
    out[i] = s ^ turns << 20 ^ (k as u32) << 8 ^ j as u8 as u32;
}

/// Barriers under uniform conditions and in uniform loops, with divergent flow in between.
#[kernel]
fn barriers(x: &[u32], out: &mut [u32]) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x();
    let i = global_id_x();
    let group = group_id_x() as u32;
    let mut s = x[i];
    for round in 0..group + 2 {
        let mut k = 0u32;
        while k < (s + round) % 13 {
            if s.wrapping_add(k) % 5 == 4 {
                break;
            }
            k += 1;
        }
        tile[t] = s ^ k;
        sync_threads();
        if round % 2 == 0 {
            let other = tile[63 - t];
            s = if other % 3 == 0 { s.wrapping_add(other) } else { s.rotate_left(5) };
            sync_threads();
        } else {
            for step in 1..4 {
                s ^= tile[(t + step * 16) % 64];
            }
            sync_threads();
            if round == 3 {
                break;
            }
        }
        if group == 1 {
            continue;
        }
        tile[t] = s;
        sync_threads();
        s = s.wrapping_add(tile[t ^ 1]);
        sync_threads();
    }
    out[i] = s;
}

/// Lanes that return early once no barrier is ahead, and whole groups that return before one.
#[kernel]
fn returns(x: &[u32], out: &mut [u32]) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x();
    let i = global_id_x();
    if group_id_x() == 1 {
        out[i] = 5;
        return;
    }
    tile[t] = x[i];
    sync_threads();
    let mut s = tile[(t + 7) % 64];
    sync_threads();
    if s % 4 == 1 {
        out[i] = 6;
        return;
    }
    for k in 0..20u32 {
        if s % 7 == 3 {
            out[i] = k;
            return;
        }
        let mut turns = 0u32;
        loop {
            s = s.wrapping_mul(5).wrapping_add(k);
            turns += 1;
            if s % 3 == 0 || turns == 30 {
                break;
            }
            if s % 31 == 1 {
                return out[i] = 8;
            }
        }
    }
    out[i] = s;
}

/// Calls with loops and early returns of their own, in loops.
#[device]
fn climb(from: u32, step: u32) -> u32 {
    let mut v = from;
    for k in 0..50u32 {
        if v % 9 == 4 {
            return k;
        }
        v = match k % 3 {
            0 => v.wrapping_add(step),
            1 if step > 10 => return v,
            _ => v.wrapping_mul(3),
        };
    }
    v
}

#[kernel]
fn calls(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let v = x[i];
    let mut s = 0u32;
    for k in 0..v % 10 {
        if climb(v, k) % 2 == 0 && climb(k, v % 20) > 3 {
            s = s.wrapping_add(climb(s, 2));
            continue;
        }
        s ^= climb(s ^ k, v % 5) << 3;
    }
    out[i] = s;
}

/// Lanes that leave a loop by turns while others count them.
#[kernel]
fn by_turns(x: &[u32], out: &mut [u32], counts: &mut [u32]) {
    let i = global_id_x();
    let v = x[i] % 64;
    let mut k = 0u32;
    loop {
        if k == v {
            break;
        }
        atomic_add(&mut counts[k as usize], 1);
        k += 1;
    }
    for j in (v..64).rev() {
        if j % 2 == 0 {
            continue;
        }
        atomic_max(&mut counts[64 + j as usize], v);
    }
    out[i] = k;
}

/// Trip counts that differ by lane, in loops in loops.
#[kernel]
fn counted(x: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    let t = local_id_x() as u32;
    let mut s = x[i];
    for a in (t..64).step_by(9) {
        let mut b = a;
        while b > 0 {
            for c in 0..b % 4 {
                if (a + b + c) % 3 == t % 3 {
                    s = s.wrapping_add(c << (b % 32));
                }
            }
            b /= 2;
        }
        if s % 1000 == t {
            break;
        }
    }
    out[i] = s;
}
