//! `Option` and `Result` as the parts that they are: whether it is `Some` or `Ok`, and what each variant holds.

use perpetua_syntax::Variant;

use super::tree::Pat;

/// The payload's index among the parts of an `Option` or a `Result`: the first is whether it is `Some` or `Ok`.
pub(super) fn part(variant: Variant) -> (bool, Option<u32>) {
    match variant {
        Variant::Some | Variant::Ok => (true, Some(1)),
        Variant::None => (false, None),
        Variant::Err => (false, Some(2)),
    }
}
/// A variant's pattern, over its parts.
pub(super) fn variant_pat(variant: Variant, payload: Pat) -> Pat {
    let (good, _) = part(variant);
    let tag = Pat::Range(Some(i128::from(good)), Some(i128::from(good)));
    Pat::Tuple(match variant {
        Variant::Some => vec![tag, payload],
        Variant::None => vec![tag, Pat::Wild],
        Variant::Ok => vec![tag, payload, Pat::Wild],
        Variant::Err => vec![tag, Pat::Wild, payload],
    })
}
