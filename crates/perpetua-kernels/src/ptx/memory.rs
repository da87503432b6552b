//! Buffers and shared arrays. Every access compares its index with the length: here alone addresses are made.

use std::marker::PhantomData;

use perpetua_ir::ir::{Access, Param, ParamKind};

use super::{PtxBuilder, PtxElement, PtxInteger, PtxType, Reg};

/// A buffer parameter.
#[derive(Debug)]
pub struct GlobalSlice<T> {
    base: Reg<u64>,
    len: Reg<u64>,
    element: PhantomData<T>,
}

impl<T> GlobalSlice<T> {
    /// Its length in elements.
    pub fn len(&self) -> Reg<u64> {
        self.len
    }
}

/// An array that the lanes of a block share.
#[derive(Debug)]
pub struct SharedArray<T> {
    pub(super) base: Reg<u32>,
    pub(super) len: u32,
    element: PhantomData<T>,
}

impl PtxBuilder {
    /// The next parameter of the kernel: a buffer that it reads.
    pub fn buffer<T: PtxElement>(&mut self, name: &str) -> GlobalSlice<T> {
        self.slice(name, Access::Read)
    }

    /// The next parameter of the kernel: a buffer that it may write.
    pub fn buffer_mut<T: PtxElement>(&mut self, name: &str) -> GlobalSlice<T> {
        self.slice(name, Access::ReadWrite)
    }

    fn slice<T: PtxElement>(&mut self, name: &str, access: Access) -> GlobalSlice<T> {
        let name = self.named(name);
        let [address, base, len] = [(); 3].map(|()| self.register::<u64>());
        self.line(&format!("ld.param.u64 {address}, [{name}]"));
        self.line(&format!("cvta.to.global.u64 {base}, {address}"));
        self.line(&format!("ld.param.u64 {len}, [{name}_len]"));
        let kind = ParamKind::Buffer {
            element: T::element(),
            access,
        };
        self.params.push(Param { name, kind });
        let element = PhantomData;
        GlobalSlice { base, len, element }
    }

    /// Whether an index is inside, and the address of its element.
    fn element<T: PtxElement, I: PtxInteger>(
        &mut self,
        of: &GlobalSlice<T>,
        index: Reg<I>,
    ) -> (Reg<bool>, Reg<u64>) {
        let wide = match I::TYPE {
            // A negative index becomes a large one.
            PtxType::S32 => {
                let wide = self.convert::<I, i64>(index);
                self.convert::<i64, u64>(wide)
            }
            _ => self.convert::<I, u64>(index),
        };
        let inside = self.lt(wide, of.len);
        let address = self.register::<u64>();
        let (base, bytes) = (of.base, T::TYPE.bytes());
        self.line(&format!("mad.lo.u64 {address}, {wide}, {bytes}, {base}"));
        (inside, address)
    }

    /// An element; 0 beyond the end.
    pub fn load<T: PtxElement, I: PtxInteger>(&mut self, from: &GlobalSlice<T>, index: Reg<I>) -> Reg<T> {
        let (inside, address) = self.element(from, index);
        self.load_at::<T>("global", inside, &address.to_string())
    }

    /// Stores an element; nothing beyond the end.
    pub fn store<T: PtxElement, I: PtxInteger>(&mut self, to: &GlobalSlice<T>, index: Reg<I>, value: Reg<T>) {
        let (inside, address) = self.element(to, index);
        self.line(&format!(
            "@{inside} st.global.{} [{address}], {value}",
            T::TYPE.bits()
        ));
    }

    fn load_at<T: PtxElement>(&mut self, space: &str, inside: Reg<bool>, address: &str) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("mov.{} {d}, 0", T::TYPE.bits()));
        self.line(&format!(
            "@{inside} ld.{space}.{} {d}, [{address}]",
            T::TYPE.bits()
        ));
        d
    }

    /// An array of `len` elements that the block shares; its content at the start is unspecified.
    pub fn shared<T: PtxElement>(&mut self, len: u32) -> SharedArray<T> {
        let name = format!("shared_{}", self.shared.len());
        let bytes = u64::from(len) * u64::from(T::TYPE.bytes());
        self.shared
            .push(format!(".shared .align 16 .b8 {name}[{}]", bytes.max(1)));
        let base = self.register::<u32>();
        self.line(&format!("mov.u32 {base}, {name}"));
        let element = PhantomData;
        SharedArray { base, len, element }
    }

    fn shared_place<T: PtxElement>(&mut self, of: &SharedArray<T>, index: Reg<u32>) -> (Reg<bool>, Reg<u32>) {
        let len = self.constant(of.len);
        let inside = self.lt(index, len);
        let address = self.register::<u32>();
        let (base, bytes) = (of.base, T::TYPE.bytes());
        self.line(&format!("mad.lo.u32 {address}, {index}, {bytes}, {base}"));
        (inside, address)
    }

    /// An element of a shared array; 0 beyond the end.
    pub fn load_shared<T: PtxElement>(&mut self, from: &SharedArray<T>, index: Reg<u32>) -> Reg<T> {
        let (inside, address) = self.shared_place(from, index);
        self.load_at::<T>("shared", inside, &address.to_string())
    }

    /// Stores an element of a shared array; nothing beyond the end.
    pub fn store_shared<T: PtxElement>(&mut self, to: &SharedArray<T>, index: Reg<u32>, value: Reg<T>) {
        let (inside, address) = self.shared_place(to, index);
        self.line(&format!(
            "@{inside} st.shared.{} [{address}], {value}",
            T::TYPE.bits()
        ));
    }
}
