//! Names that were misspelt. Must not know of what.

/// A hint at the name that was meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let distance = |other: &str| -> usize {
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in name.bytes().enumerate() {
            let mut before = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in other.bytes().enumerate() {
                let here = row[j + 1];
                row[j + 1] = (before + usize::from(a != b)).min(row[j] + 1).min(here + 1);
                before = here;
            }
        }
        row[other.len()]
    };
    let near = |other: &&str| other.len().abs_diff(name.len()) <= 1 + name.len() / 4;
    let best = known
        .filter(|_| name.len() <= 64)
        .filter(near)
        .take(1000)
        .map(|other| (distance(other), other))
        .min()?;
    (best.0 <= 1 + name.len() / 4).then(|| format!("did you mean `{}`?", best.1))
}
