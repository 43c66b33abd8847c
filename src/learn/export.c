/* One line for each thing, kinds one after the other and each in the order of
 * its keys. Numbers are written so that they read back the same, and of vectors
 * there is a fingerprint: so two states that write the same are the same. */
#include "learn/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

static void put_str(struct json_out *o, struct str key, struct str s)
{
    json_key(o, key);
    if (s.n)
        json_put_str(o, s);
    else
        json_put_null(o);
}

static void put_int(struct json_out *o, struct str key, int64_t v)
{
    json_key(o, key);
    json_put_int(o, v);
}

static void put_real(struct json_out *o, struct str key, double v)
{
    json_key(o, key);
    json_put_real(o, v);
}

static void put_print(struct json_out *o, const void *p, size_t n)
{
    static const uint64_t seed[2] = {0, 0};
    char hex[17];

    snprintf(hex, sizeof(hex), "%016" PRIx64,
             hash_bytes((struct str){p, n}, seed));
    put_str(o, STR("vector"), str_of(hex));
}

static void export_known(struct json_out *o, const struct known *k)
{
    put_str(o, STR("agent"), k->who->name);
    put_real(o, STR("performance"), k->rate);
    put_int(o, STR("positive"), k->n_good);
    put_int(o, STR("negative"), k->n_bad);
    put_int(o, STR("last_positive_ms"), k->good_ms);
    put_int(o, STR("last_positive_outside_ms"), k->outside_good_ms);
}

static void export_type(const struct learn *l, struct json_out *o,
                        const struct type *t)
{
    put_int(o, STR("type"), t->id);
    put_str(o, STR("name"), learn_type_name(l, t->id));
    put_int(o, STR("queries"), t->n);
    put_str(o, STR("model_hash"), t->shelf->model_hash);
    put_print(o, t->mean, t->shelf->dims * sizeof(*t->mean));
    json_key(o, STR("words"));
    json_open(o, '{');
    for (size_t i = 0; i < t->n_words; i++)
        put_int(o, (struct str){t->words[i].stem, t->words[i].n_stem},
                t->words[i].count);
    json_close(o, '}');
}

static void export_pair(struct json_out *o, const struct pair *p)
{
    put_int(o, STR("type"), p->type->id);
    put_str(o, STR("agent"), p->who->name);
    put_real(o, STR("performance"), p->rate);
    put_int(o, STR("outcomes"), p->n);
    put_real(o, STR("performance_outside"), p->outside_rate);
    put_int(o, STR("outcomes_outside"), p->outside_n);
}

static void export_example(struct json_out *o, const struct example *x)
{
    const struct shelf *s = x->shelf;
    const struct who *right = s->right[x->row], *wrong = s->wrong[x->row];
    struct str key = str_sub(x->thing.key, 1, x->thing.key.n);

    put_str(o, STR("example"), str_cut(&key, ' '));
    put_str(o, STR("scope"), s->scope);
    put_str(o, STR("right"), right ? right->name : STR(""));
    put_str(o, STR("wrong"), wrong ? wrong->name : STR(""));
    put_str(o, STR("text"), (struct str){x->text, x->n_text});
    put_int(o, STR("at_ms"), x->at_ms);
    put_str(o, STR("model_hash"), s->model_hash);
    put_print(o, s->high + x->row * s->stride, s->dims);
}

static void export_thing(const struct learn *l, struct buf *out,
                         const struct thing *t)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    if (t->kind == THING_AGENT)
        export_known(&o, (const struct known *)t);
    else if (t->kind == THING_TYPE)
        export_type(l, &o, (const struct type *)t);
    else if (t->kind == THING_PAIR)
        export_pair(&o, (const struct pair *)t);
    else
        export_example(&o, (const struct example *)t);
    put_int(&o, STR("outcome"), t->heard);
    json_close(&o, '}');
    buf_add_char(out, '\n');
}

void learn_export(const struct learn *l, struct buf *out)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    put_int(&o, STR("outcome"), l->version);
    put_int(&o, STR("outcomes_total"), l->applied_total);
    json_close(&o, '}');
    buf_add_char(out, '\n');
    for (enum thing_kind kind = THING_AGENT; kind < N_KINDS; kind++) {
        size_t n;
        struct thing **all = things_in_order(l, kind, &n);

        if (!all && l->heaps[kind].n)
            out->over = true;
        for (size_t i = 0; i < n; i++)
            export_thing(l, out, all[i]);
        free(all);
    }
}
