//! Random JSON, with comments and trailing commas or without.

use super::dice::Dice;
use super::texts::{names, remark};

pub(crate) fn text(dice: &mut Dice<'_>, comments: bool) -> String {
    let mut writer = Writer {
        comments,
        many_lines: !dice.once_in(3),
        unit: dice.pick(&["  ", "    ", "\t"]),
        colon: dice.pick(&[": ", ":", " : "]),
        out: String::new(),
    };
    writer.line_comment(dice, "");
    writer.map(dice, 0);
    writer.out.push('\n');
    writer.out
}

struct Writer {
    comments: bool,
    many_lines: bool,
    unit: &'static str,
    colon: &'static str,
    out: String,
}

impl Writer {
    fn line_comment(&mut self, dice: &mut Dice<'_>, indent: &str) {
        if self.comments && dice.once_in(4) {
            let remark = remark(dice);
            let text = if dice.once_in(3) {
                format!("/* {remark} */")
            } else {
                format!("// {remark}")
            };
            self.out.push_str(&format!("{indent}{text}\n"));
        }
    }

    fn value(&mut self, dice: &mut Dice<'_>, depth: usize) {
        match dice.roll(10) {
            7 if depth < 4 => self.map(dice, depth),
            8 if depth < 4 => self.list(dice, depth),
            9 => self.out.push_str(dice.pick(&["{}", "[]", "[ ]", "{ }"])),
            _ => self.out.push_str(dice.pick(&[
                "1",
                "\"text\"",
                "true",
                "null",
                "-1.5e3",
                "\"\"",
                "\"\\u00e9\\n\\\"\"",
                "\"no\"",
                "0.10",
            ])),
        }
    }

    fn map(&mut self, dice: &mut Dice<'_>, depth: usize) {
        let names = names(dice, 4);
        let entries: Vec<Option<&str>> = names.into_iter().map(Some).collect();
        self.members(dice, depth, &entries, ['{', '}']);
    }

    fn list(&mut self, dice: &mut Dice<'_>, depth: usize) {
        let entries = vec![None; dice.roll(4)];
        self.members(dice, depth, &entries, ['[', ']']);
    }

    fn members(
        &mut self,
        dice: &mut Dice<'_>,
        depth: usize,
        entries: &[Option<&str>],
        brackets: [char; 2],
    ) {
        let many_lines = self.many_lines && !dice.once_in(4);
        let indent = self.unit.repeat(depth + 1);
        self.out.push(brackets[0]);
        if many_lines {
            self.out.push('\n');
        }
        for (index, name) in entries.iter().enumerate() {
            let last = index + 1 == entries.len();
            if many_lines {
                self.line_comment(dice, &indent);
                self.out.push_str(&indent);
            }
            if let Some(name) = name {
                self.out.push_str(&serde_name(name));
                self.out.push_str(self.colon);
            }
            self.value(dice, depth + 1);
            if !last || (self.comments && dice.once_in(3)) {
                self.out.push(',');
            }
            if !last && !many_lines && self.colon != ":" {
                self.out.push(' ');
            }
            if many_lines {
                if self.comments && dice.once_in(4) {
                    self.out.push_str(&format!(" // {}", remark(dice)));
                }
                self.out.push('\n');
            }
        }
        if many_lines {
            self.line_comment(dice, &indent);
            self.out.push_str(&self.unit.repeat(depth));
        }
        self.out.push(brackets[1]);
    }
}

fn serde_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\\\""))
}
