//! A view of the file system whose writes land in a layer.
