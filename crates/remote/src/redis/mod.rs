//! Keys of a Redis server.
