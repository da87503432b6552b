//! Which of a module's globs are followed for a path.

/// Those of `globs` that may lead to the path. The head of a glob's path may come from another glob, and not from one that is
/// itself looked up so: globs that lead out of the file would lead in a circle.
pub(super) fn that_may_lead<'a>(
    globs: Option<&'a Vec<Vec<String>>>,
    segments: &[String],
) -> impl Iterator<Item = &'a Vec<String>> {
    let globs = globs.map_or(&[][..], Vec::as_slice);
    let behind = |segments: &[String]| globs.iter().find(|glob| segments.starts_with(glob));
    let within = behind(segments);
    let twice = within
        .and_then(|glob| segments.get(glob.len()..))
        .is_some_and(|rest| behind(rest).is_some());
    globs.iter().filter(move |glob| !twice && within != Some(*glob))
}
