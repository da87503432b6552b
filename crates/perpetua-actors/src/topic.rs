//! Names of topics, and patterns over them: levels with `/` between them. `+` and `*` stand for one level, `#` at the end for any
//! number of levels, none included. Must not know who subscribes.

use std::fmt;
use std::sync::Arc;

use crate::error::{ActorError, Result};

/// Bytes that a topic has at most.
const LONGEST: usize = 1024;

/// A topic, or a pattern of topics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The topic or pattern `text`. Whether it is one is found out where it is used: see [`Topic::check`].
    pub fn new(text: impl AsRef<str>) -> Topic {
        Topic(text.as_ref().into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for more than itself.
    pub fn is_pattern(&self) -> bool {
        self.levels().any(|level| matches!(level, "+" | "*" | "#"))
    }

    /// An error unless it is a topic or a pattern.
    pub fn check(&self) -> Result<()> {
        self.cause().map_or(Ok(()), |cause| Err(self.error(cause)))
    }

    /// An error unless it is a topic, and no pattern: what can be published to.
    pub fn check_name(&self) -> Result<()> {
        self.check()?;
        if self.is_pattern() {
            return Err(self.error("patterns can be subscribed to, not published to: name every level"));
        }
        Ok(())
    }

    /// Whether this pattern stands for `topic`; without wildcards, whether the two are the same.
    pub fn matches(&self, topic: &Topic) -> bool {
        let (mut pattern, mut levels) = (self.levels(), topic.levels());
        loop {
            match (pattern.next(), levels.next()) {
                (Some("#"), _) | (None, None) => return true,
                (Some("+" | "*"), Some(_)) => {}
                (Some(wanted), Some(level)) if wanted == level => {}
                _ => return false,
            }
        }
    }

    fn levels(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    pub(crate) fn error(&self, cause: &'static str) -> ActorError {
        ActorError::Topic {
            topic: self.0.chars().take(LONGEST).collect(),
            cause,
        }
    }

    fn cause(&self) -> Option<&'static str> {
        if self.0.is_empty() {
            return Some("it is empty");
        }
        if self.0.len() > LONGEST {
            return Some("it is longer than 1024 bytes");
        }
        if self.0.contains(char::is_control) {
            return Some("it has a control character in it");
        }
        let mut levels = self.levels().peekable();
        while let Some(level) = levels.next() {
            match level {
                "" => return Some("it has an empty level: no `/` first, last, or beside another"),
                "#" if levels.peek().is_some() => return Some("`#` must be the last level"),
                "#" | "+" | "*" => {}
                _ if level.contains(['#', '+', '*']) => {
                    return Some("`+`, `*` and `#` stand for whole levels: put `/` around them");
                }
                _ => {}
            }
        }
        None
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Topic {
    fn from(text: &str) -> Topic {
        Topic::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Topic;

    #[test]
    fn levels_match() {
        let check = |pattern: &str, topic: &str, expected: bool| {
            assert_eq!(
                Topic::new(pattern).matches(&Topic::new(topic)),
                expected,
                "{pattern} {topic}"
            );
        };
        for (pattern, topic, expected) in [
            ("a/b", "a/b", true),
            ("a/b", "a/c", false),
            ("a/b", "a", false),
            ("a", "a/b", false),
            ("sensors/+/temperature", "sensors/room1/temperature", true),
            ("sensors/*/temperature", "sensors/room1/temperature", true),
            ("sensors/+/temperature", "sensors/temperature", false),
            ("sensors/+/temperature", "sensors/a/b/temperature", false),
            ("sensors/+", "sensors/a/b", false),
            ("events/#", "events/a/b/c", true),
            ("events/#", "events", true),
            ("events/#", "event", false),
            ("#", "anything/at/all", true),
            ("+/+/#", "a/b", true),
            ("+/+/#", "a", false),
            ("+", "a", true),
        ] {
            check(pattern, topic, expected);
        }
    }

    #[test]
    fn what_is_no_topic_says_why() {
        let long = "a".repeat(1025);
        let check = |text: &str, cause: Option<&str>| {
            let error = Topic::new(text).check().err().map(|error| error.to_string());
            assert_eq!(error.is_some(), cause.is_some(), "{text}: {error:?}");
            let told = error.as_deref().unwrap_or("");
            assert!(told.contains(cause.unwrap_or("")), "{text}: {told}");
        };
        for (text, cause) in [
            ("a", None),
            ("a b/ä", None),
            ("#", None),
            ("+/*/#", None),
            ("", Some("is empty")),
            ("/a", Some("empty level")),
            ("a/", Some("empty level")),
            ("a//b", Some("empty level")),
            ("a/#/b", Some("last level")),
            ("a/b#", Some("whole levels")),
            ("a+/b", Some("whole levels")),
            ("a\n", Some("control character")),
            (&long, Some("longer")),
        ] {
            check(text, cause);
        }
        assert!(Topic::new("a/+").check_name().is_err());
        assert!(Topic::new("a/b").check_name().is_ok());
    }
}
