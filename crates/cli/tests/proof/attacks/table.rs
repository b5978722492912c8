//! Which rounds there are, and what may differ under `run`.

/// One way, as somebody.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) way: String,
    /// Who the attacker becomes, or `ordinary`: then Backout itself is an ordinary user's.
    pub(super) who: String,
}

impl Round {
    /// Who the attacker becomes by itself.
    pub(super) fn becomes(&self) -> &str {
        match self.who.as_str() {
            "ordinary" => "itself",
            "ordinary_userns" => "userns",
            "ordinary_landlock" => "landlock",
            other => other,
        }
    }

    /// Tells whether Backout itself is run by an ordinary user.
    pub(super) fn is_users(&self) -> bool {
        self.who.starts_with("ordinary")
    }

    /// Tells whether the files are an ordinary user's.
    pub(super) fn is_of_user(&self) -> bool {
        self.is_users() || self.who == "user"
    }

    /// Tells whether it is held at all. What a second thread changes in the memory, the directory or the descriptors of a process
    /// with other rights or mounts, the kernel looks at once more (`SECURITY.md`).
    fn is_held(&self) -> bool {
        let is_within = matches!(
            self.way.as_str(),
            "flip_memory" | "flip_directory" | "flip_descriptor"
        );
        !is_within || matches!(self.who.as_str(), "itself" | "pidns" | "ordinary")
    }

    /// Tells whether what it names changes while it is used: what comes of it is not the same twice.
    pub(super) fn turns(&self) -> bool {
        self.way.starts_with("flip_")
    }
}

/// Lists every round.
pub(super) fn rounds(ways: &[String], everybody: &[String]) -> Vec<Round> {
    let ordinary = ["ordinary", "ordinary_userns", "ordinary_landlock"];
    let everybody: Vec<&str> = everybody
        .iter()
        .map(String::as_str)
        .chain(ordinary)
        .collect();
    let mut rounds = Vec::new();
    for way in ways {
        for who in &everybody {
            let (way, who) = (way.clone(), (*who).to_owned());
            rounds.push(Round { way, who });
        }
    }
    rounds.retain(Round::is_held);
    rounds
}

/// Takes some: each way once, each time as somebody else.
pub(super) fn sample(rounds: &[Round], ways: &[String]) -> Vec<Round> {
    let taken = ways.iter().enumerate().map(|(number, way)| {
        let all: Vec<&Round> = rounds.iter().filter(|round| round.way == *way).collect();
        all[number % all.len()].clone()
    });
    taken.collect()
}

/// A call that answered something else under `run`.
pub(super) struct Difference<'d> {
    pub(super) round: &'d Round,
    pub(super) call: &'d str,
    pub(super) system: &'d str,
    pub(super) plain: &'d str,
    pub(super) seen: &'d str,
}

/// Tells whether a difference is meant.
pub(super) fn explained(it: &Difference<'_>) -> bool {
    let is_absent = matches!(
        it.system,
        "openat2" | "open_by_handle_at" | "io_uring_setup"
    );
    match (it.round.way.as_str(), it.seen) {
        _ if it.round.turns() => true,
        // These calls do not exist.
        (_, "ENOSYS") if is_absent => true,
        // Flags are not kept.
        (_, "EPERM") if matches!(it.call, "ioctl_flags" | "file_setattr_file") => true,
        // There is no `open_tree`, so there is no such way.
        ("tree", "-") => true,
        _ => reason(it).is_some(),
    }
}

/// Gives what `run` must say of a call that it refused.
pub(super) fn reason(it: &Difference<'_>) -> Option<&'static str> {
    match (it.round.way.as_str(), it.plain, it.seen) {
        // Nobody but the process itself, and the kernel, can read its path.
        ("memory_secret", _, "EFAULT") if it.plain != it.seen => Some("only itself can read"),
        // A file that was removed stays so.
        ("removed_open" | "removed_proc", _, "EPERM")
            if it.system == "linkat" && it.plain != it.seen =>
        {
            Some("writing our own state was refused")
        }
        // The mount that it came by is gone, for everybody else.
        ("bound_here", _, "EPERM") if it.plain != it.seen => Some("nobody else can follow"),
        _ => None,
    }
}
