/* Nothing here decides: the gate does. This puts what it says into words that
 * programs read. */
#include "trial.h"

#include "base/map.h"
#include "speak/speak.h"

enum {
    ENVELOPE_MEMORY = 32 * 1024 * 1024,
    TRACE_MAX = 4 * 1024 * 1024, /* bytes of lines that are told */
    NAME_BYTES = 40,
};

static void put_line(void *ctx, struct str section, struct str rule,
                     bool has_fired, struct str why)
{
    struct trial *t = ctx;
    struct json_out o = json_out(&t->lines);

    if (t->lines.n > TRACE_MAX)
        return;
    if (t->lines.n)
        buf_add_char(&t->lines, ',');
    json_open(&o, '{');
    json_member_str(&o, "section", section);
    json_member_str(&o, "rule", rule);
    json_member_bool(&o, "fired", has_fired);
    json_member_str(&o, "why", why);
    json_close(&o, '}');
}

void trial_init(struct trial *t, bool with_trace)
{
    *t = (struct trial){.trace = {put_line, t}, .is_wanted = with_trace};
    buf_init(&t->lines, 2 * TRACE_MAX);
}

void trial_fini(struct trial *t)
{
    buf_fini(&t->lines);
}

const struct gate_trace *trial_trace(struct trial *t)
{
    return t->is_wanted ? &t->trace : NULL;
}

static struct str id_of(const struct envelope *e, struct str text,
                        char to[NAME_BYTES])
{
    static const uint64_t seed[2] = {UINT64_C(0x656e76656c6f7065),
                                     UINT64_C(0x6f6e6c7920747279)};
    uint64_t h = hash_bytes(text, seed);

    if (e->message_id.n)
        return e->message_id;
    memcpy(to, "MSG-", 4);
    str_hex(to + 4, &h, sizeof(h));
    return (struct str){to, 4 + 2 * sizeof(h)};
}

bool trial_write(struct trial *t, const struct envelope *e, struct str text,
                 const struct pass *p, int64_t now_ms, struct buf *out)
{
    char id[NAME_BYTES];
    struct json_out o = json_out(out);
    struct pass unposted = *p;

    unposted.channel = STR("");
    json_open(&o, '{');
    speak_pass(&o, &(struct speak_passed){.message_id = id_of(e, text, id),
                                          .envelope = e,
                                          .pass = &unposted,
                                          .at_ms = now_ms});
    if (t->is_wanted) {
        json_key(&o, STR("trace"));
        json_open(&o, '[');
        if (t->lines.n)
            json_put_raw(&o, buf_str(&t->lines));
        json_close(&o, ']');
    }
    json_close(&o, '}');
    return !out->over && !t->lines.over;
}

static enum err decide(const struct trial_papers *in, const struct gate_view *v,
                       struct buf *out, struct why *why)
{
    struct envelope envelope;
    struct arena arena;
    struct trial trial;
    struct pass pass;
    enum err e;

    arena_init(&arena, ENVELOPE_MEMORY);
    trial_init(&trial, in->with_trace);
    e = gate_envelope_read(&arena, in->envelope, in->now_ms, &envelope, why);
    if (!e)
        e = gate_check_time(&gate_rules_about(in->rules)->limits,
                            envelope.at_ms, in->now_ms, why);
    if (!e) {
        gate_decide(in->rules, v, &envelope, in->now_ms, &pass,
                    trial_trace(&trial));
        if (!trial_write(&trial, &envelope, in->envelope, &pass, in->now_ms,
                         out))
            e = why_err(why, ERR_NOMEM, "there is no memory for the decision");
    }
    trial_fini(&trial);
    arena_fini(&arena);
    return e;
}

enum err trial_decide(const struct trial_papers *in, struct buf *out,
                      struct why *why)
{
    struct gate_state *state;
    struct gate_view view;
    enum err e = gate_state_read(in->rules, in->state, &state, why);

    if (e)
        return e;
    view = gate_state_view(state);
    e = decide(in, &view, out, why);
    gate_state_free(state);
    return e;
}
