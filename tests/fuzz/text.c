/* text.c - the small parsers: times, spans, sizes, ids, taints, places, MIG layouts, percent-encoding, base64 and hex. What is taken is printed and taken
 * again as the same. */
#include "base/id.h"
#include "base/when.h"
#include "fuzz.h"
#include "model/house.h"
#include "model/mig.h"
#include "wire/digest.h"
#include "wire/http_parse.h"

static void numbers(const char *text)
{
    char out[64];
    int64_t n, back;
    if (when_parse(text, &n))
        MUST(n < 0 || (when_parse(when_text(out, n), &back) && back == n));
    if (span_parse(text, &n))
        MUST(n >= 0 && span_parse(span_text(out, n), &back) && back <= n);
    if (mib_parse(text, &n)) {
        MUST(n >= 0);
        snprintf(out, sizeof out, "%lldMB", (long long)n);
        MUST(mib_parse(out, &back) && back == n);
    }
    if (milli_parse(text, &n)) {
        snprintf(out, sizeof out, "%s%lld.%03lld", n < 0 ? "-" : "", llabs(n) / 1000, llabs(n) % 1000);
        MUST(milli_parse(out, &back) && back == n);
    }
    if (id_parse(text, "job", &n))
        MUST(n >= 0 && text_is(id_text(out, "job", n), text));
}

static void rules(const char *text, struct arena *mem)
{
    char taint[TAINT_TEXT], again[TAINT_TEXT];
    const char *words, *same;
    struct mig_layout is, could;
    struct err err = { 0 };
    if (taint_parse(text, "taint", taint, &err))
        MUST(taint_parse(taint, "taint", again, &err) && text_is(taint, again));
    if (words_parse(text, "residency", mem, &words, &err))
        MUST(words_parse(words, "residency", mem, &same, &err) && text_is(words, same));
    if (mig_layout_parse(text, "NVIDIA H200", 143771, false, &is, &err)) {
        MUST(mig_layout_parse(text, "NVIDIA H200", 143771, true, &could, &err));
        for (int i = 0; i < MIG_PROFILES; i++)
            MUST(!(is.starts[i] & ~could.starts[i]));
    }
    struct texts one = { &text, 1 };
    (void)house_admits(house_text(&one, 7, &one, mem), &(struct guest){ tolerations_text(&one, true, mem), text, 7 });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str out = { 0 };
    struct slice in = { (const char *)data, size }, bytes;
    char *text = arena_bytes(mem, data, size), *once, *twice;
    numbers(text);
    rules(text, mem);
    if (url_decode(in, true, mem, &once)) {
        str_put(&out, "", 0);
        url_encode(&out, once);
        MUST(url_decode(fuzz_slice(&out), true, mem, &twice) && text_is(once, twice));
    }
    if (base64_parse(in, mem, &bytes)) {
        str_clear(&out);
        base64_text(&out, bytes.at, bytes.len);
        MUST(out.len == size && (size == 0 || memcmp(out.at, data, size) == 0));
    }
    char *raw = arena_take(mem, size / 2 + 1, 1), *hex = arena_take(mem, size + 2, 1);
    if (hex_parse(text, raw, size / 2)) {
        hex_text(raw, size / 2, hex);
        MUST(strcasecmp(hex, text) == 0);
    }
    return 0;
}
