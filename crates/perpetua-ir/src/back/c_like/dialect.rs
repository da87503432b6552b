//! What the C-like targets do differently. The writer asks a dialect for types, operations, accesses and
//! declarations; what is alike it knows itself.

use super::expr::Expr;
use super::module::Module;
use super::writer::{Spot, Writer};
use crate::ir::{AtomicOp, Base, Builtin, DeviceOp, PrintPiece, Scalar, Sync, Type};
use crate::ops::{BinaryOp, DeviceRow, TernaryOp, UnaryOp};

/// A C-like language.
pub(crate) trait Dialect {
    /// Declares a value that never changes.
    fn constant(&self, m: &Module<'_>, ty: &Type, name: &str, value: &str) -> String;

    /// Declares a variable (without the final `;`); of its array levels, the outer `flat` are never touched as a
    /// whole.
    fn variable(&self, m: &Module<'_>, ty: &Type, flat: u32, name: &str, value: Option<&str>) -> String;

    /// A scalar constant.
    fn literal(&self, m: &Module<'_>, s: Scalar, bits: u64) -> Expr;

    /// All bits zero.
    fn zero(&self, m: &Module<'_>, ty: &Type) -> Expr;

    /// An operator of one operand of type `s`.
    fn unary(&self, w: &mut Writer<'_>, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr>;

    /// An operator of two operands of types `s` and `second`.
    fn binary(
        &self,
        w: &mut Writer<'_>,
        op: BinaryOp,
        types: (Scalar, Scalar),
        a: &Expr,
        b: &Expr,
    ) -> Option<Expr>;

    /// An operator of three operands of type `s`; not `select`.
    fn ternary(&self, w: &mut Writer<'_>, op: TernaryOp, s: Scalar, args: [&Expr; 3]) -> Option<Expr>;

    /// `c ? a : b`.
    fn select(&self, m: &Module<'_>, ty: &Type, c: &Expr, a: &Expr, b: &Expr) -> Expr;

    /// Rust's `as` between different types.
    fn cast(&self, w: &mut Writer<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr>;

    /// The same bits at another type.
    fn bitcast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr;

    /// An aggregate from its components.
    fn compose(&self, m: &Module<'_>, ty: &Type, parts: &[Expr]) -> Expr;

    /// The elements of a plain array as an initialiser (none: zeros); `None` where arrays are values.
    fn list(&self, elements: &[Expr]) -> Option<String>;

    /// What follows an aggregate of type `ty` to reach component `i`; for arrays, whether the level is flat.
    fn component(&self, m: &Module<'_>, ty: &Type, flat: bool, i: u32) -> String;

    /// What follows an array (of type `array`) to reach the element at an index of type `s`.
    fn element(&self, m: &Module<'_>, array: &Type, index: &Expr, s: Scalar, flat: bool) -> String;

    /// A value that the launch supplies.
    fn builtin(&self, m: &Module<'_>, b: Builtin) -> Expr;

    /// A value parameter.
    fn param(&self, m: &Module<'_>, index: u32) -> Expr;

    /// Number of elements, as `u32` or `u64`.
    fn length(&self, w: &mut Writer<'_>, base: Base, s: Scalar) -> Expr;

    /// An access to anything but a local variable.
    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr;

    /// A load of the block's memory, at a constant place, that gives all lanes one value ([`Block::met_loads`](crate::ir::Block::met_loads)),
    /// where a language must be told.
    fn load_met(&self, _w: &mut Writer<'_>, _spot: &Spot) -> Option<Expr> {
        None
    }

    /// Writes to anything but a local variable.
    fn store(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr, sync: Option<Sync>);

    /// A read-modify-write; gives the old value. `used`: whether anybody wants it.
    fn atomic(
        &self,
        w: &mut Writer<'_>,
        op: AtomicOp,
        spot: &Spot,
        value: &Expr,
        sync: Sync,
        used: bool,
    ) -> Expr;

    /// A strong compare-and-exchange; gives the old value.
    fn compare_exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        sync: Sync,
        used: bool,
    ) -> Expr;

    /// The words for an operation of the device, if its row has them.
    fn words(&self, row: &DeviceRow) -> Option<&'static str>;

    /// An operation of the device for which the row has no words, with a first operand of type `s`: its value, or the statement for one
    /// that gives none. `None` for what the target lacks a capability for.
    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr>;

    /// The call of device function `f`.
    fn call(&self, m: &Module<'_>, f: u32, args: &[Expr]) -> Expr;

    /// A statement for its effect alone.
    fn discard(&self, ty: &Type, value: &Expr) -> String;

    /// Prints.
    fn print(&self, w: &mut Writer<'_>, site: u32, pieces: &[PrintPiece], args: &[(Scalar, Expr)]);

    /// Reports a fault with up to two integer operands.
    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]);

    /// The head of an endless loop.
    fn endless(&self) -> &'static str;

    /// Whether an endless loop must show a way out.
    fn needs_exits(&self) -> bool;

    /// The head of one branch of a switch: labels of type `s`, or none for the default.
    fn case(&self, m: &Module<'_>, s: Scalar, labels: &[u64]) -> String;

    /// Whether a switch branch must end in `break`.
    fn breaks_cases(&self) -> bool;

    /// Whether a switch can choose by this type.
    fn switches_on(&self, s: Scalar) -> bool;

    /// Brings a signed value in unsigned form to its own type.
    fn natural(&self, m: &Module<'_>, s: Scalar, e: Expr) -> Expr;
}
