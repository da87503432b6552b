//! A draft as a routine: registers in their places, labels by their numbers.

use std::collections::{BTreeSet, HashMap};

use super::allocate::{Crowded, Places, allocate};
use super::draft::{Arg, Draft, Line, Part};
use crate::instruction::{Guard, Index, Instruction, Operand, PREDICATES, Place};
use crate::program::{Label, Routine};

impl Draft {
    /// The routine, each register in its place.
    ///
    /// # Errors
    /// If more registers hold values at once than a lane has.
    pub(crate) fn finish(&self) -> Result<Routine, Crowded> {
        let places = allocate(self)?;
        // In the order of the code, as the text form has them; without those that nothing leads to.
        let targets: BTreeSet<u32> = self.lines.iter().filter_map(Line::target).collect();
        let at = |label: u32| self.labels.get(label as usize).copied().flatten();
        let mut used: Vec<(u32, u32)> = targets
            .into_iter()
            .filter_map(|label| Some((at(label)?, label)))
            .collect();
        used.sort_unstable();
        let name = |(number, (at, _)): (usize, &(u32, u32))| Label {
            name: format!("l{number}"),
            at: *at,
        };
        let labels: Vec<Label> = used.iter().enumerate().map(name).collect();
        let numbers: HashMap<u32, u32> = used.iter().map(|(_, label)| *label).zip(0..).collect();
        let instruction = |line: &Line| self.instruction(line, &places, &numbers);
        Ok(Routine {
            name: String::new(),
            code: self.lines.iter().map(instruction).collect(),
            labels,
            lines: self.lines.iter().map(|line| line.line).collect(),
        })
    }

    fn instruction(&self, line: &Line, places: &Places, labels: &HashMap<u32, u32>) -> Instruction {
        let part = |part: Part| match part {
            Part::Register(register) => Index::Register(places.of(register)),
            Part::Other(index) => index,
        };
        let operand = |arg: &Arg| match *arg {
            Arg::Register(register) if self.is_predicate(register) => Operand::Predicate(places.of(register)),
            Arg::Register(register) => Operand::Register(places.of(register)),
            // The verifier refuses labels that stand nowhere.
            Arg::Label(label) => Operand::Label(labels.get(&label).copied().unwrap_or(u32::MAX)),
            Arg::Place {
                memory,
                first,
                second,
                offset,
            } => Operand::Place(Place {
                memory,
                first: first.map(part),
                second: second.map(part),
                offset,
            }),
            Arg::Other(operand) => operand,
        };
        Instruction {
            guard: line.guard.map(|(register, negated)| Guard {
                predicate: places.of(register) % PREDICATES as u8,
                negated,
            }),
            opcode: line.opcode,
            ty: line.ty,
            from: line.from,
            operands: line.args.iter().map(operand).collect(),
        }
    }
}
