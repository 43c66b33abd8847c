/* The state of agents: one in full, or those that a user has in view, with the
 * number in each state. A viewer of an agent sees its figures, as they see its
 * state; errors, and the user who paused it, are for its creator and admins,
 * since error messages may quote work of others.
 *
 * Everything is in memory. There is no call for the figures of all agents: ten
 * thousand would be some megabytes for a screen that shows forty. */
#include "api/internal.h"

static void write_counts(struct json_out *out, const char *key,
                         const struct agent_queue_figures *f, size_t offset)
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

static void write_hour(struct json_out *out,
                       const struct agent_queue_figures *f, int64_t now_ms)
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
    write_counts(out, "completed", f,
                 offsetof(struct agent_queue_minute, completed));
    write_counts(out, "failed", f, offsetof(struct agent_queue_minute, failed));
    write_counts(out, "cancelled", f,
                 offsetof(struct agent_queue_minute, cancelled));
    json_key(out, STR("latency_ms"));
    json_open(out, '[');
    for (int i = 0; i < DELIVER_HOUR; i++) {
        const struct agent_queue_minute *m = &f->hour[i];

        if (m->completed) /* the mean, rounded */
            json_put_int(out,
                         (m->latency_sum_ms + m->completed / 2) / m->completed);
        else
            json_put_null(out);
    }
    json_close(out, ']');
    json_close(out, '}');
}

static void write_error(struct json_out *out,
                        const struct agent_queue_figures *f)
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

static void fleet_write_figures(struct call *c, struct json_out *out,
                                const struct agent *a, const struct eyes *eyes)
{
    struct api *all = c->api;
    struct agent_queue_figures f;

    deliver_figures(walk_deliver(all->walk), a->name, &f);
    json_open(out, '{');
    json_member_str(out, "agent", a->name);
    json_member_str(out, "state",
                    agent_state_name(registry_state(all->registry, a)));
    json_member_bool(out, "paused", f.is_paused);
    json_member_ms(out, "paused_ms", f.paused_ms);
    json_member_int(out, "queued", f.waiting);
    json_member_int(out, "in_flight", f.in_flight);
    json_member_int(
        out, "held",
        (int64_t)gatekeeper_held_for(walk_gatekeeper(all->walk), a->name));
    json_member_known(out, "latency_ms", f.latency_ms >= 0, f.latency_ms);
    json_member_ms(out, "usual_ms", f.usual_ms);
    json_member_ms(out, "failed_ms", f.failed_ms);
    json_key(out, STR("totals"));
    json_open(out, '{');
    json_member_int(out, "completed", f.completed_total);
    json_member_int(out, "failed", f.failed_total);
    json_member_int(out, "cancelled", f.cancelled_total);
    json_member_int(out, "retries", f.retries_total);
    json_close(out, '}');
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
    const struct agent *a = registry_find(c->api->registry, c->param, &eyes);
    struct json_out out = json_out(c->body);

    if (!a) {
        call_refuse_agent(c, c->param);
        return;
    }
    fleet_write_figures(c, &out, a, &eyes);
    call_answer_json(c, 200);
}

/* All visible agents by state: some microseconds each, so a client that polls
 * every second leaves it out. The count stops at PAGE_LOOKS. */
static void fleet_write_states(struct call *c, struct json_out *out,
                               const struct eyes *eyes)
{
    struct agents all = registry_agents(c->api->registry);
    int64_t n = 0, n_paused = 0, by_state[AGENT_DEAD + 1] = {0};
    size_t i = 0;

    for (; i < all.n && n < PAGE_LOOKS; i++) {
        const struct agent *a = all.list[i];

        if (!agent_is_visible(a, eyes))
            continue;
        n++;
        by_state[registry_state(c->api->registry, a)]++;
        n_paused += deliver_is_paused(walk_deliver(c->api->walk), a->name);
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
    return n <= FLEET_NAMES_MAX;
}

void call_fleet_get(struct call *c)
{
    struct eyes eyes = call_eyes(c);
    struct json_out out = json_out(c->body);
    struct str names = call_arg(c, "names");

    if (!are_few(names)) {
        call_bad_request(c, "names may be up to 100, with commas between them");
        return;
    }
    json_open(&out, '{');
    if (call_yes(c, "counts") || !call_arg(c, "counts").p)
        fleet_write_states(c, &out, &eyes);
    json_key(&out, STR("items"));
    json_open(&out, '[');
    while (names.n) {
        const struct agent *a =
            registry_find(c->api->registry, str_cut(&names, ','), &eyes);

        if (a)
            fleet_write_figures(c, &out, a, &eyes);
    }
    json_close(&out, ']');
    json_close(&out, '}');
    call_answer_json(c, 200);
}
