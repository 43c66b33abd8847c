/* Any bytes as what is known and as an envelope: the first line and the rest.
 * What is read is decided, twice to the same bytes, which are a document; what
 * is refused is refused in words. */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "gate/dry_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rules[] =
    "{\"agents\":{\"a\":{},\"b\":{}},"
    "\"duplicates\":[{\"rule\":\"again\",\"within\":\"10m\"}],"
    "\"safety_gates\":[{\"rule\":\"gate\",\"agent\":\"a\",\"match\":{\"type\":"
    "\"S\"}}],"
    "\"escalations\":[{\"rule\":\"see\",\"when\":{\"or\":[{\"<\":[{\"var\":"
    "\"message.payload.n\"},5]},{\"var\":\"message.stale\"},{\"some\":[{"
    "\"var\":\"history\"},{\"var\":"
    "\"approved\"}]}]}}],"
    "\"dependencies\":[{\"rule\":\"after\",\"match\":{\"type\":\"U\"},"
    "\"after\":"
    "[{\"type\":\"T\",\"approved\":true}]}],"
    "\"freshness\":[{\"rule\":\"fresh\",\"within\":\"1h\"}],"
    "\"timestamps\":{\"age\":\"30d\",\"stale\":\"1h\"},"
    "\"capacity\":[{\"rule\":\"room\",\"queue\":5}]}";

static void decide(const struct gate_rules *r, struct str state,
                   struct str envelope, struct buf *out)
{
    struct dry_run_papers in = {.rules = r,
                                .state = state,
                                .envelope = envelope,
                                .now_ms = 1739610015000,
                                .with_trace = true};
    struct why why = {""};

    buf_init(out, 64 << 20);
    if (dry_run_decide(&in, out, &why))
        assert(why.text[0] && out->n == 0);
    else
        assert(json_check(buf_str(out), NULL) == OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gate_problems problems;
    static struct gate_rules *r;
    struct str rest = {(const char *)data, size};
    struct str state = str_cut(&rest, '\n');
    struct buf a, b;

    if (!r && gate_rules_read(str_of(rules), &r, &problems))
        abort();
    decide(r, state, rest, &a);
    decide(r, state, rest, &b);
    assert(str_eq(buf_str(&a), buf_str(&b)));
    buf_fini(&a);
    buf_fini(&b);
    return 0;
}
