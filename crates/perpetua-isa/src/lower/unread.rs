//! Takes variables out of a body that are written alone. Knows no programs.

use std::collections::HashSet;

use perpetua_ir::ir::{Base, Block, Body, Inst, LocalId, Place};

/// Removes variables that no statement reads, and the stores to them. The others are numbered anew.
pub(super) fn remove(body: &mut Body, unread: &HashSet<LocalId>) {
    let mut kept = 0;
    let numbers: Vec<Option<u32>> = (0..body.locals.len() as u32)
        .map(|number| {
            let is_read = !unread.contains(&LocalId(number));
            kept += u32::from(is_read);
            is_read.then(|| kept - 1)
        })
        .collect();
    let mut is_read = numbers.iter().map(Option::is_some);
    body.locals.retain(|_| is_read.next().unwrap_or(true));
    renumber(&mut body.block, &numbers);
}

fn renumber(block: &mut Block, numbers: &[Option<u32>]) {
    block.0.retain_mut(|stmt| {
        let place = match &mut stmt.inst {
            Inst::Let(_, op) => op.place_mut(),
            Inst::Do(effect) => effect.place_mut(),
            other => {
                other
                    .blocks_mut()
                    .into_iter()
                    .for_each(|inner| renumber(inner, numbers));
                None
            }
        };
        match place {
            Some(Place {
                base: Base::Local(LocalId(number)),
                ..
            }) => {
                let new = numbers.get(*number as usize).copied().flatten();
                *number = new.unwrap_or(*number);
                new.is_some()
            }
            _ => true,
        }
    });
}
