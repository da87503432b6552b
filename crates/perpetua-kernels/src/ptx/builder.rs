//! Instructions that compute, compare and branch. Must not know memory.

use std::collections::BTreeSet;
use std::fmt::Display;

use perpetua_ir::ir::{Param, ParamKind};

use super::types::prefix;
use super::{
    OLDEST, PtxElement, PtxFloat, PtxInteger, PtxKernel, PtxNumber, PtxScalar, PtxType, Reg, identifier,
};

/// Writes the instructions of a kernel, in order: [`PtxKernel::build`] gives one.
///
/// ```
/// use perpetua::ptx::{PtxBuilder, PtxKernel, Reg};
///
/// fn square(k: &mut PtxBuilder, x: Reg<f32>) -> Reg<f32> {
///     k.mul(x, x)
/// }
///
/// let kernel = PtxKernel::build("squares", |k| {
///     let x = k.buffer_mut::<f32>("x");
///     let i = k.global_id_x();
///     let value = k.load(&x, i);
///     let squared = square(k, value);
///     k.store(&x, i, squared);
/// });
/// assert!(kernel.emit_ptx().contains("mul.rn.f32 %f"));
/// ```
#[derive(Debug)]
pub struct PtxBuilder {
    pub(super) params: Vec<Param>,
    registers: BTreeSet<(&'static str, u32, &'static str)>,
    pub(super) shared: Vec<String>,
    code: String,
    next: u32,
    labels: u32,
    sm: u32,
}

/// A register that is written again and again, as a loop's counter is.
#[derive(Debug)]
pub struct Var<T: PtxScalar>(Reg<T>);

/// Instructions of two operands of one type.
macro_rules! binary {
    ($($(#[$about:meta])* $name:ident: $bound:ident, $head:literal $(, $part:ident)?;)*) => {$(
        $(#[$about])*
        pub fn $name<T: $bound>(&mut self, a: Reg<T>, b: Reg<T>) -> Reg<T> {
            let d = self.register::<T>();
            let _middle = "";
            $(let _middle = T::$part;)?
            self.line(&format!(concat!($head, "{}.{} {}, {}, {}"), _middle, T::TYPE, d, a, b));
            d
        }
    )*};
}

/// Comparisons: false where a float is no number, but for `ne`.
macro_rules! compare {
    ($($(#[$about:meta])* $name:ident: $floats:literal;)*) => {$(
        $(#[$about])*
        pub fn $name<T: PtxNumber>(&mut self, a: Reg<T>, b: Reg<T>) -> Reg<bool> {
            let d = self.register::<bool>();
            let how = match T::TYPE {
                PtxType::F32 | PtxType::F64 => $floats,
                _ => stringify!($name),
            };
            self.line(&format!("setp.{how}.{} {d}, {a}, {b}", T::TYPE));
            d
        }
    )*};
}

/// Bits of integers.
macro_rules! bits {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        pub fn $name<T: PtxInteger>(&mut self, a: Reg<T>, b: Reg<T>) -> Reg<T> {
            let d = self.register::<T>();
            self.line(&format!("{}.{} {d}, {a}, {b}", stringify!($name), T::TYPE.bits()));
            d
        }
    )*};
}

/// What the launch gives each lane.
macro_rules! special {
    ($($(#[$about:meta])* $name:ident: $register:literal;)*) => {$(
        $(#[$about])*
        pub fn $name(&mut self) -> Reg<u32> {
            let d = self.register::<u32>();
            self.line(&format!(concat!("mov.u32 {}, ", $register), d));
            d
        }
    )*};
}

impl PtxBuilder {
    pub(super) fn new() -> PtxBuilder {
        PtxBuilder {
            params: Vec::new(),
            registers: BTreeSet::new(),
            shared: Vec::new(),
            code: String::new(),
            next: 0,
            labels: 0,
            sm: OLDEST,
        }
    }

    pub(super) fn finish(self, name: String) -> PtxKernel {
        PtxKernel {
            name,
            params: self.params,
            registers: self.registers,
            shared: self.shared,
            code: self.code,
            sm: self.sm,
        }
    }

    /// A fresh register.
    pub(super) fn register<T: PtxScalar>(&mut self) -> Reg<T> {
        let number = self.next;
        self.next += 1;
        self.registers.insert((prefix(T::TYPE), number, T::TYPE.bits()));
        Reg::new(number)
    }

    /// An instruction, as text.
    pub(super) fn line(&mut self, instruction: &dyn Display) {
        self.code.push_str(&format!("    {instruction};\n"));
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn place(&mut self, label: &str) {
        self.code.push_str(label);
        self.code.push_str(":\n");
    }

    /// An instruction that older generations lack.
    pub(super) fn needs(&mut self, sm: u32) {
        self.sm = self.sm.max(sm);
    }

    /// A name for the next parameter, different from all before.
    pub(super) fn named(&mut self, name: &str) -> String {
        let mut name = identifier(name);
        while self
            .params
            .iter()
            .any(|p| p.name == name || format!("{}_len", p.name) == name || format!("{name}_len") == p.name)
        {
            name.push('_');
        }
        name
    }

    /// The next parameter of the kernel: a value.
    pub fn param<T: PtxNumber>(&mut self, name: &str) -> Reg<T> {
        let name = self.named(name);
        let d = self.register::<T>();
        self.line(&format!("ld.param.{} {d}, [{name}]", T::TYPE));
        let kind = ParamKind::Value(<T as PtxElement>::element());
        self.params.push(Param { name, kind });
        d
    }

    /// A constant.
    pub fn constant<T: PtxElement>(&mut self, value: T) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("mov.{} {d}, {}", T::TYPE.bits(), value.literal()));
        d
    }

    special! {
        /// The lane's index in its block.
        thread_idx_x: "%tid.x";
        /// The same along y.
        thread_idx_y: "%tid.y";
        /// The block's index.
        block_idx_x: "%ctaid.x";
        /// The same along y.
        block_idx_y: "%ctaid.y";
        /// Lanes of a block.
        block_dim_x: "%ntid.x";
        /// The same along y.
        block_dim_y: "%ntid.y";
        /// Blocks of the grid.
        grid_dim_x: "%nctaid.x";
        /// The lane's index in its subgroup.
        subgroup_lane: "%laneid";
    }

    /// The lane's index in the grid.
    pub fn global_id_x(&mut self) -> Reg<u32> {
        let (block, size, lane) = (self.block_idx_x(), self.block_dim_x(), self.thread_idx_x());
        self.mad(block, size, lane)
    }

    binary! {
        /// Sum: integers wrap, floats are rounded to nearest and never fused.
        add: PtxNumber, "add", EXACT;
        /// Difference.
        sub: PtxNumber, "sub", EXACT;
        /// Product: the lower half of integers' products.
        mul: PtxNumber, "mul", LOW;
        /// Minimum: of a number and none the number.
        min: PtxNumber, "min";
        /// Maximum, likewise.
        max: PtxNumber, "max";
        /// Quotient of floats, rounded to nearest.
        div: PtxFloat, "div", EXACT;
    }

    bits! {
        /// Bitwise and.
        and;
        /// Bitwise or.
        or;
        /// Bitwise exclusive or.
        xor;
    }

    compare! {
        /// Whether equal.
        eq: "eq";
        /// Whether different.
        ne: "neu";
        /// Whether less.
        lt: "lt";
        /// Whether less or equal.
        le: "le";
        /// Whether greater.
        gt: "gt";
        /// Whether greater or equal.
        ge: "ge";
    }

    /// `a << by`; 0 where `by` is the width or more.
    pub fn shl<T: PtxInteger>(&mut self, a: Reg<T>, by: Reg<u32>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("shl.{} {d}, {a}, {by}", T::TYPE.bits()));
        d
    }

    /// `a >> by`, arithmetic for signed types.
    pub fn shr<T: PtxInteger>(&mut self, a: Reg<T>, by: Reg<u32>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("shr.{} {d}, {a}, {by}", T::TYPE));
        d
    }

    /// `a * b + c` of integers, which wraps.
    pub fn mad<T: PtxInteger>(&mut self, a: Reg<T>, b: Reg<T>, c: Reg<T>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("mad.lo.{} {d}, {a}, {b}, {c}", T::TYPE));
        d
    }

    /// `a * b + c` of floats, rounded once.
    pub fn fma<T: PtxFloat>(&mut self, a: Reg<T>, b: Reg<T>, c: Reg<T>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("fma.rn.{} {d}, {a}, {b}, {c}", T::TYPE));
        d
    }

    /// The square root, rounded to nearest.
    pub fn sqrt<T: PtxFloat>(&mut self, a: Reg<T>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("sqrt.rn.{} {d}, {a}", T::TYPE));
        d
    }

    /// `2` to the `a` by the hardware: within two units in the last place.
    pub fn ex2_approx(&mut self, a: Reg<f32>) -> Reg<f32> {
        let d = self.register::<f32>();
        self.line(&format!("ex2.approx.f32 {d}, {a}"));
        d
    }

    /// `a` where the condition holds, else `b`.
    pub fn select<T: PtxNumber>(&mut self, condition: Reg<bool>, a: Reg<T>, b: Reg<T>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("selp.{} {d}, {a}, {b}, {condition}", T::TYPE));
        d
    }

    /// Whether both hold.
    pub fn both(&mut self, a: Reg<bool>, b: Reg<bool>) -> Reg<bool> {
        let d = self.register::<bool>();
        self.line(&format!("and.pred {d}, {a}, {b}"));
        d
    }

    /// The nearest value of another type: floats to integers towards zero, as far as the type goes; integers lose their upper bits.
    pub fn convert<T: PtxElement, U: PtxElement>(&mut self, a: Reg<T>) -> Reg<U> {
        let d = self.register::<U>();
        let is_float = |ty| matches!(ty, PtxType::F16 | PtxType::Bf16 | PtxType::F32 | PtxType::F64);
        let (from, to) = (T::TYPE, U::TYPE);
        if from == to {
            self.line(&format!("mov.{} {d}, {a}", from.bits()));
            return d;
        }
        if from == PtxType::Bf16 || to == PtxType::Bf16 {
            // Only to and from `f32`, which all else passes through.
            return self.convert_bf16(a);
        }
        let how = match (is_float(from), is_float(to)) {
            (true, false) => ".rzi",
            (false, true) => ".rn",
            (true, true) if to.bytes() < from.bytes() => ".rn",
            _ => "",
        };
        self.line(&format!("cvt{how}.{to}.{from} {d}, {a}"));
        d
    }

    fn convert_bf16<T: PtxElement, U: PtxElement>(&mut self, a: Reg<T>) -> Reg<U> {
        let d = self.register::<U>();
        if T::TYPE == PtxType::Bf16 {
            // The upper half of an `f32`.
            let (zero, wide) = (self.constant(half::f16::ZERO), self.register::<f32>());
            self.line(&format!("mov.b32 {wide}, {{{zero}, {a}}}"));
            let value = self.convert::<f32, U>(wide);
            self.line(&format!("mov.{} {d}, {value}", U::TYPE.bits()));
        } else {
            self.needs(80);
            let wide = self.convert::<T, f32>(a);
            self.line(&format!("cvt.rn.bf16.f32 {d}, {wide}"));
        }
        d
    }

    /// A variable that begins with a value.
    pub fn var<T: PtxNumber>(&mut self, first: Reg<T>) -> Var<T> {
        let var = Var(self.register::<T>());
        self.set(&var, first);
        var
    }

    /// What a variable holds now.
    pub fn get<T: PtxNumber>(&mut self, var: &Var<T>) -> Reg<T> {
        let d = self.register::<T>();
        self.line(&format!("mov.{} {d}, {}", T::TYPE.bits(), var.0));
        d
    }

    /// Gives a variable a value.
    pub fn set<T: PtxNumber>(&mut self, var: &Var<T>, value: Reg<T>) {
        self.line(&format!("mov.{} {}, {value}", T::TYPE.bits(), var.0));
    }

    /// What `body` writes runs where the condition holds.
    pub fn when(&mut self, condition: Reg<bool>, body: impl FnOnce(&mut PtxBuilder)) {
        let end = self.label();
        self.line(&format!("@!{condition} bra {end}"));
        body(self);
        self.place(&end);
    }

    /// What `body` writes runs again and again while the condition holds, which is computed before each turn.
    pub fn repeat(
        &mut self,
        condition: impl FnOnce(&mut PtxBuilder) -> Reg<bool>,
        body: impl FnOnce(&mut PtxBuilder),
    ) {
        let (head, end) = (self.label(), self.label());
        self.place(&head);
        let goes_on = condition(self);
        self.line(&format!("@!{goes_on} bra {end}"));
        body(self);
        self.line(&format!("bra {head}"));
        self.place(&end);
    }

    /// The block's barrier. All lanes of the block must reach it.
    pub fn sync(&mut self) {
        self.line(&"bar.sync 0");
    }
}
