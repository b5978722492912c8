//! Taking a sandbox elsewhere: its successful commands as a script or a Dockerfile, its final state as a tar or an OCI image.
//!
//! - What is written is new: nothing that is there is replaced, and a file appears under its name only when it is whole.
//! - Variables that look like secrets stay behind, by name and value, unless somebody asks for them; the reply names them.
//! - The tar is an OCI layer: what the sandbox changed, and `.wh.NAME` for what it removed.

mod oci;
mod script;
pub(crate) mod secrets;
mod tar;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_model::any_path;
use serde::{Deserialize, Serialize};

use super::SandboxError;
use super::apply::merged;
use super::carry::Variables;
use super::exec::variables_file;
use super::manifest::Manifest;
use super::open::Open;
use super::view::{SandboxAct, SandboxVerdict};
use crate::{Engine, EngineError, Reply};

use script::Step;

/// How a sandbox is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxExport {
    /// Its successful commands, for a shell.
    Script,
    /// The same, for an image.
    Dockerfile,
    /// What it changed, as a layer.
    Tar(#[serde(with = "any_path")] PathBuf),
    /// The same, as an image of one layer: a directory, or a file if the name ends in `.tar`.
    Oci(#[serde(with = "any_path")] PathBuf),
}

/// A sandbox that was written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxExported {
    /// The sandbox.
    pub name: String,
    /// By its number; what came later is not in it.
    pub checkpoint: u64,
    /// The script or the Dockerfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file or directory that was made.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "any_path::some"
    )]
    pub path: Option<PathBuf>,
    /// How many commands, or names, are in it.
    pub entries: u64,
    /// The digest of the layer, `sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The variables that are in it, by name.
    pub variables: Vec<String>,
    /// The variables that look like secrets and were left out.
    pub left_out: Vec<String>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}

impl Engine {
    pub(super) fn export_sandbox(
        &self,
        name: Option<&str>,
        how: &SandboxExport,
        has_secrets: bool,
    ) -> Result<Reply, EngineError> {
        let open = self.open_sandbox(name)?;
        let manifest = &open.manifest;
        let mut exported = SandboxExported {
            name: manifest.name.clone(),
            checkpoint: manifest.head,
            text: None,
            path: None,
            entries: 0,
            digest: None,
            variables: Vec::new(),
            left_out: Vec::new(),
            notes: open.notes.clone(),
        };
        match how {
            SandboxExport::Script | SandboxExport::Dockerfile => {
                let steps = self.steps(&open)?;
                exported.entries = steps.len() as u64;
                let mut told = secrets::Told::new(has_secrets);
                let text = if matches!(how, SandboxExport::Script) {
                    script::shell(manifest, &steps, &mut told)
                } else {
                    script::dockerfile(manifest, &steps, &mut told)
                };
                exported.text = Some(text);
                told.tell(&mut exported);
            }
            SandboxExport::Tar(path) => {
                let waiting = waiting_for(path)?;
                let layer = self.write_layer(&open, &waiting)?;
                put_in_place(&waiting, path)?;
                exported.entries = layer.entries;
                exported.digest = Some(layer.digest);
                exported.path = Some(path.clone());
            }
            SandboxExport::Oci(path) => {
                let head = self.environment_at(&open, manifest.head)?;
                let mut told = secrets::Told::new(has_secrets);
                let environment = told.environment(&head);
                let waiting = waiting_for(path)?;
                let image = oci::Image {
                    directory: waiting.with_extension("layout"),
                    environment,
                    working_directory: open.directory(),
                };
                let write = |to: &Path| self.write_layer(&open, to);
                let layer = image.write(&waiting, path, &write)?;
                put_in_place(&waiting, path)?;
                exported.entries = layer.entries;
                exported.digest = Some(layer.digest);
                exported.path = Some(path.clone());
                told.tell(&mut exported);
            }
        }
        crash_point("sandbox.exported");
        Ok(Reply::SandboxExported(Box::new(exported)))
    }

    /// Lists the commands behind the head, each with where it ran and what it had.
    fn steps(&self, open: &Open) -> Result<Vec<Step>, EngineError> {
        let manifest = &open.manifest;
        let mut steps = Vec::new();
        for checkpoint in manifest.chain(manifest.head) {
            let Some(parent) = checkpoint.parent else {
                continue;
            };
            let is_it = |entry: &&super::manifest::Entry| {
                entry.act == SandboxAct::Ran
                    && !entry.is_rolled_back
                    && entry.checkpoint == checkpoint.number
            };
            let Some(entry) = manifest.log.iter().find(is_it) else {
                continue;
            };
            steps.push(Step {
                command: entry.command.clone(),
                is_line: entry.is_line,
                has_failed: entry.verdict != Some(SandboxVerdict::Succeeded),
                time_max_ms: (entry.verdict == Some(SandboxVerdict::TimedOut))
                    .then_some(entry.took_ms),
                directory: entry.directory.clone(),
                environment: self.environment_at(open, parent)?,
            });
        }
        Ok(steps)
    }

    /// Reads the variables that a command above a checkpoint has beyond its caller's.
    fn environment_at(&self, open: &Open, number: u64) -> Result<Variables, EngineError> {
        let file = open.manifest.checkpoint(number).and_then(|it| it.variables);
        let Some(file) = file else {
            return Ok(Variables::default());
        };
        let name = &open.manifest.name;
        let bytes = self.sandboxes().read(name, &variables_file(file))?;
        let unreadable = |error: serde_json::Error| SandboxError::Unreadable {
            name: name.clone(),
            why: error.to_string(),
        };
        let read = bytes
            .map(|bytes| serde_json::from_slice(&bytes))
            .transpose();
        Ok(read.map_err(unreadable)?.unwrap_or_default())
    }

    /// Writes what the sandbox changed as a tar.
    fn write_layer(&self, open: &Open, to: &Path) -> Result<tar::Written, EngineError> {
        let manifest: &Manifest = &open.manifest;
        let place = self.place_beside(manifest, self.next_id());
        let written = merged(manifest, &place).and_then(|plan| {
            crash_point("sandbox.exporting");
            let changes = overlay::walk(&plan)?;
            let file = File::create_new(to).map_err(unwritten)?;
            let mut writer = tar::Writer::new(BufWriter::with_capacity(1 << 18, file));
            for change in &changes {
                writer.change(change).map_err(unwritten)?;
            }
            let (mut out, written) = writer.finish().map_err(unwritten)?;
            out.flush().map_err(unwritten)?;
            Ok(written)
        });
        let removed = overlay::remove(&place).map_err(|source| EngineError::Io {
            action: "remove a layer of the sandbox",
            source,
        });
        if written.is_err() {
            let _removed = fs::remove_file(to);
        }
        let written = written?;
        removed?;
        Ok(written)
    }
}

/// Gives a name beside a path where it can be made. What is there is not replaced.
fn waiting_for(path: &Path) -> Result<PathBuf, EngineError> {
    if path.symlink_metadata().is_ok() {
        let path = path.display().to_string();
        return Err(SandboxError::InTheWay { path }.into());
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(name))
}

fn put_in_place(waiting: &Path, path: &Path) -> Result<(), EngineError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    crash_point("sandbox.export-written");
    match renameat_with(CWD, waiting, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => {
            let removed = if waiting.is_dir() {
                fs::remove_dir_all(waiting)
            } else {
                fs::remove_file(waiting)
            };
            removed.map_err(unwritten)?;
            let path = path.display().to_string();
            Err(SandboxError::InTheWay { path }.into())
        }
        Err(errno) => Err(unwritten(errno.into())),
    }
}

fn unwritten(source: std::io::Error) -> EngineError {
    EngineError::Io {
        action: "write the export",
        source,
    }
}
