//! The formats, and which one a file has by its name.

use serde::{Deserialize, Serialize};

/// How a config text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON as it is defined.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// YAML, one document.
    Yaml,
    /// TOML.
    Toml,
    /// Sections with keys.
    Ini,
    /// `NAME=value` lines.
    Env,
}

/// JSON files in which their programs take comments.
const WITH_COMMENTS: [&str; 8] = [
    "jsconfig.json",
    "devcontainer.json",
    ".eslintrc.json",
    ".eslintrc",
    ".swcrc",
    ".babelrc",
    "deno.json",
    "launch.json",
];

/// Files that are INI by their name.
const INI_NAMES: [&str; 7] = [
    ".gitconfig",
    ".gitmodules",
    ".editorconfig",
    ".npmrc",
    "my.cnf",
    "pip.conf",
    "supervisord.conf",
];

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] = [
        Self::Json,
        Self::Jsonc,
        Self::Yaml,
        Self::Toml,
        Self::Ini,
        Self::Env,
    ];

    /// The format that a file of this name has, if the name tells.
    pub fn of_file(path: &str) -> Option<Self> {
        let path = path.replace('\\', "/");
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let name = name.to_ascii_lowercase();
        let in_directory =
            |wanted: &str| directory == wanted || directory.ends_with(&format!("/{wanted}"));
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        if extension == "env" || name.starts_with(".env.") {
            return Some(Self::Env);
        }
        if INI_NAMES.contains(&name.as_str()) || (name == "config" && in_directory(".git")) {
            return Some(Self::Ini);
        }
        if WITH_COMMENTS.contains(&name.as_str()) {
            return Some(Self::Jsonc);
        }
        let with_comments =
            in_directory(".vscode") || stem == "tsconfig" || stem.starts_with("tsconfig.");
        match extension {
            "json" if with_comments => Some(Self::Jsonc),
            "json" | "webmanifest" => Some(Self::Json),
            "jsonc" | "code-workspace" => Some(Self::Jsonc),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            "ini" | "cfg" | "cnf" | "service" | "timer" | "socket" | "desktop" => Some(Self::Ini),
            _ => None,
        }
    }

    /// The name of the format, as people give it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonc => "jsonc",
            Self::Yaml => "yaml",
            Self::Toml => "toml",
            Self::Ini => "ini",
            Self::Env => "env",
        }
    }

    /// The format of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}
