/* Ways that change while they are used: a second thread turns the name from one file to another, as fast as it can. */

static char turning[PAGE];
static int turned = -1;
static int is_turning;
/* The second thread makes no words of its own: it would write into those of the first. */
static char one[PAGE], another[PAGE], link_name[PAGE], new_name[PAGE];

static void *turn_memory(void *t) {
    char this = *(char *)t, that = this == 'f' ? 'g' : this == 'e' ? 'k' : this == 'n' ? 'm' : 'j';
    for (;;) {
        *(volatile char *)turning = this;
        *(volatile char *)turning = that;
    }
    return t;
}
static void *turn_directory(void *t) {
    for (;;)
        if (chdir(one) || chdir(another)) return t;
}
static void *turn_descriptor(void *t) {
    int this = open(one, O_PATH), that = open(another, O_PATH);
    for (;;)
        if (dup2(this, turned) < 0 || dup2(that, turned) < 0) return t;
}
static void *turn_link(void *t) {
    for (int i = 0;; i++)
        if (symlink(i % 2 ? "d" : "o", new_name) || rename(new_name, link_name)) return t;
}
static void *turn_parent(void *t) {
    for (;;)
        if (syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, another, 2)) return t;
}
static void turn(void *(*how)(void *), const char *t) {
    pthread_t thread;
    if (is_turning) return;
    strcpy(one, words("%s/d", here));
    strcpy(another, words("%s/o", here));
    strcpy(link_name, words("%s/flip", here));
    strcpy(new_name, words("%s/flop", here));
    is_turning = !pthread_create(&thread, NULL, how, strdup(t));
}

static struct operand flip_memory(const char *t) {
    if (!is_turning) strcpy(turning, t);
    turn(turn_memory, t);
    return by(turning);
}
static struct operand flip_directory(const char *t) {
    turn(turn_directory, t);
    return by(t);
}
static struct operand flip_descriptor(const char *t) {
    if (turned < 0) turned = open("d", O_PATH);
    turn(turn_descriptor, t);
    return at(turned, t);
}
static struct operand flip_link(const char *t) {
    turn(turn_link, t);
    return by(words("%s/flip/%s", here, t));
}
static struct operand flip_parent(const char *t) {
    turn(turn_parent, t);
    return by(words("%s/d/%s", here, t));
}
