//! Users and groups by name or number, as `chown` takes them.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group` by hand. Accounts that only a directory service
//! knows are named by their numbers.

use std::fs;

use backout_engine::Report;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// A new owner: whoever is not named stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// The user's number.
    pub(crate) uid: Option<u32>,
    /// The group's number.
    pub(crate) gid: Option<u32>,
}

/// Reads `USER`, `USER:GROUP`, `:GROUP` or `USER:` (with the user's own group).
pub(crate) fn ownership(text: &str) -> Result<Ownership, Report> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    find(text, &read(PASSWD), &read(GROUP))
}

/// Says whose something is: `user:group`, by name where the machine knows one.
pub(crate) fn owner_name(uid: u32, gid: u32) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let name = |number: u32, file: &str| name_of(number, file).unwrap_or(number.to_string());
    format!("{}:{}", name(uid, &read(PASSWD)), name(gid, &read(GROUP)))
}

/// Names the user that this process works for.
pub(crate) fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw();
    let passwd = fs::read_to_string(PASSWD).unwrap_or_default();
    name_of(uid, &passwd).unwrap_or_else(|| format!("user {uid}"))
}

fn name_of(number: u32, file: &str) -> Option<String> {
    let number = number.to_string();
    let mut lines = file.lines();
    let line = lines.find(|line| line.split(':').nth(2) == Some(&number))?;
    line.split(':').next().map(str::to_owned)
}

fn find(text: &str, passwd: &str, groups: &str) -> Result<Ownership, Report> {
    let unknown = |kind: &str, name: &str, file: &str| {
        Report::refused(format!("there is no {kind} `{name}`"))
            .because(format!("`{file}` does not have it"))
            .next(format!("give the {kind}'s number"))
    };
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    if user.is_empty() && group.is_none_or(str::is_empty) {
        return Err(Report::usage(format!("`{text}` does not name an owner"))
            .next("give USER, USER:GROUP or :GROUP"));
    }
    let uid = match user {
        "" => None,
        name => Some(number(name, passwd).ok_or_else(|| unknown("user", name, PASSWD))?),
    };
    let gid = match group {
        None => None,
        Some("") => {
            let own = login_group(user, passwd).ok_or_else(|| unknown("user", user, PASSWD))?;
            Some(own)
        }
        Some(name) => Some(number(name, groups).ok_or_else(|| unknown("group", name, GROUP))?),
    };
    Ok(Ownership { uid, gid })
}

/// Both files have the name first and its number third; a name wins over a number that looks like it.
fn number(name: &str, file: &str) -> Option<u32> {
    let found = line_of(name, file).and_then(|line| line.split(':').nth(2)?.parse().ok());
    found.or_else(|| name.parse().ok())
}

fn login_group(user: &str, passwd: &str) -> Option<u32> {
    let is_user = |line: &&str| line.split(':').nth(2) == Some(user);
    let line = line_of(user, passwd).or_else(|| passwd.lines().find(is_user))?;
    line.split(':').nth(3)?.parse().ok()
}

fn line_of<'f>(name: &str, file: &'f str) -> Option<&'f str> {
    file.lines()
        .find(|line| line.split(':').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1001::/home/ada:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nada:x:1001:\nstaff:x:50:ada\n";

    fn owner(text: &str) -> Option<(Option<u32>, Option<u32>)> {
        find(text, PASSWD, GROUP)
            .ok()
            .map(|found| (found.uid, found.gid))
    }

    #[test]
    fn owners_are_read_as_chown_reads_them() {
        assert_eq!(owner("ada"), Some((Some(1000), None)));
        assert_eq!(owner("ada:staff"), Some((Some(1000), Some(50))));
        assert_eq!(owner(":staff"), Some((None, Some(50))));
        assert_eq!(owner("ada:"), Some((Some(1000), Some(1001))));
        assert_eq!(owner("1000:"), Some((Some(1000), Some(1001))));
        assert_eq!(owner("4242:77"), Some((Some(4242), Some(77))));
    }

    #[test]
    fn unknown_and_empty_owners_are_refused() {
        for text in ["", ":", "bob", "ada:wheel", "-1", "4242:"] {
            assert_eq!(owner(text), None, "{text}");
        }
    }
}
