//! Names for generated code: the source's own, made into identifiers, each given once. Knows nothing of types.
//!
//! What the source calls its things must not meet what else stands in a text: the language's words, its library's
//! functions, the renderer's own variables. Two ways keep them apart.
//!
//! *Marked* names start with a letter and end in an underscore. No language's word, no library's function and no word of the
//! renderers does both (`Module::text` checks the latter in every text that it joins), so the two sets are disjoint whatever
//! the source says.
//! *Bare* names are those of the source, for text that people read and paste; they are clear of a list of words.
//!
//! Either way no name is given twice: each is taken when it is given, and a number is tried until the name is free. That
//! `a`, `a_` and a second `a` differ, and that a thing called `a1` differs from the second `a`, follows from this alone. Names
//! that are made from given ones (`x_len`) are given here too, never put together by a renderer. Neither kind starts with an
//! underscore or holds two together, which belong to implementations.

use std::collections::{HashMap, HashSet};

/// Gives each thing its own name.
#[derive(Clone, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
    /// The next number to try for a name that was taken.
    next: HashMap<String, u32>,
    marked: bool,
}

impl Names {
    /// Names that end in an underscore.
    pub(crate) fn marked() -> Names {
        Names {
            marked: true,
            ..Names::default()
        }
    }

    /// Names as they are in the source, but never one of `words`.
    pub(crate) fn bare<'a>(words: impl IntoIterator<Item = &'a str>) -> Names {
        Names {
            taken: words.into_iter().map(str::to_owned).collect(),
            ..Names::default()
        }
    }

    /// Whether a name is given or is a word that never is.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// Whether these names are marked, and `word` looks like one of them.
    pub(crate) fn are_like(&self, word: &str) -> bool {
        self.marked && word.ends_with('_') && !word.starts_with('_')
    }

    /// `wanted` as an identifier, with a number if it is taken.
    pub(crate) fn give(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mark = if self.marked { "_" } else { "" };
        let name = format!("{base}{mark}");
        if self.taken.insert(name.clone()) {
            return name;
        }
        let digit = base.ends_with(|c: char| c.is_ascii_digit());
        let gap = if digit { "_" } else { "" };
        let next = self.next.entry(name).or_insert(0);
        loop {
            *next += 1;
            let numbered = format!("{base}{gap}{next}{mark}");
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// Letters, digits and single underscores between them, a letter first.
fn identifier(wanted: &str) -> String {
    let mut name: String = wanted
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    name = name.trim_matches('_').to_owned();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of names that are given in turn.
    fn check(mut names: Names, given: &[(&str, &str)]) {
        for (wanted, expect) in given {
            assert_eq!(names.give(wanted), *expect);
        }
    }

    #[test]
    fn names_are_identifiers_and_differ() {
        check(
            Names::bare(["float"]),
            &[
                ("x", "x"),
                ("x", "x1"),
                ("x1", "x1_1"),
                ("float", "float1"),
                ("__a__b", "a_b"),
                ("0", "v0"),
                ("_", "v"),
            ],
        );
    }

    #[test]
    fn marked_names_end_in_an_underscore_and_differ() {
        check(
            Names::marked(),
            &[
                ("x", "x_"),
                ("x_", "x1_"),
                ("x1", "x1_1_"),
                ("x__len", "x_len_"),
                ("float", "float_"),
                ("_", "v_"),
            ],
        );
    }
}
