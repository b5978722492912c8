//! Every system call of the kernel by what becomes of it, against the filter: a new one must be put somewhere.
//!
//! The list is that of `x86_64`, up to Linux 6.19. A number without a name here is not known, and must be refused.

use std::collections::BTreeMap;

use super::super::table::NEWEST;
use super::tests::{answer, ARCHITECTURE};
use super::{ALLOW, ERRNO, Filter, NOTIFY, Wanted, enosys};

/// They change files, or what a process sees and may do: they are asked about. Of opens only those that write, of
/// `ioctl` only what changes files.
const ASKED: &[(i64, &str)] = &[
        (2, "open"), (16, "ioctl"), (49, "bind"), (59, "execve"), (76, "truncate"), (82, "rename"), (83, "mkdir"),
        (84, "rmdir"), (85, "creat"), (86, "link"), (87, "unlink"), (88, "symlink"), (90, "chmod"), (91, "fchmod"),
        (92, "chown"), (93, "fchown"), (94, "lchown"), (105, "setuid"), (106, "setgid"), (113, "setreuid"),
        (114, "setregid"), (116, "setgroups"), (117, "setresuid"), (119, "setresgid"), (122, "setfsuid"),
        (123, "setfsgid"), (126, "capset"), (132, "utime"), (133, "mknod"), (155, "pivot_root"), (161, "chroot"),
        (163, "acct"), (165, "mount"), (166, "umount2"), (167, "swapon"), (179, "quotactl"), (188, "setxattr"),
        (189, "lsetxattr"), (190, "fsetxattr"), (197, "removexattr"), (198, "lremovexattr"), (199, "fremovexattr"),
        (235, "utimes"), (257, "openat"), (258, "mkdirat"), (259, "mknodat"), (260, "fchownat"), (261, "futimesat"),
        (263, "unlinkat"), (264, "renameat"), (265, "linkat"), (266, "symlinkat"), (268, "fchmodat"),
        (272, "unshare"), (280, "utimensat"), (308, "setns"), (316, "renameat2"), (322, "execveat"),
        (443, "quotactl_fd"), (446, "landlock_restrict_self"), (452, "fchmodat2"), (463, "setxattrat"),
        (466, "removexattrat"), (469, "file_setattr"),
];

/// They do not exist for a command.
const ABSENT: &[(i64, &str)] = &[
        (304, "open_by_handle_at"), (425, "io_uring_setup"), (426, "io_uring_enter"), (427, "io_uring_register"),
        (428, "open_tree"), (429, "move_mount"), (430, "fsopen"), (431, "fsconfig"), (432, "fsmount"),
        (433, "fspick"), (437, "openat2"), (442, "mount_setattr"), (467, "open_tree_attr"),
];

/// They change no file, or only by a descriptor that was opened for writing, or only what the kernel makes up.
const HARMLESS: &[(i64, &str)] = &[
        (0, "read"), (1, "write"), (3, "close"), (4, "stat"), (5, "fstat"), (6, "lstat"), (7, "poll"), (8, "lseek"),
        (9, "mmap"), (10, "mprotect"), (11, "munmap"), (12, "brk"), (13, "rt_sigaction"), (14, "rt_sigprocmask"),
        (15, "rt_sigreturn"), (17, "pread64"), (18, "pwrite64"), (19, "readv"), (20, "writev"), (21, "access"),
        (22, "pipe"), (23, "select"), (24, "sched_yield"), (25, "mremap"), (26, "msync"), (27, "mincore"),
        (28, "madvise"), (29, "shmget"), (30, "shmat"), (31, "shmctl"), (32, "dup"), (33, "dup2"), (34, "pause"),
        (35, "nanosleep"), (36, "getitimer"), (37, "alarm"), (38, "setitimer"), (39, "getpid"), (40, "sendfile"),
        (41, "socket"), (42, "connect"), (43, "accept"), (44, "sendto"), (45, "recvfrom"), (46, "sendmsg"),
        (47, "recvmsg"), (48, "shutdown"), (50, "listen"), (51, "getsockname"), (52, "getpeername"),
        (53, "socketpair"), (54, "setsockopt"), (55, "getsockopt"), (56, "clone"), (57, "fork"), (58, "vfork"),
        (60, "exit"), (61, "wait4"), (62, "kill"), (63, "uname"), (64, "semget"), (65, "semop"), (66, "semctl"),
        (67, "shmdt"), (68, "msgget"), (69, "msgsnd"), (70, "msgrcv"), (71, "msgctl"), (72, "fcntl"), (73, "flock"),
        (74, "fsync"), (75, "fdatasync"), (77, "ftruncate"), (78, "getdents"), (79, "getcwd"), (80, "chdir"),
        (81, "fchdir"), (89, "readlink"), (95, "umask"), (96, "gettimeofday"), (97, "getrlimit"), (98, "getrusage"),
        (99, "sysinfo"), (100, "times"), (101, "ptrace"), (102, "getuid"), (103, "syslog"), (104, "getgid"),
        (107, "geteuid"), (108, "getegid"), (109, "setpgid"), (110, "getppid"), (111, "getpgrp"), (112, "setsid"),
        (115, "getgroups"), (118, "getresuid"), (120, "getresgid"), (121, "getpgid"), (124, "getsid"),
        (125, "capget"), (127, "rt_sigpending"), (128, "rt_sigtimedwait"), (129, "rt_sigqueueinfo"),
        (130, "rt_sigsuspend"), (131, "sigaltstack"), (134, "uselib"), (135, "personality"), (136, "ustat"),
        (137, "statfs"), (138, "fstatfs"), (139, "sysfs"), (140, "getpriority"), (141, "setpriority"),
        (142, "sched_setparam"), (143, "sched_getparam"), (144, "sched_setscheduler"), (145, "sched_getscheduler"),
        (146, "sched_get_priority_max"), (147, "sched_get_priority_min"), (148, "sched_rr_get_interval"),
        (149, "mlock"), (150, "munlock"), (151, "mlockall"), (152, "munlockall"), (153, "vhangup"),
        (154, "modify_ldt"), (156, "_sysctl"), (157, "prctl"), (158, "arch_prctl"), (159, "adjtimex"),
        (160, "setrlimit"), (162, "sync"), (164, "settimeofday"), (168, "swapoff"), (169, "reboot"),
        (170, "sethostname"), (171, "setdomainname"), (172, "iopl"), (173, "ioperm"), (174, "create_module"),
        (175, "init_module"), (176, "delete_module"), (177, "get_kernel_syms"), (178, "query_module"),
        (180, "nfsservctl"), (181, "getpmsg"), (182, "putpmsg"), (183, "afs_syscall"), (184, "tuxcall"),
        (185, "security"), (186, "gettid"), (187, "readahead"), (191, "getxattr"), (192, "lgetxattr"),
        (193, "fgetxattr"), (194, "listxattr"), (195, "llistxattr"), (196, "flistxattr"), (200, "tkill"),
        (201, "time"), (202, "futex"), (203, "sched_setaffinity"), (204, "sched_getaffinity"),
        (205, "set_thread_area"), (206, "io_setup"), (207, "io_destroy"), (208, "io_getevents"), (209, "io_submit"),
        (210, "io_cancel"), (211, "get_thread_area"), (212, "lookup_dcookie"), (213, "epoll_create"),
        (214, "epoll_ctl_old"), (215, "epoll_wait_old"), (216, "remap_file_pages"), (217, "getdents64"),
        (218, "set_tid_address"), (219, "restart_syscall"), (220, "semtimedop"), (221, "fadvise64"),
        (222, "timer_create"), (223, "timer_settime"), (224, "timer_gettime"), (225, "timer_getoverrun"),
        (226, "timer_delete"), (227, "clock_settime"), (228, "clock_gettime"), (229, "clock_getres"),
        (230, "clock_nanosleep"), (231, "exit_group"), (232, "epoll_wait"), (233, "epoll_ctl"), (234, "tgkill"),
        (236, "vserver"), (237, "mbind"), (238, "set_mempolicy"), (239, "get_mempolicy"), (240, "mq_open"),
        (241, "mq_unlink"), (242, "mq_timedsend"), (243, "mq_timedreceive"), (244, "mq_notify"),
        (245, "mq_getsetattr"), (246, "kexec_load"), (247, "waitid"), (248, "add_key"), (249, "request_key"),
        (250, "keyctl"), (251, "ioprio_set"), (252, "ioprio_get"), (253, "inotify_init"), (254, "inotify_add_watch"),
        (255, "inotify_rm_watch"), (256, "migrate_pages"), (262, "newfstatat"), (267, "readlinkat"),
        (269, "faccessat"), (270, "pselect6"), (271, "ppoll"), (273, "set_robust_list"), (274, "get_robust_list"),
        (275, "splice"), (276, "tee"), (277, "sync_file_range"), (278, "vmsplice"), (279, "move_pages"),
        (281, "epoll_pwait"), (282, "signalfd"), (283, "timerfd_create"), (284, "eventfd"), (285, "fallocate"),
        (286, "timerfd_settime"), (287, "timerfd_gettime"), (288, "accept4"), (289, "signalfd4"), (290, "eventfd2"),
        (291, "epoll_create1"), (292, "dup3"), (293, "pipe2"), (294, "inotify_init1"), (295, "preadv"),
        (296, "pwritev"), (297, "rt_tgsigqueueinfo"), (298, "perf_event_open"), (299, "recvmmsg"),
        (300, "fanotify_init"), (301, "fanotify_mark"), (302, "prlimit64"), (303, "name_to_handle_at"),
        (305, "clock_adjtime"), (306, "syncfs"), (307, "sendmmsg"), (309, "getcpu"), (310, "process_vm_readv"),
        (311, "process_vm_writev"), (312, "kcmp"), (313, "finit_module"), (314, "sched_setattr"),
        (315, "sched_getattr"), (317, "seccomp"), (318, "getrandom"), (319, "memfd_create"),
        (320, "kexec_file_load"), (321, "bpf"), (323, "userfaultfd"), (324, "membarrier"), (325, "mlock2"),
        (326, "copy_file_range"), (327, "preadv2"), (328, "pwritev2"), (329, "pkey_mprotect"), (330, "pkey_alloc"),
        (331, "pkey_free"), (332, "statx"), (333, "io_pgetevents"), (334, "rseq"), (335, "uretprobe"),
        (336, "uprobe"), (424, "pidfd_send_signal"), (434, "pidfd_open"), (435, "clone3"), (436, "close_range"),
        (438, "pidfd_getfd"), (439, "faccessat2"), (440, "process_madvise"), (441, "epoll_pwait2"),
        (444, "landlock_create_ruleset"), (445, "landlock_add_rule"), (447, "memfd_secret"),
        (448, "process_mrelease"), (449, "futex_waitv"), (450, "set_mempolicy_home_node"), (451, "cachestat"),
        (453, "map_shadow_stack"), (454, "futex_wake"), (455, "futex_wait"), (456, "futex_requeue"),
        (457, "statmount"), (458, "listmount"), (459, "lsm_get_self_attr"), (460, "lsm_set_self_attr"),
        (461, "lsm_list_modules"), (462, "mseal"), (464, "getxattrat"), (465, "listxattrat"), (468, "file_getattr"),
        (470, "listns"),
];

#[test]
fn every_call_of_the_kernel_has_its_place() {
    let filter = Filter::new(Wanted::default());
    let mut classes: BTreeMap<i64, u32> = BTreeMap::new();
    for (calls, class) in [(ASKED, NOTIFY), (ABSENT, ERRNO | enosys()), (HARMLESS, ALLOW)] {
        for (number, name) in calls {
            assert_eq!(classes.insert(*number, class), None, "{name} is listed twice");
        }
    }
    // Opened for writing; asked to change flags.
    let arguments = |number: i64| match number {
        libc::SYS_open => [0, 1, 0, 0, 0, 0],
        libc::SYS_ioctl => [0, 0x4008_6602, 0, 0, 0, 0],
        _ => [0, 0, 1, 0, 0, 0],
    };
    for number in 0..=1000 {
        let answered = answer(&filter, number, arguments(number), ARCHITECTURE);
        let is_reserved = (337..424).contains(&number);
        match classes.get(&number) {
            Some(class) => assert_eq!(answered, *class, "{number}"),
            None if number > NEWEST => assert_eq!(answered, NOTIFY, "{number}"),
            None => assert!(is_reserved, "{number} is in no class"),
        }
    }
    let newest = classes.keys().max();
    assert_eq!(newest, Some(&NEWEST));
}

/// Where the machine has the kernel's own list, none of its calls may be missing.
#[test]
fn no_call_of_this_machine_is_missing() {
    let header = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
    let text = std::fs::read_to_string(header).unwrap_or_default();
    let all: BTreeMap<i64, &str> = [ASKED, ABSENT, HARMLESS].concat().into_iter().collect();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(number)) = (words.next(), words.next(), words.next())
            && let (Some(name), Ok(number)) = (name.strip_prefix("__NR_"), number.parse())
        {
            assert_eq!(all.get(&number), Some(&name));
        }
    }
}
