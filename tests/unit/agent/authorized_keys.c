/* authorized_keys.c - what a session puts into ~/.ssh, and that nothing of its owner's is ever lost by it. */
#include "agent/authorized_keys.h"
#include "agent/tree.h"
#include "base/arena.h"
#include "tap.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "ssh-ed25519 AAAAone"
#define B "ssh-ed25519 AAAAtwo"
#define NOW INT64_C(1790000000)
static const char *one[] = { A " ada at home" }, *two[] = { B };
static const struct texts key = { one, 1 }, other = { two, 1 }, none = { 0 };

struct home { char top[48], ssh[64], file[96]; struct arena *mem; struct err err; };
static struct home home_make(void)
{
    struct home h = { .top = "/tmp/arcus-keys-XXXXXX", .mem = arena_new() };
    CHECK(mkdtemp(h.top) != NULL);
    snprintf(h.ssh, sizeof h.ssh, "%s/.ssh", h.top);
    snprintf(h.file, sizeof h.file, "%s/authorized_keys", h.ssh);
    return h;
}
static void home_drop(struct home *h)
{
    CHECK(tree_remove(h->top, &h->err));
    arena_free(h->mem);
}
static void put_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, n) == (ssize_t)n);
    close(fd);
}
static void his(struct home *h, const char *text)
{
    mkdir(h->ssh, 0700);
    put_file(h->file, text, strlen(text));
}
static bool holds(const char *path, const char *text, size_t n)
{
    static char at[512 << 10];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, at, sizeof at) : -1;
    close(fd);
    return got == (ssize_t)n && memcmp(at, text, n) == 0;
}
static bool is(struct home *h, const char *text)
{
    return holds(h->file, text, strlen(text));
}
static bool put(struct home *h, const struct texts *keys, const struct texts *barred, int64_t now_s)
{
    return authorized_keys_put(h->ssh, keys, barred, now_s, h->mem, &h->err);
}

TEST(a_line_of_ours_is_written_once_and_goes_when_a_later_session_begins_or_it_is_barred)
{
    struct home h = home_make();
    struct stat st;
    CHECK(put(&h, &key, &none, NOW) && is(&h, A " arcus-1790000000 ada at home\n"));
    CHECK(stat(h.file, &st) == 0 && (st.st_mode & 0777) == 0600 && stat(h.ssh, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(put(&h, &key, &none, NOW + 9) && is(&h, A " arcus-1790000009 ada at home\n"));
    CHECK(put(&h, &other, &none, NOW + 310) && is(&h, A " arcus-1790000009 ada at home\n" B " arcus-1790000310\n"));
    CHECK(put(&h, &other, &none, NOW + 320) && is(&h, B " arcus-1790000320\n"));
    CHECK(put(&h, &key, &other, NOW + 321) && is(&h, A " arcus-1790000321 ada at home\n"));
    CHECK(put(&h, &other, &none, NOW) && is(&h, B " arcus-1790000000\n"));     /* the other is of a time to come */
    home_drop(&h);
}

TEST(what_the_owner_wrote_stays_even_where_its_comment_begins_as_ours_do)
{
    static const char own[] = "# mine\n\n" B " arcus-laptop\nssh-rsa AAAA arcus-20261116\nssh-rsa AAAB arcus-17900000001 x\nssh-rsa AAAC arcus-1790000000x\nssh-rsa AAAD arcus-\n"
                              "command=\"id\" ssh-rsa AAAE arcus-1000000000\n";
    struct home h = home_make();
    his(&h, own);
    CHECK(put(&h, &none, &other, NOW) && is(&h, own));
    CHECK(put(&h, &key, &other, NOW) && is(&h, arena_printf(h.mem, "%s" A " arcus-1790000000 ada at home\n", own)));
    his(&h, A " without an end of line");
    CHECK(put(&h, &key, &key, NOW) && is(&h, A " without an end of line\n"));    /* and it lets in already */
    home_drop(&h);
}

TEST(a_file_that_is_not_read_whole_is_not_written)
{
    static char large[(256 << 10) + 1];
    struct home h = home_make();
    his(&h, "");
    memset(large, 'x', sizeof large);
    put_file(h.file, large, sizeof large);
    CHECK(!put(&h, &key, &none, NOW) && strstr(h.err.text, "larger than 256 KB") && holds(h.file, large, sizeof large));
    put_file(h.file, large, sizeof large - 1);
    CHECK(put(&h, &none, &none, NOW) && holds(h.file, arena_printf(h.mem, "%s\n", arena_bytes(h.mem, large, sizeof large - 1)), sizeof large));
    put_file(h.file, "a\0b\n", 4);
    CHECK(!put(&h, &key, &none, NOW) && strstr(h.err.text, "no text") && holds(h.file, "a\0b\n", 4));
    CHECK(unlink(h.file) == 0 && mkdir(h.file, 0700) == 0 && !put(&h, &key, &none, NOW));
    CHECK(rmdir(h.file) == 0 && mkfifo(h.file, 0600) == 0 && put(&h, &key, &none, NOW) && is(&h, A " arcus-1790000000 ada at home\n"));
    home_drop(&h);
}

TEST(a_link_stays_one_and_what_it_leads_to_is_written)
{
    struct home h = home_make();
    struct stat st;
    const char *folder = arena_printf(h.mem, "%s/volume", h.top), *target = arena_printf(h.mem, "%s/keys", folder), *line = A " arcus-1790000000 ada at home\n";
    CHECK(mkdir(folder, 0700) == 0 && mkdir(h.ssh, 0700) == 0 && symlink("../volume/keys", h.file) == 0);
    CHECK(put(&h, &key, &none, NOW) && holds(target, line, strlen(line)));     /* it led nowhere until now */
    put_file(target, B "\n", strlen(B "\n"));
    CHECK(put(&h, &key, &none, NOW) && is(&h, arena_printf(h.mem, B "\n%s", line)) && lstat(h.file, &st) == 0 && S_ISLNK(st.st_mode) && lstat(target, &st) == 0 && S_ISREG(st.st_mode));
    CHECK(unlink(h.file) == 0 && symlink("/nowhere/at/all", h.file) == 0 && !put(&h, &key, &none, NOW) && lstat(h.file, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(unlink(target) == 0 && mkfifo(target, 0600) == 0 && unlink(h.file) == 0 && symlink(target, h.file) == 0);
    CHECK(!put(&h, &key, &none, NOW) && strstr(h.err.text, "no file") && lstat(target, &st) == 0 && S_ISFIFO(st.st_mode));
    home_drop(&h);
}
