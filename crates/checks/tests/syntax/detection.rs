//! Which format a file has, by its name and its first line.

use std::path::Path;

use backout_checks::syntax::Format;

#[test]
fn names_tell_formats() {
    for (path, format) in [
        ("a.json", "json"),
        ("package.json", "json"),
        ("tsconfig.json", "jsonc"),
        ("x/tsconfig.app.json", "jsonc"),
        (".vscode/settings.json", "jsonc"),
        ("a.jsonc", "jsonc"),
        ("a.yaml", "yaml"),
        ("A.YML", "yaml"),
        ("Cargo.toml", "toml"),
        ("a.xml", "xml"),
        ("logo.svg", "xml"),
        ("a.ini", "ini"),
        ("x.service", "ini"),
        ("x.desktop", "ini"),
        (".editorconfig", "ini"),
        (".gitconfig", "ini"),
        (".git/config", "ini"),
        (".env", "env"),
        (".env.local", "env"),
        ("prod.env", "env"),
        ("a.sh", "shell"),
        (".bashrc", "shell"),
        ("a.sql", "sql"),
        ("main.tf", "hcl"),
        ("x.tfvars", "hcl"),
        ("x.hcl", "hcl"),
        ("Dockerfile", "dockerfile"),
        ("Dockerfile.dev", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("app.Dockerfile", "dockerfile"),
    ] {
        assert_eq!(
            Format::of(Path::new(path), b"").map(Format::name),
            Some(format),
            "{path}"
        );
    }
}

#[cfg(feature = "code")]
#[test]
fn names_tell_languages() {
    for (path, format) in [
        ("a.py", "python"),
        ("a.js", "javascript"),
        ("a.mjs", "javascript"),
        ("a.ts", "typescript"),
        ("a.tsx", "tsx"),
        ("a.rs", "rust"),
        ("a.go", "go"),
        ("a.c", "c"),
        ("a.h", "c"),
    ] {
        assert_eq!(
            Format::of(Path::new(path), b"").map(Format::name),
            Some(format),
            "{path}"
        );
    }
    let script = |head: &[u8]| Format::of(Path::new("run"), head).map(Format::name);
    assert_eq!(script(b"#!/usr/bin/env python3\n"), Some("python"));
    assert_eq!(script(b"#!/usr/bin/python2.7 -u\n"), Some("python"));
    assert_eq!(script(b"#!/usr/bin/env node\n"), Some("javascript"));
}

#[test]
fn a_doubt_is_no_format() {
    for path in [
        "README.md",
        "a.txt",
        "Makefile",
        "a.conf",
        "a.cfg",
        "config",
        "Dockerfile.j2",
        ".env.tmpl",
        "a.yaml.tpl",
        "Dockerfile.dockerignore",
        "x",
        "a.in",
        "dockerfile.md",
    ] {
        assert_eq!(Format::of(Path::new(path), b"text\n"), None, "{path}");
    }
}

#[test]
fn the_first_lines_tell_what_a_name_does_not() {
    let of = |path: &str, head: &[u8]| Format::of(Path::new(path), head).map(Format::name);
    assert_eq!(of("run", b"#!/bin/sh\n"), Some("shell"));
    assert_eq!(of("run", b"#!/usr/bin/env -S bash -e\n"), Some("shell"));
    assert_eq!(of("run", b"#! /bin/dash\n"), Some("shell"));
    assert_eq!(of("run.py", b"#!/usr/bin/env bash\n"), None);
    assert_eq!(of("run", b"#!/usr/bin/perl\n"), None);
    assert_eq!(of("run", b"#!/bin/zsh\n"), None);
    assert_eq!(of("a.conf", b"# c\n\n[a]\nb = c\n"), Some("ini"));
    assert_eq!(of("a.conf", b"server {\n"), None);
    assert_eq!(of("setup.cfg", b"[metadata]\n"), Some("ini"));
}

#[test]
fn templates_of_charts_are_no_yaml_yet() {
    let head = b"a: {{ .Values.x }}\n";
    assert_eq!(Format::of(Path::new("chart/templates/a.yaml"), head), None);
    assert_eq!(
        Format::of(Path::new("chart/templates/a.yaml"), b"a: 1\n"),
        Some(Format::Yaml)
    );
    assert_eq!(Format::of(Path::new("a.yaml"), head), Some(Format::Yaml));
}

#[test]
fn names_of_formats_are_read_back() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
        let json = serde_json::to_string(&format).unwrap();
        assert_eq!(serde_json::from_str::<Format>(&json).unwrap(), format);
    }
    let unknown = "jsn".parse::<Format>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("there is no format `jsn`; there are json, jsonc, yaml, "),
        "{unknown}"
    );
}
