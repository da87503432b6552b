//! Tensor cores: products of small matrices that a subgroup of 32 lanes holds together. Must not know how tiles are chosen.

use std::marker::PhantomData;

use super::{PtxBuilder, PtxHalf, Reg, SharedArray};

/// The lane's part of a 16 x 16 matrix: the left factor.
#[derive(Clone, Copy, Debug)]
pub struct FragmentA<T>([Reg<u32>; 4], PhantomData<T>);

/// The lane's part of a 16 x 8 matrix: the right factor.
#[derive(Clone, Copy, Debug)]
pub struct FragmentB<T>([Reg<u32>; 2], PhantomData<T>);

impl PtxBuilder {
    /// The address of eight elements of a shared array that begin at a multiple of eight: the last ones where the index is too large.
    fn row<T: PtxHalf>(&mut self, of: &SharedArray<T>, index: Reg<u32>) -> Reg<u32> {
        let mask = self.constant(!7u32);
        let last = self.constant((of.len.max(8) - 8) & !7);
        let index = self.and(index, mask);
        let index = self.min(index, last);
        let address = self.register::<u32>();
        self.line(&format!("mad.lo.u32 {address}, {index}, 2, {}", of.base));
        address
    }

    /// Reads a left factor. Lane `i` gives the index of the eight elements of row `i % 16`, columns `8 * (i / 16)` and following, a multiple
    /// of eight. All lanes of a subgroup come here together; an array of fewer than eight elements gives zeros.
    pub fn load_matrix_a<T: PtxHalf>(&mut self, from: &SharedArray<T>, index: Reg<u32>) -> FragmentA<T> {
        self.needs(75);
        if from.len < 8 {
            return FragmentA([self.constant(0u32); 4], PhantomData);
        }
        let address = self.row(from, index);
        let d = [(); 4].map(|()| self.register::<u32>());
        let [a, b, c, e] = d;
        self.line(&format!(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{a}, {b}, {c}, {e}}}, [{address}]"
        ));
        FragmentA(d, PhantomData)
    }

    /// Reads a right factor that is stored row by row. Lane `i % 16` gives the index of the eight elements of row `i % 16`.
    pub fn load_matrix_b<T: PtxHalf>(&mut self, from: &SharedArray<T>, index: Reg<u32>) -> FragmentB<T> {
        self.needs(75);
        if from.len < 8 {
            return FragmentB([self.constant(0u32); 2], PhantomData);
        }
        let address = self.row(from, index);
        let d = [(); 2].map(|()| self.register::<u32>());
        let [a, b] = d;
        self.line(&format!(
            "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{{a}, {b}}}, [{address}]"
        ));
        FragmentB(d, PhantomData)
    }

    /// `A B + C` with sums in `f32`. Lane `i` holds rows `i / 4` and `i / 4 + 8`, columns `2 * (i % 4)` and the one after, of the 16 x 8 result: its
    /// elements 0 and 1 of the first row, 2 and 3 of the second. All lanes of a subgroup come here together.
    pub fn mma<T: PtxHalf>(&mut self, a: FragmentA<T>, b: FragmentB<T>, c: [Reg<f32>; 4]) -> [Reg<f32>; 4] {
        self.needs(80);
        let d = [(); 4].map(|()| self.register::<f32>());
        let list = |all: &[String]| all.join(", ");
        let [d_list, c_list] = [d, c].map(|all| list(&all.map(|r| r.to_string())));
        let (a_list, b_list) = (
            list(&a.0.map(|r| r.to_string())),
            list(&b.0.map(|r| r.to_string())),
        );
        let ty = T::TYPE;
        self.line(&format!(
            "mma.sync.aligned.m16n8k16.row.col.f32.{ty}.{ty}.f32 {{{d_list}}}, {{{a_list}}}, {{{b_list}}}, {{{c_list}}}"
        ));
        d
    }
}
