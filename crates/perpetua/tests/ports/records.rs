//! Records that are read into columns, and boards that are filled in.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 218: Avro

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Kind {
    Boolean,
    Long,
    Float,
    Double,
    Text,
    Symbol,
}

/// A column: a union with null where `null` is one of its two branches.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Field {
    kind: Kind,
    null: i32,
    symbols: u32,
}

/// Rows that lie one behind the other in some bytes.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Block {
    start: u32,
    end: u32,
    first_row: u32,
    rows: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Trouble {
    Truncated = 1,
    TooLong,
    Unknown,
}

#[device]
fn varint(bytes: &[u8], at: &mut usize) -> Result<i64, Trouble> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Trouble::Truncated)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    Err(Trouble::TooLong)
}

#[device]
fn take<'a>(bytes: &'a [u8], at: &mut usize, count: usize) -> Result<&'a [u8], Trouble> {
    let part = bytes.get(*at..*at + count).ok_or(Trouble::Truncated)?;
    *at += count;
    Ok(part)
}

#[device]
impl Field {
    /// The next value's bits; of a text, where it stands in the block and how long it is. None for null.
    fn read(&self, bytes: &[u8], at: &mut usize) -> Result<Option<u64>, Trouble> {
        if self.null >= 0 {
            match varint(bytes, at)? {
                branch @ 0..=1 if branch as i32 == self.null => return Ok(None),
                0..=1 => {}
                _ => return Err(Trouble::Unknown),
            }
        }
        let bits = match self.kind {
            Kind::Boolean => match take(bytes, at, 1)? {
                [bit @ (0 | 1)] => u64::from(*bit),
                _ => return Err(Trouble::Unknown),
            },
            Kind::Long => varint(bytes, at)? as u64,
            Kind::Float => u32::from_le_bytes(take(bytes, at, 4)?.try_into().unwrap()).into(),
            Kind::Double => u64::from_le_bytes(take(bytes, at, 8)?.try_into().unwrap()),
            Kind::Text => {
                let len = u32::try_from(varint(bytes, at)?).map_err(|_| Trouble::Unknown)?;
                let start = *at as u64;
                take(bytes, at, len as usize)?;
                start << 32 | u64::from(len)
            }
            Kind::Symbol => u32::try_from(varint(bytes, at)?)
                .ok()
                .filter(|symbol| *symbol < self.symbols)
                .ok_or(Trouble::Unknown)?
                .into(),
        };
        Ok(Some(bits))
    }
}

#[device]
fn read_rows(
    block: Block,
    fields: &[Field],
    bytes: &[u8],
    rows: usize,
    values: &mut [u64],
    valid: &mut [u8],
) -> Result<(), Trouble> {
    let mut at = 0;
    for row in block.first_row..block.first_row + block.rows {
        for (column, field) in fields.iter().enumerate() {
            let slot = column * rows + row as usize;
            if let Some(bits) = field.read(bytes, &mut at)? {
                values[slot] = bits;
                valid[slot] = 1;
            }
        }
    }
    if at < bytes.len() {
        Err(Trouble::TooLong)
    } else {
        Ok(())
    }
}

/// A block a lane.
#[kernel]
fn avro(
    fields: &[Field],
    blocks: &[Block],
    bytes: &[u8],
    values: &mut [u64],
    valid: &mut [u8],
    troubles: &mut [u32],
) {
    let i = global_id_x();
    let Some(block) = blocks.get(i).copied() else {
        return;
    };
    let rows = values.len() / fields.len();
    let own = &bytes[block.start as usize..block.end as usize];
    troubles[i] = read_rows(block, fields, own, rows, values, valid)
        .err()
        .map_or(0, |trouble| trouble as u32);
}

#[test]
fn records_become_columns() {
    let mut random = Random(218);
    let kinds = [
        (Kind::Boolean, -1),
        (Kind::Long, -1),
        (Kind::Long, 0),
        (Kind::Float, -1),
        (Kind::Double, 1),
        (Kind::Text, 0),
        (Kind::Symbol, -1),
    ];
    let fields = kinds.map(|(kind, null)| Field {
        kind,
        null,
        symbols: 5,
    });
    fn zigzag(out: &mut Vec<u8>, value: i64) {
        let mut v = (value << 1 ^ value >> 63) as u64;
        while v > 127 {
            out.push(v as u8 | 128);
            v >>= 7;
        }
        out.push(v as u8);
    }
    let (count, each) = (30usize, 4usize);
    let rows = count * each;
    let (mut values, mut valid) = (vec![0u64; rows * 7], vec![0u8; rows * 7]);
    let (mut bytes, mut blocks, mut troubles) = (Vec::new(), Vec::new(), vec![0u32; count]);
    for b in 0..count {
        let mut block: Vec<u8> = Vec::new();
        for row in b * each..(b + 1) * each {
            for (column, field) in fields.iter().enumerate() {
                let slot = column * rows + row;
                if field.null >= 0 {
                    let null = random.below(3) == 0;
                    zigzag(
                        &mut block,
                        i64::from(if null { field.null } else { 1 - field.null }),
                    );
                    if null {
                        continue;
                    }
                }
                valid[slot] = 1;
                let bits = random.bits() >> random.below(60);
                values[slot] = match field.kind {
                    Kind::Boolean => {
                        block.push(bits as u8 & 1);
                        bits & 1
                    }
                    Kind::Long => {
                        zigzag(&mut block, bits as i64);
                        bits
                    }
                    Kind::Float => {
                        block.extend((bits as u32).to_le_bytes());
                        u64::from(bits as u32)
                    }
                    Kind::Double => {
                        block.extend(bits.to_le_bytes());
                        bits
                    }
                    Kind::Text => {
                        let text = vec![b'x'; (bits % 150) as usize];
                        zigzag(&mut block, text.len() as i64);
                        let start = block.len() as u64;
                        block.extend(&text);
                        start << 32 | text.len() as u64
                    }
                    Kind::Symbol => {
                        zigzag(&mut block, (bits % 5) as i64);
                        bits % 5
                    }
                };
            }
        }
        // Some blocks end too late, or their last symbol is one too many.
        match b {
            7 => {
                block.push(0);
                troubles[b] = Trouble::TooLong as u32;
            }
            11 => {
                *block.last_mut().unwrap() = 10;
                troubles[b] = Trouble::Unknown as u32;
            }
            13 => {
                block.pop();
                troubles[b] = Trouble::Truncated as u32;
            }
            _ => {}
        }
        if b == 11 || b == 13 {
            let slot = 6 * rows + (b + 1) * each - 1;
            (values[slot], valid[slot]) = (0, 0);
        }
        let start = bytes.len() as u32;
        bytes.extend(block);
        blocks.push(Block {
            start,
            end: bytes.len() as u32,
            first_row: (b * each) as u32,
            rows: each as u32,
        });
    }
    everywhere(|run| {
        let (f, b, data) = (run.upload(&fields), run.upload(&blocks), run.upload(&bytes));
        let (v, ok, t) = (
            run.zeros::<u64>(rows * 7),
            run.zeros::<u8>(rows * 7),
            run.zeros::<u32>(count),
        );
        run.launch(
            avro::kernel(),
            LaunchConfig::linear(count, 32),
            args![&f, &b, &data, &v, &ok, &t],
        );
        run.holds(&t, &troubles);
        run.holds(&ok, &valid);
        run.holds(&v, &values);
    });
}

// 220: sudoku

type Board = [u8; 81];

/// Which digits stand in each row, column and box, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Used {
    rows: [u16; 9],
    columns: [u16; 9],
    boxes: [u16; 9],
}

#[device]
impl Used {
    fn of(board: &Board) -> Self {
        let mut used = Self::default();
        for (cell, digit) in board.iter().enumerate().filter(|(_, digit)| **digit > 0) {
            used.toggle(cell, 1 << (digit - 1));
        }
        used
    }

    fn toggle(&mut self, cell: usize, bit: u16) {
        let (row, column) = (cell / 9, cell % 9);
        self.rows[row] ^= bit;
        self.columns[column] ^= bit;
        self.boxes[row / 3 * 3 + column / 3] ^= bit;
    }

    fn free(&self, cell: usize) -> u16 {
        let (row, column) = (cell / 9, cell % 9);
        !(self.rows[row] | self.columns[column] | self.boxes[row / 3 * 3 + column / 3]) & 0x1ff
    }
}

/// Every board of the frontier with each digit that its first empty cell can take.
#[kernel]
fn grow(count: u32, boards: &[Board], next: &mut [Board], next_count: &mut u32) {
    let i = global_id_x();
    if i >= count as usize {
        return;
    }
    let board = boards[i];
    let Some(cell) = board.iter().position(|digit| *digit == 0) else {
        return;
    };
    let free = Used::of(&board).free(cell);
    for digit in (1..=9u8).filter(|digit| free >> (digit - 1) & 1 == 1) {
        let slot = atomic_add(next_count, 1) as usize;
        if let Some(grown) = next.get_mut(slot) {
            *grown = board;
            grown[cell] = digit;
        }
    }
}

/// Fills in a board, digit by digit and back again.
#[device]
fn solved(mut board: Board) -> Option<Board> {
    let mut used = Used::of(&board);
    let mut cells = [0u8; 81];
    let mut count = 0;
    for (cell, _) in board.iter().enumerate().filter(|(_, digit)| **digit == 0) {
        cells[count] = cell as u8;
        count += 1;
    }
    let mut left = [0u16; 81];
    let mut depth = 0;
    if count > 0 {
        left[0] = used.free(cells[0] as usize);
    }
    while depth < count {
        let cell = cells[depth] as usize;
        if board[cell] > 0 {
            used.toggle(cell, 1 << (board[cell] - 1));
            board[cell] = 0;
        }
        match left[depth] {
            0 => depth = depth.checked_sub(1)?,
            free => {
                let bit = free & free.wrapping_neg();
                left[depth] ^= bit;
                used.toggle(cell, bit);
                board[cell] = bit.trailing_zeros() as u8 + 1;
                depth += 1;
                if depth < count {
                    left[depth] = used.free(cells[depth] as usize);
                }
            }
        }
    }
    Some(board)
}

/// The first board that is solved is kept, and how many there are.
#[kernel]
fn solve(count: u32, boards: &[Board], solution: &mut Board, solutions: &mut u32) {
    let i = global_id_x();
    if i >= count as usize {
        return;
    }
    if let Some(board) = solved(boards[i]) {
        if atomic_add(solutions, 1) == 0 {
            *solution = board;
        }
    }
}

#[test]
fn boards_are_solved() {
    let puzzles = [
        "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
        "..9748...7.........2.1.9.....7...24..64.1.59..98...3.....8.3.2.........6...2759..",
    ];
    for puzzle in puzzles {
        let board: Board = std::array::from_fn(|i| match puzzle.as_bytes()[i] {
            b'.' => 0,
            digit => digit - b'0',
        });
        // The cell with the fewest candidates first, by recursion.
        fn search(board: &mut Board) -> bool {
            let candidates = |board: &Board, cell: usize| -> Vec<u8> {
                let fits = |digit: &u8| {
                    (0..81).all(|o| {
                        let same = o / 9 == cell / 9
                            || o % 9 == cell % 9
                            || (o / 27 == cell / 27 && o % 9 / 3 == cell % 9 / 3);
                        !same || board[o] != *digit
                    })
                };
                (1..=9).filter(fits).collect()
            };
            let empty = (0..81).filter(|c| board[*c] == 0);
            let Some(cell) = empty.min_by_key(|c| candidates(board, *c).len()) else {
                return true;
            };
            for digit in candidates(board, cell) {
                board[cell] = digit;
                if search(board) {
                    return true;
                }
            }
            board[cell] = 0;
            false
        }
        let mut expected = board;
        assert!(search(&mut expected));
        everywhere(|run| {
            let mut boards = run.upload(&[board]);
            let mut count = 1u32;
            while count < 30 {
                let (next, grown) = (run.zeros::<Board>(count as usize * 9), run.zeros::<u32>(1));
                let config = LaunchConfig::linear(count as usize, 32);
                run.launch(grow::kernel(), config, args![count, &boards, &next, &grown]);
                boards = next;
                count = run.read(&grown)[0];
            }
            let (solution, solutions) = (run.zeros::<Board>(1), run.zeros::<u32>(1));
            run.launch(
                solve::kernel(),
                LaunchConfig::linear(count as usize, 32),
                args![count, &boards, &solution, &solutions],
            );
            run.holds(&solutions, &[1]);
            run.holds(&solution, &[expected]);
        });
    }
}
