//! No link of the documents leads nowhere: every file that is named exists, and so does every heading.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::run::root;

/// Chapters that are made when the site is built.
const MADE: [&str; 2] = ["docs/reference/cli.md", "docs/reference/http.md"];

/// Checks the links of every document of the project.
pub(crate) fn check() -> Result<(), String> {
    let root = root();
    let mut documents = files(&root, "md");
    documents.retain(|path| !is_data(path));
    let texts: HashMap<PathBuf, String> = documents
        .into_iter()
        .filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text)))
        .collect();
    let mut wrong = Vec::new();
    for (path, text) in &texts {
        for link in links_of(text) {
            if let Some(why) = flaw_of(&root, path, link, &texts) {
                let name = path.strip_prefix(&root).unwrap_or(path).display();
                wrong.push(format!("{name}: `{link}` {why}"));
            }
        }
    }
    verdict(wrong)
}

/// Checks the links between the pages of the site.
pub(crate) fn check_pages(site: &Path) -> Result<(), String> {
    let mut wrong = Vec::new();
    for page in files(site, "html") {
        let text = fs::read_to_string(&page).map_err(|error| error.to_string())?;
        for link in attributes_of(&text) {
            let target = link.split(['#', '?']).next().unwrap_or_default();
            let is_ours = !target.is_empty() && !target.contains(':') && !target.starts_with("//");
            // A page that is not found has the address of whatever was looked for, so its links begin at the root.
            let is_lost = page.file_name().is_some_and(|name| name == "404.html");
            if is_ours && !is_lost && !beside(&page, target).exists() {
                wrong.push(format!("{}: `{link}` is not there", page.display()));
            }
        }
    }
    verdict(wrong)
}

fn verdict(mut wrong: Vec<String>) -> Result<(), String> {
    wrong.sort();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Tells whether a document is somebody else's, kept as it was found.
fn is_data(path: &Path) -> bool {
    let mut parts = path.components();
    parts
        .any(|part| matches!(part, Component::Normal(name) if name == "data" || name == "fixtures"))
}

fn flaw_of(
    root: &Path,
    document: &Path,
    link: &str,
    texts: &HashMap<PathBuf, String>,
) -> Option<&'static str> {
    if link.is_empty() || link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = if target.is_empty() {
        document.to_path_buf()
    } else {
        beside(document, target)
    };
    let name = path.strip_prefix(root).unwrap_or(&path);
    if MADE.iter().any(|made| Path::new(made) == name) {
        return None;
    }
    if !path.exists() {
        return Some("is not there");
    }
    let text = texts.get(&path)?;
    let is_found = heading.is_empty() || headings_of(text).any(|it| it == heading);
    (!is_found).then_some("has no such heading")
}

/// Gives the path that a link of a document means.
fn beside(document: &Path, target: &str) -> PathBuf {
    let mut path = document.parent().unwrap_or(document).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// Lists the targets of the links in a Markdown text, but for those in code.
fn links_of(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let prose = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    prose.flat_map(|line| {
        let outside = line.split('`').step_by(2);
        outside.flat_map(|piece| {
            piece
                .split("](")
                .skip(1)
                .filter_map(|it| it.split(')').next())
        })
    })
}

/// Names the headings of a Markdown text as links do.
fn headings_of(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter_map(|line| {
        let name = line.trim_start_matches('#');
        (name.len() < line.len() && name.starts_with(' ')).then(|| name.trim())
    });
    headings.map(|name| {
        let lower = name.to_lowercase();
        let kept = lower
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Lists what the attributes `href` and `src` of a page name.
fn attributes_of(page: &str) -> impl Iterator<Item = &str> {
    let values = ["href=\"", "src=\""];
    values.into_iter().flat_map(move |name| {
        page.split(name)
            .skip(1)
            .filter_map(|it| it.split('"').next())
    })
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_ours = name != "target" && name != "node_modules" && !name.starts_with('.');
        if path.is_dir() && is_ours {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_are_no_links() {
        let text = "see [a](b.md#c) and `[x](y)`\n```\n[d](e)\n```\n[f](g)";
        assert_eq!(links_of(text).collect::<Vec<_>>(), ["b.md#c", "g"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_told() {
        let scratch = std::env::temp_dir().join(format!("backout-links-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let (here, there) = (scratch.join("a.md"), scratch.join("b.md"));
        fs::write(&there, "# Keys of `x`\n").unwrap();
        let texts = HashMap::from([(there.clone(), fs::read_to_string(&there).unwrap())]);
        let flaw = |link| flaw_of(&scratch, &here, link, &texts);
        assert_eq!(flaw("b.md"), None);
        assert_eq!(flaw("b.md#keys-of-x"), None);
        assert_eq!(flaw("b.md#keys"), Some("has no such heading"));
        assert_eq!(flaw("c.md"), Some("is not there"));
        assert_eq!(flaw("docs/reference/cli.md"), None);
        fs::remove_dir_all(&scratch).unwrap();
    }
}
