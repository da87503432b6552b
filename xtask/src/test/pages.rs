//! The facade's documentation as its users build it, without the pages of other crates: every link of it leads to a page that is there.
//! rustdoc sees to links by names alone. Must not know what the pages say.

use crate::workspace::{cargo, metadata};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;
use xshell::{Shell, cmd};

/// What nobody here can mend: a page of all items that rustdoc promises at the root of a crate that is inlined, and links in the words of others on
/// what they add to every type: those of tracing, bytemuck and the standard library.
const OTHERS: [&str; 7] = [
    "all.html",
    "super::Subscriber",
    "super::Span::current()",
    "crate::Span",
    "dispatcher",
    "CheckedBitPattern::is_valid_bit_pattern",
    "nomicon/atomics.html",
];

/// Builds the facade's pages into an empty folder, for rustdoc links to what it finds there of other crates, and checks their links.
pub(super) fn facade(shell: &Shell) -> Result<()> {
    let folder = metadata()?.target_directory.into_std_path_buf().join("doc");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let cargo = cargo();
    cmd!(
        shell,
        "{cargo} doc --package perpetua --all-features --no-deps --quiet"
    )
    .env("RUSTDOCFLAGS", "-D warnings")
    .quiet()
    .run()?;
    let (links, dead) = dead_links(&folder.join("perpetua"))?;
    if links == 0 {
        bail!(
            "{} has no links: what was read is not the documentation",
            folder.display()
        );
    }
    println!("{links} links of the facade's pages, {} of them dead", dead.len());
    match dead.is_empty() {
        true => Ok(()),
        false => bail!("dead links:\n{}", dead.join("\n")),
    }
}

/// How many links pages have that lead to other pages beside them, and those that lead nowhere.
fn dead_links(folder: &Path) -> Result<(usize, Vec<String>)> {
    let (mut links, mut dead) = (0, Vec::new());
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "html") {
            continue;
        }
        let page = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for link in page
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            let Some(target) = target(path, link) else {
                continue;
            };
            links += 1;
            if !target.exists() && !OTHERS.iter().any(|end| target.ends_with(end)) {
                let page = path.strip_prefix(folder).unwrap_or(path);
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok((links, dead))
}

/// The file that a link of a page means; none where it leads to another host, or stays on the page.
fn target(page: &Path, link: &str) -> Option<PathBuf> {
    let file = link.split(['#', '?']).next().filter(|file| !file.is_empty())?;
    // Of a script's text, not of the page.
    if file.contains("${") {
        return None;
    }
    let is_elsewhere = ["http:", "https:", "mailto:", "data:", "javascript:"];
    if is_elsewhere.iter().any(|scheme| file.starts_with(scheme)) {
        return None;
    }
    Some(page.parent()?.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let folder = std::env::temp_dir().join(format!("perpetua-pages-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/index.html"), "<a href=\"b/c.html#x\">c</a>").unwrap();
        let page = "<a href=\"../index.html\"><a href=\"../../no/d.html\"><a href=\"#here\"><a href=\"https://x.y/z\"><a href=\"crate::Span\">";
        fs::write(folder.join("a/b/c.html"), page).unwrap();
        let found = dead_links(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let c = Path::new("a/b/c.html").display();
        assert_eq!(found, (4, vec![format!("{c}: ../../no/d.html")]));
    }
}
