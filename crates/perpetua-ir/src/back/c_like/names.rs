//! Names for generated code: the source's own where they are free, else with a number. Knows nothing of types.

use std::collections::HashSet;

/// Gives each thing its own name, clear of the target's words.
#[derive(Clone, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// No names yet, but those in `reserved` are never given.
    pub(crate) fn new<'a>(reserved: impl IntoIterator<Item = &'a str>) -> Names {
        Names {
            taken: reserved.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Whether a name is given or reserved.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// `wanted` as an identifier, with a number if it is taken.
    pub(crate) fn give(&mut self, wanted: &str) -> String {
        let mut name: String = wanted
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        // Names that start with two underscores, or hold them, belong to implementations.
        while name.contains("__") {
            name = name.replace("__", "_");
        }
        if name.starts_with('_') || name.ends_with('_') {
            name = name.trim_matches('_').to_owned();
        }
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, 'v');
        }
        if self.taken.insert(name.clone()) {
            return name;
        }
        if name.ends_with(|c: char| c.is_ascii_digit()) {
            name.push('_');
        }
        let mut n = 1u32;
        loop {
            let numbered = format!("{name}{n}");
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
            n += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        let mut names = Names::new(["float"]);
        let check = |names: &mut Names, wanted: &str, expect: &str| assert_eq!(names.give(wanted), expect);
        check(&mut names, "x", "x");
        check(&mut names, "x", "x1");
        check(&mut names, "x1", "x1_1");
        check(&mut names, "float", "float1");
        check(&mut names, "__a__b", "a_b");
        check(&mut names, "0", "v0");
        check(&mut names, "_", "v");
    }
}
