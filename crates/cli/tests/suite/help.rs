//! The whole help, as one page: what changes here changes for users.

use std::fmt::Write as _;

/// Writes the help of a command and of all below it.
fn page(command: &mut clap::Command, name: &str, text: &mut String) {
    let help = command
        .clone()
        .term_width(100)
        .render_long_help()
        .to_string();
    // What every command takes is shown once, at the top.
    let own = if name.contains(' ') {
        help.split("\nGlobal options:").next()
    } else {
        None
    };
    writeln!(text, "## {name}\n\n{}\n", own.unwrap_or(&help).trim_end()).unwrap();
    let below: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .filter(|name| name != "help")
        .collect();
    for sub in below {
        page(
            command.find_subcommand_mut(&sub).unwrap(),
            &format!("{name} {sub}"),
            text,
        );
    }
}

#[test]
fn the_help_of_every_command() {
    let mut command = backout_cli::command();
    command.build();
    let mut text = String::new();
    page(&mut command, "backout", &mut text);
    insta::assert_snapshot!(text);
}

#[test]
fn every_option_of_every_command_says_what_it_does() {
    fn check(command: &clap::Command) {
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "{} {}",
                command.get_name(),
                argument.get_id()
            );
        }
        command.get_subcommands().for_each(check);
    }
    let mut command = backout_cli::command();
    command.build();
    check(&command);
}
