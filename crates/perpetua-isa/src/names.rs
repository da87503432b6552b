//! Words that are no names: registers, predicates and constants. Knows nothing of the places where they stand.

/// The number of a register or predicate.
pub(crate) fn numbered(word: &str, prefix: char) -> Option<u8> {
    let digits = word.strip_prefix(prefix)?;
    let plain = digits == "0" || !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// Whether a word is a constant.
pub(crate) fn is_constant(word: &str) -> bool {
    matches!(word, "true" | "false" | "inf" | "NaN" | "nan")
}

/// Whether the text form takes a name for a register, a predicate or a constant.
pub(crate) fn is_reserved(name: &str) -> bool {
    is_constant(name) || ['r', 'p'].iter().any(|prefix| numbered(name, *prefix).is_some())
}
