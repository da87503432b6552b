//! Structure found by bits: JSON's structural characters.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 268: JSON's structural characters

#[kernel]
fn classify(text: &[u8], quotes: &mut [u32], operators: &mut [u32]) {
    let w = global_id_x();
    if w >= quotes.len() {
        return;
    }
    let (before, own) = text.split_at(w * 32);
    let mut escaped = before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let (mut quote, mut operator) = (0u32, 0u32);
    for (bit, byte) in own.iter().take(32).enumerate() {
        match byte {
            b'"' if !escaped => quote |= 1 << bit,
            b'{' | b'}' | b'[' | b']' | b':' | b',' => operator |= 1 << bit,
            _ => {}
        }
        escaped = !escaped && *byte == b'\\';
    }
    quotes[w] = quote;
    operators[w] = operator;
}

/// What the lanes before this one bring, joined in their order.
#[device]
fn scan_lanes<T: Copy + GpuType>(parts: &mut [T; 64], value: T, zero: T, join: impl Fn(T, T) -> T) -> T {
    let lane = local_id_x();
    let mut all = value;
    parts[lane] = all;
    sync_threads();
    let mut step = 1;
    while step < 64 {
        let before = (lane >= step).then(|| parts[lane - step]);
        sync_threads();
        if let Some(before) = before {
            all = join(before, all);
        }
        parts[lane] = all;
        sync_threads();
        step *= 2;
    }
    let before = if lane > 0 { parts[lane - 1] } else { zero };
    sync_threads();
    before
}

/// The operators outside of strings; `inside` goes from the begin of the 32 characters to their end.
#[device]
fn outside(quotes: u32, operators: u32, inside: &mut bool) -> u32 {
    let mut strings = quotes;
    for shift in [1, 2, 4, 8, 16] {
        strings ^= strings << shift;
    }
    if *inside {
        strings = !strings;
    }
    *inside = strings >> 31 == 1;
    operators & !strings
}

#[device]
fn nesting(byte: u8) -> i32 {
    match byte {
        b'{' | b'[' => 1,
        b'}' | b']' => -1,
        _ => 0,
    }
}

#[kernel(block_size = 64)]
fn index_structure(
    text: &[u8],
    quotes: &[u32],
    operators: &[u32],
    positions: &mut [u32],
    depths: &mut [i32],
    count: &mut u32,
) {
    let parities = shared_array::<[u32; 64]>();
    let sums = shared_array::<[[i32; 2]; 64]>();
    let (lane, words) = (local_id_x(), quotes.len());
    let part = words.div_ceil(64);
    let own = (lane * part).min(words)..((lane + 1) * part).min(words);
    let parity = quotes[own.clone()].iter().map(|q| q.count_ones()).sum::<u32>() % 2;
    let entered = scan_lanes(parities, parity, 0, |a, b| a ^ b) == 1;

    let mut inside = entered;
    let mut sum = [0, 0];
    for w in own.clone() {
        let mut rest = outside(quotes[w], operators[w], &mut inside);
        while rest != 0 {
            sum[0] += 1;
            sum[1] += nesting(text[w * 32 + rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
    }
    let [at, mut depth] = scan_lanes(sums, sum, [0, 0], |[a, b], [c, d]| [a + c, b + d]);
    let mut at = at as usize;
    inside = entered;
    for w in own {
        let mut rest = outside(quotes[w], operators[w], &mut inside);
        while rest != 0 {
            let place = w * 32 + rest.trailing_zeros() as usize;
            let step = nesting(text[place]);
            positions[at] = place as u32;
            // Of a bracket the depth around it.
            depths[at] = depth + step.min(0);
            depth += step;
            at += 1;
            rest &= rest - 1;
        }
    }
    if lane == 63 {
        *count = at as u32;
    }
}

#[kernel]
fn pair_brackets(
    text: &[u8],
    positions: &[u32],
    depths: &[i32],
    count: &u32,
    partners: &mut [u32],
    flaw: &mut u32,
) {
    let (k, count) = (global_id_x(), *count as usize);
    if k >= count {
        return;
    }
    let letter = |j: usize| text[positions[j] as usize];
    let close = match letter(k) {
        b'{' => b'}',
        b'[' => b']',
        _ => return,
    };
    let found = (k + 1..count).find(|j| depths[*j] == depths[k] && matches!(letter(*j), b'}' | b']'));
    match found {
        Some(j) if letter(j) == close => {
            partners[k] = j as u32;
            partners[j] = k as u32;
        }
        _ => {
            atomic_min(flaw, positions[k]);
        }
    }
}

fn random_json(random: &mut Random, depth: usize, out: &mut String) {
    let kinds = if depth > 5 { 3 } else { 6 };
    match random.bits() % kinds {
        0 => out.push_str(&(random.bits() % 1000).to_string()),
        1 | 2 => {
            out.push('"');
            for _ in 0..random.bits() % 9 {
                out.push_str(
                    ["a", "{", "\\\"", "\\\\", "]", ", ", ":", "\\\\\\\""][random.bits() as usize % 8],
                );
            }
            out.push('"');
        }
        3 | 4 => {
            out.push('[');
            for k in 0..random.bits() % 5 {
                if k > 0 {
                    out.push_str(", ");
                }
                random_json(random, depth + 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for k in 0..random.bits() % 4 {
                if k > 0 {
                    out.push(',');
                }
                out.push_str("\"\\\\\": ");
                random_json(random, depth + 1, out);
            }
            out.push('}');
        }
    }
}

#[test]
fn structure_of_json() {
    let mut random = Random(268);
    let mut json = String::from("[0");
    while json.len() < 1500 {
        json.push(',');
        random_json(&mut random, 0, &mut json);
    }
    json.push(']');
    for flawed in [false, true] {
        let mut text = json.clone().into_bytes();
        if flawed {
            // The outermost bracket is closed by one of the other kind.
            *text.last_mut().unwrap() = b'}';
        }
        let (mut positions, mut depths) = (Vec::<u32>::new(), Vec::<i32>::new());
        let mut partners = Vec::<u32>::new();
        let (mut stack, mut inside, mut escaped, mut flaw) = (Vec::<usize>::new(), false, false, u32::MAX);
        for (place, byte) in text.iter().enumerate() {
            if inside {
                inside = escaped || *byte != b'"';
                escaped = !escaped && *byte == b'\\';
                continue;
            }
            let mut partner = u32::MAX;
            match byte {
                b'"' => inside = true,
                b'[' | b'{' => {
                    depths.push(stack.len() as i32);
                    stack.push(positions.len());
                }
                b']' | b'}' => {
                    let open = stack.pop().unwrap();
                    depths.push(stack.len() as i32);
                    // In ASCII the closing bracket stands two behind the opening one.
                    if text[positions[open] as usize] + 2 == *byte {
                        partner = open as u32;
                        partners[open] = positions.len() as u32;
                    } else {
                        flaw = flaw.min(positions[open]);
                    }
                }
                b',' | b':' => depths.push(stack.len() as i32),
                _ => continue,
            }
            if !inside {
                positions.push(place as u32);
                partners.push(partner);
            }
        }
        assert_eq!(flaw, if flawed { 0 } else { u32::MAX });
        let n = positions.len();
        let words = text.len().div_ceil(32);
        everywhere(|run| {
            let x = run.upload(&text);
            let (quotes, operators) = (run.zeros::<u32>(words), run.zeros::<u32>(words));
            run.launch(
                classify::kernel(),
                LaunchConfig::linear(words, 32),
                args![&x, &quotes, &operators],
            );
            // Just as many as there are, so that a surplus is a fault.
            let (places, levels, count) = (run.zeros::<u32>(n), run.zeros::<i32>(n), run.zeros::<u32>(1));
            run.launch(
                index_structure::kernel(),
                LaunchConfig::new(1, 64),
                args![&x, &quotes, &operators, &places, &levels, &count],
            );
            run.holds(&count, &[n as u32]);
            run.holds(&places, &positions);
            run.holds(&levels, &depths);
            let (pairs, wrong) = (run.upload(&vec![u32::MAX; n]), run.upload(&[u32::MAX]));
            run.launch(
                pair_brackets::kernel(),
                LaunchConfig::linear(n, 64),
                args![&x, &places, &levels, &count, &pairs, &wrong],
            );
            run.holds(&pairs, &partners);
            run.holds(&wrong, &[flaw]);
        });
    }
}
