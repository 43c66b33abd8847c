/* Maps settings to modules: one function for each module, so that the use of a
 * setting can be looked up from here. */
#include "server/settings.h"

enum { DAY_MS = 24 * 3600 * 1000 };

/* With few descriptors the limit of connections is lowered: one above it is
 * then rejected, instead of waiting until another closes. */
struct net_opts settings_net(const struct server *s, const struct config *c)
{
    int64_t most = s->file_limit - SERVER_SPARE_FILES;

    if (c->http.max_connections < most)
        most = c->http.max_connections;
    return (struct net_opts){
        .max_connections = (size_t)most,
        .max_connections_per_address =
            (size_t)c->http.max_connections_per_address,
        .exempt = c->rate.exempt.list,
        .n_exempt = c->rate.exempt.n,
        .max_request_line_bytes = (size_t)c->http.max_request_line_bytes,
        .max_header_bytes = (size_t)c->http.max_header_bytes,
        .max_headers = (size_t)c->http.max_headers,
        .max_body_bytes = (size_t)c->http.max_body_bytes,
        .max_unsent_bytes = (size_t)c->http.max_unsent_bytes,
        .max_buffered_bytes = (size_t)c->http.max_buffered_bytes,
        .header_timeout_ms = c->http.header_timeout_ms,
        .body_timeout_ms = c->http.body_timeout_ms,
        .idle_timeout_ms = c->http.idle_timeout_ms,
        .reply_timeout_ms = c->http.reply_timeout_ms,
        .write_timeout_ms = c->http.write_timeout_ms,
        .seed = {s->seed[0], s->seed[1]},
        .ws_max_frame_bytes = (size_t)c->ws.max_frame_bytes,
        .ws_max_message_bytes = (size_t)c->ws.max_message_bytes,
        .ws_timeout_ms = c->ws.timeout_ms,
        .ws_close_timeout_ms = c->ws.close_timeout_ms,
    };
}

static struct tasks_limits tasks_limits_of(const struct config *c)
{
    return (struct tasks_limits){
        .max_unfinished = (size_t)c->tasks.max_unfinished,
        .max_unfinished_bytes = (size_t)c->tasks.max_unfinished_bytes,
        .max_per_user = (size_t)c->tasks.max_unfinished_per_user,
        .max_bytes_per_user = (size_t)c->tasks.max_unfinished_bytes_per_user,
        .timeout_ms = c->tasks.timeout_ms,
        .input_ms = c->deliver.input_ms,
    };
}

static struct delegation_settings delegation_settings_of(const struct config *c)
{
    return (struct delegation_settings){
        .timeout_ms = c->delegation.timeout_ms,
        .max_depth = c->delegation.max_depth,
        .max_concurrent = c->delegation.max_concurrent,
        .max_waiting = c->delegation.max_waiting,
        .max_per_root = c->delegation.max_per_root,
        .max_open = (size_t)c->delegation.max_open,
        .max_unacked = (size_t)c->delegation.max_unacked,
        .keep_ms = c->delegation.keep_ms,
        .ends_with_line =
            c->delegation.on_disconnect == CONFIG_DISCONNECT_CANCEL,
    };
}

static struct ledger_settings ledger_settings_of(const struct config *c)
{
    return (struct ledger_settings){
        .fee_ppm = c->ledger.fee_ppm,
        .per_day = c->ledger.per_day,
        .per_conversation = c->ledger.per_conversation,
        .per_root = c->ledger.per_root,
        .delegation_allowance = c->ledger.delegation_allowance,
    };
}

struct deliver_settings settings_deliver(const struct config *c)
{
    return (struct deliver_settings){
        .max_in_flight = (size_t)c->deliver.max_in_flight,
        .in_flight = c->deliver.in_flight,
        .queue = c->deliver.queue,
        .max_attempts = (int)c->deliver.max_attempts,
        .retry_ms = c->deliver.retry_ms,
        .retry_max_ms = c->deliver.retry_max_ms,
        .breaker_failures = (int)c->deliver.breaker_failures,
        .breaker_pause_ms = c->deliver.breaker_pause_ms,
        .wake_ms = c->deliver.wake_ms,
        .holds_for_offline = c->deliver.on_offline == CONFIG_OFFLINE_HOLD,
        .silence_ms = c->deliver.silence_ms,
        .max_gathered_bytes = (size_t)c->deliver.max_gathered_bytes,
        .processes = c->processes.list,
        .n_processes = c->processes.n,
        .models = c->models.list,
        .n_models = c->models.n,
        .usual_env = c->usual_env,
        .closed = c->closed,
    };
}

struct walk_opts settings_walk(struct server *s, const struct config *c)
{
    return (struct walk_opts){
        .loop = &s->loop,
        .log = &s->log,
        .store = s->store,
        .feed = s->feed,
        .access = s->access,
        .registry = s->registry,
        .router = s->router,
        .learning = s->learning,
        .ids = &s->ids,
        .seed = {s->seed[0], s->seed[1]},
        .node = c->node,
        .fetch = s->providers.fetch,
        .children = s->children,
        .traces = s->traces,
        .deliver = settings_deliver(c),
        .limits = tasks_limits_of(c),
        .delegation = delegation_settings_of(c),
        .ledger = ledger_settings_of(c),
        .rules = rules_file_rules(&s->rules_file),
        .max_age_ms = c->gate.max_age_ms,
        .retention_ms = c->retention.days * DAY_MS,
        .retention_rows = c->retention.rows,
    };
}

struct traces_settings settings_traces(const struct config *c)
{
    return (struct traces_settings){.endpoint = c->traces.endpoint,
                                    .headers = c->traces.headers,
                                    .service = c->traces.service,
                                    .node = c->node,
                                    .max_waiting = c->traces.max_waiting,
                                    .batch = c->traces.batch,
                                    .delay_ms = c->traces.delay_ms,
                                    .timeout_ms = c->traces.timeout_ms};
}

static bool has_seed_preset(const struct config *c)
{
    return c->routing.preset == CONFIG_PRESET_SEED;
}

/* The text score is blended in for the models in the binary. For other models
 * the cosine alone is used, as their makers measured them. */
static double text_blend_of(const struct config *c)
{
    if (c->routing.text_blend >= 0)
        return c->routing.text_blend;
    return c->embed.kind == CONFIG_EMBED_HTTP ||
                   (has_seed_preset(c) && !c->routing.text_blend_is_set)
               ? 0
               : choose_defaults().text_blend;
}

/* The preset "seed" replaces the default "auto" by a number. */
static bool threshold_is_auto(const struct config *c)
{
    return c->routing.threshold < 0 &&
           (!has_seed_preset(c) || c->routing.threshold_is_set);
}

struct route_settings settings_route(const struct config *c)
{
    struct route_settings out = {
        .choose = {.weights = c->routing.weights,
                   .is_auto = threshold_is_auto(c),
                   .threshold = c->routing.threshold < 0
                                    ? choose_defaults().threshold
                                    : c->routing.threshold,
                   .is_centred = threshold_is_auto(c) &&
                                 c->embed.kind != CONFIG_EMBED_HTTP,
                   .alpha = choose_defaults().alpha,
                   .unsure = (enum unsure_policy)c->routing.unsure,
                   .is_seed = has_seed_preset(c),
                   .trusts_all = c->routing.trust == CONFIG_TRUST_ALL,
                   .text_blend = text_blend_of(c),
                   .recency_ms = c->routing.recency_ms,
                   .explore = c->routing.explore,
                   .close_margin = c->routing.close_margin,
                   .second_margin = c->embed.second_margin,
                   .bindings = c->bindings,
                   .default_agent = c->default_agent,
                   .intent = {.is_on = c->routing.intent.is_on,
                              .threshold = c->routing.intent.threshold,
                              .when = INTENT_ALWAYS,
                              .overrides = INTENT_OVER_DEFAULT}},
        .intent = {.kind = (enum model_kind)c->routing.intent.kind,
                   .endpoint = c->routing.intent.endpoint,
                   .model = c->routing.intent.model,
                   .key = c->routing.intent.key,
                   .timeout_ms = c->routing.intent.timeout_ms},
        .vector_timeout_ms = c->routing.vector_timeout_ms,
    };

    memcpy(out.choose.is_off, c->routing.layer_is_off,
           sizeof(out.choose.is_off));
    if (c->routing.intent.when == CONFIG_WHEN_AMBIGUOUS)
        out.choose.intent.when = INTENT_AMBIGUOUS;
    if (c->routing.intent.overrides == CONFIG_OVERRIDES_BINDINGS)
        out.choose.intent.overrides = INTENT_OVER_BINDINGS;
    return out;
}

/* max_agents: averages may exist for every agent. */
struct learning_settings settings_learning(const struct config *c)
{
    return (struct learning_settings){
        .learn = {.rate = c->learning.rate,
                  .agent_lean = c->learning.lean,
                  .max_types = (size_t)c->learning.max_types,
                  .type_likeness = c->learning.type_likeness,
                  .examples_per_agent = (size_t)c->learning.examples_per_agent,
                  .max_examples = (size_t)c->learning.max_examples,
                  .is_plain = has_seed_preset(c),
                  .max_agents = (size_t)c->registry.max_agents},
        .every_ms = c->learning.every_ms,
        .follow_up_ms = c->learning.follow_up_ms,
        .substantial = c->learning.substantial_chars,
        .uselessly_short = c->learning.short_chars,
    };
}

void settings_rank(struct server *s, const struct config *c)
{
    struct registry_ranking ranking = {
        .semantic_weight = c->search.semantic_weight,
        .text_weight = c->search.text_weight,
        .fusion =
            c->search.fusion == CONFIG_FUSION_RRF ? INDEX_RRF : INDEX_WEIGHTED,
        .is_plain = c->search.order == CONFIG_ORDER_PLAIN,
    };

    registry_set_ranking(s->registry, &ranking);
}

static struct rate_limit per_second(int64_t n, int64_t burst)
{
    return (struct rate_limit){.per_minute = n * 60, .burst = burst};
}

static struct throttle_limits throttle_limits_of(const struct server *s,
                                                 const struct config *c)
{
    return (struct throttle_limits){
        .user = per_second(c->rate.per_user, c->rate.user_burst),
        .address = per_second(c->rate.per_address, c->rate.address_burst),
        .failures = {.per_minute = c->rate.failures_per_minute,
                     .burst = c->rate.failure_burst},
        .exempt = c->rate.exempt.list,
        .n_exempt = c->rate.exempt.n,
        .max_held = settings_net(s, c).max_connections,
    };
}

struct hub_settings settings_hub(const struct config *c)
{
    int64_t n = c->hub.messages_per_second;

    return (struct hub_settings){
        .heartbeat_ms = c->ws.timeout_ms,
        .max_message_bytes = (int64_t)c->ws.max_message_bytes,
        .max_open = (size_t)c->hub.max_open,
        .max_listening = (size_t)c->hub.max_listening,
        .messages = per_second(n, n ? n : 1),
    };
}

struct api_settings settings_api(const struct server *s, const struct config *c)
{
    return (struct api_settings){
        .names = {.hosts = c->http.allowed_hosts.list,
                  .n_hosts = c->http.allowed_hosts.n,
                  .origins = c->http.allowed_origins.list,
                  .n_origins = c->http.allowed_origins.n},
        .heartbeat_ms = c->http.heartbeat_ms,
        .reply_timeout_ms = c->http.reply_timeout_ms,
        .max_open = settings_net(s, c).max_connections,
        .vector_timeout_ms = c->routing.vector_timeout_ms,
        .limits = throttle_limits_of(s, c),
        .figures_need_token = !c->metrics.is_public,
        .web = {.is_on = c->web.enabled, .folder = c->web.folder},
    };
}
