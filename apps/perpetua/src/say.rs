//! What the program says beside its results, on stderr: a stderr that is closed or full ends nothing, and a name that somebody else
//! chose does nothing to the terminal.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{Write, stderr};
use std::path::Path;

use perpetua_ir::plain::{misleads, plain, plain_but};

/// Says a line.
pub(crate) fn say(line: impl Display) {
    // Whoever closed it wants to hear nothing.
    let _ = writeln!(stderr(), "{}", shown(&line.to_string()));
}

/// A text with everything that is not text written out.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    plain_but(text, |c| matches!(c, '\n' | '\t'))
}

/// The same for a name, which has one line.
pub(crate) fn name(text: &str) -> String {
    plain(text).into_owned()
}

/// A file's name, as it is said.
pub(crate) fn file(path: impl AsRef<Path>) -> String {
    name(&path.as_ref().to_string_lossy())
}

/// Most characters of a name that are said.
const MOST_NAME: usize = 80;

/// The same, cut where it is very long.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_NAME) {
        Some((end, _)) => format!("{}… ({} bytes)", name(&text[..end]), text.len()),
        None => name(text),
    }
}

/// A file's name as a word of a command, to be copied into a shell: no option, in quotes where it must be.
pub(crate) fn word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = match text.starts_with('-') {
        true => Cow::Owned(format!("./{text}")),
        false => text,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    if !text.contains(misleads) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if misleads(c) => {
                let mut bytes = [0; 4];
                out.extend(
                    c.encode_utf8(&mut bytes)
                        .bytes()
                        .map(|byte| format!("\\x{byte:02x}")),
                );
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_command_the_terminal() {
        assert_eq!(
            shown("a\u{1b}[31mred\u{202e}\rx\nä"),
            "a\\u{1b}[31mred\\u{202e}\\rx\nä"
        );
        assert_eq!(name("two\nlines\u{7}"), "two\\nlines\\u{7}");
        assert!(matches!(shown("plain ü\n"), Cow::Borrowed(_)));
        assert_eq!(short("a\nb"), "a\\nb");
        assert_eq!(short(&"ü".repeat(80)), "ü".repeat(80));
        assert_eq!(short(&"ü".repeat(3000)), "ü".repeat(80) + "… (6000 bytes)");
    }
    #[test]
    #[cfg(unix)]
    fn a_shell_reads_a_word_as_the_name() {
        for (name, expect) in [
            ("state.bin", "state.bin"),
            ("/tmp/a_b-c/x.bin", "/tmp/a_b-c/x.bin"),
            ("-a.bin", "./-a.bin"),
            ("a b'c.bin", r"'a b'\''c.bin'"),
            ("$(x);*.bin", "'$(x);*.bin'"),
            ("~.bin", "'~.bin'"),
            ("", "''"),
            ("ü.bin", "'ü.bin'"),
            ("a\nb\\'.bin", r"$'a\nb\\\'.bin'"),
            ("\u{1b}[31m\u{202e}", r"$'\x1b[31m\xe2\x80\xae'"),
        ] {
            assert_eq!(word(Path::new(name)), expect);
            // Shells differ in what they know of the last kind.
            if !expect.starts_with('$') {
                let script = format!("printf %s {expect}");
                let output = std::process::Command::new("sh")
                    .args(["-c", &script])
                    .output()
                    .unwrap();
                let name = if name.starts_with('-') { "./-a.bin" } else { name };
                assert_eq!(String::from_utf8_lossy(&output.stdout), name);
            }
        }
    }
}
