//! An OCI image layout of one layer, which is not compressed: its digest is its `diff_id`.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use backout_model::TargetPath;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tar::{Writer, Written, hex};
use super::unwritten;
use crate::EngineError;

/// An image to be written.
pub(super) struct Image {
    /// Where the layout is made.
    pub(super) directory: PathBuf,
    pub(super) environment: Vec<String>,
    pub(super) working_directory: TargetPath,
}

/// Makes the archive of what changed, where it is told to.
type WriteLayer<'w> = &'w dyn Fn(&Path) -> Result<Written, EngineError>;

impl Image {
    /// Writes it to `waiting`: as a directory, or as one file if that is what `path` is named like.
    pub(super) fn write(
        &self,
        waiting: &Path,
        path: &Path,
        layer: WriteLayer<'_>,
    ) -> Result<Written, EngineError> {
        let is_file = path.extension().is_some_and(|it| it == "tar");
        let made = self.layout(layer).and_then(|written| {
            if is_file {
                pack(&self.directory, waiting).map_err(unwritten)?;
            } else {
                fs::rename(&self.directory, waiting).map_err(unwritten)?;
            }
            Ok(written)
        });
        if is_file || made.is_err() {
            let _removed = fs::remove_dir_all(&self.directory);
        }
        made
    }

    fn layout(&self, layer: WriteLayer<'_>) -> Result<Written, EngineError> {
        let blobs = self.directory.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(unwritten)?;
        let waiting = self.directory.join("layer");
        let written = layer(&waiting)?;
        let name = written.digest.trim_start_matches("sha256:");
        fs::rename(&waiting, blobs.join(name)).map_err(unwritten)?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Env": self.environment,
                "WorkingDir": self.working_directory.to_string(),
            },
            "rootfs": { "type": "layers", "diff_ids": [written.digest] },
            "history": [{ "created_by": "backout sandbox export" }],
        });
        let config = blob(&blobs, &config)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor(
                "application/vnd.oci.image.layer.v1.tar",
                &(written.digest.clone(), written.bytes),
            )],
        });
        let manifest = blob(&blobs, &manifest)?;
        let (digest, size) = &manifest;
        let entry = json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest,
            "size": size,
            "annotations": { "org.opencontainers.image.ref.name": "latest" },
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [entry],
        });
        let put =
            |name: &str, value: &Value| fs::write(self.directory.join(name), value.to_string());
        put("index.json", &index).map_err(unwritten)?;
        put("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" })).map_err(unwritten)?;
        Ok(written)
    }
}

fn descriptor(media: &str, (digest, size): &(String, u64)) -> Value {
    json!({ "mediaType": media, "digest": digest, "size": size })
}

fn blob(blobs: &Path, value: &Value) -> Result<(String, u64), EngineError> {
    let text = value.to_string();
    let name = hex(&Sha256::digest(text.as_bytes()));
    fs::write(blobs.join(&name), &text).map_err(unwritten)?;
    Ok((format!("sha256:{name}"), text.len() as u64))
}

/// Puts a layout into one file.
fn pack(directory: &Path, to: &Path) -> std::io::Result<()> {
    let mut writer = Writer::new(BufWriter::new(File::create_new(to)?));
    let mut names = vec!["oci-layout".to_owned(), "index.json".to_owned()];
    for entry in fs::read_dir(directory.join("blobs/sha256"))? {
        let name = entry?.file_name();
        names.push(format!("blobs/sha256/{}", name.to_string_lossy()));
    }
    for name in names {
        let file = File::open(directory.join(&name))?;
        let size = file.metadata()?.len();
        writer.blob(&name, size, &mut BufReader::new(file))?;
    }
    let (mut out, _) = writer.finish()?;
    out.flush()
}

/// Names this machine's architecture as images do.
const fn architecture() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    }
}
