//! Copies of large values from memory to memory. In registers they would have no room, and the assembler, which tries, then leaves
//! few to all other code: so they go word by word, through memory of the lane's own, since the two places may overlap.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::memory::{Location, Space};
use crate::ir::{Effect, Inst, Op, Stmt, Value};

/// Scalars that a value has at least to be copied so.
const LARGE: usize = 128;

impl Renderer<'_> {
    /// Writes a load and the store right behind it as one copy, where a large value is for nothing else; says whether it did.
    pub(super) fn copy_large(&mut self, stmt: &Stmt, next: Option<&Stmt>) -> bool {
        let Inst::Let(value, Op::Load(from, None)) = &stmt.inst else {
            return false;
        };
        let Some(Inst::Do(Effect::Store(to, stored, None))) = next.map(|next| &next.inst) else {
            return false;
        };
        let ty = self.type_of(*value);
        let (size, align) = (ty.size(), ty.align());
        if stored != value || ty.leaf_count() < LARGE || size % 4 != 0 || align < 4 {
            return false;
        }
        if self.reads_of(*value) != 1 {
            return false;
        }
        let (Some(from), Some(to)) = (self.location(from), self.location(to)) else {
            return false;
        };
        let reachable = |at: &Location| matches!(at.space, Space::Global | Space::Local);
        if !reachable(&from) || !reachable(&to) {
            return false;
        }
        let name = format!("copy_{}", self.variables.len());
        self.variables
            .push(format!(".local .align {align} .b8 {name}[{size}]"));
        let between = Location::of_variable(&name, align);
        self.copy_words(&from, &between, size / 4);
        self.copy_words(&between, &to, size / 4);
        true
    }

    /// How often a value is read.
    fn reads_of(&self, value: Value) -> usize {
        let mut reads = 0;
        self.frame.body.block.walk(&mut |stmt| {
            stmt.inst.operands(&mut |v| reads += usize::from(v == value));
        });
        reads
    }

    fn copy_words(&mut self, from: &Location, to: &Location, words: u32) {
        let (source, target) = (self.moving(from), self.moving(to));
        let (word, left, more) = (self.out.word(), self.out.word(), self.out.pred());
        let again = self.out.label();
        emit!(self, "mov.u32 {left}, {words}");
        self.out.place(again);
        emit!(self, "ld.{}.b32 {word}, [{source}]", from.space.name());
        emit!(self, "st.{}.b32 [{target}], {word}", to.space.name());
        emit!(self, "add.s64 {source}, {source}, 4");
        emit!(self, "add.s64 {target}, {target}, 4");
        emit!(self, "sub.u32 {left}, {left}, 1");
        emit!(self, "setp.ne.u32 {more}, {left}, 0");
        emit!(self, "@{more} bra {again}");
    }

    /// A location's address in a register of its own.
    fn moving(&mut self, at: &Location) -> Leaf {
        let address = self.out.wide();
        let base = self.base_of(at);
        emit!(self, "add.s64 {address}, {base}, {}", at.offset);
        address
    }
}
