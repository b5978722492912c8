//! A file system with one file in it, served over `/dev/fuse`: just enough of the protocol for a loop device to stand on.
//!
//! Reads and writes go straight to a [`Backing`], past the page cache, so what the file system above believes to be on
//! the disk is exactly what the backing was told.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::mount::MountFlags;

/// The one file.
const NAME: &str = "disk";
const ROOT: u64 = 1;
const FILE: u64 = 2;
const HEADER: usize = 40;
const MAX_WRITE: usize = 1 << 20;

/// What holds the bytes.
pub(crate) trait Backing: Send + Sync {
    fn size(&self) -> u64;
    fn read(&self, offset: u64, length: usize) -> Vec<u8>;
    fn write(&self, offset: u64, bytes: &[u8]);
    fn flush(&self);
}

/// The mounted file system; it goes away when dropped.
pub(crate) struct Served {
    directory: tempfile::TempDir,
    server: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new(backing: Arc<dyn Backing>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,max_read={MAX_WRITE}\0",
            device.as_raw_fd()
        );
        rustix::mount::mount(
            "backout-disk",
            directory.path(),
            "fuse.backout-disk",
            MountFlags::NOSUID | MountFlags::NODEV,
            Some(std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).unwrap()),
        )
        .unwrap();
        let server = std::thread::spawn(move || serve(device, backing.as_ref()));
        Self {
            directory,
            server: Some(server),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        unmount(self.directory.path());
        let _ended = self.server.take().map(JoinHandle::join);
    }
}

pub(crate) fn unmount(at: &Path) {
    let status = Command::new("umount")
        .arg(at)
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        let _lazily = Command::new("umount").arg("-l").arg(at).status();
    }
}

/// Answers requests until the file system is unmounted.
fn serve(mut device: File, backing: &dyn Backing) {
    let mut buffer = vec![0; MAX_WRITE + 4096];
    loop {
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => panic!("/dev/fuse: {error}"),
        };
        let request = Request(&buffer[..length]);
        let Some(answer) = answer(&request, backing) else {
            continue;
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(errno) => (-errno.raw_os_error(), Vec::new()),
        };
        let mut reply = Reply::default();
        reply
            .u32(u32::try_from(16 + body.len()).unwrap())
            .i32(error)
            .u64(request.unique());
        reply.0.extend(body);
        // An interrupted request is gone by the time it is answered.
        let _sent = device.write(&reply.0);
    }
}

struct Request<'a>(&'a [u8]);

impl Request<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    fn opcode(&self) -> u32 {
        self.u32(4)
    }

    fn unique(&self) -> u64 {
        self.u64(8)
    }

    fn node(&self) -> u64 {
        self.u64(16)
    }

    fn body(&self) -> &[u8] {
        &self.0[HEADER..]
    }
}

#[derive(Default)]
struct Reply(Vec<u8>);

impl Reply {
    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn i32(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// What to answer; `None` where the kernel wants no answer.
fn answer(request: &Request<'_>, backing: &dyn Backing) -> Option<Result<Vec<u8>, Errno>> {
    let mut reply = Reply::default();
    let done = Some(Ok(Vec::new()));
    match request.opcode() {
        // LOOKUP
        1 if request.body() == b"disk\0" => {
            reply.u64(FILE).u64(0).u64(3600).u64(3600).u32(0).u32(0);
            attributes(&mut reply, FILE, backing.size());
        }
        1 => return Some(Err(Errno::NOENT)),
        // FORGET, INTERRUPT, BATCH_FORGET
        2 | 36 | 42 => return None,
        // GETATTR, SETATTR
        3 | 4 => {
            reply.u64(3600).u32(0).u32(0);
            attributes(&mut reply, request.node(), backing.size());
        }
        // OPEN, OPENDIR: past the page cache
        14 | 27 => {
            reply.u64(0).u32(1).u32(0);
        }
        // READ
        15 => {
            let length = usize::try_from(request.u32(HEADER + 16)).unwrap();
            return Some(Ok(backing.read(request.u64(HEADER + 8), length)));
        }
        // WRITE
        16 => {
            let bytes = &request.body()[40..];
            backing.write(request.u64(HEADER + 8), bytes);
            reply.u32(u32::try_from(bytes.len()).unwrap()).u32(0);
        }
        // STATFS
        17 => {
            reply.0.resize(80, 0);
        }
        // RELEASE, FLUSH, RELEASEDIR, ACCESS, DESTROY
        18 | 25 | 29 | 34 | 38 => return done,
        // FSYNC
        20 => {
            backing.flush();
            return done;
        }
        // INIT
        26 => {
            const BIG_WRITES: u32 = 1 << 5;
            const MAX_PAGES: u32 = 1 << 22;
            let max_write = u32::try_from(MAX_WRITE).unwrap();
            reply.u32(7).u32(31).u32(0).u32(BIG_WRITES | MAX_PAGES);
            reply.u16(16).u16(12).u32(max_write).u32(1).u16(256);
            reply.0.resize(64, 0);
        }
        _ => return Some(Err(Errno::NOSYS)),
    }
    Some(Ok(reply.take()))
}

fn attributes(reply: &mut Reply, node: u64, size: u64) {
    let is_root = node == ROOT;
    let (mode, size) = if is_root {
        (0o040_700, 0)
    } else {
        (0o100_600, size)
    };
    reply.u64(node).u64(size).u64(size / 512);
    reply.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0);
    reply.u32(mode).u32(1).u32(0).u32(0).u32(0).u32(4096).u32(0);
}
