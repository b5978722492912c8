//! Variables that change what programs do: a command that sets one is no longer the command that is known.

/// Whole names, with what they change.
const NAMES: [(&str, &str); 34] = [
    ("PATH", "decides which programs are run"),
    ("IFS", "splits words"),
    ("BASH_ENV", "is run by every shell"),
    ("ENV", "is run by every shell"),
    ("SHELLOPTS", "sets the shell's options"),
    ("BASHOPTS", "sets the shell's options"),
    ("PS4", "is expanded by the shell"),
    ("PS1", "is expanded by the shell"),
    ("PS0", "is expanded by the shell"),
    ("PROMPT_COMMAND", "is run by the shell"),
    ("GLOBIGNORE", "changes what patterns become"),
    ("CDPATH", "changes where `cd` goes"),
    ("HOME", "decides which configuration is read"),
    ("PAGER", "names a program to run"),
    ("MANPAGER", "names a program to run"),
    ("SYSTEMD_PAGER", "names a program to run"),
    ("EDITOR", "names a program to run"),
    ("VISUAL", "names a program to run"),
    ("BROWSER", "names a program to run"),
    ("SHELL", "names a program to run"),
    ("SUDO_ASKPASS", "names a program to run"),
    ("SSH_ASKPASS", "names a program to run"),
    ("RIPGREP_CONFIG_PATH", "adds options"),
    ("GREP_OPTIONS", "adds options"),
    ("TAR_OPTIONS", "adds options"),
    ("POSIXLY_CORRECT", "changes how options are read"),
    ("NODE_OPTIONS", "adds options"),
    ("RUBYOPT", "adds options"),
    ("PERL5OPT", "adds options"),
    ("PERL5LIB", "adds code"),
    ("RUSTC_WRAPPER", "names a program to run"),
    ("RUSTC", "names a program to run"),
    ("FIGNORE", "changes what patterns become"),
    ("histchars", "changes how the line is read"),
];

/// Beginnings of names.
const PREFIXES: [(&str, &str); 16] = [
    ("LD_", "changes what programs load"),
    ("DYLD_", "changes what programs load"),
    ("GCONV_", "changes what programs load"),
    ("BASH_FUNC_", "defines a function"),
    ("BASH_", "changes the shell"),
    ("GIT_", "changes what git does"),
    ("CARGO", "changes what cargo does"),
    ("NPM_CONFIG_", "changes what npm does"),
    ("npm_config_", "changes what npm does"),
    ("PIP_", "changes what pip does"),
    ("PYTHON", "changes what Python loads"),
    ("DOCKER_", "changes what docker does"),
    ("LESS", "adds options or names a program to run"),
    ("MALLOC_", "changes what programs load"),
    ("SSLKEYLOGFILE", "names a file to write"),
    ("XDG_", "decides which configuration is read"),
];

/// Says what a variable changes, if it changes what programs do.
pub(crate) fn of(name: &str) -> Option<&'static str> {
    let whole = NAMES.iter().find(|(known, _)| *known == name);
    let prefix = || PREFIXES.iter().find(|(known, _)| name.starts_with(known));
    whole.or_else(prefix).map(|(_, why)| *why)
}
