#include "model/hello.h"
#include "tap.h"
#include "wire/bind.h"
#include <string.h>

static bool read_as(const struct fields *fields, const char *text, struct arena *mem, void *out, struct err *err)
{
    struct json *doc;
    *err = (struct err){ 0 };
    return json_parse(SLICE(text), mem, &doc, err) && bind_read(doc, fields, mem, out, NULL, err);
}

static const char info_text[] =
    "{\"hostname\":\"n1\",\"kernel\":\"6.1\",\"cpu_milli\":2000,\"mem_mib\":4096,\"gpus\":[{\"index\":0,\"uuid\":\"GPU-1\",\"model\":\"NVIDIA H200\","
    "\"mem_mib\":143771,\"simulated\":true,\"healthy\":true}],\"labels\":{\"zone\":\"a\"},\"cannot\":[\"cgroup v1: buffered writes are not limited\"]}";

TEST(a_hello_needs_its_inventory_and_its_next_number)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct hello hello = { 0 };
    struct err err;
    str_printf(&text, "{\"kind\":\"hello\",\"info\":%s,\"running\":[\"att-0000000000001\"],\"generation\":3,\"beat\":1,\"next\":9}", info_text);
    CHECK(read_as(&hello_fields, text.at, mem, &hello, &err));
    CHECK(hello.next == 9 && hello.beat == 1 && hello.generation == 3 && hello.running.count == 1 && text_is(hello.info.hostname, "n1"));
    CHECK(!read_as(&hello_fields, "{\"kind\":\"hello\",\"next\":1}", mem, &hello, &err));
    str_clear(&text);
    str_printf(&text, "{\"kind\":\"hello\",\"info\":%s}", info_text);
    CHECK(!read_as(&hello_fields, text.at, mem, &hello, &err) && strstr(err.text, "next"));
    str_clear(&text);
    str_printf(&text, "{\"kind\":\"hello\",\"info\":%s,\"next\":0}", info_text);
    CHECK(!read_as(&hello_fields, text.at, mem, &hello, &err));
}
