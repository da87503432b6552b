//! Matrices that the lanes of a warp hold together. They lie in the lanes as `mma.sync` has them, so that what the language says of its
//! lanes is what the hardware does. Lanes that bring rows of matrices from shared memory load them by `ldmatrix`: the plain loads, whose
//! values nobody uses then, the driver drops.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::memory::Space;
use crate::ir::{Base, Effect, Inst, MatrixElement, MatrixOp, Op, Place, Scalar, Type, Value};

impl Renderer<'_> {
    pub(super) fn matrix(&mut self, op: MatrixOp, args: &[Value]) -> Vec<Leaf> {
        let bring = |this: &mut Self, v: &Value| -> Vec<Leaf> {
            let leaves = this.leaves_of(this.value(*v));
            let scalars = this.scalars_of(*v);
            let all = leaves.into_iter().zip(scalars);
            all.map(|(leaf, s)| this.in_register(leaf, s)).collect()
        };
        match (op, args) {
            (MatrixOp::Multiply(element), [a, b, c]) => {
                let [a, b, c] = [a, b, c].map(|v| list(&bring(self, v)));
                let d = self.words_of(4);
                let (depth, ty) = match element {
                    MatrixElement::F16 => (16, "f16"),
                    MatrixElement::Bf16 => (16, "bf16"),
                    MatrixElement::Tf32 => (8, "tf32"),
                };
                emit!(
                    self,
                    "mma.sync.aligned.m16n8k{depth}.row.col.f32.{ty}.{ty}.f32 {}, {a}, {b}, {c}",
                    list(&d)
                );
                d
            }
            (MatrixOp::Rows | MatrixOp::Columns, [rows]) => {
                let transposed = op == MatrixOp::Columns;
                match self.in_shared.iter().find(|(v, _)| v == rows) {
                    Some((_, at)) => {
                        let at = at.at(0);
                        let d = self.words_of(4);
                        let how = if transposed { ".trans" } else { "" };
                        let to = list(&d);
                        emit!(self, "ldmatrix.sync.aligned.m8n8.x4{how}.shared.b16 {to}, {at}");
                        d
                    }
                    None => {
                        let rows = bring(self, rows);
                        self.redistributed(&rows, transposed)
                    }
                }
            }
            // The verifier admits no other numbers of operands.
            _ => vec![Leaf::Imm(0); 4],
        }
    }

    fn words_of(&mut self, n: usize) -> Vec<Leaf> {
        (0..n).map(|_| self.out.word()).collect()
    }

    /// What lanes hold of four matrices whose rows they have brought in registers.
    fn redistributed(&mut self, rows: &[Leaf], transposed: bool) -> Vec<Leaf> {
        let lane = self.out.word();
        emit!(self, "mov.u32 {lane}, %laneid");
        let row = self.three("shr.u32", Scalar::U32, lane, Leaf::Imm(2));
        let word = self.words("and.b32", lane, 3u32);
        let mut all = Vec::new();
        for matrix in 0..4u64 {
            let from = self.three("add.u32", Scalar::U32, row, Leaf::Imm(8 * matrix));
            let mut result = Leaf::Imm(0);
            for (i, brought) in (0u64..).zip(rows) {
                let d = self.out.word();
                emit!(self, "shfl.sync.idx.b32 {d}, {brought}, {from}, 31, 0xffffffff");
                let is_it = self.compare("eq", "u32", Scalar::U32, word, Leaf::Imm(i));
                result = self.choose(is_it, Scalar::U32, d, result);
            }
            if transposed {
                let d = self.out.word();
                emit!(self, "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {result}");
                result = d;
            }
            all.push(result);
        }
        all
    }

    /// Notes which value is what lies at an address in shared memory.
    pub(super) fn note_loaded(&mut self, v: Value, place: &Place) {
        let rows = Type::array(Type::U32, 4);
        if !matches!(place.base, Base::Shared(_)) || *self.type_of(v) != rows {
            return;
        }
        let at = self.location(place);
        if let Some(at) = at.filter(|at| at.space == Space::Shared && at.align >= 16) {
            self.in_shared.push((v, at));
        }
    }

    /// Forgets what lies in shared memory where a statement may change it, or may not be what runs next.
    pub(super) fn note_statement(&mut self, inst: &Inst) {
        let keeps = match inst {
            Inst::Let(_, Op::Device(op, _)) => op.row().orders == crate::ops::Orders::Nothing,
            Inst::Let(_, op) => !matches!(
                op,
                Op::Atomic(..) | Op::CompareExchange { .. } | Op::Call(..) | Op::Load(_, Some(_))
            ),
            Inst::Do(Effect::Store(place, ..)) => matches!(place.base, Base::Local(_)),
            _ => false,
        };
        if !keeps {
            self.in_shared.clear();
        }
    }
}

fn list(leaves: &[Leaf]) -> String {
    let leaves: Vec<String> = leaves.iter().map(Leaf::to_string).collect();
    format!("{{{}}}", leaves.join(", "))
}
