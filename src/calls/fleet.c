/* How agents do: one in full, or those of them that somebody has in view, with
 * how many there are in each state. Who sees an agent sees its figures, as they
 * see its state; what went wrong, and who paused it, is for its creator and for
 * admins, since the words are of others' work.
 *
 * It is all in memory: nothing is read, nothing is waited for. Figures of all
 * agents at once are not to be had: ten thousand of them would be some
 * megabytes for a screen that shows forty. */
#include "calls/internal.h"

enum { NAMES_MAX = 100 };

static int64_t mean_ms(const struct desk_minute *m)
{
    return (m->latency_sum_ms + m->completed / 2) / m->completed;
}

static void write_counts(struct json_out *out, const char *key,
                         const struct desk_figures *f, size_t offset)
{
    json_key(out, str_of(key));
    json_open(out, '[');
    for (int i = 0; i < DELIVER_HOUR; i++) {
        uint32_t v;

        memcpy(&v, (const char *)&f->hour[i] + offset, sizeof(v));
        json_put_int(out, v);
    }
    json_close(out, ']');
}

static void write_hour(struct json_out *out, const struct desk_figures *f,
                       int64_t now_ms)
{
    json_key(out, STR("hour"));
    if (!f->has_hour) {
        json_put_null(out);
        return;
    }
    json_open(out, '{');
    json_member_int(out, "from_ms",
                    now_ms - f->running_ms -
                        (int64_t)(DELIVER_HOUR - 1) * DELIVER_MINUTE_MS);
    json_member_int(out, "step_ms", DELIVER_MINUTE_MS);
    write_counts(out, "completed", f, offsetof(struct desk_minute, completed));
    write_counts(out, "failed", f, offsetof(struct desk_minute, failed));
    write_counts(out, "cancelled", f, offsetof(struct desk_minute, cancelled));
    json_key(out, STR("latency_ms"));
    json_open(out, '[');
    for (int i = 0; i < DELIVER_HOUR; i++)
        if (f->hour[i].completed)
            json_put_int(out, mean_ms(&f->hour[i]));
        else
            json_put_null(out);
    json_close(out, ']');
    json_close(out, '}');
}

static void write_error(struct json_out *out, const struct desk_figures *f)
{
    json_key(out, STR("last_error"));
    if (!f->error_code.n && !f->error.n) {
        json_put_null(out);
        return;
    }
    json_open(out, '{');
    json_member_str(out, "code", f->error_code);
    json_member_str(out, "message", f->error);
    json_close(out, '}');
}

static void write_totals(struct json_out *out, const struct desk_figures *f)
{
    json_key(out, STR("totals"));
    json_open(out, '{');
    json_member_int(out, "completed", f->completed_total);
    json_member_int(out, "failed", f->failed_total);
    json_member_int(out, "cancelled", f->cancelled_total);
    json_member_int(out, "retries", f->retries_total);
    json_close(out, '}');
}

static void write_figures(struct call *c, struct json_out *out,
                          const struct agent *a, const struct eyes *eyes)
{
    struct calls *all = c->calls;
    struct desk_figures f;

    deliver_figures(walk_deliver(all->walk), a->name, &f);
    json_open(out, '{');
    json_member_str(out, "agent", a->name);
    json_member_str(out, "state",
                    agent_state_name(registry_state(all->registry, a)));
    json_member_bool(out, "paused", f.is_paused);
    json_member_ms(out, "paused_ms", f.paused_ms);
    json_member_int(out, "queued", f.waiting);
    json_member_int(out, "in_flight", f.in_flight);
    json_member_int(out, "held",
                    (int64_t)broker_held_for(walk_broker(all->walk), a->name));
    json_member_known(out, "latency_ms", f.latency_ms >= 0, f.latency_ms);
    json_member_ms(out, "usual_ms", f.usual_ms);
    json_member_ms(out, "failed_ms", f.failed_ms);
    write_totals(out, &f);
    if (agent_is_owned(a, eyes)) {
        json_member_str(out, "paused_by", f.paused_by);
        write_error(out, &f);
    }
    write_hour(out, &f, c->now_ms);
    json_close(out, '}');
}

void call_agents_figures(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a = registry_find(c->calls->registry, c->param, &eyes);
    struct json_out out = json_out(c->body);

    if (!a) {
        calls_refuse_agent(c->calls, c->id, &c->caller, c->param);
        return;
    }
    write_figures(c, &out, a, &eyes);
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

/* All that they see, by state: some microseconds for each, so that who looks
 * every second leaves it out. Past PAGE_LOOKS of them nobody counts on. */
static void write_states(struct call *c, struct json_out *out,
                         const struct eyes *eyes)
{
    struct agents all = registry_agents(c->calls->registry);
    int64_t n = 0, n_paused = 0, by_state[AGENT_DEAD + 1] = {0};
    size_t i = 0;

    for (; i < all.n && n < PAGE_LOOKS; i++) {
        const struct agent *a = all.list[i];

        if (!agent_is_visible(a, eyes))
            continue;
        n++;
        by_state[registry_state(c->calls->registry, a)]++;
        n_paused += deliver_is_paused(walk_deliver(c->calls->walk), a->name);
    }
    json_member_int(out, "agents", n);
    json_member_int(out, "paused", n_paused);
    json_key(out, STR("states"));
    json_open(out, '{');
    for (int s = AGENT_ACTIVE; s <= AGENT_DEAD; s++) {
        json_key(out, agent_state_name((enum agent_state)s));
        json_put_int(out, by_state[s]);
    }
    json_close(out, '}');
}

static bool are_few(struct str names)
{
    size_t n = 0;

    while (names.n) {
        str_cut(&names, ',');
        n++;
    }
    return n <= NAMES_MAX;
}

void call_fleet_get(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    struct json_out out = json_out(c->body);
    struct str names = call_arg(c, "names"), counts = call_arg(c, "counts");
    bool is_without = str_eq(counts, STR("false"));

    if (counts.p && !is_without && !str_eq(counts, STR("true"))) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("counts must be \"true\" or \"false\""));
        return;
    }
    if (!are_few(names)) {
        call_refuse(c, ERR_BAD_REQUEST,
                    STR("names may be up to 100, with commas between them"));
        return;
    }
    json_open(&out, '{');
    if (!is_without)
        write_states(c, &out, &eyes);
    json_key(&out, STR("items"));
    json_open(&out, '[');
    while (names.n) {
        const struct agent *a =
            registry_find(c->calls->registry, str_cut(&names, ','), &eyes);

        if (a)
            write_figures(c, &out, a, &eyes);
    }
    json_close(&out, ']');
    json_close(&out, '}');
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}
