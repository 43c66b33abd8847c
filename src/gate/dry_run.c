/* The gate decides; this file only writes the decision for programs. */
#include "gate/dry_run.h"

#include "base/map.h"
#include "speak/speak.h"

enum {
    ENVELOPE_MEMORY = 32 * 1024 * 1024,
    TRACE_MAX = 4 * 1024 * 1024, /* bytes of trace lines */
    NAME_BYTES = 40,
};

static void write_trace_line(void *ctx, struct str section, struct str rule,
                             bool has_fired, struct str why)
{
    struct dry_run *t = ctx;
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

void dry_run_init(struct dry_run *t, bool with_trace)
{
    *t = (struct dry_run){.trace = {write_trace_line, t},
                          .is_wanted = with_trace};
    buf_init(&t->lines, 2 * TRACE_MAX);
}

void dry_run_fini(struct dry_run *t)
{
    buf_fini(&t->lines);
}

const struct gate_trace *dry_run_trace(struct dry_run *t)
{
    return t->is_wanted ? &t->trace : NULL;
}

static struct str dry_run_id(const struct envelope *e, struct str text,
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

bool dry_run_write(struct dry_run *t, const struct envelope *e, struct str text,
                   const struct gate_result *p, int64_t now_ms, struct buf *out)
{
    char id[NAME_BYTES];
    struct json_out o = json_out(out);
    struct gate_result unposted = *p;

    unposted.channel = STR("");
    json_open(&o, '{');
    speak_pass(&o, &(struct speak_passed){.message_id = dry_run_id(e, text, id),
                                          .envelope = e,
                                          .gate_result = &unposted,
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

enum err dry_run_decide(const struct dry_run_papers *in, struct buf *out,
                        struct why *why)
{
    struct gate_state *state;
    struct gate_view view;
    struct envelope envelope;
    struct arena arena;
    struct dry_run dry_run;
    struct gate_result gate_result;
    enum err e = gate_state_read(in->rules, in->state, &state, why);

    if (e)
        return e;
    view = gate_state_view(state);
    arena_init(&arena, ENVELOPE_MEMORY);
    dry_run_init(&dry_run, in->with_trace);
    e = gate_envelope_read(&arena, in->envelope, in->now_ms, &envelope, why);
    if (!e)
        e = gate_check_time(&gate_rules_about(in->rules)->limits,
                            envelope.at_ms, in->now_ms, why);
    if (!e) {
        gate_decide(in->rules, &view, &envelope, in->now_ms, &gate_result,
                    dry_run_trace(&dry_run));
        if (!dry_run_write(&dry_run, &envelope, in->envelope, &gate_result,
                           in->now_ms, out))
            e = why_err(why, ERR_NOMEM, "out of memory for the decision");
    }
    dry_run_fini(&dry_run);
    arena_fini(&arena);
    gate_state_free(state);
    return e;
}
