/* The calls. Each is made on a name that it finds in its way: `f` and `g` are files, `e` and `k` empty directories, `l` is
 * a symbolic link, `n` is nothing yet. It gives 0, the error, or NOT_SO if it cannot name a file so. */

#define NOT_SO -1
typedef struct operand (*finder)(const char *);

static long did(long result) { return result < 0 ? errno : 0; }
static char *beside(const char *name) { return words("%s/%s", here, name); }
static int base(void) { return open(here, O_RDONLY | O_DIRECTORY); }
static long filled(int fd) {
    if (fd < 0) return errno;
    long done = did(write(fd, "attack", 6));
    close(fd);
    return done;
}
static int owner(void) { return geteuid() ? (int)geteuid() : 7; }
static int group(void) { return geteuid() ? (int)getegid() : 7; }
/* Opens what is named, for reading; a descriptor that is there already is used itself. */
static int opened(struct operand o, int flags) {
    if (o.at == none.at) return -2;
    return o.flags & EMPTY ? o.at : openat(o.at, o.path, flags);
}

#define PATH(name, target, what) \
    static long name(finder find) { \
        struct operand o = find(target); \
        return o.at != AT_FDCWD ? NOT_SO : (what); \
    }
#define AT(name, target, what) \
    static long name(finder find) { \
        int b = base(); \
        struct operand o = find(target); \
        (void)b; \
        return o.at == none.at ? NOT_SO : (what); \
    }
#define FD(name, target, flags, what) \
    static long name(finder find) { \
        int fd = opened(find(target), flags); \
        return fd == -2 ? NOT_SO : fd < 0 ? errno : did(what); \
    }

PATH(open_cut, "f", filled(open(o.path, O_WRONLY | O_TRUNC)))
PATH(open_more, "f", filled(open(o.path, O_RDWR | O_APPEND)))
PATH(open_read_cut, "f", did(open(o.path, O_RDONLY | O_TRUNC)))
PATH(open_new, "n", filled(open(o.path, O_WRONLY | O_CREAT | O_EXCL, 0666)))
PATH(open_any, "n", filled(open(o.path, O_RDWR | O_CREAT, 0606)))
PATH(open_nothing, "f", did(syscall(SYS_open, o.path, 3)))
PATH(creat_old, "f", filled(creat(o.path, 0600)))
PATH(creat_new, "n", filled(creat(o.path, 0600)))
AT(openat_cut, "f", filled(openat(o.at, o.path, O_WRONLY | O_TRUNC)))
AT(openat_more, "g", filled(openat(o.at, o.path, O_WRONLY)))
AT(openat_new, "n", filled(openat(o.at, o.path, O_WRONLY | O_CREAT | O_TRUNC, 0640)))
AT(openat_link, "l", filled(openat(o.at, o.path, O_WRONLY | O_TRUNC)))
AT(openat2_cut, "f", ({ uint64_t how[3] = { O_WRONLY | O_TRUNC, 0, 0 }; filled(syscall(SYS_openat2, o.at, o.path, how, 24)); }))
AT(by_number, "f", ({
    union { struct file_handle handle; char room[256]; } h = { .handle = { .handle_bytes = 128 } };
    int mount, found = name_to_handle_at(o.at, o.path, &h.handle, &mount, o.flags & EMPTY);
    found ? errno : filled(open_by_handle_at(b, &h.handle, O_WRONLY | O_TRUNC));
}))
AT(ring, "f", ({ char ring[120] = ""; did(syscall(SYS_io_uring_setup, 1, ring)); }))
AT(nameless_link, "n", ({
    int fd = open(here, O_TMPFILE | O_RDWR, 0600);
    fd < 0 ? errno : did(linkat(AT_FDCWD, words("/proc/self/fd/%d", fd), o.at, o.path, AT_SYMLINK_FOLLOW));
}))

PATH(truncate_to_nothing, "f", did(syscall(SYS_truncate, o.path, 0)))
PATH(truncate_longer, "g", did(syscall(SYS_truncate, o.path, 100000)))
PATH(unlink_file, "f", did(syscall(SYS_unlink, o.path)))
PATH(unlink_link, "l", did(syscall(SYS_unlink, o.path)))
PATH(rmdir_empty, "e", did(syscall(SYS_rmdir, o.path)))
AT(unlinkat_file, "f", did(syscall(SYS_unlinkat, o.at, o.path, 0)))
AT(unlinkat_directory, "e", did(syscall(SYS_unlinkat, o.at, o.path, AT_REMOVEDIR)))

PATH(rename_from, "f", did(syscall(SYS_rename, o.path, beside("n"))))
PATH(rename_over, "f", did(syscall(SYS_rename, beside("g"), o.path)))
PATH(rename_to, "n", did(syscall(SYS_rename, beside("g"), o.path)))
PATH(rename_directory, "e", did(syscall(SYS_rename, o.path, beside("n"))))
AT(renameat_from, "f", did(syscall(SYS_renameat, o.at, o.path, b, "n")))
AT(renameat_over, "f", did(syscall(SYS_renameat, b, "g", o.at, o.path)))
AT(renameat2_swap, "f", did(syscall(SYS_renameat2, o.at, o.path, b, "g", 2)))
AT(renameat2_swap_directory, "e", did(syscall(SYS_renameat2, b, "d", o.at, o.path, 2)))
AT(renameat2_new, "n", did(syscall(SYS_renameat2, b, "g", o.at, o.path, 1)))
PATH(link_of, "f", did(syscall(SYS_link, o.path, beside("n"))))
PATH(link_to, "n", did(syscall(SYS_link, beside("g"), o.path)))
AT(linkat_of, "f", did(syscall(SYS_linkat, o.at, o.path, b, "n", o.flags)))
AT(linkat_followed, "f", did(syscall(SYS_linkat, o.at, o.path, b, "n", AT_SYMLINK_FOLLOW | o.flags)))
AT(linkat_to, "n", did(syscall(SYS_linkat, b, "g", o.at, o.path, 0)))
PATH(symlink_new, "n", did(syscall(SYS_symlink, "f", o.path)))
AT(symlinkat_new, "n", did(syscall(SYS_symlinkat, "f", o.at, o.path)))
PATH(mkdir_new, "n", did(syscall(SYS_mkdir, o.path, 0757)))
AT(mkdirat_new, "n", did(syscall(SYS_mkdirat, o.at, o.path, 01777)))
PATH(mknod_file, "n", did(syscall(SYS_mknod, o.path, S_IFREG | 0646, 0)))
AT(mknodat_pipe, "n", did(syscall(SYS_mknodat, o.at, o.path, S_IFIFO | 0622, 0)))
static long bind_socket(finder find) {
    struct sockaddr_un address = { AF_UNIX, "" };
    struct operand o = find("n");
    if (o.at != AT_FDCWD) return NOT_SO;
    /* A path that may not be read cannot be put into an address. */
    struct iovec from = { (char *)o.path, sizeof address.sun_path - 1 }, to = { address.sun_path, from.iov_len };
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) <= 0) return NOT_SO;
    if (memchr(address.sun_path, 0, from.iov_len) == NULL) return NOT_SO;
    return did(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
}

PATH(chmod_file, "f", did(syscall(SYS_chmod, o.path, 0606)))
PATH(chmod_directory, "e", did(syscall(SYS_chmod, o.path, 0707)))
AT(fchmodat_file, "f", did(syscall(SYS_fchmodat, o.at, o.path, 0616)))
AT(fchmodat2_file, "f", did(syscall(NR_fchmodat2, o.at, o.path, 0626, o.flags)))
FD(fchmod_file, "f", O_RDONLY, syscall(SYS_fchmod, fd, 04755))
PATH(chown_file, "f", did(syscall(SYS_chown, o.path, owner(), group())))
PATH(lchown_link, "l", did(syscall(SYS_lchown, o.path, owner(), group())))
AT(fchownat_file, "f", did(syscall(SYS_fchownat, o.at, o.path, owner(), group(), o.flags)))
AT(fchownat_link, "l", did(syscall(SYS_fchownat, o.at, o.path, owner(), group(), o.flags | AT_SYMLINK_NOFOLLOW)))
FD(fchown_file, "f", O_RDONLY, syscall(SYS_fchown, fd, owner(), group()))
static const struct timespec times[2] = { { 1000, 11 }, { 2000, 22 } };
static const struct timeval old_times[2] = { { 1000, 11 }, { 2000, 22 } };
static const struct utimbuf oldest_times = { 1000, 2000 };
PATH(utime_file, "f", did(syscall(SYS_utime, o.path, &oldest_times)))
PATH(utimes_file, "f", did(syscall(SYS_utimes, o.path, old_times)))
AT(futimesat_file, "f", did(syscall(SYS_futimesat, o.at, o.path, old_times)))
AT(utimensat_file, "f", did(syscall(SYS_utimensat, o.at, o.path, times, o.flags)))
AT(utimensat_now, "f", did(syscall(SYS_utimensat, o.at, o.path, NULL, 0)))
AT(utimensat_link, "l", did(syscall(SYS_utimensat, o.at, o.path, times, o.flags | AT_SYMLINK_NOFOLLOW)))
AT(utimensat_directory, "e", did(syscall(SYS_utimensat, o.at, o.path, times, o.flags)))
FD(utimensat_open, "f", O_RDONLY, syscall(SYS_utimensat, fd, NULL, times, 0))
PATH(setxattr_file, "f", did(syscall(SYS_setxattr, o.path, "user.new", "v", 1, 0)))
PATH(lsetxattr_file, "f", did(syscall(SYS_lsetxattr, o.path, "user.old", "w", 1, 0)))
FD(fsetxattr_file, "f", O_RDONLY, syscall(SYS_fsetxattr, fd, "user.old", "xyz", 3, 2))
PATH(removexattr_file, "f", did(syscall(SYS_removexattr, o.path, "user.old")))
PATH(lremovexattr_file, "f", did(syscall(SYS_lremovexattr, o.path, "user.old")))
FD(fremovexattr_file, "f", O_RDONLY, syscall(SYS_fremovexattr, fd, "user.old"))
AT(setxattrat_file, "f", ({ struct at_value v = { (uintptr_t)"v", 1, 0 };
    did(syscall(NR_setxattrat, o.at, o.path, o.flags, "user.new", &v, sizeof v)); }))
AT(removexattrat_file, "f", did(syscall(NR_removexattrat, o.at, o.path, o.flags, "user.old")))
AT(file_setattr_file, "f", ({ struct attributes a = { 0x80, 0, 0, 0, 0 };
    did(syscall(NR_file_setattr, o.at, o.path, &a, sizeof a, o.flags)); }))
FD(ioctl_flags, "f", O_RDONLY, ({ long flags = 0x40; syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags); }))

/* What is written by a descriptor that is open for writing, after a moment in which its name goes. */
static int other(void) { return open(beside("g"), O_RDONLY); }
FD(write_file, "f", O_WRONLY, syscall(SYS_write, fd, "xy", 2))
FD(pwrite64_file, "f", O_RDWR, syscall(SYS_pwrite64, fd, "xy", 2, 3))
static const struct iovec two[2] = { { "ab", 2 }, { "cd", 2 } };
FD(writev_file, "f", O_WRONLY, syscall(SYS_writev, fd, two, 2))
FD(pwritev_file, "f", O_WRONLY, syscall(SYS_pwritev, fd, two, 2, 1, 0))
FD(pwritev2_file, "f", O_WRONLY, syscall(SYS_pwritev2, fd, two, 2, 1, 0, 0x10))
FD(ftruncate_file, "f", O_WRONLY, syscall(SYS_ftruncate, fd, 2))
FD(fallocate_hole, "f", O_WRONLY, syscall(SYS_fallocate, fd, 3, 0, 4))
FD(sendfile_file, "f", O_WRONLY, syscall(SYS_sendfile, fd, other(), NULL, 5))
FD(copy_file_range_file, "f", O_WRONLY, syscall(SYS_copy_file_range, other(), NULL, fd, NULL, 5, 0))
FD(splice_file, "f", O_WRONLY, ({ int ends[2]; (void)(pipe(ends) + write(ends[1], "spliced", 7));
    syscall(SYS_splice, ends[0], NULL, fd, NULL, 7, 0); }))
FD(mmap_file, "f", O_RDWR, ({ char *map = (char *)syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd); map == MAP_FAILED ? -1 : (memcpy(map, "mapped", 6), 0); }))
FD(io_submit_file, "f", O_WRONLY, ({
    aio_context_t context = 0;
    struct iocb block = { .aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (uintptr_t)"queued", .aio_nbytes = 6 };
    struct iocb *blocks[1] = { &block };
    struct io_event event;
    syscall(SYS_io_setup, 1, &context) < 0 || syscall(SYS_io_submit, context, 1, blocks) < 0 ? -1
        : syscall(SYS_io_getevents, context, 1, 1, &event, NULL); }))

#define CALL(name, system) { #name, #system, name }
static const struct call {
    const char *name, *system;
    long (*make)(finder);
} calls[] = {
    CALL(open_cut, open), CALL(open_more, open), CALL(open_read_cut, open), CALL(open_new, open), CALL(open_any, open),
    CALL(open_nothing, open), CALL(creat_old, creat), CALL(creat_new, creat), CALL(openat_cut, openat),
    CALL(openat_more, openat), CALL(openat_new, openat), CALL(openat_link, openat), CALL(openat2_cut, openat2),
    CALL(by_number, open_by_handle_at), CALL(ring, io_uring_setup), CALL(nameless_link, linkat),
    CALL(truncate_to_nothing, truncate), CALL(truncate_longer, truncate), CALL(unlink_file, unlink),
    CALL(unlink_link, unlink), CALL(rmdir_empty, rmdir), CALL(unlinkat_file, unlinkat), CALL(unlinkat_directory, unlinkat),
    CALL(rename_from, rename), CALL(rename_over, rename), CALL(rename_to, rename), CALL(rename_directory, rename),
    CALL(renameat_from, renameat), CALL(renameat_over, renameat), CALL(renameat2_swap, renameat2),
    CALL(renameat2_swap_directory, renameat2), CALL(renameat2_new, renameat2), CALL(link_of, link), CALL(link_to, link),
    CALL(linkat_of, linkat), CALL(linkat_followed, linkat), CALL(linkat_to, linkat), CALL(symlink_new, symlink),
    CALL(symlinkat_new, symlinkat), CALL(mkdir_new, mkdir), CALL(mkdirat_new, mkdirat), CALL(mknod_file, mknod),
    CALL(mknodat_pipe, mknodat), CALL(bind_socket, bind), CALL(chmod_file, chmod), CALL(chmod_directory, chmod),
    CALL(fchmodat_file, fchmodat), CALL(fchmodat2_file, fchmodat2), CALL(fchmod_file, fchmod), CALL(chown_file, chown),
    CALL(lchown_link, lchown), CALL(fchownat_file, fchownat), CALL(fchownat_link, fchownat), CALL(fchown_file, fchown),
    CALL(utime_file, utime), CALL(utimes_file, utimes), CALL(futimesat_file, futimesat), CALL(utimensat_file, utimensat),
    CALL(utimensat_now, utimensat), CALL(utimensat_link, utimensat), CALL(utimensat_directory, utimensat),
    CALL(utimensat_open, utimensat), CALL(setxattr_file, setxattr), CALL(lsetxattr_file, lsetxattr),
    CALL(fsetxattr_file, fsetxattr), CALL(removexattr_file, removexattr), CALL(lremovexattr_file, lremovexattr),
    CALL(fremovexattr_file, fremovexattr), CALL(setxattrat_file, setxattrat), CALL(removexattrat_file, removexattrat),
    CALL(file_setattr_file, file_setattr), CALL(ioctl_flags, ioctl), CALL(write_file, write), CALL(pwrite64_file, pwrite64),
    CALL(writev_file, writev), CALL(pwritev_file, pwritev), CALL(pwritev2_file, pwritev2), CALL(ftruncate_file, ftruncate),
    CALL(fallocate_hole, fallocate), CALL(sendfile_file, sendfile), CALL(copy_file_range_file, copy_file_range),
    CALL(splice_file, splice), CALL(mmap_file, mmap), CALL(io_submit_file, io_submit),
};
