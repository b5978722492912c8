//! A supervisor that the kernel asks before each mutating call of a process tree.
