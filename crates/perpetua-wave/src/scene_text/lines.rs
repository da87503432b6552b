//! The places of a scene's text: what is wrong there is said with its line and key. Must not know scenes.

use toml::Spanned;

use crate::error::{Error, Result};

/// A text and the places in it.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Text<'_> {
    pub(super) fn error<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        Err(self.located(at, message))
    }

    pub(super) fn located(&self, at: usize, message: impl Into<String>) -> Error {
        let before = self.0.get(..at).unwrap_or(self.0);
        Error::Text {
            line: before.matches('\n').count() + 1,
            message: message.into(),
        }
    }

    /// An error about a key of the table that begins at `table`: the message goes on behind the key's name.
    pub(super) fn wrong<T>(&self, table: usize, key: &str, message: impl std::fmt::Display) -> Result<T> {
        self.error(self.line_of(table, key), format!("`{key}` {message}"))
    }

    /// Where the line of a key begins in the table that begins at `table`, which is the answer where the key has no line of its own.
    fn line_of(&self, table: usize, key: &str) -> usize {
        let first = key.split('.').next().unwrap_or(key);
        let mut at = table;
        for line in self.0[table..].split_inclusive('\n') {
            let text = line.trim_start();
            let names = |c: char| c.is_alphabetic() || c == '_' || c == '"';
            if at > table && text.starts_with('[') && text.trim_start_matches('[').starts_with(names) {
                break;
            }
            if let Some(rest) = text.strip_prefix(first)
                && rest.trim_start().starts_with(['=', '.'])
            {
                return at;
            }
            at += line.len();
        }
        table
    }

    /// A number above zero.
    pub(super) fn above_zero(&self, key: &str, value: Option<&Spanned<f64>>) -> Result<Option<f64>> {
        match value.map(|v| (v.span().start, *v.get_ref())) {
            Some((at, v)) if !is_length(v) => self.error(at, format!("`{key}` {}", above_zero(v))),
            other => Ok(other.map(|(_, v)| v)),
        }
    }

    /// A point with as many coordinates as the scene has.
    pub(super) fn point(&self, at: usize, key: &str, p: &[f64], deep: bool) -> Result<[f64; 3]> {
        if let Some(x) = p.iter().find(|x| !x.is_finite()) {
            return self.wrong(at, key, format!("has a coordinate {x}; it must be a number"));
        }
        match (p, deep) {
            ([x, y], false) => Ok([*x, *y, 0.0]),
            ([x, y, z], true) => Ok([*x, *y, *z]),
            _ => self.wrong(
                at,
                key,
                format!(
                    "has {} coordinates; this scene has {}",
                    p.len(),
                    if deep { "three" } else { "two" }
                ),
            ),
        }
    }

    /// A point within the scene.
    pub(super) fn place(
        &self,
        at: usize,
        key: &str,
        p: &[f64],
        size: [f64; 3],
        deep: bool,
    ) -> Result<[f64; 3]> {
        let point = self.point(at, key, p, deep)?;
        if let Some((x, most)) = p.iter().zip(size).find(|(x, most)| !(0.0..=*most).contains(*x)) {
            return self.wrong(at, key, format!("is at {x}; the scene goes from 0 to {most}"));
        }
        Ok(point)
    }
}

pub(super) fn is_length(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// What is wrong with a number that is not [`is_length`].
pub(super) fn above_zero(value: f64) -> String {
    let must = if value == f64::INFINITY {
        "finite"
    } else {
        "above 0"
    };
    format!("is {value}; it must be {must}")
}
