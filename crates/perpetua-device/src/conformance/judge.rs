//! Tells right results of operators from wrong ones, by the table's bounds and what the device's probe found. Knows
//! nothing of how results were computed.

use perpetua_ir::ir::Scalar;
use perpetua_ir::math::eval_unary_wide;
use perpetua_ir::ops::{TernaryOp, UnaryOp};

use super::operators::Map;
use crate::info::NumericProbe;

/// Units in the last place that a device whose probe is not exact gets on top of an operator's own bound.
const INEXACT_SLACK: u64 = 4;

// Bits of a float's mantissa.
fn mantissa(s: Scalar) -> Option<u32> {
    match s {
        Scalar::F16 => Some(10),
        Scalar::BF16 => Some(7),
        Scalar::F32 => Some(23),
        Scalar::F64 => Some(52),
        _ => None,
    }
}

fn magnitude(s: Scalar, bits: u64) -> u64 {
    bits & ((1 << (s.bits() - 1)) - 1)
}

fn is_nan(s: Scalar, bits: u64) -> bool {
    mantissa(s).is_some_and(|m| {
        magnitude(s, bits) >> m == (1 << (s.bits() - 1 - m)) - 1 && bits & ((1 << m) - 1) != 0
    })
}

fn is_subnormal(s: Scalar, bits: u64) -> bool {
    let magnitude_bits = magnitude(s, bits);
    mantissa(s).is_some_and(|m| magnitude_bits != 0 && magnitude_bits >> m == 0)
}

fn is_zero(s: Scalar, bits: u64) -> bool {
    s.is_float() && magnitude(s, bits) == 0
}

// What a device that flushes may take an operand for: itself, and zero of either sign if it is subnormal.
fn readings(s: Scalar, bits: u64) -> Vec<u64> {
    match is_subnormal(s, bits) {
        true => vec![bits, 0, 1 << (s.bits() - 1)],
        false => vec![bits],
    }
}

// Every row that can be read for `row`.
fn rows_read(operands: &[Scalar], row: &[u64]) -> Vec<Vec<u64>> {
    let mut rows = vec![Vec::new()];
    for (s, bits) in operands.iter().zip(row) {
        let longer = |row: &Vec<u64>| {
            let one = |v| row.iter().copied().chain([v]).collect();
            readings(*s, *bits).into_iter().map(one).collect::<Vec<_>>()
        };
        rows = rows.iter().flat_map(longer).collect();
    }
    rows
}

// Numbers of a float type between two.
fn distance(s: Scalar, a: u64, b: u64) -> u64 {
    let order = |bits: u64| {
        let m = i128::from(magnitude(s, bits));
        if m == i128::from(bits) { m } else { -m }
    };
    (order(a) - order(b)).unsigned_abs() as u64
}

/// Tells right results from wrong ones. Where the probe did not find that denormals are kept, any result counts that
/// is reached by taking some subnormal operands, or the result, for zeros of any sign; all else is as on exact devices,
/// but for some units in the last place.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    /// What was computed.
    pub map: Map,
    /// Of operands of which type.
    pub s: Scalar,
    /// What the device's probe found.
    pub probe: NumericProbe,
}

impl Judge {
    /// Whether `found` is right for the operands `row`.
    pub fn accepts(&self, row: &[u64], found: u64) -> bool {
        let (map, s) = (self.map, self.s);
        if matches!(map, Map::Bitcast(_)) && row.iter().any(|v| is_nan(s, *v)) {
            // The payload may be lost on the way.
            return true;
        }
        let operands = map.operands(s);
        let rows = match self.flushes() {
            true => rows_read(&operands, row),
            false => vec![row.to_vec()],
        };
        if rows.iter().any(|row| self.right(row, found)) {
            return true;
        }
        // To a device that reads subnormals as zeros they are all equal, and it may choose any of them.
        // And any function may hand on a subnormal operand where zero is right.
        self.flushes()
            && is_subnormal(s, found)
            && row.contains(&found)
            && rows.iter().any(|row| self.right(row, 0))
    }

    fn flushes(&self) -> bool {
        self.probe.keeps_denormals != Some(true)
    }

    // Whether `found` is right for operands that are read as they are.
    fn right(&self, row: &[u64], found: u64) -> bool {
        let right = |e| self.near(e, found, self.places(row, e).unwrap_or(1));
        self.map.eval(self.s, row).is_some_and(right)
    }

    // How many last places of the result the table takes for one, where it is not one: below zero, where `lgamma` has zeros.
    fn places(&self, row: &[u64], expect: u64) -> Option<u64> {
        let number = |bits| Map::Cast(Scalar::F64).eval(self.s, &[bits]).map(f64::from_bits);
        let x = number(*row.first()?)?;
        if self.map != Map::Unary(UnaryOp::Lgamma) || x.is_nan() || x >= 0.0 {
            return None;
        }
        let own = number(expect)?.abs().max(f64::MIN_POSITIVE);
        let large = own.max(eval_unary_wide(UnaryOp::Lgamma, 1.0 - x)?);
        Some((2.0 * (large.log2().floor() - own.log2().floor()).exp2()) as u64)
    }

    fn near(&self, expect: u64, found: u64, places: u64) -> bool {
        let r = self.map.result(self.s);
        if expect == found || is_nan(r, expect) && is_nan(r, found) {
            return true;
        }
        if !r.is_float() || is_nan(r, expect) || is_nan(r, found) {
            return false;
        }
        if self.map.chooses() && is_zero(r, expect) && is_zero(r, found) {
            return true;
        }
        let bound = self.bound().saturating_mul(places);
        // A right result that is subnormal may be flushed.
        if self.flushes() && is_zero(r, found) {
            let least = magnitude(r, expect).saturating_sub(bound);
            if !is_zero(r, expect) && (least == 0 || is_subnormal(r, least)) {
                return true;
            }
        }
        bound > 0 && distance(r, expect, found) <= bound
    }

    // Numbers of the result's type that it may be away.
    fn bound(&self) -> u64 {
        // In formats narrower than f32 the bound of that rounds to the next number at most.
        let own = u64::from(self.map.exactness().ulps(self.s));
        let own = if self.map.result(self.s).size() < 4 {
            own.min(1)
        } else {
            own
        };
        let moves = matches!(self.map, Map::Bitcast(_) | Map::Ternary(TernaryOp::Select));
        let slack = if self.probe.is_exact() || moves {
            0
        } else {
            INEXACT_SLACK
        };
        own + slack
    }
}

#[cfg(test)]
mod tests {
    use perpetua_ir::ops::BinaryOp;

    use super::*;

    #[test]
    fn the_judge_tells_right_from_wrong() {
        let check = |map, probe, row: &[f32], found: f32, expect: bool| {
            let judge = Judge {
                map,
                s: Scalar::F32,
                probe,
            };
            let row: Vec<u64> = row.iter().map(|v| u64::from(v.to_bits())).collect();
            assert_eq!(
                judge.accepts(&row, u64::from(found.to_bits())),
                expect,
                "{map:?} {row:x?} {found}"
            );
        };
        let (exact, unknown) = (NumericProbe::EXACT, NumericProbe::default());
        let add = Map::Binary(BinaryOp::Add);
        check(add, exact, &[1.0, 2.0], 3.0, true);
        check(add, exact, &[1.0, 2.0], 3.0f32.next_up(), false);
        check(add, unknown, &[1.0, 2.0], 3.0f32.next_up(), true);
        check(add, unknown, &[1.0, 2.0], 3.1, false);
        check(add, exact, &[1e-40, 0.0], 0.0, false);
        check(add, unknown, &[1e-40, 0.0], 0.0, true);
        check(add, exact, &[f32::INFINITY, f32::NEG_INFINITY], -f32::NAN, true);
        check(add, unknown, &[f32::INFINITY, f32::NEG_INFINITY], 0.0, false);
        check(add, exact, &[0.0, 0.0], -0.0, false);
        let (min, div) = (Map::Binary(BinaryOp::Min), Map::Binary(BinaryOp::Div));
        check(min, exact, &[0.0, -0.0], 0.0, true);

        // A device that rounds rightly but flushes: some operands, the result, to zeros of any sign, and nothing else.
        let flushes = NumericProbe {
            keeps_denormals: Some(false),
            ..exact
        };
        check(add, flushes, &[1e-40, f32::MIN_POSITIVE], f32::MIN_POSITIVE, true);
        check(add, flushes, &[1e-40, 2e-40], 2e-40, true);
        check(add, flushes, &[1e-40, 2e-40], -0.0, true);
        check(add, flushes, &[1e-40, 2e-40], 4e-40, false);
        check(add, flushes, &[1.0, 1e-40], 0.0, false);
        check(div, flushes, &[1.0, 1e-40], f32::NEG_INFINITY, true);
        check(div, flushes, &[1e-40, 1e-40], f32::NAN, true);
        check(div, flushes, &[1e-40, 1e-40], 1.5, false);
        check(min, flushes, &[1e-40, 2e-40], 2e-40, true);
        check(min, flushes, &[1e-40, 1.0], 1.0, false);
        check(min, flushes, &[-1.0, 1e-40], 1e-40, false);
        check(min, exact, &[1e-40, 2e-40], 2e-40, false);
        check(min, flushes, &[-1e-40, 3.0], 0.0, true);
        // A product is not flushed before the sum.
        let (fma, row) = (Map::Ternary(TernaryOp::Fma), [1e-20, 1e-20, -2e-38]);
        check(fma, flushes, &row, -2e-38, false);
        // Below zero the error of `lgamma` counts beside that of lgamma(1 - x).
        let lgamma = Map::Unary(UnaryOp::Lgamma);
        for (x, places, expect) in [
            (-2.5f32, 200, true),
            (-2.5, 300, false),
            (2.5, 4, true),
            (2.5, 5, false),
        ] {
            let right = perpetua_ir::math::eval_unary(UnaryOp::Lgamma, x).unwrap_or(f32::NAN);
            check(
                lgamma,
                exact,
                &[x],
                f32::from_bits(right.to_bits() + places),
                expect,
            );
        }
    }
}
