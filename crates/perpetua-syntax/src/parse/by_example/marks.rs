//! Marks of the names in a macro's body, which say of which expansion they are.

use proc_macro2::{Ident, Literal, TokenTree};

const MARK: &str = "__m";
/// A name of the body of the expansion of this number.
pub(super) fn marked(expansion: u32, name: &str) -> String {
    format!("{MARK}{expansion}_{name}")
}

/// The expansion and the name without its mark; `None` where it has none.
pub(super) fn parts(text: &str) -> Option<(u32, &str)> {
    let (number, name) = text.strip_prefix(MARK)?.split_once('_')?;
    number.parse().ok().map(|number| (number, name))
}

/// A name without its marks.
pub(super) fn plain(text: &str) -> &str {
    match parts(text) {
        Some((_, name)) => plain(name),
        None => text,
    }
}

/// Whether a name in a macro's body may be a local's.
pub(super) fn may_be_local(ident: &Ident) -> bool {
    let text = ident.to_string();
    let first = text.chars().next();
    first.is_some_and(|c| c.is_lowercase() || c == '_')
        && parts(&text).is_none()
        && !text.starts_with("r#")
        && syn::parse2::<Ident>(TokenTree::from(ident.clone()).into()).is_ok()
}

/// The text of a literal in which the names that a format takes from around it are changed.
pub(super) fn formatted(literal: &Literal, mut change: impl FnMut(&str) -> Option<String>) -> Literal {
    let text = literal.to_string();
    if !text.starts_with('"') || !text.contains('{') {
        return literal.clone();
    }
    let (mut made, mut rest) = (String::new(), text.as_str());
    while let Some((before, behind)) = rest.split_once('{') {
        made.push_str(before);
        made.push('{');
        rest = behind;
        if let Some(behind) = rest.strip_prefix('{') {
            made.push('{');
            rest = behind;
            continue;
        }
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(0);
        let (name, behind) = rest.split_at(end);
        if behind.starts_with(['}', ':'])
            && let Some(changed) = change(name)
        {
            made.push_str(&changed);
            rest = behind;
        }
    }
    made.push_str(rest);
    match made.parse::<Literal>() {
        Ok(mut changed) => {
            changed.set_span(literal.span());
            changed
        }
        Err(_) => literal.clone(),
    }
}
