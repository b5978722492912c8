//! Opening a sandbox: one at a time, and whatever a dead owner left is settled first.

use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_model::TargetPath;
use backout_storage::Sandboxes;

use super::SandboxError;
use super::manifest::{Entry, Manifest, VERSION};
use super::view::{SandboxAct, SandboxStanding, SandboxVerdict};
use crate::{Engine, EngineError};

pub(super) const MANIFEST: &str = "sandbox.json";

/// A sandbox that nobody else uses.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) manifest: Manifest,
    pub(super) notes: Vec<String>,
    /// Held as long as this lives.
    pub(super) _lock: File,
}

impl Open {
    /// Gives the directory that the next command begins in.
    pub(super) fn directory(&self) -> TargetPath {
        let head = self.manifest.checkpoint(self.manifest.head);
        head.map_or(&self.manifest.home, |it| &it.directory).clone()
    }

    /// Removes layers that nobody needs. The list is forgotten with the next write of the manifest.
    pub(super) fn sweep(&mut self) -> Result<(), EngineError> {
        for id in std::mem::take(&mut self.manifest.unfinished) {
            if let Some(layer) = self.manifest.layer(id) {
                remove(&layer)?;
            }
        }
        Ok(())
    }
}

impl Engine {
    pub(super) fn sandboxes(&self) -> Sandboxes {
        Sandboxes::of(self.store.directory())
    }

    /// Finds a sandbox by its name; without one, the only one.
    pub(super) fn find_sandbox(&self, name: Option<&str>) -> Result<String, EngineError> {
        let found = self.sandbox_names()?;
        let meant = match name {
            Some(name) => found.iter().find(|it| *it == name),
            None => found.first().filter(|_| found.len() == 1),
        };
        match meant {
            Some(meant) => Ok(meant.clone()),
            None => Err(SandboxError::Which {
                name: name.map(str::to_owned),
                found,
            }
            .into()),
        }
    }

    /// Lists the sandboxes that have a manifest: one whose beginning died is none.
    pub(super) fn sandbox_names(&self) -> Result<Vec<String>, EngineError> {
        let sandboxes = self.sandboxes();
        let mut names = sandboxes.names()?;
        names.retain(|name| sandboxes.directory(name).join(MANIFEST).exists());
        Ok(names)
    }

    pub(super) fn read_sandbox(&self, name: &str) -> Result<Manifest, EngineError> {
        let unreadable = |why: String| SandboxError::Unreadable {
            name: name.to_owned(),
            why,
        };
        let bytes = self.sandboxes().read(name, MANIFEST)?;
        let bytes = bytes.ok_or_else(|| unreadable("it has no manifest".to_owned()))?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if manifest.version > VERSION {
            let version = manifest.version;
            let why = format!("it was made by a newer program (version {version})");
            return Err(unreadable(why).into());
        }
        Ok(manifest)
    }

    /// Takes a sandbox for oneself, whatever its state.
    pub(super) fn take_sandbox(&self, name: &str) -> Result<Open, EngineError> {
        let Some(lock) = self.sandboxes().take(name)? else {
            let running = self.read_sandbox(name).ok().and_then(|it| it.running);
            return Err(SandboxError::Busy {
                name: name.to_owned(),
                command: running.map(|it| it.said()),
            }
            .into());
        };
        Ok(Open {
            manifest: self.read_sandbox(name)?,
            notes: Vec::new(),
            _lock: lock,
        })
    }

    /// Opens a sandbox to work in it. What a dead owner left half-made is dropped, and told.
    pub(super) fn open_sandbox(&self, name: Option<&str>) -> Result<Open, EngineError> {
        let name = self.find_sandbox(name)?;
        let mut open = self.take_sandbox(&name)?;
        if self.standing(&open.manifest) == SandboxStanding::Lost || open.manifest.is_ended {
            return Err(SandboxError::Lost { name }.into());
        }
        if let Some(running) = open.manifest.running.take() {
            let directory = open.directory();
            let line = running.said();
            open.notes.push(format!(
                "the owner of `{line}` died: what it wrote in the sandbox was dropped"
            ));
            open.manifest.unfinished.push(running.layer);
            open.manifest.log.push(Entry {
                act: SandboxAct::Ran,
                command: running.command,
                is_line: running.is_line,
                verdict: Some(SandboxVerdict::Interrupted),
                code: None,
                checkpoint: open.manifest.head,
                is_rolled_back: true,
                directory,
                at: running.at,
                took_ms: u64::try_from(self.now().0 - running.at.0).unwrap_or_default(),
                changes: 0,
            });
            self.save_making_room(&mut open)?;
        }
        open.sweep()?;
        Ok(open)
    }

    /// Writes the manifest, on a full disk once what nobody needs is gone: that may be what filled it.
    pub(super) fn save_making_room(&self, open: &mut Open) -> Result<(), EngineError> {
        match self.save(open) {
            Err(error) if is_full(&error) => {
                open.sweep()?;
                self.save(open)
            }
            saved => saved,
        }
    }

    pub(super) fn save(&self, open: &Open) -> Result<(), EngineError> {
        self.keep_sandbox(&open.manifest)
    }

    pub(super) fn keep_sandbox(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(manifest).map_err(|source| EngineError::Io {
            action: "write down how the sandbox stands",
            source: source.into(),
        })?;
        crash_point("sandbox.keep");
        Ok(self.sandboxes().write(&manifest.name, MANIFEST, &bytes)?)
    }

    pub(super) fn standing(&self, manifest: &Manifest) -> SandboxStanding {
        match &manifest.running {
            _ if self.store.is_from_another_boot(&manifest.owner) => SandboxStanding::Lost,
            None => SandboxStanding::Ready,
            Some(running) if self.store.is_alive(&running.owner) => SandboxStanding::Running,
            Some(_) => SandboxStanding::Interrupted,
        }
    }
}

/// Removes a layer.
pub(super) fn remove(layer: &Path) -> Result<(), EngineError> {
    overlay::remove(layer).map_err(|source| EngineError::Io {
        action: "remove a layer of the sandbox",
        source,
    })
}

/// Tells whether there was no room for something.
fn is_full(error: &EngineError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(at) = cause {
        let kind = at.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(
            kind,
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = at.source();
    }
    false
}
