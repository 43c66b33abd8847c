/* One line for each thing, kind by kind and each in the order of its keys.
 * Numbers are written so that they read back the same, and vectors as a
 * fingerprint: so states that write the same are the same. The first line has
 * the last outcome that counted: voided ones leave no trace. */
#include "learn/fold/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

static struct str hex_of(uint64_t v, char out[17])
{
    snprintf(out, 17, "%016" PRIx64, v);
    return str_of(out);
}

static void put_hex(struct json_out *o, const char *key, uint64_t v)
{
    char hex[17];

    json_member_str(o, key, hex_of(v, hex));
}

static void put_print(struct json_out *o, const void *p, size_t n)
{
    static const uint64_t seed[2] = {0, 0};

    put_hex(o, "vector", hash_bytes((struct str){p, n}, seed));
}

static void export_known(struct json_out *o, const struct known *k)
{
    json_member_str(o, "agent", k->agent->name);
    json_member_real(o, "performance", k->rate);
    json_member_int(o, "positive", k->n_good);
    json_member_int(o, "negative", k->n_bad);
    json_member_real(o, "performance_public", k->public_rate);
    json_member_real(o, "weight", k->weight);
    json_member_real(o, "performance_outside", k->outside_rate);
    json_member_real(o, "weight_outside", k->outside_weight);
}

static void export_type(const struct learn *l, struct json_out *o,
                        const struct type *t)
{
    json_member_int(o, "type", t->id);
    json_member_str(o, "scope", tenant_name(t->scope));
    json_member_str(o, "name", learn_type_name(l, t->id));
    json_member_int(o, "queries", t->n);
    json_member_str(o, "model_hash", t->shelf->model_hash);
    put_print(o, t->mean, t->shelf->dims * sizeof(*t->mean));
    json_key(o, STR("words"));
    json_open(o, '{');
    for (size_t i = 0; i < t->n_words; i++) {
        json_key(o, (struct str){t->words[i].stem, t->words[i].n_stem});
        json_put_int(o, t->words[i].count);
    }
    json_close(o, '}');
}

static void export_pair(struct json_out *o, const struct pair *p)
{
    json_member_int(o, "type", p->type->id);
    json_member_str(o, "agent", p->view->agent->name);
    json_member_str(o, "scope", tenant_name(p->view->scope));
    json_member_real(o, "performance", p->rate);
    json_member_int(o, "outcomes", p->n);
    json_member_real(o, "performance_outside", p->outside_rate);
    json_member_int(o, "outcomes_outside", p->outside_n);
}

static void export_view(struct json_out *o, const struct view *v)
{
    json_member_str(o, "agent", v->agent->name);
    json_member_str(o, "scope", tenant_name(v->scope));
    json_member_int(o, "outcomes", v->n);
    json_member_real(o, "weight", v->weight);
    json_member_real(o, "weight_outside", v->outside_weight);
    json_member_int(o, "last_positive_ms", v->good_ms);
    json_member_int(o, "last_positive_outside_ms", v->outside_good_ms);
}

static void export_rating(struct json_out *o, const struct rating *r)
{
    json_member_str(o, "agent", r->agent->name);
    json_member_str(o, "rated_by", group_scope(r->group));
    json_key(o, STR("votes"));
    json_open(o, '{');
    for (size_t i = 0; i < r->n; i++) {
        char hex[17];

        json_key(o, hex_of(r->votes[i].voter, hex));
        json_put_int(o, r->votes[i].sign);
    }
    json_close(o, '}');
}

static void export_scope(struct json_out *o, const struct tenant *s)
{
    json_member_str(o, "scope", tenant_name(s));
    json_key(o, STR("owners"));
    json_open(o, '[');
    for (size_t i = 0; i < s->n; i++) {
        char hex[17];

        json_put_str(o, hex_of(s->owners[i], hex));
    }
    json_close(o, ']');
}

static void export_example(struct json_out *o, const struct example *x)
{
    const struct shelf *s = x->shelf;
    const struct agent_name *right = s->right[x->row],
                            *wrong = s->wrong[x->row];
    struct str key = str_sub(x->thing.key, 1, x->thing.key.n);

    json_member_str(o, "example", str_cut(&key, ' '));
    json_member_str(o, "scope", s->scope);
    json_member_str(o, "right", right ? right->name : STR(""));
    json_member_str(o, "wrong", wrong ? wrong->name : STR(""));
    json_member_str(o, "text", (struct str){x->text, x->n_text});
    put_hex(o, "text_hash", x->text_hash);
    json_member_int(o, "said", x->from_outcome);
    json_member_int(o, "at_ms", x->at_ms);
    json_member_str(o, "model_hash", s->model_hash);
    put_print(o, s->high + x->row * s->stride, s->dims);
}

static void export_thing(const struct learn *l, struct buf *out,
                         const struct thing *t)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    switch (t->kind) {
    case THING_AGENT: export_known(&o, (const struct known *)t); break;
    case THING_TYPE: export_type(l, &o, (const struct type *)t); break;
    case THING_PAIR: export_pair(&o, (const struct pair *)t); break;
    case THING_EXAMPLE: export_example(&o, (const struct example *)t); break;
    case THING_VIEW: export_view(&o, (const struct view *)t); break;
    case THING_RATING: export_rating(&o, (const struct rating *)t); break;
    case THING_SCOPE: export_scope(&o, (const struct tenant *)t); break;
    case THING_NUMBER:
    case N_KINDS: break;
    }
    json_member_int(&o, "outcome", t->touched);
    json_close(&o, '}');
    buf_add_char(out, '\n');
}

void learn_export(const struct learn *l, struct buf *out)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_int(&o, "outcome", l->counted);
    json_member_int(&o, "outcomes_total", l->applied_total);
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
