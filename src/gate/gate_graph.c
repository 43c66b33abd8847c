/* The rules as a graph, with what the gatekeeper knows about a task, whether it
 * waits, waited or was never held, or about a reference. Read-only. */
#include "gate/internal.h"

struct gate_agent gatekeeper_agent(const struct gatekeeper *b, struct str name)
{
    struct gate_agent a = {.name = name};

    b->opts.agent(b->opts.ctx, name, &a);
    if (!a.is_known)
        a.state = AGENT_DEAD;
    return a;
}

/* The envelope as it was decided; a current hold provides its scope. */
static enum err envelope_of_graph(const struct gatekeeper *b,
                                  const struct task *t, char scope[SCOPE_BYTES],
                                  struct arena *arena, struct envelope *out)
{
    const struct hold *h = hold_find(b, str_of(t->id.text));
    enum err e = envelope_of_task(t, arena, out);

    if (e)
        return e;
    out->has_entered = true;
    out->is_approved = h && (h->is_approved || h->has_run_out);
    out->scope = h ? h->scope : event_scope(b, t->requester, scope);
    return OK;
}

enum err gatekeeper_graph(struct gatekeeper *b, const struct graph_about *about,
                          struct arena *arena, const struct gate_graph *to,
                          struct graph_known *out)
{
    struct viewer asking = {.gatekeeper = b,
                            .requester = about->task ? about->task->requester
                                                     : about->requester,
                            .now_ms = loop_wall_ms(b->opts.loop)};
    struct gate_view view = gatekeeper_view(&asking);
    char scope[SCOPE_BYTES];
    struct gate_result now;
    enum err e = OK;

    *out = (struct graph_known){.n_events = 0};
    if (about->task)
        e = envelope_of_graph(b, about->task, scope, arena, &out->envelope);
    else
        out->envelope =
            (struct envelope){.reference = about->reference,
                              .scope = event_scope(b, about->requester, scope)};
    if (e)
        return e;
    asking.scope = out->envelope.scope;
    gate_graph(b->opts.rules, &view, &out->envelope, asking.now_ms, &now, to);
    if (out->envelope.reference.n)
        out->n_events =
            past_events(&b->past, asking.scope, out->envelope.reference,
                        out->events, GATE_EVENTS_MAX);
    out->envelope.scope = STR(""); /* it was local to this call */
    return OK;
}
