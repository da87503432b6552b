//! Where what lanes have written to the block's memory decides which barriers they come to, a lane that is dead writes nothing more, and
//! the others might wait for it for ever. So dead lanes leave word in the block's memory before the barrier behind which the others
//! load what decides; they load the word, too, and behind the next barrier all lanes of the block end. Knows nothing of checks.
//!
//! The word is stored before a barrier behind which it is loaded, never between one and the other: where the barrier at which the
//! last word was loaded is the one before which the next is to be stored, a barrier more stands between them. Loads that come before
//! any lane of the block can be dead have no word.

use super::{Exit, Rewriter, push};
use crate::ir::{Base, Block, DeviceOp, Effect, Inst, Met, Op, Place, Scalar, Stmt, Type, Value};
use crate::ops::BinaryOp;

/// The words of a list of statements.
pub(super) struct Words {
    met: std::iter::Peekable<std::vec::IntoIter<Met>>,
    /// The word that was loaded last, and the number of the barrier at which lanes heed it.
    loaded: Option<(Value, usize)>,
}

impl Rewriter<'_> {
    /// Which values are constants; none where no words are left.
    pub(super) fn constants_told(&self) -> Vec<bool> {
        if !self.uniformity.is_some_and(|u| u.relies_on_shared()) {
            return Vec::new();
        }
        let mut constants = vec![false; self.source.values.len()];
        self.source.block.walk(&mut |stmt| {
            if let Inst::Let(v, Op::Const(..)) = &stmt.inst
                && let Some(constant) = constants.get_mut(v.0 as usize)
            {
                *constant = true;
            }
        });
        constants
    }

    /// Where words are loaded in a list of statements: with loads of constant places, which alone decide.
    pub(super) fn words(&self, block: &Block, exit: Exit) -> Words {
        let mut met = Vec::new();
        if matches!(exit, Exit::Walk) && !self.constants.is_empty() {
            met = block.met(&self.source.values);
            met.retain(|met| met.loads.iter().any(|i| self.is_told(block, *i)));
        }
        Words {
            met: met.into_iter().peekable(),
            loaded: None,
        }
    }

    fn is_told(&self, block: &Block, i: usize) -> bool {
        let mut told = false;
        if let Some(Inst::Let(_, Op::Load(place, _))) = block.0.get(i).map(|stmt| &stmt.inst) {
            told = true;
            place.operands(&mut |v| told &= self.constants.get(v.0 as usize).copied().unwrap_or(false));
        }
        told
    }

    fn word(&self) -> Place {
        Place {
            base: Base::Shared(self.kernel.shared.len() as u32),
            path: Vec::new(),
        }
    }

    /// At the beginning.
    pub(super) fn nobody_is_dead(&mut self, out: &mut Vec<Stmt>) {
        let zero = self.constant(0, Scalar::U32, 0, out);
        push(out, 0, Inst::Do(Effect::Store(self.word(), zero, None)));
        push(out, 0, Inst::Do(DeviceOp::Barrier.into()));
    }

    /// Before statement `i`.
    pub(super) fn before_barrier(&mut self, words: &mut Words, i: usize, line: u32, out: &mut Vec<Stmt>) {
        if self.opens(words, i) && words.loaded.is_none() {
            self.leave_word(line, out);
        }
    }

    /// Whether statement `i` is a barrier behind which a word is to be loaded.
    fn opens(&self, words: &mut Words, i: usize) -> bool {
        self.maybe_dead && words.met.peek().is_some_and(|met| met.between[0] == i)
    }

    fn leave_word(&mut self, line: u32, out: &mut Vec<Stmt>) {
        let dead = self.dead(line, out);
        let mut inner = Vec::new();
        let one = self.constant(line, Scalar::U32, 1, &mut inner);
        push(&mut inner, line, Inst::Do(Effect::Store(self.word(), one, None)));
        push(out, line, Inst::If(dead, Block(inner), Block::default()));
    }

    /// Behind statement `i`.
    pub(super) fn after_barrier(&mut self, words: &mut Words, i: usize, line: u32, out: &mut Vec<Stmt>) {
        let heeded = words.loaded.take_if(|(_, at)| *at == i);
        if let Some((word, _)) = heeded {
            let zero = self.constant(line, Scalar::U32, 0, out);
            let told = self.compare(line, BinaryOp::Ne, word, zero, out);
            let mut end = Vec::new();
            push(&mut end, line, Inst::Return(None));
            push(out, line, Inst::If(told, Block(end), Block::default()));
        }
        if self.opens(words, i) {
            if heeded.is_some() {
                self.leave_word(line, out);
                push(out, line, Inst::Do(DeviceOp::Barrier.into()));
            }
            let word = self.let_(line, Op::Load(self.word(), None), Type::U32, out);
            words.loaded = words.met.next().map(|met| (word, met.between[1]));
            self.found.told = true;
        }
        words.met.next_if(|met| met.between[0] <= i);
    }
}
