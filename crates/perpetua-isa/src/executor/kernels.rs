//! Compiled programs, each once, by content. Bounded by their number and by what they take; those used longest ago go. Knows no device.

use std::collections::HashMap;

use crate::program::{MemoryKind, Program};

/// Most programs that are kept.
const MOST: usize = 256;
/// Most bytes that they may take, by [`bytes`]; the one used last is kept whatever it takes.
const MOST_BYTES: usize = 256 << 20;

/// What an instruction is taken to need in program, kernel, text and machine code together.
const PER_INSTRUCTION: usize = 2048;

/// What a program takes while it is kept compiled, about. `instructions`: with its calls, tiles and runs of registers written out.
pub(super) fn bytes(program: &Program, instructions: usize) -> usize {
    let constants = program.memories.iter().map(|memory| match &memory.kind {
        // In the program and in the kernel.
        MemoryKind::Constants(data) => data.len().saturating_mul(2 * size_of::<u64>()),
        _ => 0,
    });
    let names = program
        .routines
        .iter()
        .flat_map(|routine| &routine.labels)
        .map(|label| label.name.len() + size_of_val(label));
    // `verify` has bounded them by the instructions; a name of a file may still be long.
    let lines = program
        .routines
        .iter()
        .map(|routine| size_of_val(routine.lines.as_slice()));
    let others = lines.chain([program.source.len()]);
    constants.chain(names).chain(others).fold(
        instructions.saturating_mul(PER_INSTRUCTION),
        usize::saturating_add,
    )
}

struct Kept<T> {
    compiled: T,
    // Programs of one id need not be one: somebody may have looked for two.
    program: Program,
    bytes: usize,
    // When it was used last, in launches.
    used: u64,
}

/// Programs, each with what was made of it.
pub(super) struct Kernels<T> {
    kept: HashMap<u128, Kept<T>>,
    bytes: usize,
    used: u64,
}

impl<T> Default for Kernels<T> {
    fn default() -> Kernels<T> {
        Kernels {
            kept: HashMap::new(),
            bytes: 0,
            used: 0,
        }
    }
}

impl<T: Clone> Kernels<T> {
    /// What was made of the program, whose id this is.
    pub(super) fn get(&mut self, id: u128, program: &Program) -> Option<T> {
        self.used += 1;
        let kept = self.kept.get_mut(&id)?;
        if !kept.program.is_same_kernel(program) {
            return None;
        }
        kept.used = self.used;
        Some(kept.compiled.clone())
    }

    /// Keeps what was made of a program that takes so many bytes.
    pub(super) fn insert(&mut self, id: u128, program: &Program, bytes: usize, compiled: T) {
        self.remove(id);
        self.used += 1;
        while self.kept.len() >= MOST || self.bytes.saturating_add(bytes) > MOST_BYTES {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(id, _)| *id) else {
                break;
            };
            self.remove(oldest);
        }
        self.bytes += bytes;
        let kept = Kept {
            compiled,
            program: program.clone(),
            bytes,
            used: self.used,
        };
        self.kept.insert(id, kept);
    }

    fn remove(&mut self, id: u128) {
        self.bytes -= self.kept.remove(&id).map_or(0, |kept| kept.bytes);
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Kernels::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(number: usize) -> Program {
        Program {
            name: format!("p{number}"),
            ..Program::default()
        }
    }

    // Those of the first `count` programs that are kept.
    fn kept(kernels: &mut Kernels<usize>, count: usize) -> Vec<usize> {
        let get = |number: &usize| {
            let found = kernels.get(*number as u128, &program(*number));
            assert!(found.is_none_or(|found| found == *number));
            found.is_some()
        };
        (0..count).filter(get).collect()
    }

    #[test]
    fn what_takes_most_room_makes_others_go() {
        let mut kernels = Kernels::default();
        for number in 0..10 {
            kernels.insert(number as u128, &program(number), MOST_BYTES / 8, number);
        }
        assert_eq!(kept(&mut kernels, 10), (2..10).collect::<Vec<usize>>());
        // All in order of their use now; half of the room for one.
        kernels.insert(10, &program(10), MOST_BYTES / 2, 10);
        assert_eq!(kept(&mut kernels, 11), [6, 7, 8, 9, 10]);
        // In the place of itself.
        kernels.insert(10, &program(10), MOST_BYTES / 2, 10);
        assert_eq!(kept(&mut kernels, 12), [6, 7, 8, 9, 10]);
        // More than there is: that one alone, until the next.
        kernels.insert(11, &program(11), usize::MAX, 11);
        assert_eq!(kept(&mut kernels, 12), [11]);
        kernels.insert(12, &program(12), 1, 12);
        assert_eq!(kept(&mut kernels, 13), [12]);
        kernels.clear();
        assert_eq!((kept(&mut kernels, 12), kernels.bytes), (vec![], 0));
    }

    #[test]
    fn no_more_than_so_many() {
        let mut kernels = Kernels::default();
        for number in 0..MOST + 5 {
            kernels.insert(number as u128, &program(number), 1, number);
        }
        assert_eq!(kept(&mut kernels, MOST + 5).len(), MOST);
        assert_eq!(kernels.bytes, MOST);
    }

    #[test]
    fn programs_of_one_id_are_told_apart() {
        let mut kernels = Kernels::default();
        kernels.insert(1, &program(1), 1, 1);
        assert_eq!(kernels.get(1, &program(2)), None);
    }

    #[test]
    fn tables_and_written_out_tiles_count() {
        let mut large = program(0);
        assert_eq!(bytes(&large, 10), 10 * PER_INSTRUCTION);
        large.memories.push(crate::program::Memory {
            name: "t".into(),
            element: perpetua_ir::ir::Scalar::U8,
            kind: MemoryKind::Constants(vec![0; 1 << 20]),
        });
        assert!(bytes(&large, 10) > 16 << 20);
    }
}
