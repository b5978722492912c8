/* The attacker: changes a file by one system call, naming it in one way, as somebody.
 *
 * usage: attacker WHO SCRATCH   with lines `DIRECTORY CALL WAY` on standard input.
 *
 * Each line is carried out by a process of its own, below DIRECTORY, and answered by `DIRECTORY CALL WAY RESULT` on
 * standard output: `0`, the error, or `-` if the call cannot name a file in that way. With `list` as WHO it tells the
 * calls, the ways and who there is. Everything goes by raw system calls: no library decides anything.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#define N(name) (sizeof(name) / sizeof((name)[0]))
#define PAGE 4096
#define EMPTY 0x1000
#define USER 12345
#define TRIES 40

/* Newer than some headers. */
#define NR_fchmodat2 452
#define NR_setxattrat 463
#define NR_removexattrat 466
#define NR_file_setattr 469
struct at_value { uint64_t value; uint32_t size, flags; };
struct attributes { uint64_t xflags; uint32_t extsize, nextents, projid, cowextsize; };

static const char *scratch;
static char here[PAGE];

/* How a file is named: a descriptor or AT_FDCWD, a path, and the flag for an empty one. */
struct operand {
    int at;
    const char *path;
    int flags;
};

static const struct operand none = { -2, NULL, 0 };

static char *words(const char *format, ...) {
    static char rooms[16][2 * PAGE];
    static unsigned next;
    char *room = rooms[next++ % 16];
    va_list list;
    va_start(list, format);
    vsnprintf(room, sizeof rooms[0], format, list);
    va_end(list);
    return room;
}

static struct operand by(const char *path) { return (struct operand){ AT_FDCWD, path, 0 }; }
static struct operand at(int descriptor, const char *path) { return (struct operand){ descriptor, path, 0 }; }

static int handle(const char *name) { return open(name, O_PATH | O_NOFOLLOW); }
static int reader(const char *name) { return open(name, O_RDONLY | O_NONBLOCK); }
static int here_handle(void) { return open(".", O_PATH | O_DIRECTORY); }

/* The ways. Each gets a name in the current directory. `none`: not so. */

static struct operand relative(const char *t) { return by(t); }
static struct operand absolute(const char *t) { return by(words("%s/%s", here, t)); }
static struct operand by_handle(const char *t) { return at(here_handle(), t); }
static struct operand by_directory(const char *t) { return at(open(".", O_RDONLY | O_DIRECTORY), t); }
static struct operand no_descriptor(const char *t) { return at(-1, words("%s/%s", here, t)); }
static struct operand empty(const char *t) {
    int fd = handle(t);
    return fd < 0 ? none : (struct operand){ fd, "", EMPTY };
}
static struct operand empty_open(const char *t) {
    int fd = reader(t);
    return fd < 0 ? none : (struct operand){ fd, "", EMPTY };
}
static struct operand null(const char *t) {
    int fd = reader(t);
    return fd < 0 ? none : (struct operand){ fd, NULL, EMPTY };
}
static struct operand number(const char *format, int fd) { return fd < 0 ? none : by(words(format, fd)); }
static struct operand proc_handle(const char *t) { return number("/proc/self/fd/%d", handle(t)); }
static struct operand proc_open(const char *t) { return number("/proc/self/fd/%d", reader(t)); }
static struct operand proc_slashes(const char *t) { return number("//proc///self/./fd/%d", reader(t)); }
static struct operand proc_thread(const char *t) { return number("/proc/thread-self/fd/%d", reader(t)); }
static struct operand dev_fd(const char *t) { return number("/dev/fd/%d", reader(t)); }
static struct operand proc_relative(const char *t) {
    int fd = reader(t);
    return fd < 0 || chdir("/proc") ? none : number("self/fd/%d", fd);
}
static struct operand proc_at(const char *t) {
    int fd = reader(t), fds = open("/proc/self/fd", O_PATH | O_DIRECTORY);
    return fd < 0 ? none : at(fds, words("%d", fd));
}
static struct operand proc_directory(const char *t) { return by(words("/proc/self/fd/%d/%s", here_handle(), t)); }
static struct operand proc_task(const char *t) {
    return by(words("/proc/self/task/%ld/fd/%d/%s", syscall(SYS_gettid), here_handle(), t));
}
static struct operand proc_number(const char *t) { return by(words("/proc/%d/cwd/%s", getpid(), t)); }
static struct operand proc_parent(const char *t) {
    const char *last = strrchr(here, '/');
    return by(words("/proc/%d/cwd%s/%s", getppid(), last, t));
}
static struct operand proc_cwd(const char *t) { return by(words("/proc/self/cwd/%s", t)); }
static struct operand proc_cwd_up(const char *t) { return by(words("/proc/self/cwd/..%s/%s", strrchr(here, '/'), t)); }
static struct operand proc_root(const char *t) { return by(words("/proc/self/root%s/%s", here, t)); }
static struct operand chrooted(const char *t) { return chroot(".") ? none : by(words("/%s", t)); }
static struct operand chrooted_up(const char *t) { return chroot(".") ? none : by(words("/../../%s", t)); }
static struct operand chrooted_link(const char *t) { return chroot(".") ? none : by(words("root_%s", t)); }
static struct operand chrooted_descriptor(const char *t) {
    int fd = here_handle();
    return chroot("d") || chdir("/") ? none : at(fd, t);
}
static struct operand chrooted_outside(const char *t) {
    return chroot("d") ? none : by(words("..%s/%s", strrchr(here, '/'), t));
}
static int apart(void) {
    return unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}
static struct operand bound(const char *t) {
    if (apart() || mount(".", scratch, NULL, MS_BIND, NULL)) return none;
    return by(words("%s/%s", scratch, t));
}
static struct operand bound_below(const char *t) {
    if (apart() || mount(".", "d", NULL, MS_BIND, NULL)) return none;
    return by(words("d/%s", t));
}
static struct operand bound_here(const char *t) {
    if (mount(".", scratch, NULL, MS_BIND, NULL)) return none;
    int fd = open(scratch, O_PATH | O_DIRECTORY);
    umount2(scratch, MNT_DETACH);
    return at(fd, t);
}
static struct operand moved_mount(const char *t) {
    if (apart() || mount(".", scratch, NULL, MS_BIND, NULL) || mount(scratch, "d", NULL, MS_MOVE, NULL)) return none;
    return by(words("d/%s", t));
}
static struct operand tree(const char *t) {
    int fd = syscall(SYS_open_tree, AT_FDCWD, ".", 1);
    return fd < 0 ? none : at(fd, t);
}
static struct operand hard(const char *t) { return by(words("h/%s", t)); }
static struct operand link_(const char *t) { return by(words("s_%s", t)); }
static struct operand chain(const char *t) { return by(words("c_%s", t)); }
static struct operand link_absolute(const char *t) { return by(words("a_%s", t)); }
static struct operand link_proc(const char *t) { return by(words("p_%s", t)); }
static struct operand link_directory(const char *t) { return by(words("to_here/to_here/%s", t)); }
static struct operand slash(const char *t) { return by(words("%s/", t)); }
static struct operand slashes(const char *t) { return by(words("%s///", t)); }
static struct operand dot(const char *t) { return by(words("%s/.", t)); }
static struct operand dots(const char *t) { return by(words("d/.././/d/../%s", t)); }
static struct operand deleted(const char *t) { return by(words("%s (deleted)", t)); }
static struct operand deleted_open(const char *t) { return proc_open(words("%s (deleted)", t)); }
static struct operand moved_directory(const char *t) {
    int fd = open("d", O_PATH | O_DIRECTORY);
    return rename("d", "moved") ? none : at(fd, t);
}
static struct operand moved_here(const char *t) { return chdir("d") || rename("../d", "../moved") ? none : by(t); }
static struct operand swapped_directory(const char *t) {
    int fd = open("d", O_PATH | O_DIRECTORY);
    return syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "o", 2) ? none : at(fd, t);
}
static struct operand moved_open(const char *t) {
    int fd = reader(t);
    return fd < 0 || rename(t, "d/away") ? none : number("/proc/self/fd/%d", fd);
}
static struct operand removed_open(const char *t) {
    int fd = reader(t);
    return fd < 0 || unlink(t) ? none : (struct operand){ fd, "", EMPTY };
}
static struct operand removed_proc(const char *t) {
    int fd = reader(t);
    return fd < 0 || unlink(t) ? none : number("/proc/self/fd/%d", fd);
}
static struct operand replaced_open(const char *t) {
    int fd = reader(t);
    return fd < 0 || rename("g", t) ? none : (struct operand){ fd, "", EMPTY };
}

/* Where the path stands in memory. */
static char *pages(int count) {
    return mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static struct operand in_memory(const char *t, int rights) {
    char *room = pages(1);
    strcpy(room + 100, t);
    return mprotect(room, PAGE, rights) ? none : by(room + 100);
}
static struct operand memory_write(const char *t) { return in_memory(t, PROT_WRITE); }
static struct operand memory_exec(const char *t) { return in_memory(t, PROT_EXEC); }
static struct operand memory_none(const char *t) { return in_memory(t, PROT_NONE); }
static struct operand memory_end(const char *t) {
    char *room = pages(2);
    munmap(room + PAGE, PAGE);
    return by(strcpy(room + PAGE - strlen(t) - 1, t));
}
static struct operand memory_straddles(const char *t) {
    char *room = pages(2);
    char *path = strcpy(room + PAGE - 5, words("./././%s", t));
    mprotect(room + PAGE, PAGE, PROT_WRITE);
    return by(path);
}
static struct operand memory_cut(const char *t) {
    char *room = pages(2);
    char *path = strcpy(room + PAGE - 5, words("./././%s", t));
    munmap(room + PAGE, PAGE);
    return by(path);
}
static struct operand memory_secret(const char *t) {
    int fd = syscall(SYS_memfd_secret, 0);
    if (fd < 0 || ftruncate(fd, PAGE)) return none;
    char *room = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return room == MAP_FAILED ? none : by(strcpy(room, t));
}
static struct operand memory_first(const char *t) {
    char *room = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (room == MAP_FAILED) return none;
    strcpy(room + 8, t);
    return by(room + 8);
}
static struct operand memory_file(const char *t) {
    int fd = memfd_create("path", 0);
    if (ftruncate(fd, PAGE)) return none;
    char *room = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return by(strcpy(room, t));
}

#include "flips.h"

#define WAY(name) { #name, name }
static const struct way {
    const char *name;
    struct operand (*find)(const char *);
} ways[] = {
    WAY(relative), WAY(absolute), WAY(by_handle), WAY(by_directory), WAY(no_descriptor), WAY(empty), WAY(empty_open),
    WAY(null), WAY(proc_handle), WAY(proc_open), WAY(proc_slashes), WAY(proc_thread), WAY(dev_fd), WAY(proc_relative),
    WAY(proc_at), WAY(proc_directory), WAY(proc_task), WAY(proc_number), WAY(proc_parent), WAY(proc_cwd), WAY(proc_cwd_up),
    WAY(proc_root), WAY(chrooted), WAY(chrooted_up), WAY(chrooted_link), WAY(chrooted_descriptor), WAY(chrooted_outside),
    WAY(bound), WAY(bound_below), WAY(bound_here), WAY(moved_mount), WAY(tree), WAY(hard), { "link", link_ }, WAY(chain),
    WAY(link_absolute), WAY(link_proc), WAY(link_directory), WAY(slash), WAY(slashes), WAY(dot), WAY(dots), WAY(deleted),
    WAY(deleted_open), WAY(moved_directory), WAY(moved_here), WAY(swapped_directory), WAY(moved_open), WAY(removed_open),
    WAY(removed_proc), WAY(replaced_open), WAY(memory_write), WAY(memory_exec), WAY(memory_none), WAY(memory_end),
    WAY(memory_straddles), WAY(memory_cut), WAY(memory_secret), WAY(memory_first), WAY(memory_file), WAY(flip_memory),
    WAY(flip_directory), WAY(flip_descriptor), WAY(flip_link), WAY(flip_parent),
};

#include "calls.h"

/* Who does it. */

static int with_capabilities(uint32_t low) {
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2] = { { low, low, 0 }, { 0, 0, 0 } };
    return syscall(SYS_capset, &header, data);
}
static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    int wrote = fd < 0 || write(fd, text, strlen(text)) < 0;
    close(fd);
    return wrote;
}
static int in_user_namespace(void) {
    char *user = words("0 %d 1", getuid()), *group = words("0 %d 1", getgid());
    if (unshare(CLONE_NEWUSER)) return -1;
    put("/proc/self/setgroups", "deny");
    return put("/proc/self/uid_map", user) || put("/proc/self/gid_map", group);
}
static int as_nobody_known(void) { return unshare(CLONE_NEWUSER); }
static int as_user(void) {
    return syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, USER, USER, USER)
        || syscall(SYS_setresuid, USER, USER, USER);
}
static int as_itself(void) { return 0; }
static int without_capabilities(void) { return with_capabilities(0); }
static int with_some(void) { return with_capabilities(1 << CAP_CHOWN | 1 << CAP_FOWNER | 1 << CAP_SYS_CHROOT); }
static int among_others(void) {
    if (unshare(CLONE_NEWPID)) return -1;
    pid_t child = fork();
    if (child > 0) {
        waitpid(child, NULL, 0);
        _exit(0);
    }
    return child < 0;
}
static int with_own_proc(void) {
    return apart() || among_others() || mount("proc", "/proc", "proc", 0, NULL);
}
static int landlocked(void) {
    struct landlock_ruleset_attr rules = { .handled_access_fs = (1ULL << 13) - 1 };
    int set = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (set < 0) return -1;
    struct landlock_path_beneath_attr all = { rules.handled_access_fs, open("/", O_PATH) };
    return syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &all, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || syscall(SYS_landlock_restrict_self, set, 0);
}

static const struct who {
    const char *name;
    int (*become)(void);
} everybody[] = {
    { "itself", as_itself }, { "user", as_user }, { "bare", without_capabilities }, { "some", with_some },
    { "userns", in_user_namespace }, { "unmapped", as_nobody_known }, { "pidns", among_others },
    { "own_proc", with_own_proc }, { "landlock", landlocked },
};

static void attack(const struct who *who, const char *directory, const struct call *call, const struct way *way) {
    char *result = "-";
    alarm(30);
    if (chdir(directory) || !getcwd(here, sizeof here)) result = "lost";
    else if (who->become()) result = "nobody";
    else {
        /* What turns while it is used is used often: it has to be met in the right moment. */
        int times = strncmp(way->name, "flip_", 5) ? 1 : TRIES;
        long done = NOT_SO;
        while (times--) done = call->make(way->find);
        if (done != NOT_SO) result = done == 0 ? "0" : words("%s", strerrorname_np((int)done));
    }
    dprintf(1, "%s %s %s %s\n", directory, call->name, way->name, result);
    _exit(0);
}

#define FIND(table, wanted) \
    ({ \
        size_t i = 0; \
        while (i < N(table) && strcmp(table[i].name, wanted)) i++; \
        if (i == N(table)) { dprintf(2, "no `%s`\n", wanted); return 2; } \
        &table[i]; \
    })

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "list")) {
        for (size_t i = 0; i < N(calls); i++) printf("call %s %s\n", calls[i].name, calls[i].system);
        for (size_t i = 0; i < N(ways); i++) printf("way %s\n", ways[i].name);
        for (size_t i = 0; i < N(everybody); i++) printf("who %s\n", everybody[i].name);
        return 0;
    }
    if (count != 3) return 2;
    const struct who *who = FIND(everybody, arguments[1]);
    scratch = arguments[2];
    char directory[256], call_name[64], way_name[64];
    while (scanf("%255s %63s %63s", directory, call_name, way_name) == 3) {
        const struct call *call = FIND(calls, call_name);
        const struct way *way = FIND(ways, way_name);
        pid_t child = fork();
        if (child == 0) attack(who, directory, call, way);
        int status;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status)) dprintf(1, "%s %s %s signal%d\n", directory, call_name, way_name, WTERMSIG(status));
    }
    return 0;
}
