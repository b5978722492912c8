//! The formats, and which one a file has.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Format {
    /// JSON as RFC 8259 has it.
    Json,
    /// JSON with comments and trailing commas.
    JsonWithComments,
    /// YAML, one or several documents.
    Yaml,
    /// TOML.
    Toml,
    /// XML 1.0, well-formed.
    Xml,
    /// Sections with `key = value` lines: INI, systemd units, desktop entries, git's config.
    Ini,
    /// `NAME=value` lines.
    Env,
    /// Scripts of sh and bash.
    Shell,
    /// SQL of PostgreSQL, MySQL or SQLite.
    Sql,
    /// HCL, as Terraform and Packer have it.
    Hcl,
    /// Dockerfile and Containerfile.
    Dockerfile,
    /// Python 2 or 3.
    Python,
    /// JavaScript, JSX too.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// C.
    C,
}

/// JSON files in which their programs take comments.
const WITH_COMMENTS: [&str; 10] = [
    "jsconfig.json",
    "devcontainer.json",
    ".devcontainer.json",
    ".eslintrc.json",
    ".eslintrc",
    ".swcrc",
    ".babelrc",
    "deno.json",
    "launch.json",
    "api-extractor.json",
];

/// Files that are INI by their name.
const INI_NAMES: [&str; 8] = [
    ".gitconfig",
    ".gitmodules",
    ".editorconfig",
    ".flake8",
    ".pylintrc",
    "my.cnf",
    "pip.conf",
    "supervisord.conf",
];

/// Endings of files that are made into other files: what they hold is no format yet.
const TEMPLATES: [&str; 9] = [
    ".j2",
    ".jinja",
    ".jinja2",
    ".tmpl",
    ".tpl",
    ".template",
    ".erb",
    ".in",
    ".mustache",
];

impl Format {
    /// All formats.
    pub const ALL: [Self; 18] = [
        Self::Json,
        Self::JsonWithComments,
        Self::Yaml,
        Self::Toml,
        Self::Xml,
        Self::Ini,
        Self::Env,
        Self::Shell,
        Self::Sql,
        Self::Hcl,
        Self::Dockerfile,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Rust,
        Self::Go,
        Self::C,
    ];

    /// The name of the format, as `backout.toml` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonWithComments => "jsonc",
            Self::Yaml => "yaml",
            Self::Toml => "toml",
            Self::Xml => "xml",
            Self::Ini => "ini",
            Self::Env => "env",
            Self::Shell => "shell",
            Self::Sql => "sql",
            Self::Hcl => "hcl",
            Self::Dockerfile => "dockerfile",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Tsx => "tsx",
            Self::Rust => "rust",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// The format of a file, by its name and its first bytes. Nothing if that leaves a doubt.
    ///
    /// A build without the grammars of programming languages knows no source code.
    pub fn of(path: &Path, head: &[u8]) -> Option<Self> {
        let format = match (of_path(path), of_first_line(head)) {
            // A script that bears the ending of another language may be both, or neither.
            (Some(named), Some(run)) if named != run => return None,
            (Some(format), _) | (None, Some(format)) => format,
            (None, None) => of_sections(path, head)?,
        };
        let is_template = format == Self::Yaml && is_template(path, head);
        let is_known = cfg!(feature = "code") || !format.is_code();
        (is_known && !is_template).then_some(format)
    }

    /// Whether this is a programming language, read by a grammar.
    pub const fn is_code(self) -> bool {
        match self {
            Self::Python
            | Self::JavaScript
            | Self::TypeScript
            | Self::Tsx
            | Self::Rust
            | Self::Go
            | Self::C => true,
            Self::Json
            | Self::JsonWithComments
            | Self::Yaml
            | Self::Toml
            | Self::Xml
            | Self::Ini
            | Self::Env
            | Self::Shell
            | Self::Sql
            | Self::Hcl
            | Self::Dockerfile => false,
        }
    }
}

fn of_path(path: &Path) -> Option<Format> {
    let written = path.file_name()?.to_string_lossy();
    let name = written.to_ascii_lowercase();
    let name = name.as_str();
    let directory = path.parent().and_then(Path::file_name).unwrap_or_default();
    if TEMPLATES.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    // `dockerfile.vim` is about them, `Dockerfile.dev` is one.
    let has_stage =
        |written: &str| written.starts_with("Dockerfile.") || written.starts_with("Containerfile.");
    let is_other = matches!(ending, "dockerignore" | "md" | "txt" | "bak" | "orig");
    if matches!(name, "dockerfile" | "containerfile")
        || matches!(ending, "dockerfile" | "containerfile")
        || has_stage(&written) && !is_other
    {
        return Some(Format::Dockerfile);
    }
    if name == ".env" || name.starts_with(".env.") || ending == "env" {
        return Some(Format::Env);
    }
    if INI_NAMES.contains(&name) || (name == "config" && directory == ".git") {
        return Some(Format::Ini);
    }
    let is_of_editor = directory == ".vscode" && ending == "json";
    let is_of_compiler = (stem == "tsconfig" || stem.starts_with("tsconfig.")) && ending == "json";
    if WITH_COMMENTS.contains(&name) || is_of_editor || is_of_compiler {
        return Some(Format::JsonWithComments);
    }
    if matches!(
        name,
        ".bashrc" | ".bash_profile" | ".bash_aliases" | ".bash_logout" | ".profile"
    ) {
        return Some(Format::Shell);
    }
    of_ending(ending)
}

fn of_ending(ending: &str) -> Option<Format> {
    Some(match ending {
        "json" | "webmanifest" | "geojson" => Format::Json,
        "jsonc" | "code-workspace" => Format::JsonWithComments,
        "yaml" | "yml" => Format::Yaml,
        "toml" => Format::Toml,
        "xml" | "xsd" | "xsl" | "xslt" | "svg" | "plist" | "csproj" | "pom" | "xhtml" => {
            Format::Xml
        }
        "ini" | "service" | "timer" | "socket" | "mount" | "automount" | "target" | "path"
        | "slice" | "network" | "netdev" | "nspawn" | "desktop" => Format::Ini,
        "sh" | "bash" => Format::Shell,
        "sql" => Format::Sql,
        "tf" | "tfvars" | "hcl" => Format::Hcl,
        "py" | "pyi" => Format::Python,
        "js" | "mjs" | "cjs" | "jsx" => Format::JavaScript,
        "ts" | "mts" | "cts" => Format::TypeScript,
        "tsx" => Format::Tsx,
        "rs" => Format::Rust,
        "go" => Format::Go,
        "c" | "h" => Format::C,
        _ => return None,
    })
}

/// Files like `x.conf` may be anything. They are INI if a section is the first thing that they have.
fn of_sections(path: &Path, head: &[u8]) -> Option<Format> {
    let ending = path.extension()?.to_str()?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']))?;
    let is_header = first.starts_with('[') && first.ends_with(']');
    (matches!(ending, "cfg" | "cnf" | "conf") && is_header).then_some(Format::Ini)
}

/// The format that a line like `#!/bin/sh` tells.
fn of_first_line(head: &[u8]) -> Option<Format> {
    let line = head
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let is_option = |word: &&str| word.starts_with('-') || word.contains('=');
    let first = words.next()?;
    let program = if first.ends_with("/env") {
        words.find(|word| !is_option(word))?
    } else {
        first
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match plain {
        "sh" | "bash" | "dash" | "ash" => Some(Format::Shell),
        "python" | "pypy" => Some(Format::Python),
        "node" | "nodejs" => Some(Format::JavaScript),
        _ => None,
    }
}

/// Whether a YAML file is a template of a chart or a playbook, which is YAML only when it is filled in.
fn is_template(path: &Path, head: &[u8]) -> bool {
    let lies_among_them = path
        .components()
        .any(|part| part.as_os_str() == "templates");
    lies_among_them && head.windows(2).any(|pair| matches!(pair, b"{{" | b"{%"))
}

/// The name of a format that there is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
        write!(
            f,
            "there is no format `{}`; there are {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownFormat {}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl TryFrom<String> for Format {
    type Error = UnknownFormat;

    fn try_from(name: String) -> Result<Self, UnknownFormat> {
        name.parse()
    }
}

impl From<Format> for String {
    fn from(format: Format) -> Self {
        format.name().to_owned()
    }
}
