//! A chessboard in words of 64 bits.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 187: legal moves on bitboards

const NOT_A: u64 = 0xfefe_fefe_fefe_fefe;
const NOT_H: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const RANK_3: u64 = 0xff << 16;
const RANK_8: u64 = 0xff << 56;

/// Straight ones first, then diagonal ones: how far to shift, and what may not be reached across the edge.
const DIRECTIONS: [(i32, u64); 8] = [
    (8, u64::MAX),
    (-8, u64::MAX),
    (1, NOT_A),
    (-1, NOT_H),
    (9, NOT_A),
    (7, NOT_H),
    (-7, NOT_A),
    (-9, NOT_H),
];

#[device]
fn shifted(squares: u64, direction: usize) -> u64 {
    let (by, mask) = DIRECTIONS[direction];
    let moved = if by > 0 { squares << by } else { squares >> -by };
    moved & mask
}

/// What is attacked from these squares in a direction, up to the first piece.
#[device]
fn ray(from: u64, empty: u64, direction: usize) -> u64 {
    let mut next = shifted(from, direction);
    let mut all = next;
    while next & empty != 0 {
        next = shifted(next & empty, direction);
        all |= next;
    }
    all
}

#[device]
fn rays(from: u64, empty: u64, directions: impl Iterator<Item = usize>) -> u64 {
    directions.map(|d| ray(from, empty, d)).fold(0, |all, r| all | r)
}

#[device]
fn knight_attacks(from: u64) -> u64 {
    let (one_west, one_east) = ((from >> 1) & NOT_H, (from << 1) & NOT_A);
    let (two_west, two_east) = ((one_west >> 1) & NOT_H, (one_east << 1) & NOT_A);
    let (near, far) = (one_west | one_east, two_west | two_east);
    near << 16 | near >> 16 | far << 8 | far >> 8
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Side {
    pawns: u64,
    knights: u64,
    bishops: u64,
    rooks: u64,
    queens: u64,
    king: u64,
}

/// The side at the bottom moves first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(C)]
struct Board {
    sides: [Side; 2],
}

#[device]
impl Side {
    fn all(&self) -> u64 {
        self.pawns | self.knights | self.bishops | self.rooks | self.queens | self.king
    }

    /// Those that move in a direction, straight or diagonal.
    fn sliders(&self, direction: usize) -> u64 {
        self.queens | if direction < 4 { self.rooks } else { self.bishops }
    }

    /// Seen from the other end of the board.
    fn flipped(&self) -> Side {
        Side {
            pawns: self.pawns.swap_bytes(),
            knights: self.knights.swap_bytes(),
            bishops: self.bishops.swap_bytes(),
            rooks: self.rooks.swap_bytes(),
            queens: self.queens.swap_bytes(),
            king: self.king.swap_bytes(),
        }
    }

    /// What this side attacks; its pawns go down.
    fn attacks(&self, empty: u64) -> u64 {
        let pawns = shifted(self.pawns, 6) | shifted(self.pawns, 7);
        let straight = rays(self.rooks | self.queens, empty, 0..4);
        let diagonal = rays(self.bishops | self.queens, empty, 4..8);
        let king = rays(self.king, 0, 0..8);
        pawns | knight_attacks(self.knights) | straight | diagonal | king
    }
}

/// The sum of what `moves` gives of each square.
#[device]
fn count(mut squares: u64, moves: impl Fn(u64) -> u32) -> u32 {
    let mut sum = 0;
    while squares != 0 {
        let square = squares & squares.wrapping_neg();
        squares ^= square;
        sum += moves(square);
    }
    sum
}

/// How many legal moves a side has that goes up, without castling and without taking in passing.
#[device]
fn legal_moves(us: &Side, them: &Side) -> u32 {
    let (own, others) = (us.all(), them.all());
    let empty = !(own | others);
    let danger = them.attacks(empty | us.king);
    let of_king = rays(us.king, 0, 0..8) & !own & !danger;

    let mut checkers = knight_attacks(us.king) & them.knights;
    checkers |= (shifted(us.king, 4) | shifted(us.king, 5)) & them.pawns;
    let mut between = 0;
    let mut pins = [0u64; 8];
    for (direction, pin) in pins.iter_mut().enumerate() {
        let line = ray(us.king, empty, direction);
        let sliders = them.sliders(direction);
        if line & sliders != 0 {
            checkers |= line & sliders;
            between |= line;
        }
        let blocker = line & own;
        let beyond = ray(blocker, empty, direction);
        if beyond & sliders != 0 {
            *pin = line | beyond;
        }
    }
    let targets = match checkers.count_ones() {
        0 => !own,
        1 => checkers | between,
        _ => return of_king.count_ones(),
    };
    let allowed = |square: u64| {
        let pin = pins.iter().find(|pin| **pin & square != 0);
        targets & pin.copied().unwrap_or(u64::MAX)
    };
    let pieces = count(us.knights, |s| {
        (knight_attacks(s) & !own & allowed(s)).count_ones()
    }) + count(us.rooks | us.queens, |s| {
        (rays(s, empty, 0..4) & !own & allowed(s)).count_ones()
    }) + count(us.bishops | us.queens, |s| {
        (rays(s, empty, 4..8) & !own & allowed(s)).count_ones()
    });
    let pawns = count(us.pawns, |s| {
        let one = shifted(s, 0) & empty;
        let two = shifted(one & RANK_3, 0) & empty;
        let taken = (shifted(s, 4) | shifted(s, 5)) & others;
        let moves = (one | two | taken) & allowed(s);
        moves.count_ones() + 3 * (moves & RANK_8).count_ones()
    });
    of_king.count_ones() + pieces + pawns
}

#[kernel]
fn count_moves(boards: &[Board], counts: &mut [[u32; 2]]) {
    let (i, side) = (global_id_x(), global_id_y());
    let Some(Board { sides: [bottom, top] }) = boards.get(i) else {
        return;
    };
    counts[i][side] = if side == 0 {
        legal_moves(bottom, top)
    } else {
        legal_moves(&top.flipped(), &bottom.flipped())
    };
}

/// Pieces by letters, capitals for the side that goes up; a move is played, and the king looked for by every piece of the other side.
#[derive(Clone)]
struct Letters([u8; 64]);

impl Letters {
    fn targets(&self, from: usize) -> Vec<usize> {
        let piece = self.0[from];
        let (x, y) = (from as i32 % 8, from as i32 / 8);
        let at = |dx: i32, dy: i32| {
            let (x, y) = (x + dx, y + dy);
            ((0..8).contains(&x) && (0..8).contains(&y)).then_some((y * 8 + x) as usize)
        };
        let foe =
            |to: usize| self.0[to] != b'.' && self.0[to].is_ascii_uppercase() != piece.is_ascii_uppercase();
        let mut found = Vec::new();
        let (straight, diagonal) = (
            [(0, 1), (0, -1), (1, 0), (-1, 0)],
            [(1, 1), (1, -1), (-1, 1), (-1, -1)],
        );
        let both = [straight, diagonal].concat();
        let (steps, far) = match piece.to_ascii_lowercase() {
            b'r' => (straight.to_vec(), 8),
            b'b' => (diagonal.to_vec(), 8),
            b'q' => (both, 8),
            b'k' => (both, 1),
            b'n' => {
                let jumps = [(1, 2), (2, 1)].map(|(a, b)| [(a, b), (-a, b), (a, -b), (-a, -b)]);
                (jumps.concat(), 1)
            }
            _ => {
                let (up, start) = if piece == b'P' { (1, 1) } else { (-1, 6) };
                let free = |to: &usize| self.0[*to] == b'.';
                if let Some(one) = at(0, up).filter(free) {
                    found.push(one);
                    found.extend(at(0, 2 * up).filter(|to| y == start && free(to)));
                }
                found.extend(
                    [-1, 1]
                        .into_iter()
                        .filter_map(|dx| at(dx, up))
                        .filter(|to| foe(*to)),
                );
                return found;
            }
        };
        for (dx, dy) in steps {
            for n in 1..=far {
                let Some(to) = at(n * dx, n * dy) else {
                    break;
                };
                if self.0[to] == b'.' || foe(to) {
                    found.push(to);
                }
                if self.0[to] != b'.' {
                    break;
                }
            }
        }
        found
    }

    fn of(&self, upper: bool) -> Vec<usize> {
        (0..64)
            .filter(|i| self.0[*i] != b'.' && self.0[*i].is_ascii_uppercase() == upper)
            .collect()
    }

    fn in_check(&self, upper: bool) -> bool {
        let king = if upper { b'K' } else { b'k' };
        self.of(!upper)
            .iter()
            .any(|from| self.targets(*from).iter().any(|to| self.0[*to] == king))
    }

    fn moves(&self, upper: bool) -> u32 {
        let mut sum = 0;
        for from in self.of(upper) {
            for to in self.targets(from) {
                let mut next = self.clone();
                next.0[to] = next.0[from];
                next.0[from] = b'.';
                if !next.in_check(upper) {
                    let last = to / 8 == 0 || to / 8 == 7;
                    let pawn = self.0[from].eq_ignore_ascii_case(&b'p');
                    sum += if pawn && last { 4 } else { 1 };
                }
            }
        }
        sum
    }

    fn board(&self) -> Board {
        let mut sides = [Side::default(); 2];
        for (i, piece) in self.0.iter().enumerate() {
            let side = &mut sides[usize::from(piece.is_ascii_lowercase())];
            let set = match piece.to_ascii_lowercase() {
                b'p' => &mut side.pawns,
                b'n' => &mut side.knights,
                b'b' => &mut side.bishops,
                b'r' => &mut side.rooks,
                b'q' => &mut side.queens,
                b'k' => &mut side.king,
                _ => continue,
            };
            *set |= 1 << i;
        }
        Board { sides }
    }
}

#[test]
fn legal_moves_are_those_that_leave_the_king_safe() {
    let mut random = Random(187);
    let mut positions = vec![Letters(
        *b"RNBQKBNRPPPPPPPP................................pppppppprnbqkbnr",
    )];
    while positions.len() < 150 {
        let mut squares = [b'.'; 64];
        let mut letters = b"Kk".to_vec();
        for _ in 0..4 + random.below(20) {
            letters.push(b"PPPNBRQpppnbrq"[random.below(14)]);
        }
        for letter in letters {
            let place = random.below(64);
            let pawn = letter.eq_ignore_ascii_case(&b'p');
            if squares[place] == b'.' && !(pawn && (place < 8 || place >= 56)) {
                squares[place] = letter;
            }
        }
        let king = |letter: u8| squares.iter().position(|s| *s == letter);
        if let (Some(a), Some(b)) = (king(b'K'), king(b'k')) {
            // Kings keep apart.
            if (a % 8).abs_diff(b % 8) > 1 || (a / 8).abs_diff(b / 8) > 1 {
                positions.push(Letters(squares));
            }
        }
    }
    let expected: Vec<[u32; 2]> = positions
        .iter()
        .map(|p| [p.moves(true), p.moves(false)])
        .collect();
    assert_eq!(expected[0], [20, 20]);
    let boards: Vec<Board> = positions.iter().map(Letters::board).collect();
    everywhere(|run| {
        let (uploaded, counts) = (run.upload(&boards), run.zeros::<[u32; 2]>(boards.len()));
        let config = LaunchConfig::new((boards.len().div_ceil(32) as u32, 1), (32, 2));
        run.launch(count_moves::kernel(), config, args![&uploaded, &counts]);
        run.holds(&counts, &expected);
    });
}
