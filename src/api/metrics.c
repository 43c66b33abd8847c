/* Metrics for Prometheus: the modules keep them, and this file writes them, one
 * function per module. Names and labels are public (docs/protocol.md). */
#include "api/internal.h"

#include <stdio.h>

static void write_refused(struct buf *out, const struct net_stats *s)
{
    static const char *const limits[N_NET_ROOMS] = {
        [NET_NO_CONNECTION] = "limit=\"connections\"",
        [NET_NO_ADDRESS] = "limit=\"address\"",
        [NET_NO_BUFFERS] = "limit=\"buffers\""};

    metric_family(out, "signalbox_http_turned_away_total", "counter",
                  "Connections rejected, by limit.");
    for (int i = NET_NO_CONNECTION; i < N_NET_ROOMS; i++)
        metric_int(out, "signalbox_http_turned_away_total", limits[i],
                   s->refused_by_total[i]);
}

static void write_http(struct buf *out, const struct net_stats *s)
{
    metric_gauge(out, "signalbox_http_connections", "Open connections.",
                 s->connections);
    metric_counter(out, "signalbox_http_connections_total",
                   "Connections accepted.", s->connections_total);
    metric_counter(out, "signalbox_http_connections_refused_total",
                   "Connections rejected at a limit.", s->refused_total);
    metric_counter(out, "signalbox_http_connections_evicted_total",
                   "Silent or idle connections evicted for others.",
                   s->evicted_total);
    write_refused(out, s);
    metric_counter(out, "signalbox_http_requests_total", "Complete requests.",
                   s->requests_total);
    metric_family(out, "signalbox_http_replies_total", "counter",
                  "Replies, by class of status.");
    for (int digit = 1; digit <= 5; digit++) {
        char label[] = "status=\"?xx\"";

        label[8] = (char)('0' + digit);
        metric_int(out, "signalbox_http_replies_total", label,
                   s->replies_total[digit]);
    }
    metric_counter(out, "signalbox_http_bad_requests_total",
                   "Requests that broke the protocol or a limit.",
                   s->bad_requests_total);
    metric_counter(out, "signalbox_http_overloaded_total",
                   "Requests rejected because all buffers were full.",
                   s->overloaded_total);
    metric_counter(out, "signalbox_http_timeouts_total",
                   "Connections cut because a phase took too long.",
                   s->timeouts_total);
    metric_counter(out, "signalbox_http_idle_closed_total",
                   "Connections closed because no request came.",
                   s->idle_closed_total);
    metric_counter(out, "signalbox_http_received_bytes_total",
                   "Bytes read from clients.", s->bytes_in_total);
    metric_counter(out, "signalbox_http_sent_bytes_total",
                   "Bytes written to clients.", s->bytes_out_total);
    metric_counter(out, "signalbox_tls_handshakes_total",
                   "Completed TLS handshakes.", s->tls_handshakes_total);
    metric_counter(out, "signalbox_tls_handshakes_failed_total",
                   "Failed TLS handshakes.", s->tls_failed_total);
    metric_counter(out, "signalbox_tls_handshakes_cut_total",
                   "TLS handshakes cut as the oldest of too many.",
                   s->tls_cut_total);
    if (s->tls_cert_ends_s)
        metric_gauge(out, "signalbox_tls_certificate_expires_timestamp_seconds",
                     "When the first of the certificates in use expires.",
                     s->tls_cert_ends_s);
    metric_gauge(out, "signalbox_http_unsent_bytes",
                 "Bytes that wait for clients to read them.", s->unsent_bytes);
    metric_gauge(out, "signalbox_http_buffered_bytes",
                 "Memory held by the buffers of all connections.",
                 s->buffered_bytes);
}

static void write_ws(struct buf *out, const struct net_stats *s)
{
    static const char *const causes[N_NET_WS_CAUSES] = {
        [NET_WS_PEER] = "cause=\"peer\"",
        [NET_WS_OWNER] = "cause=\"server\"",
        [NET_WS_LOST] = "cause=\"lost\"",
        [NET_WS_BAD] = "cause=\"protocol\"",
        [NET_WS_LIMIT] = "cause=\"limit\"",
        [NET_WS_SILENT] = "cause=\"silent\"",
        [NET_WS_SLOW] = "cause=\"slow\"",
        [NET_WS_OVERLOADED] = "cause=\"overloaded\"",
    };

    metric_gauge(out, "signalbox_ws_connections",
                 "Open WebSockets, in and out.", s->websockets);
    metric_counter(out, "signalbox_ws_connections_total", "WebSockets opened.",
                   s->websockets_total);
    metric_counter(out, "signalbox_ws_received_messages_total",
                   "Messages received.", s->ws_messages_in_total);
    metric_counter(out, "signalbox_ws_sent_messages_total", "Messages sent.",
                   s->ws_messages_out_total);
    metric_counter(out, "signalbox_ws_pings_total",
                   "Pings sent to silent peers.", s->ws_pings_total);
    metric_family(out, "signalbox_ws_ended_total", "counter",
                  "WebSockets closed, by cause.");
    for (int i = 0; i < N_NET_WS_CAUSES; i++)
        metric_int(out, "signalbox_ws_ended_total", causes[i],
                   s->ws_ends_total[i]);
    metric_gauge(out, "signalbox_ws_dialling",
                 "Outgoing WebSockets being opened.", s->dialling);
    metric_counter(out, "signalbox_ws_dials_total",
                   "Attempts to open an outgoing WebSocket.", s->dials_total);
    metric_counter(out, "signalbox_ws_dials_failed_total",
                   "Failed attempts to open an outgoing WebSocket.",
                   s->dials_failed_total);
}

/* Microseconds, as seconds. */
static void write_seconds(struct buf *out, const char *name, const char *help,
                          int64_t us)
{
    metric_family(out, name, "counter", help);
    metric_real(out, name, NULL, (double)us / 1e6);
}

static void write_store(struct buf *out, const struct store_stats *s)
{
    static const char *const results[] = {
        "result=\"committed\"", "result=\"guard_failed\"", "result=\"refused\"",
        "result=\"fatal\""};

    metric_family(out, "signalbox_store_txs_total", "counter",
                  "Changes, by result.");
    for (int i = 0; i < 4; i++)
        metric_int(out, "signalbox_store_txs_total", results[i],
                   s->txs_total[i]);
    metric_counter(out, "signalbox_store_batches_total",
                   "Transactions, each with a batch of changes.",
                   s->batches_total);
    metric_counter(out, "signalbox_store_rows_written_total", "Rows written.",
                   s->rows_written_total);
    metric_counter(out, "signalbox_store_queries_total", "Pages of rows read.",
                   s->queries_total);
    metric_gauge(out, "signalbox_store_waiting",
                 "Changes that are not on the disk yet.", s->waiting);
    write_seconds(out, "signalbox_store_batch_seconds_total",
                  "Time spent in transactions, including their sync.",
                  s->batch_us_total);
    write_seconds(out, "signalbox_store_sync_seconds_total",
                  "Time spent in commits.", s->sync_us_total);
    metric_gauge(out, "signalbox_store_log_bytes",
                 "Size of the log that is not in the database file yet.",
                 s->log_bytes);
    metric_gauge(out, "signalbox_store_data_bytes",
                 "Size of the database file.", s->data_bytes);
    metric_gauge(out, "signalbox_store_full",
                 "1 while the disk has no space for changes.", s->is_full);
}

static void status_label(char *to, size_t size, unsigned status)
{
    struct str name = task_status_name((enum task_status)status);

    snprintf(to, size, "status=\"%.*s\"", STR_ARG(name));
}

static void write_tasks(struct buf *out, const struct tasks_stats *s)
{
    char label[48];

    metric_family(out, "signalbox_tasks", "gauge",
                  "Unfinished tasks, by status.");
    for (unsigned i = 1; i < N_TASK_STATUS; i++) {
        if (task_is_over((enum task_status)i))
            continue;
        status_label(label, sizeof(label), i);
        metric_int(out, "signalbox_tasks", label, s->by_status[i]);
    }
    metric_counter(out, "signalbox_tasks_accepted_total",
                   "Tasks, and further turns of tasks, accepted.",
                   s->accepted_total);
    metric_counter(out, "signalbox_tasks_repeated_total",
                   "Messages answered by their idempotency key.",
                   s->repeated_total);
    metric_family(out, "signalbox_tasks_over_total", "counter",
                  "Finished tasks, by status.");
    for (unsigned i = 1; i < N_TASK_STATUS; i++) {
        if (!task_is_over((enum task_status)i))
            continue;
        status_label(label, sizeof(label), i);
        metric_int(out, "signalbox_tasks_over_total", label, s->over_total[i]);
    }
    metric_counter(out, "signalbox_tasks_late_total",
                   "Results after the end, ignored.", s->late_total);
    metric_gauge(out, "signalbox_tasks_unfinished_bytes",
                 "Bytes of texts of unfinished tasks.", s->unfinished_bytes);
    metric_gauge(out, "signalbox_tasks_listeners", "Listeners of tasks.",
                 s->listeners);
    metric_gauge(out, "signalbox_tasks_ring_bytes",
                 "Bytes of task events kept for clients that reconnect.",
                 s->ring_bytes);
}

static void write_feed(struct buf *out, const struct feed_stats *s)
{
    metric_counter(out, "signalbox_feed_entries_total",
                   "Entries of the feed since the start.", s->entries_total);
    metric_gauge(out, "signalbox_feed_newest", "Seq of the newest entry.",
                 s->newest);
    metric_gauge(out, "signalbox_feed_readers", "Streams of the feed.",
                 s->readers);
    metric_counter(out, "signalbox_feed_pages_total",
                   "Pages of older entries read from the store.",
                   s->pages_total);
}

static void write_access(struct buf *out, const struct access_stats *s)
{
    metric_gauge(out, "signalbox_users", "Users.", s->users);
    metric_gauge(out, "signalbox_tokens", "Tokens that are not revoked.",
                 s->tokens);
    metric_counter(out, "signalbox_tokens_refused_total",
                   "Requests without a valid token.", s->refused_total);
}

static void write_limits(struct buf *out, const struct throttle *t)
{
    static const char *const limits[N_THROTTLES] = {
        [THROTTLE_USER] = "limit=\"user\"",
        [THROTTLE_ADDRESS] = "limit=\"address\"",
        [THROTTLE_FAILURES] = "limit=\"failures\"",
        [THROTTLE_HELD] = "limit=\"held\""};

    metric_family(out, "signalbox_rate_limited_total", "counter",
                  "Requests rejected by a rate limit.");
    for (int by = THROTTLE_USER; by < N_THROTTLES; by++)
        metric_int(out, "signalbox_rate_limited_total", limits[by],
                   throttle_total(t, (enum throttle_by)by));
}

static void write_open(struct buf *out, const struct api *c)
{
    static const char *const kinds[N_OPEN_KINDS] = {
        [OPEN_ASKING] = "kind=\"asking\"",
        [OPEN_WAITING] = "kind=\"waiting\"",
        [OPEN_EVENTS] = "kind=\"events\"",
        [OPEN_FEED] = "kind=\"feed\""};

    metric_family(out, "signalbox_calls_open", "gauge",
                  "Requests that wait for something, and streams.");
    for (int i = 0; i < N_OPEN_KINDS; i++)
        metric_int(out, "signalbox_calls_open", kinds[i], c->n_by_kind[i]);
    metric_counter(out, "signalbox_calls_shut_out_total",
                   "Streams and waiting requests ended because their token was "
                   "revoked or expired, or its role changed.",
                   c->revoked_total);
}

static void write_outgoing(struct buf *out, const struct fetch_stats *s)
{
    metric_gauge(out, "signalbox_outgoing_requests",
                 "Outgoing requests under way.", s->open);
    metric_gauge(out, "signalbox_outgoing_lookups_left",
                 "Name lookups of requests that are over.", s->lingering);
    metric_counter(out, "signalbox_outgoing_requests_total",
                   "Outgoing requests started.", s->started_total);
    metric_counter(out, "signalbox_outgoing_requests_failed_total",
                   "Outgoing requests without a complete answer.",
                   s->failed_total);
    metric_counter(out, "signalbox_outgoing_addresses_refused_total",
                   "Outgoing requests to a forbidden address.",
                   s->refused_by_guard_total);
    metric_counter(
        out, "signalbox_outgoing_connections_total",
        "Connections opened for outgoing requests; other requests reuse one.",
        s->connections_total);
    metric_counter(out, "signalbox_outgoing_received_bytes_total",
                   "Bytes of answers to outgoing requests.", s->bytes_in_total);
}

/* These are public. The number of different words in the index, or its exact
 * memory, would tell a user whether a word of their card was already in a card
 * that they may not see. So the number is left out, and memory is rounded to
 * whole MiB. */
static int64_t whole_mib(size_t bytes)
{
    const size_t mib = 1024 * 1024;

    return (int64_t)((bytes + mib - 1) / mib * mib);
}

static void metrics_write_index(struct buf *out, const struct index_stats *s)
{
    metric_gauge(out, "signalbox_index_documents",
                 "Documents in the index: skills, and agents themselves.",
                 (int64_t)s->documents);
    metric_gauge(out, "signalbox_index_vectors", "Documents with a vector.",
                 (int64_t)s->vectors);
    metric_gauge(out, "signalbox_index_bytes",
                 "Memory of the index, in whole MiB.", whole_mib(s->bytes));
    metric_gauge(out, "signalbox_index_vector_bytes",
                 "Memory of the vectors in the index, in whole MiB.",
                 whole_mib(s->vector_bytes));
    metric_counter(out, "signalbox_index_scanned_total",
                   "Vectors that searches compared roughly.", s->scanned_total);
    metric_counter(out, "signalbox_index_refined_total",
                   "Vectors that searches compared exactly.", s->refined_total);
}

static void write_decide_times(struct buf *out, const struct router_stats *s)
{
    char label[32] = "le=\"+Inf\"";
    int64_t n = 0;

    metric_family(out, "signalbox_decide_seconds", "histogram",
                  "Time to choose an agent, without waiting.");
    for (int b = 0; b < ROUTE_BUCKETS; b++) {
        if (b < ROUTE_BUCKETS - 1)
            snprintf(label, sizeof(label), "le=\"%g\"",
                     (double)route_bucket_us[b] / 1e6);
        else
            snprintf(label, sizeof(label), "le=\"+Inf\"");
        n += s->decide_total[b];
        metric_int(out, "signalbox_decide_seconds_bucket", label, n);
    }
    metric_real(out, "signalbox_decide_seconds_sum", NULL,
                (double)s->decide_sum_us / 1e6);
    metric_int(out, "signalbox_decide_seconds_count", NULL, n);
}

static void write_routing(struct buf *out, const struct router_stats *s)
{
    char label[32];

    metric_family(out, "signalbox_decisions_total", "counter",
                  "Recorded decisions, by the layer that chose the agent; "
                  "none: the message was rejected.");
    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++) {
        snprintf(label, sizeof(label), "layer=\"%.*s\"",
                 STR_ARG(layer_name((enum layer)i)));
        metric_int(out, "signalbox_decisions_total", label, s->by_layer[i]);
    }
    metric_family(out, "signalbox_decisions_by_tier_total", "counter",
                  "Recorded decisions that compared agents with a model of two "
                  "tiers, by the tier that decided.");
    for (int i = TIER_NONE + 1; i < N_TIERS; i++) {
        snprintf(label, sizeof(label), "tier=\"%.*s\"",
                 STR_ARG(tier_name((enum tier)i)));
        metric_int(out, "signalbox_decisions_by_tier_total", label,
                   s->by_tier[i]);
    }
    metric_counter(out, "signalbox_transformer_unheard_total",
                   "Messages for which the transformer failed, so the table "
                   "decided.",
                   s->full_failed_total);
    metric_counter(out, "signalbox_no_route_total",
                   "Messages without a matching agent.", s->no_route_total);
    metric_counter(out, "signalbox_refusals_unrecorded_total",
                   "Messages without an agent and without a record: the user "
                   "had too many in that hour, or the store was full.",
                   s->refusals_unrecorded_total);
    metric_counter(out, "signalbox_switches_total",
                   "Conversations that their user moved to another agent.",
                   s->switches_total);
    metric_counter(out, "signalbox_intents_total",
                   "Messages for the classifier.", s->intents_total);
    metric_counter(out, "signalbox_intents_failed_total",
                   "Messages for the classifier without a usable answer.",
                   s->intents_failed_total);
    metric_gauge(out, "signalbox_routing_waiting",
                 "Messages that wait for input of the routing.", s->waiting);
    write_decide_times(out, s);
}

static void write_registry(struct buf *out, const struct registry_stats *s)
{
    static const enum visibility all[] = {VISIBILITY_PUBLIC, VISIBILITY_SHARED,
                                          VISIBILITY_PRIVATE};
    char label[48];

    metric_family(out, "signalbox_agents", "gauge", "Agents, by visibility.");
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        snprintf(label, sizeof(label), "visibility=\"%.*s\"",
                 STR_ARG(visibility_name(all[i])));
        metric_int(out, "signalbox_agents", label, s->by_visibility[all[i]]);
    }
    metric_family(
        out, "signalbox_agents_in_review", "gauge",
        "Agents with a new card that is not approved, by the state of "
        "its review.");
    for (int i = REVIEW_WAITING; i <= REVIEW_HIDDEN; i++) {
        snprintf(label, sizeof(label), "review=\"%.*s\"",
                 STR_ARG(review_name((enum review_state)i)));
        metric_int(out, "signalbox_agents_in_review", label, s->by_review[i]);
    }
    metric_gauge(out, "signalbox_agent_reports",
                 "Reports of agents that no admin has dismissed.", s->reports);
    metric_gauge(out, "signalbox_skills", "Skills of agents.", s->skills);
    metric_gauge(out, "signalbox_grants", "Grants, including expired ones.",
                 s->grants);
    metric_gauge(out, "signalbox_agents_unembedded",
                 "Agents without vectors of the current model: until then they "
                 "are found by their words or its table.",
                 s->unembedded);
    metric_gauge(out, "signalbox_vectors_ready",
                 "1 when all vectors of agents and reference texts are there.",
                 s->is_ready);
    metric_counter(out, "signalbox_agent_changes_total",
                   "Changes of agents and grants.", s->changes_total);
    metric_counter(out, "signalbox_agent_embed_failures_total",
                   "Failures to make vectors for an agent, which are retried.",
                   s->embed_failures_total);
    metric_counter(out, "signalbox_searches_total", "Searches for agents.",
                   s->searches_total);
    metric_counter(out, "signalbox_searches_by_words_total",
                   "Searches by words alone although more was requested.",
                   s->searches_by_words_total);
    metrics_write_index(out, &s->index);
}

/* The provider's name of a model may contain any character. */
static void add_label(char *to, size_t size, const char *text)
{
    size_t n = strlen(to);

    for (; *text && n + 4 < size; text++) {
        if (strchr("\\\"\n", *text))
            to[n++] = '\\';
        to[n++] = *text == '\n' ? 'n' : *text;
    }
    to[n++] = '"';
    to[n] = '\0';
}

/* One family after the other, each for all models. */
static void write_embeds(struct buf *out, const struct api *c)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } families[] = {
#define ROW(name, type, field, help) \
    {"signalbox_embed_" name, type, help, offsetof(struct embed_stats, field)}
        ROW("texts_total", "counter", texts_total,
            "Texts made into vectors, without cache hits."),
        ROW("quick_texts_total", "counter", quick_total,
            "Texts made into quick vectors, by the table of a model of two "
            "tiers."),
        ROW("texts_failed_total", "counter", failed_total,
            "Texts without a vector after a failure."),
        ROW("texts_waiting", "gauge", waiting,
            "Texts that wait for their vectors."),
        ROW("cache_hits_total", "counter", cache_hits_total,
            "Cache hits for vectors of queries."),
        ROW("cache_misses_total", "counter", cache_misses_total,
            "Cache misses for vectors of queries."),
        ROW("cache_entries", "gauge", cache_entries,
            "Vectors of queries in the cache."),
        ROW("requests_total", "counter", requests_total,
            "Requests to the provider."),
        ROW("provider_paused", "gauge", is_paused,
            "1 while the provider is paused because it failed."),
#undef ROW
    };

    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        metric_family(out, families[k].name, families[k].type,
                      families[k].help);
        for (size_t i = 0; i < c->n_embeds; i++) {
            struct embed_stats stats;
            struct embed_stamp stamp;
            char label[64 + 2 * EMBED_NAME_MAX];
            int64_t v;

            if (!c->embeds[i])
                continue;
            stats = embed_stats(c->embeds[i]);
            stamp = embed_stamp(c->embeds[i]);
            snprintf(label, sizeof(label), "kind=\"%s\",model=\"",
                     embed_kind_name(stats.kind));
            add_label(label, sizeof(label), stamp.name);
            memcpy(&v, (const char *)&stats + families[k].offset, sizeof(v));
            metric_int(out, families[k].name, label, v);
        }
    }
}

void call_metrics(struct call *c)
{
    struct api *api = c->api;
    struct net_stats net = net_stats(api->net);
    struct store_stats store = store_stats(api->store);
    struct walk_stats walk = walk_stats(api->walk);
    struct feed_stats feed = feed_stats(api->feed);
    struct access_stats access = access_stats(api->access);
    struct registry_stats registry = registry_stats(api->registry);
    struct router_stats routing = router_stats(walk_router(api->walk));
    struct delegation_stats delegation =
        delegation_stats(walk_delegations(api->walk));

    metric_family(c->body, "signalbox_build_info", "gauge",
                  "Constant 1, with the version as a label.");
    metric_int(c->body, "signalbox_build_info",
               "version=\"" SIGNALBOX_VERSION "\"", 1);
    write_http(c->body, &net);
    write_limits(c->body, api->throttle);
    write_ws(c->body, &net);
    write_open(c->body, api);
    write_store(c->body, &store);
    write_tasks(c->body, &walk.tasks);
    metric_gauge(c->body, "signalbox_results_waiting",
                 "Results, and other ends of tasks, that wait for disk space.",
                 walk.results_waiting);
    metrics_deliver(c->body, &walk.deliver);
    metrics_agents(c->body, walk_deliver(api->walk));
    metrics_delegation(c->body, &delegation, api->traces);
    metrics_gate(c->body, api);
    write_feed(c->body, &feed);
    write_access(c->body, &access);
    write_registry(c->body, &registry);
    write_routing(c->body, &routing);
    if (api->learning) {
        struct learning_stats learning = learning_stats(api->learning);

        metrics_learning(c->body, &learning);
    }
    if (api->hub.write_metrics)
        api->hub.write_metrics(api->hub.ctx, c->body);
    if (api->fetch) {
        struct fetch_stats fetch = fetch_stats(api->fetch);

        write_outgoing(c->body, &fetch);
    }
    if (api->n_embeds)
        write_embeds(c->body, api);
    metric_counter(c->body, "signalbox_config_reloads_total",
                   "Configurations applied while running.", api->reloads_total);
    metric_counter(c->body, "signalbox_config_reloads_failed_total",
                   "Configurations rejected while running.",
                   api->reloads_failed_total);
    metric_process(c->body, &api->files, loop_mono_ms(api->loop));
    call_answer(c, 200, WATCH_METRICS_TYPE);
}
