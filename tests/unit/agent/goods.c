#include "containers.h"
#include "agent/goods.h"
#include "model/goods.h"
#include "wire/digest.h"
#include <stdlib.h>
#include <sys/stat.h>

static bool sh(const char *fmt, ...) PRINTF(1, 2);
static bool sh(const char *fmt, ...)
{
    va_list ap;
    char line[4096];
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    return system(line) == 0;
}

static bool told(const struct texts *has, int64_t key, int64_t mib)
{
    struct good g;
    for (size_t i = 0; i < has->count; i++)
        if (good_parse(has->at[i], &g) && g.key == key)
            return g.mib >= mib && g.mib <= mib + 1;
    return false;
}

TEST(images_by_reference_and_archive_and_work_folders_are_told_if_they_are_large)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    CHECK(digest_start());
    char top[] = "/tmp/arcus-goods-XXXXXX", hex[DIGEST_HEX];
    struct os *os = os_real_new(&err);
    CHECK(mkdtemp(top) != NULL);
    digest_sha256("debian:12", 9, hex);
    const char *image = "1111111111111111111111111111111111111111111111111111111111111111", *archive = "2222222222222222222222222222222222222222222222222222222222222222",
               *blob = "3333333333333333333333333333333333333333333333333333333333333333";
    CHECK(goods_look(os, top, mem).count == 0);
    CHECK(sh("cd %s && mkdir -p images/refs images/%s/rootfs images/archive-%s/rootfs blobs && truncate -s 40M blobs/%s && truncate -s 1M blobs/4%.63s", top, image, archive, blob, blob));
    CHECK(sh("cd %s && head -c 30M /dev/zero >images/%s/rootfs/a && head -c 20M /dev/zero >images/archive-%s/rootfs/a", top, image, archive));
    CHECK(sh("cd %s && printf sha256:%s >images/refs/%s && printf ../../../etc >images/refs/5%.63s && printf sha256:%.63s/ >images/refs/6%.63s", top, image, hex, image, image, image));
    struct texts has = goods_look(os, top, mem);
    CHECK(has.count == 3);
    CHECK(told(&has, good_of_reference("debian:12"), 30) && told(&has, good_of_digest(arena_printf(mem, "sha256:%s", archive)), 20)
          && told(&has, good_of_digest(arena_printf(mem, "sha256:%s", blob)), 40));
    CHECK(sh("test -s %s/images/%s/bytes && echo 104857600 >%s/images/%s/bytes", top, image, top, image));      /* it is not weighed again */
    has = goods_look(os, top, mem);
    CHECK(told(&has, good_of_reference("debian:12"), 100));
    for (int i = 0; i < 40; i++)
        CHECK(sh("cd %s/blobs && truncate -s 32M %02d%.62s && touch -d @%d %02d%.62s", top, i, blob, 2000 + i, i, blob));
    has = goods_look(os, top, mem);
    CHECK(has.count == GOODS_MOST && told(&has, good_of_reference("debian:12"), 100));       /* what was used last */
    struct texts again = goods_look(os, top, mem);
    for (size_t i = 0; i < has.count; i++)
        CHECK(text_is(has.at[i], again.at[i]));
    CHECK(sh("rm -rf %s", top));
    os_free(os);
}
