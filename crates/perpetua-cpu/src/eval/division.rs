//! Divisions that may fault, found without looking at lanes one by one. Knows no other operator.

use perpetua_ir::ir::Scalar;

use super::lanes::{Line, WORD, Words};

/// Whether a lane of a word that the mask touches divides by zero or, where it has a sign, overflows.
macro_rules! suspect_of {
    ($t:ty, $m:ident, $a:ident, $b:ident) => {{
        let mut any = false;
        let (a, b) = (Words::<$t>::of($a), Words::<$t>::of($b));
        for (w, m) in $m.iter().enumerate() {
            if let (true, Some(a), Some(b)) = (*m != 0, a.get(w), b.get(w)) {
                let mut bad = false;
                for i in 0..WORD {
                    bad |= b[i] == 0 || (<$t>::MIN != 0 && b[i] == !0 && a[i] == <$t>::MIN);
                }
                any |= bad;
            }
        }
        any
    }};
}

/// Whether any lane of a word that the mask touches divides by zero or overflows; lanes outside the mask count too,
/// so a true answer needs a closer look.
#[inline(always)]
pub(super) fn division_suspect(s: Scalar, m: &[u64], a: &[Line], b: &[Line]) -> bool {
    match s {
        Scalar::I8 => suspect_of!(i8, m, a, b),
        Scalar::I16 => suspect_of!(i16, m, a, b),
        Scalar::I32 => suspect_of!(i32, m, a, b),
        Scalar::I64 => suspect_of!(i64, m, a, b),
        Scalar::Bool | Scalar::U8 => suspect_of!(u8, m, a, b),
        Scalar::U16 => suspect_of!(u16, m, a, b),
        Scalar::U32 => suspect_of!(u32, m, a, b),
        _ => suspect_of!(u64, m, a, b),
    }
}
