//! The globs through which a name is looked for, so that none is entered twice. Must not know what names mean.

/// Globs that lead through each other, at most: each may try all others.
const MAX_GLOBS: usize = 4;

/// A glob that a name is looked for through.
pub(super) struct Way<'a> {
    module: &'a [String],
    glob: &'a [String],
    before: Option<&'a Way<'a>>,
}

impl<'a> Way<'a> {
    pub(super) fn new(module: &'a [String], glob: &'a [String], before: Option<&'a Way<'a>>) -> Way<'a> {
        Way { module, glob, before }
    }

    /// Whether a module's glob lies on the way, or no more can.
    pub(super) fn has(way: Option<&Way<'_>>, module: &[String], glob: &[String]) -> bool {
        let all = std::iter::successors(way, |way| way.before);
        all.clone().any(|way| way.module == module && way.glob == glob) || all.count() >= MAX_GLOBS
    }
}
