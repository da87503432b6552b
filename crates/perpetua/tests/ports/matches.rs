//! Expressions that match, and the largest of rows.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 147: cuDF's regular expressions

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Op {
    Byte,
    Any,
    Class,
    Split,
    Jump,
    Begin,
    End,
    Match,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Inst {
    op: Op,
    x: u32,
    y: u32,
}

/// Places in a program of up to 64 instructions.
#[derive(Clone, Copy, Default, PartialEq, GpuType)]
#[repr(C)]
struct Threads(u64);

#[device]
impl Threads {
    fn insert(&mut self, place: usize) -> bool {
        let new = self.0 & 1 << place == 0;
        self.0 |= 1 << place;
        new
    }

    fn is_empty(self) -> bool {
        self == Threads::default()
    }

    fn pop(&mut self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(first)
    }
}

/// Adds a place and all that it leads to without a byte.
#[device]
fn follow(program: &[Inst], threads: &mut Threads, place: usize, text: &[u8], at: usize) {
    let mut waiting = Threads::default();
    waiting.insert(place);
    while let Some(place) = waiting.pop() {
        if !threads.insert(place) {
            continue;
        }
        let Inst { op, x, y } = program[place];
        match op {
            Op::Jump => _ = waiting.insert(x as usize),
            Op::Split => {
                waiting.insert(x as usize);
                waiting.insert(y as usize);
            }
            Op::Begin if at == 0 => _ = waiting.insert(place + 1),
            Op::End if at == text.len() => _ = waiting.insert(place + 1),
            _ => {}
        }
    }
}

/// The end of the longest match that begins here.
#[device]
fn longest(program: &[Inst], classes: &[[u32; 8]], text: &[u8], start: usize) -> Option<usize> {
    let mut end = None;
    let mut threads = Threads::default();
    follow(program, &mut threads, 0, text, start);
    for at in start..=text.len() {
        let mut next = Threads::default();
        while let Some(place) = threads.pop() {
            let Inst { op, x, .. } = program[place];
            if op == Op::Match {
                end = Some(at);
                continue;
            }
            let Some(&byte) = text.get(at) else { continue };
            let taken = match op {
                Op::Byte => u32::from(byte) == x,
                Op::Any => byte != b'\n',
                Op::Class => classes[x as usize][usize::from(byte / 32)] >> (byte % 32) & 1 == 1,
                _ => false,
            };
            if taken {
                follow(program, &mut next, place + 1, text, at + 1);
            }
        }
        if next.is_empty() {
            break;
        }
        threads = next;
    }
    end
}

#[kernel]
fn regex_find(program: &[Inst], classes: &[[u32; 8]], offsets: &[u32], chars: &[u8], found: &mut [[i32; 2]]) {
    let id = global_id_x();
    let Some(&[first, end]) = offsets.get(id..id + 2) else {
        return;
    };
    let text = &chars[first as usize..end as usize];
    let place =
        (0..=text.len()).find_map(|start| longest(program, classes, text, start).map(|end| [start, end]));
    found[id] = place.map_or([-1; 2], |range| range.map(|x| x as i32));
}

#[derive(Clone)]
enum Tree {
    Byte(u8),
    Any,
    Class(&'static str),
    Begin,
    End,
    Then(Vec<Tree>),
    Either(Box<Tree>, Box<Tree>),
    Many(Box<Tree>),
    Maybe(Box<Tree>),
}

impl Tree {
    fn compile(&self, program: &mut Vec<Inst>, classes: &mut Vec<[u32; 8]>) {
        let inst = |op, x: usize, y: usize| Inst {
            op,
            x: x as u32,
            y: y as u32,
        };
        let here = program.len();
        match self {
            Tree::Byte(b) => program.push(inst(Op::Byte, usize::from(*b), 0)),
            Tree::Any => program.push(inst(Op::Any, 0, 0)),
            Tree::Begin => program.push(inst(Op::Begin, 0, 0)),
            Tree::End => program.push(inst(Op::End, 0, 0)),
            Tree::Class(bytes) => {
                let mut class = [0u32; 8];
                bytes
                    .bytes()
                    .for_each(|b| class[usize::from(b / 32)] |= 1 << (b % 32));
                program.push(inst(Op::Class, classes.len(), 0));
                classes.push(class);
            }
            Tree::Then(parts) => parts.iter().for_each(|p| p.compile(program, classes)),
            Tree::Either(a, b) => {
                program.push(inst(Op::Split, 0, 0));
                a.compile(program, classes);
                let jump = program.len();
                program.push(inst(Op::Jump, 0, 0));
                b.compile(program, classes);
                program[here] = inst(Op::Split, here + 1, jump + 1);
                program[jump].x = program.len() as u32;
            }
            Tree::Many(a) => {
                program.push(inst(Op::Split, 0, 0));
                a.compile(program, classes);
                program.push(inst(Op::Jump, here, 0));
                program[here] = inst(Op::Split, here + 1, program.len());
            }
            Tree::Maybe(a) => {
                program.push(inst(Op::Split, 0, 0));
                a.compile(program, classes);
                program[here] = inst(Op::Split, here + 1, program.len());
            }
        }
    }

    /// Where matches that begin at each of these places end.
    fn ends(&self, text: &[u8], starts: &[usize]) -> Vec<usize> {
        let one = |ok: &dyn Fn(u8) -> bool| {
            let fits = starts.iter().filter(|s| text.get(**s).is_some_and(|b| ok(*b)));
            fits.map(|s| s + 1).collect()
        };
        let mut all: Vec<usize> = match self {
            Tree::Byte(b) => one(&|x| x == *b),
            Tree::Any => one(&|x| x != b'\n'),
            Tree::Class(bytes) => one(&|x| bytes.bytes().any(|b| b == x)),
            Tree::Begin => starts.iter().copied().filter(|s| *s == 0).collect(),
            Tree::End => starts.iter().copied().filter(|s| *s == text.len()).collect(),
            Tree::Then(parts) => parts
                .iter()
                .fold(starts.to_vec(), |starts, part| part.ends(text, &starts)),
            Tree::Either(a, b) => [a.ends(text, starts), b.ends(text, starts)].concat(),
            Tree::Maybe(a) => [starts.to_vec(), a.ends(text, starts)].concat(),
            Tree::Many(a) => {
                let mut all = starts.to_vec();
                loop {
                    let new: Vec<usize> = a
                        .ends(text, &all)
                        .into_iter()
                        .filter(|e| !all.contains(e))
                        .collect();
                    if new.is_empty() {
                        break all;
                    }
                    all.extend(new);
                }
            }
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[test]
fn regex_finds_the_longest_of_the_first() {
    let mut random = Random(147);
    let boxed = |t: &Tree| Box::new(t.clone());
    let digit = Tree::Class("0123456789");
    let (a, b) = (Tree::Byte(b'a'), Tree::Byte(b'b'));
    let trees = [
        // [0-9][0-9]*(.[0-9][0-9]*)?
        Tree::Then(vec![
            digit.clone(),
            Tree::Many(boxed(&digit)),
            Tree::Maybe(Box::new(Tree::Then(vec![
                Tree::Byte(b'.'),
                digit.clone(),
                Tree::Many(boxed(&digit)),
            ]))),
        ]),
        // ^(a|b)*(ab|b.)$
        Tree::Then(vec![
            Tree::Begin,
            Tree::Many(Box::new(Tree::Either(boxed(&a), boxed(&b)))),
            Tree::Either(
                Box::new(Tree::Then(vec![a.clone(), b.clone()])),
                Box::new(Tree::Then(vec![b.clone(), Tree::Any])),
            ),
            Tree::End,
        ]),
        // (a?)*b(a|ab)(b|)
        Tree::Then(vec![
            Tree::Many(Box::new(Tree::Maybe(boxed(&a)))),
            b.clone(),
            Tree::Either(boxed(&a), Box::new(Tree::Then(vec![a.clone(), b.clone()]))),
            Tree::Either(boxed(&b), Box::new(Tree::Then(Vec::new()))),
        ]),
    ];
    let texts: Vec<Vec<u8>> = (0..150)
        .map(|_| {
            (0..random.below(20))
                .map(|_| b"ab.01\n"[random.below(6)])
                .collect()
        })
        .collect();
    let chars = texts.concat();
    let mut offsets = vec![0u32];
    offsets.extend(texts.iter().scan(0, |sum, t| {
        *sum += t.len() as u32;
        Some(*sum)
    }));
    for tree in &trees {
        let (mut program, mut classes) = (Vec::new(), vec![[0; 8]]);
        tree.compile(&mut program, &mut classes);
        program.push(Inst {
            op: Op::Match,
            x: 0,
            y: 0,
        });
        let expected: Vec<[i32; 2]> = texts
            .iter()
            .map(|text| {
                (0..=text.len())
                    .find_map(|start| {
                        tree.ends(text, &[start])
                            .last()
                            .map(|end| [start as i32, *end as i32])
                    })
                    .unwrap_or([-1, -1])
            })
            .collect();
        everywhere(|run| {
            let found = run.zeros::<[i32; 2]>(texts.len());
            run.launch(
                regex_find::kernel(),
                LaunchConfig::linear(texts.len(), 64),
                args![
                    &run.upload(&program),
                    &run.upload(&classes),
                    &run.upload(&offsets),
                    &run.upload(&chars),
                    &found
                ],
            );
            run.holds(&found, &expected);
        });
    }
}

// 154: PyTorch's radix select

/// Keys in the order of unsigned integers.
#[device]
trait Key: GpuType {
    const BITS: u32;
    fn to_ordered(self) -> u32;
    fn from_ordered(bits: u32) -> Self;
}

#[device]
impl Key for f32 {
    const BITS: u32 = 32;

    fn to_ordered(self) -> u32 {
        let bits = self.to_bits();
        if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
    }

    fn from_ordered(bits: u32) -> Self {
        f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits })
    }
}

#[device]
impl Key for i16 {
    const BITS: u32 = 16;

    fn to_ordered(self) -> u32 {
        u32::from(self.cast_unsigned() ^ 0x8000)
    }

    fn from_ordered(bits: u32) -> Self {
        (bits as u16 ^ 0x8000).cast_signed()
    }
}

#[kernel(block_size = 256)]
fn radix_select<T: Key>(columns: usize, k: u32, values: &[T], chosen: &mut [T]) {
    let counts = shared_array::<[u32; 256]>();
    let found = shared_array::<[u32; 2]>();
    let (lane, row) = (local_id_x(), group_id_x());
    let row_values = &values[row * columns..][..columns];
    let (mut wanted, mut mask, mut left) = (0u32, 0u32, k);
    for shift in (0..T::BITS).step_by(8).rev() {
        counts[lane] = 0;
        sync_threads();
        for value in row_values.iter().skip(lane).step_by(256) {
            let bits = value.to_ordered();
            if bits & mask == wanted {
                atomic_add(&mut counts[(bits >> shift & 0xff) as usize], 1);
            }
        }
        sync_threads();
        if lane == 0 {
            let mut rest = left;
            for (digit, count) in counts.iter().enumerate().rev() {
                if rest < *count {
                    *found = [digit as u32, rest];
                    break;
                }
                rest -= count;
            }
        }
        sync_threads();
        let [digit, rest] = *found;
        wanted |= digit << shift;
        mask |= 0xff << shift;
        left = rest;
        sync_threads();
    }
    if lane == 0 {
        chosen[row] = T::from_ordered(wanted);
    }
}

#[test]
fn radix_select_finds_the_kth() {
    let mut random = Random(154);
    let (rows, columns) = (5usize, 777usize);
    let floats: Vec<f32> = (0..rows * columns)
        .map(|_| random.between(-9.0, 9.0) as f32)
        .collect();
    let shorts: Vec<i16> = (0..rows * columns).map(|_| (random.bits() as i16) >> 5).collect();
    for k in [0u32, 17, 776] {
        let largest = floats.chunks(columns).map(|row| {
            let mut row = row.to_vec();
            row.sort_by(|a, b| b.total_cmp(a));
            row[k as usize]
        });
        let largest: Vec<f32> = largest.collect();
        let largest_short: Vec<i16> = shorts
            .chunks(columns)
            .map(|row| {
                let mut row = row.to_vec();
                row.sort_by_key(|v| std::cmp::Reverse(*v));
                row[k as usize]
            })
            .collect();
        everywhere(|run| {
            let config = LaunchConfig::new(rows as u32, 256);
            let chosen = run.zeros::<f32>(rows);
            let values = run.upload(&floats);
            run.launch(
                radix_select::kernel::<f32>(),
                config,
                args![columns, k, &values, &chosen],
            );
            run.holds(&chosen, &largest);
            let chosen = run.zeros::<i16>(rows);
            let values = run.upload(&shorts);
            run.launch(
                radix_select::kernel::<i16>(),
                config,
                args![columns, k, &values, &chosen],
            );
            run.holds(&chosen, &largest_short);
        });
    }
}
