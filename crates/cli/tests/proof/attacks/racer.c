/* The racer: two processes do two things to the same names, at the same moment, again and again.
 *
 * usage: racer STORY ROUNDS WHO
 *
 * In the current directory there are, for each round N, files `fN` and `gN` and a directory `dN` with a directory `y` in it.
 * WHO tells which of the two are another user: `none`, `second` or `both`. With `list` as STORY it tells the stories.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 12345
#define N(name) (sizeof(name) / sizeof((name)[0]))

static char f[64], g[64], d[64], n[64], inner[64], old[64];

static void put(int fd, const char *text) {
    if (fd < 0) return;
    if (write(fd, text, strlen(text)) < 0) perror("write");
    close(fd);
}

/* What one of them does in one round. Many fail: the other was faster. */
static void replace(void) { (void)!rename(g, f); }
static void cut(void) { put(open(f, O_WRONLY | O_TRUNC), "cut\n"); }
static void append(void) { put(open(f, O_WRONLY | O_APPEND), "appended\n"); }
static void create(void) { put(open(f, O_WRONLY | O_CREAT | O_TRUNC, 0644), "made\n"); }
static void shorten(void) { (void)!truncate(f, 1); }
static void take_away(void) { (void)!unlink(f); }
static void second_name(void) { (void)!link(f, n); }
static void move(void) { (void)!rename(f, n); }
static void make_below(void) { (void)!mkdir(inner, 0755); }
static void remove_below(void) { (void)!rmdir(old); }
static void write_below(void) { put(open(inner, O_WRONLY | O_CREAT, 0644), "below\n"); }
static void move_directory(void) { (void)!rename(d, n); }
static void remove_directory(void) { (void)!(rmdir(old) + rmdir(d)); }
static void swap(void) { (void)!syscall(SYS_renameat2, AT_FDCWD, f, AT_FDCWD, g, 2); }
static void close_to_others(void) { (void)!chmod(f, 0600); }
static void link_over(void) { (void)!(link(g, n) + rename(n, f)); }

static const struct story {
    const char *name;
    void (*first)(void), (*second)(void);
} stories[] = {
    { "replace_cut", replace, cut },       { "replace_shorten", replace, shorten }, { "unlink_append", take_away, append },
    { "unlink_create", take_away, create }, { "link_move", second_name, move },     { "link_cut", second_name, cut },
    { "mkdir_move", make_below, move_directory }, { "rmdir_move", remove_below, move_directory },
    { "write_move", write_below, move_directory }, { "mkdir_rmdir", make_below, remove_directory },
    { "swap_cut", swap, cut },             { "swap_append", swap, append },         { "swap_unlink", swap, take_away },
    { "replace_chmod", replace, close_to_others }, { "replace_unlink", replace, take_away },
    { "link_over_cut", link_over, cut },   { "move_create", move, create },
};

static void name(int round) {
    snprintf(f, sizeof f, "f%d", round);
    snprintf(g, sizeof g, "g%d", round);
    snprintf(d, sizeof d, "d%d", round);
    snprintf(n, sizeof n, "n%d", round);
    snprintf(inner, sizeof inner, "d%d/x", round);
    snprintf(old, sizeof old, "d%d/y", round);
}

/* Both begin a round together. */
static void run(void (*act)(void), int rounds, atomic_int *own, atomic_int *other) {
    for (int round = 0; round < rounds; round++) {
        name(round);
        atomic_store(own, round + 1);
        for (long spin = 0; atomic_load(other) < round + 1; spin++)
            if (spin > 1000) usleep(10);
        act();
    }
}

static void become_another(void) {
    if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, USER, USER, USER) || syscall(SYS_setresuid, USER, USER, USER))
        _exit(3);
}

int main(int count, char **arguments) {
    if (count == 2) {
        for (size_t i = 0; i < N(stories); i++) puts(stories[i].name);
        return 0;
    }
    if (count != 4) return 2;
    size_t i = 0;
    while (i < N(stories) && strcmp(stories[i].name, arguments[1])) i++;
    if (i == N(stories)) return 2;
    int rounds = atoi(arguments[2]), second = strcmp(arguments[3], "none") != 0, both = !strcmp(arguments[3], "both");
    atomic_int *turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        if (second) become_another();
        run(stories[i].second, rounds, turns + 1, turns);
        _exit(0);
    }
    if (both) become_another();
    run(stories[i].first, rounds, turns, turns + 1);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
