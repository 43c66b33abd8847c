/* base/ in a program whose mem_failed returns NULL, as in the libraries:
 * without memory each step fails and leaves its inputs unchanged. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/url.h"
#include "test/t.h"

TEST(an_allocation_without_memory_returns_null)
{
    char *p = mem_new(8);

    CHECK(p);
    fault_arm_at("mem", 1);
    CHECK(!mem_new(8));
    fault_arm_at("mem", 1);
    CHECK(!mem_array(2, 8));
    fault_arm_at("mem", 1);
    CHECK(!mem_copy("text", 4));
    fault_arm_at("mem", 1);
    CHECK(!mem_resize(p, 2, 8) && p[7] == 0);
    CHECK(fault_fired());
    free(p);
}

TEST(allocation_survives_every_fault)
{
    long nth = 0;

    do {
        struct arena a;
        int got = 0;

        arena_init(&a, 1 << 20);
        fault_arm_at("mem", ++nth);
        for (int i = 0; i < 100; i++)
            got += arena_alloc(&a, 100) != NULL;
        CHECK(fault_fired() ? got == 99 : got == 100);
        arena_fini(&a);
    } while (fault_fired());
    CHECK(nth > 2);
}

TEST(growing_survives_every_fault)
{
    long nth = 0;

    do {
        struct buf b;

        fault_arm_at("mem", ++nth);
        buf_init(&b, 1000);
        for (int i = 0; i < 500; i++)
            buf_add_char(&b, 'x');
        CHECK(b.over == fault_fired());
        CHECK(b.over ? b.n < 500 : b.n == 500);
        buf_fini(&b);
    } while (fault_fired());
    CHECK(nth > 3);
}

TEST(a_map_survives_every_fault)
{
    static char names[100][8];
    long nth = 0;

    do {
        struct map m;
        size_t n = 0;

        fault_arm_at("mem", ++nth);
        map_init(&m, 1000, (uint64_t[]){1, 2});
        for (int i = 0; i < 100; i++) {
            snprintf(names[i], sizeof(names[i]), "k%d", i);
            n += map_put(&m, str_of(names[i]), names[i]) == OK;
        }
        CHECK(n == (fault_fired() ? 99 : 100) && map_check(&m));
        map_fini(&m);
    } while (fault_fired());
    CHECK(nth > 3);
}

static enum err read_and_write(struct str text)
{
    struct str key = STR("k3"), value;
    enum err e = ERR_NOMEM;
    struct arena a;
    struct buf b;
    struct json_out o = json_out(&b);
    struct json *v;

    arena_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    v = json_parse(&a, text, 0, NULL);
    if (!v)
        goto out;
    json_put(&o, v);
    if (b.over)
        goto out;
    e = json_scan(buf_str(&b), &key, 1, &value, NULL);
    if (e)
        goto out;
    buf_fini(&b);
    buf_clear(&b);
    e = json_splice(&b, text, key, STR("17"), NULL);
    if (!e && !json_unquote(&a, STR("\"a\\n\""), &value))
        e = ERR_NOMEM;
out:
    arena_fini(&a);
    buf_fini(&b);
    return e;
}

TEST(reading_and_writing_survive_every_fault)
{
    struct buf b;
    long nth = 0;

    buf_init(&b, 1 << 20);
    for (int i = 0; i < 200; i++)
        buf_addf(&b, "%c\"%d\":0", i ? ',' : '{', i);
    buf_add_str(&b, STR(",\"a\\n\":\"\\u0041\"}"));
    do {
        fault_arm_at("mem", ++nth);
        CHECK(read_and_write(buf_str(&b)) == OK ? !fault_fired()
                                                : fault_fired());
    } while (fault_fired());
    CHECK(nth > 10);
    buf_fini(&b);
}

TEST(a_location_survives_every_fault)
{
    long nth = 0;

    do {
        struct buf out;
        struct url u;
        enum err e;

        buf_init(&out, URL_BYTES_MAX);
        CHECK(url_read(STR("http://x/a/b"), &u, NULL) == OK);
        fault_arm_at("mem", ++nth);
        e = url_resolve(&u, STR("../c"), &out, NULL);
        CHECK(fault_fired() ? e != OK && out.n == 0 : e == OK);
        buf_fini(&out);
    } while (fault_fired());
    CHECK(nth > 3);
}
