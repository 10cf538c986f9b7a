/* replay.c - the corpus of a target without libFuzzer: every file as it is, and a fixed number of damaged copies of it. One
 * TAP line for each file. The name of the program, fuzz-NAME, tells the folder tests/fuzz/corpus/NAME; files on the command
 * line (a crash to look at) are run instead. */
#include "fuzz.h"
#include "base/rand.h"
#include <dirent.h>
#include <errno.h>

enum { DAMAGED = 64, LARGEST = 1 << 20 };

static void read_file(const char *path, struct str *out)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t n;
    str_clear(out);
    while (out->len < LARGEST && (n = fread(str_grow(out, 4096), 1, 4096, f)) > 0)
        out->len += n;
    fclose(f);
}

/* Memory of exactly its size, so that the sanitizer sees a read behind it. */
static void run_bytes(const char *at, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    memcpy(copy, at, n);
    if (getenv("FUZZ_KEEP")) {          /* the last input, to look at after a crash */
        FILE *f = fopen(getenv("FUZZ_KEEP"), "wb");
        if (f) {
            fwrite(at, 1, n, f);
            fclose(f);
        }
    }
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void run_file(const char *path)
{
    static const char odd[] = "\0\n\r\t \"\\{}[]:,-+0x9;%\x7f\x80\xff";
    AUTO(str_done) struct str whole = { 0 }, copy = { 0 };
    struct rng r = { 1 };
    read_file(path, &whole);
    str_put(&whole, "", 0);
    run_bytes(whole.at, whole.len);
    for (int i = 0; i < DAMAGED && whole.len; i++) {
        str_clear(&copy);
        str_put(&copy, whole.at, i % 4 ? whole.len : rng_below(&r, whole.len));
        for (size_t k = 0; k < 1 + rng_below(&r, 3) && copy.len; k++)
            copy.at[rng_below(&r, copy.len)] = rng_below(&r, 2) ? odd[rng_below(&r, sizeof odd - 1)] : (char)rng_next(&r);
        run_bytes(copy.at, copy.len);
    }
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/'), *dash = strchr(name ? name : argv[0], '-');
    char folder[256], path[600];
    struct dirent **files;
    if (argc > 1) {
        for (int i = 1; i < argc; i++)
            run_file(argv[i]);
        return 0;
    }
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", dash ? dash + 1 : "");
    int count = scandir(folder, &files, visible, alphasort);
    if (count <= 0) {
        printf("1..1\nnot ok 1 - no corpus in %s; run from the root of the tree\n", folder);
        return 1;
    }
    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        run_file(path);
        printf("ok %d - %s\n", i + 1, files[i]->d_name);
        fflush(stdout);
        free(files[i]);
    }
    free(files);
    return 0;
}
