//! The traits of the standard library that kernels know.

/// The traits of the standard library that kernels know, each with its functions. A user's type may be called like a trait, so
/// a path is a trait's only where the function is, too.
pub const STD_TRAITS: [(&str, &[&str]); 33] = [
    ("Add", &["add"]),
    ("Sub", &["sub"]),
    ("Mul", &["mul"]),
    ("Div", &["div"]),
    ("Rem", &["rem"]),
    ("BitAnd", &["bitand"]),
    ("BitOr", &["bitor"]),
    ("BitXor", &["bitxor"]),
    ("Shl", &["shl"]),
    ("Shr", &["shr"]),
    ("AddAssign", &["add_assign"]),
    ("SubAssign", &["sub_assign"]),
    ("MulAssign", &["mul_assign"]),
    ("DivAssign", &["div_assign"]),
    ("RemAssign", &["rem_assign"]),
    ("BitAndAssign", &["bitand_assign"]),
    ("BitOrAssign", &["bitor_assign"]),
    ("BitXorAssign", &["bitxor_assign"]),
    ("ShlAssign", &["shl_assign"]),
    ("ShrAssign", &["shr_assign"]),
    ("Neg", &["neg"]),
    ("Not", &["not"]),
    ("Index", &["index"]),
    ("IndexMut", &["index_mut"]),
    ("PartialEq", &["eq", "ne"]),
    ("PartialOrd", &["partial_cmp", "lt", "le", "gt", "ge"]),
    ("Ord", &["cmp", "max", "min", "clamp"]),
    ("Default", &["default"]),
    ("From", &["from"]),
    ("TryFrom", &["try_from"]),
    ("Into", &["into"]),
    ("Iterator", &["next"]),
    ("Clone", &["clone"]),
];

/// The functions of the standard library's trait of this name that kernels know; none of other names.
#[must_use]
pub fn operator_functions(of_trait: &str) -> &'static [&'static str] {
    STD_TRAITS
        .iter()
        .find(|(name, _)| *name == of_trait)
        .map_or(&[], |(_, functions)| functions)
}
