//! What is said of a scene's text. Must not know scenes.

/// Of a table of the wrong kind whose head stands at `at`: how to write it.
pub(super) fn header(text: &str, at: usize) -> Option<String> {
    let (before, text) = text.split_at_checked(at)?;
    if !before.lines().next_back().is_none_or(|_| before.ends_with('\n')) {
        return None;
    }
    let name = text.strip_prefix('[')?;
    let line = name.lines().next()?;
    // A list of numbers may stand in a line of its own.
    if !line
        .trim_start_matches('[')
        .starts_with(|c: char| c.is_alphabetic() || "_\"".contains(c))
    {
        return None;
    }
    Some(
        match line.strip_prefix('[').and_then(|line| line.split_once("]]")) {
            Some((name, _)) => format!("`{name}` is one table: write [{name}]"),
            None => {
                let (name, _) = line.split_once(']')?;
                format!("there may be several of `{name}`: write [[{name}]]")
            }
        },
    )
}

/// The key whose value begins at `at`.
pub(super) fn key_of(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?.rsplit_once('=')?.0.trim_end();
    let key = before
        .rsplit(|c: char| !(c.is_alphanumeric() || "_-".contains(c)))
        .next()?;
    (!key.is_empty()).then_some(key)
}

/// What the parser says, with a writer of scenes' words for types.
pub(super) fn plain(message: &str) -> String {
    let mut text = message.trim().to_owned();
    for (theirs, ours) in [
        (" as i128", ""),
        (" as i64", ""),
        (" as u128", ""),
        (": map,", ": a table,"),
        ("expected a sequence", "expected a list"),
        ("expected f64", "expected a number"),
        ("expected i64", "expected a whole number"),
        ("expected a borrowed string", "expected a text"),
        ("expected a string", "expected a text"),
        ("expected struct ", "expected a table for "),
        ("floating point `", "number `"),
        ("invalid type: ", "the type is wrong: "),
        ("invalid value: ", "the value is wrong: "),
        ("invalid length ", "the length is wrong: "),
        ("MaterialText", "a material"),
        ("ShapeText", "a shape"),
        ("SourceText", "a source"),
        ("ProbeText", "a probe"),
        ("SceneText", "a scene"),
        ("BoxText", "a box"),
        ("DiscText", "a disc"),
        ("LensText", "a lens"),
    ] {
        text = text.replace(theirs, ours);
    }
    text
}
