/* What a message costs as JSON: parse it, read two fields, change one, write
 * it. The same work done by us (as a tree, and by scan and swap), by jansson
 * and by cJSON, on a JSON-RPC message of about 300 bytes and one of about
 * 20 KB.
 *
 * Each contender gets its best: memory and output buffers are kept between
 * operations where its interface allows it. All refuse duplicate keys where
 * they can (cJSON cannot). Before anything is timed, every output is read back
 * and must mean the same. Rounds are interleaved, so that a slow moment of the
 * machine hits all alike; what counts is the median of the CPU times.
 *
 * Ends with 1 when the tree is not ten times as fast as jansson and three
 * times as fast as cJSON at both sizes.
 *
 *     meson setup build-bench -Dbench=true && ninja -C build-bench bench_json
 *     build-bench/bench/bench_json */
#include <cjson/cJSON.h>
/* Two of jansson's names are ours too. */
#define JSON_REAL JANSSON_REAL
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef JSON_REAL
#undef JSON_NULL
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"

enum { N_ROUNDS = 7, ROUND_NS = 30 * 1000 * 1000, OUT_MAX = 64 * 1024 };

/* What every contender works with. A result is its last output. */
struct work {
    struct str text;
    struct arena arena;
    struct buf out;
    char *fixed; /* OUT_MAX bytes, for those that do not know buf */
    size_t n_fixed;
    int64_t new_id;
    int64_t sum; /* of what was read: the reading is not idle */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_json: %s\n", what);
    exit(2);
}

static struct str by_tree(struct work *w)
{
    struct json *v, *id;
    struct json_out o = json_out(&w->out);

    arena_reset(&w->arena);
    buf_clear(&w->out);
    v = json_parse(&w->arena, w->text, 0, NULL);
    id = json_get(v, STR("id"));
    if (!id)
        die("the tree lost the id");
    w->sum += json_int_or(id, 0);
    w->sum += (int64_t)json_str_or(json_get(v, STR("method")), STR("")).n;
    id->i = w->new_id;
    json_put(&o, v);
    return buf_str(&w->out);
}

static struct str by_swap(struct work *w)
{
    static const struct str keys[] = {{"id", 2}, {"method", 6}};
    struct str found[2], method;
    struct buf number;
    char digits[24];
    int64_t id = 0;

    arena_reset(&w->arena);
    buf_clear(&w->out);
    if (json_scan(w->text, keys, 2, found, NULL) || str_to_i64(found[0], &id) ||
        !json_unquote(&w->arena, found[1], &method))
        die("the scanner lost a field");
    w->sum += id + (int64_t)method.n;
    number = (struct buf){.p = digits, .cap = sizeof(digits), .limit = 24};
    buf_add_i64(&number, w->new_id);
    if (json_swap(&w->out, w->text, found[0], buf_str(&number)))
        die("swap failed");
    return buf_str(&w->out);
}

static struct str by_jansson(struct work *w)
{
    json_t *v = json_loadb(w->text.p, w->text.n, JSON_REJECT_DUPLICATES, NULL);
    json_t *id = json_object_get(v, "id");

    w->sum += json_integer_value(id);
    w->sum += (int64_t)json_string_length(json_object_get(v, "method"));
    json_integer_set(id, w->new_id);
    w->n_fixed = json_dumpb(v, w->fixed, OUT_MAX, JSON_COMPACT);
    json_decref(v);
    return (struct str){w->fixed, w->n_fixed};
}

static struct str by_cjson(struct work *w)
{
    cJSON *v = cJSON_ParseWithLength(w->text.p, w->text.n);
    cJSON *id = cJSON_GetObjectItemCaseSensitive(v, "id");
    const char *method =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "method"));

    if (!id || !method)
        die("cJSON lost a field");
    w->sum += (int64_t)id->valuedouble + (int64_t)strlen(method);
    cJSON_SetNumberValue(id, (double)w->new_id);
    if (!cJSON_PrintPreallocated(v, w->fixed, OUT_MAX, false))
        die("cJSON did not write");
    cJSON_Delete(v);
    return (struct str){w->fixed, strlen(w->fixed)};
}

static const struct contender {
    const char *name;
    struct str (*run)(struct work *w);
} contenders[] = {
    {"signalbox, tree", by_tree},
    {"signalbox, scan and swap", by_swap},
    {"jansson", by_jansson},
    {"cJSON", by_cjson},
};
enum { TREE, SWAP, JANSSON, CJSON, N_CONTENDERS };

/* Equal in meaning: numbers by value, members in the same order. */
static bool same(const struct json *a, const struct json *b)
{
    bool numbers = (a->type == JSON_INT || a->type == JSON_REAL) &&
                   (b->type == JSON_INT || b->type == JSON_REAL);
    const struct json *x, *y;

    if (numbers)
        return json_real_or(a, 0) == json_real_or(b, 0);
    if (a->type != b->type || !str_eq(a->key, b->key))
        return false;
    if (a->type == JSON_STR)
        return str_eq(a->s, b->s);
    if (a->type == JSON_BOOL)
        return a->b == b->b;
    if (a->type == JSON_NULL)
        return true;
    for (x = a->kids.first, y = b->kids.first; x && y; x = x->next, y = y->next)
        if (!same(x, y))
            return false;
    return !x && !y;
}

/* Everybody's output must mean what the tree's does, with the id changed and
 * nothing else. */
static void verify(struct work *w)
{
    struct arena a;
    struct json *want, *got;

    arena_init(&a, 16 << 20);
    want = json_parse(&a, w->text, 0, NULL);
    if (!want)
        die("the document is not valid");
    json_get(want, STR("id"))->i = w->new_id;
    for (int i = 0; i < N_CONTENDERS; i++) {
        struct str out = contenders[i].run(w);
        char *copy = arena_strdup(&a, out);

        got = copy ? json_parse(&a, (struct str){copy, out.n}, 0, NULL) : NULL;
        if (!got || !same(want, got))
            die(contenders[i].name);
    }
    arena_fini(&a);
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Nanoseconds per operation over n of them. */
static double time_ops(const struct contender *c, struct work *w, long n)
{
    int64_t began = cpu_ns();

    for (long i = 0; i < n; i++) {
        w->new_id = 1000000 + i;
        c->run(w);
    }
    return (double)(cpu_ns() - began) / (double)n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(struct work *w, double median[N_CONTENDERS])
{
    double ns[N_CONTENDERS][N_ROUNDS];
    long n_ops[N_CONTENDERS];

    for (int i = 0; i < N_CONTENDERS; i++)
        n_ops[i] = 1 + (long)(ROUND_NS / time_ops(&contenders[i], w, 50));
    for (int round = 0; round < N_ROUNDS; round++)
        for (int i = 0; i < N_CONTENDERS; i++)
            ns[i][round] = time_ops(&contenders[i], w, n_ops[i]);
    for (int i = 0; i < N_CONTENDERS; i++) {
        qsort(ns[i], N_ROUNDS, sizeof(double), by_value);
        median[i] = ns[i][N_ROUNDS / 2];
    }
}

static bool report(struct work *w)
{
    double ns[N_CONTENDERS];

    verify(w);
    measure(w, ns);
    printf("%zu bytes\n", w->text.n);
    for (int i = 0; i < N_CONTENDERS; i++)
        printf("  %-28s %9.3f us  %6.2f of the tree's time\n",
               contenders[i].name, ns[i] / 1000, ns[i] / ns[TREE]);
    return ns[JANSSON] >= 10 * ns[TREE] && ns[CJSON] >= 3 * ns[TREE];
}

static const char small_text[] =
    "{\"jsonrpc\":\"2.0\",\"id\":41,\"method\":\"message/send\",\"params\":"
    "{\"to\":\"translate\",\"message\":{\"role\":\"user\",\"parts\":[{\"kind\":"
    "\"text\",\"text\":\"How do you say \\\"good morning\\\" in Finnish?\"}],"
    "\"messageId\":\"01J8ZQ5W7K3M9X2C4V6B8N0P1R\"},\"budget\":{\"tokens\":4096,"
    "\"usd\":0.25},\"stream\":true,\"deadline_ms\":30000}}";

/* A hundred turns of a conversation: text of varying length, some of it not
 * ASCII, some escaped, with ids, times and scores. */
static void large_text(struct buf *b)
{
    static const char *const says[] = {
        "The train leaves at half past six from platform four.",
        "Bitte übersetze diesen Satz, möglichst wörtlich.",
        "Yes.\nNo.\n\tPerhaps \"later\".",
        "A longer remark that goes on for a while, as people do when they have "
        "not yet made up their minds about what it is they want to say.",
    };
    struct json_out o = json_out(b);

    json_open(&o, '{');
    json_key(&o, STR("jsonrpc"));
    json_put_str(&o, STR("2.0"));
    json_key(&o, STR("id"));
    json_put_int(&o, 41);
    json_key(&o, STR("method"));
    json_put_str(&o, STR("message/send"));
    json_key(&o, STR("params"));
    json_open(&o, '[');
    for (int i = 0; i < 105; i++) {
        json_open(&o, '{');
        json_key(&o, STR("role"));
        json_put_str(&o, i % 2 ? STR("agent") : STR("user"));
        json_key(&o, STR("messageId"));
        json_put_int(&o, 1000003 * i);
        json_key(&o, STR("text"));
        json_put_str(&o, str_of(says[i % 4]));
        json_key(&o, STR("seen_at_ms"));
        json_put_int(&o, 1700000000000 + 977 * i);
        json_key(&o, STR("score"));
        json_put_real(&o, i / 128.0);
        json_key(&o, STR("flags"));
        json_open(&o, '[');
        json_put_bool(&o, i % 3 == 0);
        json_put_null(&o);
        json_put_int(&o, i);
        json_close(&o, ']');
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
}

int main(void)
{
    struct work w = {.new_id = 1, .fixed = malloc(OUT_MAX)};
    struct buf large;
    bool ok;

    if (!w.fixed)
        die("out of memory");
    arena_init(&w.arena, 16 << 20);
    buf_init(&w.out, OUT_MAX);
    buf_init(&large, OUT_MAX);
    large_text(&large);
    w.text = (struct str){small_text, sizeof(small_text) - 1};
    ok = report(&w);
    w.text = buf_str(&large);
    ok = report(&w) && ok;
    puts(ok ? "ok: 10 x jansson and 3 x cJSON" : "SLOW: below the goal");
    buf_fini(&large);
    buf_fini(&w.out);
    arena_fini(&w.arena);
    free(w.fixed);
    return !ok;
}
