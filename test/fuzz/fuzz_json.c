/* Any bytes into json: never a crash, and all ways of reading agree. */
#include "base/json.h"

#include "test/json_agree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With comments more is accepted, never less, and the tree is the same. */
static bool comments_only_add(struct str text)
{
    struct arena a;
    struct json *strict, *loose;
    bool ok;

    arena_init(&a, AGREE_BYTES);
    strict = json_parse(&a, text, 0, NULL);
    loose = json_parse(&a, text, JSON_WITH_COMMENTS, NULL);
    ok = !strict || (loose && json_same(strict, loose));
    arena_fini(&a);
    return ok;
}

/* Any bytes as a string: what is written is a document, and the same once it
 * has been through the reader. */
static bool strings_are_written(struct str bytes)
{
    struct arena a;
    struct buf b;
    struct json_out o = json_out(&b);
    struct str once, twice;
    bool ok;

    arena_init(&a, AGREE_BYTES);
    buf_init(&b, AGREE_BYTES);
    json_put_str(&o, bytes);
    ok = json_check(buf_str(&b), NULL) == OK &&
         json_unquote(&a, buf_str(&b), &once);
    buf_clear(&b);
    o = json_out(&b);
    json_put_str(&o, ok ? once : bytes);
    ok = ok && json_unquote(&a, buf_str(&b), &twice) && str_eq(once, twice);
    buf_fini(&b);
    arena_fini(&a);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};

    if (json_agree(text) == JSON_DISAGREE || !comments_only_add(text) ||
        !strings_are_written(text))
        abort();
    return 0;
}
