//! Rust source with everything but code blanked out, so that rules can search it as text.

/// The source with each character of comments and of literals' contents replaced by a space. Lines stay.
pub(super) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let (length, is_code) = piece(rest, c, code.chars().next_back());
        let (piece, after) = rest.split_at(length);
        if is_code {
            code.push_str(piece);
        } else {
            code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    code
}

/// The length of the next piece and whether it is code.
fn piece(rest: &str, first: char, before: Option<char>) -> (usize, bool) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if first == '"' {
        return (quoted(rest, '"'), false);
    }
    if !in_word && let Some(length) = raw_string(rest) {
        return (length, false);
    }
    if first == '\'' && is_character(rest) {
        return (quoted(rest, '\''), false);
    }
    (first.len_utf8(), true)
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return place + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// The length of a raw string (`r"…"`, `br#"…"#`), if one begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let hashes = prefix.len() - prefix.trim_start_matches('#').len();
    let body = prefix[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opened = rest.len() - body.len();
    Some(
        body.find(&close)
            .map_or(rest.len(), |end| opened + end + close.len()),
    )
}

/// Whether a quote opens a character, not a lifetime or a label.
fn is_character(rest: &str) -> bool {
    let mut after = rest.chars().skip(1);
    matches!(
        (after.next(), after.next()),
        (Some('\\'), _) | (Some(_), Some('\''))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let check = |source: &str, expect: &str| assert_eq!(code_only(source), expect);
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ \n d */ e", "a              \n      e");
        check(r#"f("x \" y", 'z', '\'')"#, "f(        ,    ,     )");
        check(r##"g(r#"a "b" c"#, var"")"##, "g(            , var  )");
        check("fn h<'a>(x: &'a str) {}", "fn h<'a>(x: &'a str) {}");
    }
}
