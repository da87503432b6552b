//! The dialects that are C: what is left for each to say, and how the rest follows.

use super::c::{self, CNames};
use super::dialect::Dialect;
use super::expr::Expr;
use super::module::Module;
use super::writer::{Spot, Writer};
use crate::ir::{AtomicOp, Base, Builtin, DeviceOp, PrintPiece, Scalar, Sync, Type};
use crate::ops::{BinaryOp, DeviceRow, TernaryOp, UnaryOp};

/// A dialect of C. Methods called as those of [`Dialect`] mean what they mean there.
pub(crate) trait CDialect: CNames {
    /// Operators of one operand that this dialect writes in its own way.
    fn own_unary(&self, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr>;

    /// Operators of two operands that this dialect writes in its own way.
    fn own_binary(&self, op: BinaryOp, s: Scalar, a: &Expr, b: &Expr) -> Option<Expr>;

    /// Casts other than among integers and to wide floats.
    fn own_cast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr>;

    /// `x * y + z`, rounded once.
    fn fma(&self, s: Scalar, args: &[Expr]) -> Option<Expr>;

    fn bitcast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr;

    fn builtin(&self, m: &Module<'_>, b: Builtin) -> Expr;

    fn length(&self, w: &mut Writer<'_>, base: Base, s: Scalar) -> Expr;

    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr;

    fn store(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr, sync: Option<Sync>);

    fn atomic(&self, w: &mut Writer<'_>, op: AtomicOp, spot: &Spot, value: &Expr, sync: Sync) -> Expr;

    fn compare_exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        sync: Sync,
    ) -> Expr;

    fn words(&self, row: &DeviceRow) -> Option<&'static str>;

    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr>;

    /// What device function `f` is passed behind the scenes.
    fn hidden_arguments(&self, m: &Module<'_>, f: u32) -> Vec<String>;

    fn print(&self, w: &mut Writer<'_>, site: u32, pieces: &[PrintPiece], args: &[(Scalar, Expr)]);

    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]);
}

impl<T: CDialect> Dialect for T {
    fn constant(&self, m: &Module<'_>, ty: &Type, name: &str, value: &str) -> String {
        format!("const {} {name} = {value};", c::type_name(self, m, ty))
    }

    fn variable(&self, m: &Module<'_>, ty: &Type, flat: u32, name: &str, value: Option<&str>) -> String {
        let declared = c::declarator(self, m, ty, flat, name);
        match value {
            Some(value) => format!("{declared} = {value}"),
            None => declared,
        }
    }

    fn literal(&self, _: &Module<'_>, s: Scalar, bits: u64) -> Expr {
        c::literal(self, s, bits)
    }

    fn zero(&self, m: &Module<'_>, ty: &Type) -> Expr {
        match ty {
            Type::Scalar(s) => c::literal(self, *s, 0),
            _ => Expr::whole(format!("{}{{}}", c::type_name(self, m, ty))),
        }
    }

    fn unary(&self, w: &mut Writer<'_>, op: UnaryOp, s: Scalar, a: &Expr) -> Option<Expr> {
        if c::is_in_place(op, s) {
            return c::in_place(self, w, op, s, a);
        }
        self.own_unary(op, s, a).or_else(|| c::unary(self, op, s, a))
    }

    fn binary(
        &self,
        _: &mut Writer<'_>,
        op: BinaryOp,
        (s, t): (Scalar, Scalar),
        a: &Expr,
        b: &Expr,
    ) -> Option<Expr> {
        self.own_binary(op, s, a, b)
            .or_else(|| c::binary(self, op, (s, t), a, b))
    }

    fn ternary(&self, w: &mut Writer<'_>, op: TernaryOp, s: Scalar, args: [&Expr; 3]) -> Option<Expr> {
        match op {
            TernaryOp::Fma => self.fma(s, &args.map(Clone::clone)),
            _ => c::ternary(self, w, op, s, args),
        }
    }

    fn select(&self, _: &Module<'_>, ty: &Type, c: &Expr, a: &Expr, b: &Expr) -> Expr {
        c::select(self, ty, c, a, b)
    }

    fn cast(&self, w: &mut Writer<'_>, from: Scalar, to: Scalar, a: &Expr) -> Option<Expr> {
        c::cast(self, from, to, a).or_else(|| self.own_cast(w.m, from, to, a))
    }

    fn bitcast(&self, m: &Module<'_>, from: Scalar, to: Scalar, a: &Expr) -> Expr {
        let kept_as_bits = |s: Scalar| s.is_int() || s.size() == 2;
        if kept_as_bits(from) && kept_as_bits(to) {
            // f16 and bf16 are kept as the bits of a u16.
            let bits = |s: Scalar| if s.is_float() { Scalar::U16 } else { s };
            return c::cast(self, bits(from), bits(to), a).unwrap_or_else(|| a.clone());
        }
        CDialect::bitcast(self, m, from, to, a)
    }

    fn compose(&self, m: &Module<'_>, ty: &Type, parts: &[Expr]) -> Expr {
        c::compose(self, m, ty, parts)
    }

    fn list(&self, elements: &[Expr]) -> Option<String> {
        let texts: Vec<&str> = elements.iter().map(|e| e.text.as_str()).collect();
        Some(format!("{{{}}}", texts.join(", ")))
    }

    fn component(&self, m: &Module<'_>, ty: &Type, flat: bool, i: u32) -> String {
        c::component(m, ty, flat, i)
    }

    fn element(&self, _: &Module<'_>, _: &Type, index: &Expr, _: Scalar, flat: bool) -> String {
        c::element(index, flat)
    }

    fn builtin(&self, m: &Module<'_>, b: Builtin) -> Expr {
        CDialect::builtin(self, m, b)
    }

    fn param(&self, m: &Module<'_>, index: u32) -> Expr {
        Expr::whole(m.params.get(index as usize).map_or("", String::as_str))
    }

    fn length(&self, w: &mut Writer<'_>, base: Base, s: Scalar) -> Expr {
        CDialect::length(self, w, base, s)
    }

    fn load(&self, w: &mut Writer<'_>, spot: &Spot, sync: Option<Sync>) -> Expr {
        CDialect::load(self, w, spot, sync)
    }

    fn store(&self, w: &mut Writer<'_>, spot: &Spot, value: &Expr, sync: Option<Sync>) {
        CDialect::store(self, w, spot, value, sync);
    }

    fn atomic(
        &self,
        w: &mut Writer<'_>,
        op: AtomicOp,
        spot: &Spot,
        value: &Expr,
        sync: Sync,
        _: bool,
    ) -> Expr {
        CDialect::atomic(self, w, op, spot, value, sync)
    }

    fn compare_exchange(
        &self,
        w: &mut Writer<'_>,
        spot: &Spot,
        expected: &Expr,
        new: &Expr,
        sync: Sync,
        _: bool,
    ) -> Expr {
        CDialect::compare_exchange(self, w, spot, expected, new, sync)
    }

    fn words(&self, row: &DeviceRow) -> Option<&'static str> {
        CDialect::words(self, row)
    }

    fn device(&self, w: &mut Writer<'_>, op: DeviceOp, s: Scalar, args: &[Expr]) -> Option<Expr> {
        CDialect::device(self, w, op, s, args)
    }

    fn call(&self, m: &Module<'_>, f: u32, args: &[Expr]) -> Expr {
        let mut all = args.to_vec();
        all.extend(self.hidden_arguments(m, f).into_iter().map(Expr::whole));
        let name = m.functions.get(f as usize).map_or("", String::as_str);
        Expr::call(name, &all).at_run_time()
    }

    fn discard(&self, _: &Type, value: &Expr) -> String {
        format!("{};", value.text)
    }

    fn print(&self, w: &mut Writer<'_>, site: u32, pieces: &[PrintPiece], args: &[(Scalar, Expr)]) {
        CDialect::print(self, w, site, pieces, args);
    }

    fn fault(&self, w: &mut Writer<'_>, site: u32, operands: &[(Scalar, Expr)]) {
        CDialect::fault(self, w, site, operands);
    }

    fn endless(&self) -> &'static str {
        "for (;;)"
    }

    fn needs_exits(&self) -> bool {
        false
    }

    fn case(&self, _: &Module<'_>, s: Scalar, labels: &[u64]) -> String {
        c::case(self, s, labels)
    }

    fn breaks_cases(&self) -> bool {
        true
    }

    fn switches_on(&self, _: Scalar) -> bool {
        true
    }

    fn natural(&self, _: &Module<'_>, s: Scalar, e: Expr) -> Expr {
        c::natural(self, s, e)
    }
}
