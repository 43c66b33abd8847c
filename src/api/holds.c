/* Held messages, in the order of acceptance: for their requester and admins.
 * Everything is in memory, so nothing is waited for. */
#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    KEY_BYTES_MAX = 1024,
    TEXT_BYTES_MAX = 64 * 1024,  /* of the text read for one summary */
    PAGE_BYTES_MAX = 256 * 1024, /* of all texts read for one page, to block the
                                    loop only briefly */
};

/* "turn", "agent:Z", "queue:Rick", "event:REFERENCE:TYPE", "time" and so on; or
 * the same in words. For a message behind another, keys of later checks are
 * left out: they are not looked at yet. */
static void hold_write_keys(struct json_out *out, const struct held *h,
                            bool in_words)
{
    struct buf key;

    json_key(out, in_words ? STR("waits_words") : STR("waits_for"));
    json_open(out, '[');
    buf_init(&key, KEY_BYTES_MAX);
    if (h->is_behind)
        json_put_str(out, in_words ? STR("its turn, behind one that was sent "
                                         "before it")
                                   : STR("turn"));
    for (size_t i = 0; i < h->n_keys; i++) {
        if (h->is_behind && h->keys[i].kind == WAIT_LOOK)
            continue;
        buf_clear(&key);
        if (in_words)
            wait_key_words(&h->keys[i], h->cause, &key);
        else
            wait_key_write(&h->keys[i], &key);
        json_put_str(out, buf_str(&key));
    }
    buf_fini(&key);
    json_close(out, ']');
}

/* The start of the text, or the context given by its sender; *left is what may
 * still be read for this page. */
static void hold_write_text(struct json_out *out, const struct task *t,
                            size_t *left)
{
    struct envelope e;
    struct arena a;

    json_key(out, STR("text"));
    arena_init(&a, 2 * TEXT_BYTES_MAX);
    if (!t ||
        (t->is_envelope && (t->text.n > TEXT_BYTES_MAX || t->text.n > *left))) {
        json_put_null(out);
    } else {
        *left -= t->is_envelope ? t->text.n : 0;
        if (envelope_of_task(t, &a, &e) != OK || !e.context.n)
            json_put_null(out);
        else
            json_put_str(out, tree_text(e.context));
    }
    arena_fini(&a);
}

/* The time limit of a hold in the rules. */
static void hold_write_due(struct json_out *out, const struct held *h,
                           int64_t sla_ms)
{
    int64_t due_ms;

    if (sla_ms <= 0 || __builtin_add_overflow(h->since_ms, sla_ms, &due_ms)) {
        json_member_null(out, "sla_ms");
        json_member_null(out, "due_ms");
        return;
    }
    json_member_int(out, "sla_ms", sla_ms);
    json_member_int(out, "due_ms", due_ms);
}

static void hold_write_item(struct call *c, struct json_out *out,
                            const struct held *h, size_t *left)
{
    struct gatekeeper *b = walk_gatekeeper(c->api->walk);

    json_open(out, '{');
    json_member_str(out, "task_id", str_of(h->task_id.text));
    json_member_str(out, "message_id", str_of(h->message_id.text));
    json_member_str(out, "routing_decision", gate_answer_name(h->answer));
    json_member_str(out, "from", h->from);
    json_member_str(out, "agent", h->agent);
    json_member_str(out, "type", h->type);
    json_member_str(out, "reference", h->reference);
    json_member_str(out, "priority", task_priority_name(h->priority));
    json_member_str(out, "requester", h->requester);
    json_member_str(out, "rule", h->rule);
    json_member_str(out, "reason", h->reason);
    hold_write_text(
        out, task_find(walk_tasks(c->api->walk), str_of(h->task_id.text)),
        left);
    hold_write_keys(out, h, false);
    hold_write_keys(out, h, true);
    json_member_int(out, "since_ms", h->since_ms);
    hold_write_due(out, h,
                   gate_rules_about(gatekeeper_rules(b))->targets.hold_ms);
    json_member_int(out, "held_until_ms", h->until_ms);
    json_member_str(out, "on_expiry", gate_expiry_name(h->on_expiry));
    json_close(out, '}');
}

static void holds_answer(struct call *c, const struct held *all, size_t n,
                         bool has_more)
{
    struct json_out out = json_out(c->body);
    size_t left = PAGE_BYTES_MAX;
    char cursor[32] = "";

    speak_list_open(&out);
    for (size_t i = 0; i < n; i++)
        hold_write_item(c, &out, &all[i], &left);
    if (has_more)
        snprintf(cursor, sizeof(cursor), "%lld", (long long)all[n - 1].place);
    speak_list_close(&out, str_of(cursor));
    call_answer_json(c, 200);
}

void call_holds_list(struct call *c)
{
    struct held_filter f = {.agent = call_arg(c, "agent"),
                            .rule = call_arg(c, "rule"),
                            .reference = call_arg(c, "reference"),
                            .task_id = call_arg(c, "task_id"),
                            .caller = &c->caller};
    size_t limit = call_limit(c), n;
    struct held *all = mem_array(limit + 1, sizeof(*all));

    n = gatekeeper_holds(walk_gatekeeper(c->api->walk), &f,
                         call_int(c, "cursor", 0), all, limit + 1);
    holds_answer(c, all, n < limit ? n : limit, n > limit);
    free(all);
}
