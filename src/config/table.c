/* The table of settings.
 *
 * Everything that depends on what settings there are is made from the rows:
 * reading, defaults, errors, what needs a restart, the reference. A default is
 * written as JSON and read like any other value, so it can neither break the
 * limits of its row nor be shown otherwise than a user would write it. Turned
 * down: code generated from a schema file, since the table is as short and the
 * compiler reads it. The rows of one section stand together, in the order in
 * which they are shown. Those of choosing (bindings, routing, learning) are a
 * text of their own, choosing_rows.inc, since one array must have them all. */
#include "config/internal.h"

#include "model/delegation.h"

/* The rows. */

static const char *const level_names[] = {"debug", "info", "warn", "error",
                                          NULL};
static const char *const format_names[] = {"auto", "text", "json", NULL};
static const char *const embed_names[] = {"builtin", "table", "transformer",
                                          "minilm",  "http",  NULL};
static const char *const fusion_names[] = {"weighted", "rrf", NULL};
static const char *const order_names[] = {"spread", "plain", NULL};
static const char *const offline_names[] = {"refuse", "hold", NULL};
static const char *const disconnect_names[] = {"keep", "cancel", NULL};
static const char *const when_names[] = {"always", "ambiguous", NULL};
static const char *const overrides_names[] = {"default", "bindings", NULL};
static const char *const unsure_names[] = {"auto", "default", "best",
                                           "ask",  "refuse",  NULL};
static const char *const preset_names[] = {"none", "seed", NULL};
static const char *const trust_names[] = {"rated", "all", NULL};

#define BUDGET_MAX INT64_C(1000000000000000000) /* LEDGER_AMOUNT_MAX */

enum {
    MILLION = 1000 * 1000,
    KIB = 1024,
    MIB = 1024 * 1024,
    SECOND_MS = 1000,
    HOUR_MS = 3600 * SECOND_MS,
    DAY_MS = 24 * HOUR_MS,
    /* Short enough for a test, long enough to be reached on purpose only. */
    SHORTEST_MS = 10,
};

/* The elements of lists. */

#define AT(field) .offset = offsetof(struct config_cert, field)

static const struct setting cert_rows[] = {
    {"certFile", AT(cert_file), .type = &type_file,
     .what = "The certificate, as `tls.certFile`. Clients that ask for a name "
             "in it get it."},
    {"keyFile", AT(key_file), .type = &type_file, .what = "Its private key."},
};

#undef AT

static const struct setting_table cert_table = {
    cert_rows, sizeof(cert_rows) / sizeof(cert_rows[0])};

static const struct setting_elements cert_elements = {
    .table = &cert_table,
    .bytes = sizeof(struct config_cert),
    .max = CONFIG_MORE_CERTS_MAX,
};

static const struct setting host_row = {"", .type = &type_host};
static const struct setting origin_row = {"", .type = &type_origin};
static const struct setting_table host_table = {&host_row, 1};
static const struct setting_table origin_table = {&origin_row, 1};
static const struct setting network_row = {"", .type = &type_range,
                                           .is_portless = true,
                                           .explain = setting_explain_range};
static const struct setting_table network_table = {&network_row, 1};

static const struct setting_elements network_elements = {
    .table = &network_table,
    .bytes = sizeof(struct guard_range),
    .max = 64, /* looked at with every request */
    .is_plain = true,
};

static const struct setting_elements host_elements = {
    .table = &host_table,
    .bytes = sizeof(struct str),
    .max = 100,
    .is_plain = true,
};
static const struct setting_elements origin_elements = {
    .table = &origin_table,
    .bytes = sizeof(struct str),
    .max = 100,
    .is_plain = true,
};

static const struct setting range_row = {"", .type = &type_range,
                                         .explain = setting_explain_range};
static const struct setting_table range_table = {&range_row, 1};

static const struct setting_elements range_elements = {
    .table = &range_table,
    .bytes = sizeof(struct guard_range),
    .max = 100, /* looked through for every connection */
    .is_plain = true,
};

/* setting_list_get looks at all of them as the same. */
#define IS_LIST(field)                                                     \
    (sizeof(((struct config *)0)->field) == sizeof(struct setting_list) && \
     offsetof(struct config, field.n) - offsetof(struct config, field) ==  \
         offsetof(struct setting_list, n))
_Static_assert(IS_LIST(agents), "a list like the others");
_Static_assert(IS_LIST(bindings), "a list like the others");
_Static_assert(IS_LIST(processes), "a list like the others");
_Static_assert(IS_LIST(models), "a list like the others");
_Static_assert(IS_LIST(tls.more), "a list like the others");
_Static_assert(IS_LIST(http.allowed_hosts), "a list like the others");
_Static_assert(IS_LIST(http.allowed_origins), "a list like the others");
_Static_assert(IS_LIST(outgoing.allow), "a list like the others");
_Static_assert(IS_LIST(rate.exempt), "a list like the others");

#define AT(field) .offset = offsetof(struct config, field)

static const struct setting rows[] = {
    {"listen", AT(listen), .type = &type_address,
     .preset = "\"127.0.0.1:8787\"", .flag = "--listen", .needs_restart = true,
     .what = "Where to take connections without TLS. Port 0 is any free one; "
             "`localhost` and `[::]` are both IPv6 and IPv4."},
    {"data", AT(data), .type = &type_folder, .preset = "\"signalbox-data\"",
     .flag = "--data", .needs_restart = true,
     .what = "The folder that holds everything the server remembers; made if "
             "it is not there."},
    {"allowPlaintext", AT(allow_plaintext), .type = &type_bool,
     .preset = "false", .needs_restart = true,
     .what = "Let `listen` be an address beyond this machine although tokens "
             "and messages then travel unencrypted."},
    {"stopGraceMs", AT(stop_grace_ms), .type = &type_int, .preset = "10000",
     .min = 0, .max = 10 * 60 * SECOND_MS, .unit = "milliseconds",
     .what = "How long open requests may go on when the server is told to "
             "stop."},
    {"node", AT(node), .type = &type_name, .preset = "\"main\"",
     .needs_restart = true,
     .what = "The name of this server, written beside the tasks it works "
             "on."},
    {"rules", AT(rules), .type = &type_rules, .preset = "\"auto\"",
     .what = "The file of the gate's rules: what may go now, what waits, what "
             "a person must see (docs/rules.md). `auto` is "
             "`routing_rules.json` beside this file, else in the data folder, "
             "if there is one at the start or a reload; the log says so. Read "
             "again whenever it changes; a bad one never replaces a good one. "
             "Empty: none."},

    {"tls.listen", AT(tls.listen), .type = &type_address, .preset = "\"\"",
     .needs_restart = true,
     .what = "Where to take connections with TLS; it may well be beyond this "
             "machine. Needs the two below."},
    {"tls.certFile", AT(tls.cert_file), .type = &type_file, .preset = "\"\"",
     .what = "The server's certificate in PEM, with those that lead from it to "
             "its authority behind it. Looked at every ten seconds, and taken "
             "up when it has changed."},
    {"tls.keyFile", AT(tls.key_file), .type = &type_file, .preset = "\"\"",
     .what = "Its private key in PEM, without a passphrase."},
    {"tls.more", AT(tls.more), .type = &type_list, .preset = "[]",
     .elements = &cert_elements,
     .what = "Certificates for further names. Who asks for a name that is in "
             "none of them gets the one above."},

    {"log.level", AT(log.level), .type = &type_enum, .preset = "\"info\"",
     .names = level_names, .what = "The least important lines to write."},
    {"log.format", AT(log.format), .type = &type_enum, .preset = "\"auto\"",
     .names = format_names,
     .what = "Lines for people or for programs; auto is text on a terminal "
             "and JSON elsewhere."},

    {"http.maxConnections", AT(http.max_connections), .type = &type_int,
     .preset = "8192", .min = 1, .max = 1000000,
     .what = "Connections open at once; more are turned away."},
    {"http.maxConnectionsPerAddress", AT(http.max_connections_per_address),
     .type = &type_int, .preset = "1024", .min = 0, .max = 1000000,
     .what = "Connections open at once from one address, or one /64 of IPv6; "
             "more are turned away. 0: no limit. `rate.exempt` are not "
             "counted."},
    {"http.maxRequestLineBytes", AT(http.max_request_line_bytes),
     .type = &type_int, .preset = "8192", .min = 64, .max = 64 * KIB,
     .unit = "bytes", .what = "The longest request line (method and path)."},
    {"http.maxHeaderBytes", AT(http.max_header_bytes), .type = &type_int,
     .preset = "16384", .min = 128, .max = MIB, .unit = "bytes",
     .what = "All header lines of a request together."},
    {"http.maxHeaders", AT(http.max_headers), .type = &type_int,
     .preset = "100", .min = 1, .max = 1000,
     .what = "Header lines in a request."},
    {"http.maxBodyBytes", AT(http.max_body_bytes), .type = &type_int,
     .preset = "2097152", .min = 1, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest request body."},
    {"http.maxUnsentBytes", AT(http.max_unsent_bytes), .type = &type_int,
     .preset = "1048576", .min = KIB, .max = 64 * MIB, .unit = "bytes",
     .what = "What may wait for a slow reader, per connection, before its "
             "stream is told to pause."},
    {"http.maxBufferedBytes", AT(http.max_buffered_bytes), .type = &type_int,
     .preset = "268435456", .min = 64 * KIB, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "What the buffers of all connections may hold together; beyond "
             "it, requests that are only half here are refused and slow "
             "readers wait; a quarter beyond it, new connections are turned "
             "away."},
    {"http.headerTimeoutMs", AT(http.header_timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "From the first byte of a request to the end of its headers."},
    {"http.bodyTimeoutMs", AT(http.body_timeout_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "From the end of the headers to the end of the body."},
    {"http.idleTimeoutMs", AT(http.idle_timeout_ms), .type = &type_int,
     .preset = "75000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a connection may stay open between requests."},
    {"http.replyTimeoutMs", AT(http.reply_timeout_ms), .type = &type_int,
     .preset = "120000", .min = SHORTEST_MS, .max = 24 * HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a request may wait for the beginning of its reply."},
    {"http.writeTimeoutMs", AT(http.write_timeout_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a reader may take nothing of a reply before the "
             "connection is cut."},
    {"http.heartbeatMs", AT(http.heartbeat_ms), .type = &type_int,
     .preset = "15000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a stream of events may be silent before a comment is "
             "sent to keep it open."},
    {"http.allowedHosts", AT(http.allowed_hosts), .type = &type_list,
     .preset = "[]", .elements = &host_elements,
     .what = "The names this server goes by, beside localhost and addresses; "
             "with a port, only with that one. Requests to other names are "
             "refused, all but /healthz and /readyz."},
    {"http.allowedOrigins", AT(http.allowed_origins), .type = &type_list,
     .preset = "[]", .elements = &origin_elements,
     .what = "The web pages that may call from a browser (CORS), beside the "
             "server's own."},

    {"metrics.public", AT(metrics.is_public), .type = &type_bool,
     .preset = "true",
     .what = "Answer `/metrics` without a token. If false, it needs a token "
             "with the scope `metrics` or `admin`, all but on "
             "`metrics.listen`."},
    {"metrics.listen", AT(metrics.listen), .type = &type_address,
     .preset = "\"\"", .needs_restart = true,
     .what = "An address of its own, without TLS, that has `/metrics`, "
             "`/healthz` and `/readyz` and nothing else, without a token: "
             "whoever can reach it may read them."},

    {"web.enabled", AT(web.enabled), .type = &type_bool, .preset = "true",
     .what = "Show the dashboard to browsers that open `/`. The API is the "
             "same without it."},
    {"web.folder", AT(web.folder), .type = &type_file, .preset = "\"\"",
     .what = "For work on the dashboard: a folder like `web/` of the source, "
             "whose files are read anew for each request. Empty: those in "
             "the binary."},

    {"ws.maxFrameBytes", AT(ws.max_frame_bytes), .type = &type_int,
     .preset = "8388608", .min = 125, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest frame that is taken from a WebSocket. A text of 1 "
             "MiB fits, however it is escaped."},
    {"ws.maxMessageBytes", AT(ws.max_message_bytes), .type = &type_int,
     .preset = "8388608", .min = 125, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest message, of however many frames. A larger frame or "
             "message ends the WebSocket with code 1009."},
    {"ws.timeoutMs", AT(ws.timeout_ms), .type = &type_int, .preset = "90000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long nothing at all may come of a WebSocket before it is "
             "ended. After a third of it a ping is sent, and whoever answers "
             "is there."},
    {"ws.closeTimeoutMs", AT(ws.close_timeout_ms), .type = &type_int,
     .preset = "5000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long the answer to a close may take."},

    {"rate.perUser", AT(rate.per_user), .type = &type_int, .preset = "1000",
     .min = 0, .max = 1000000, .unit = "requests a second",
     .what = "How often one user may call, with all tokens together, over HTTP "
             "(beyond it refused) and on the hub (beyond it read more slowly; "
             "task.chunk, task.result and ping do not count). 0: as often as "
             "they like."},
    {"rate.userBurst", AT(rate.user_burst), .type = &type_int, .preset = "5000",
     .min = 1, .max = 10 * 1000 * 1000,
     .what = "And how many calls may come at once before that counts."},
    {"rate.perAddress", AT(rate.per_address), .type = &type_int,
     .preset = "2000", .min = 0, .max = 1000000, .unit = "requests a second",
     .what = "How often one address, or one /64 of IPv6, may call, whoever it "
             "is; all but `/healthz` and `/readyz`. 0: as often as it likes."},
    {"rate.addressBurst", AT(rate.address_burst), .type = &type_int,
     .preset = "10000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "And how many calls may come at once before that counts."},
    {"rate.failuresPerMinute", AT(rate.failures_per_minute), .type = &type_int,
     .preset = "60", .min = 0, .max = 1000000, .unit = "requests a minute",
     .what = "How often an address may call with a token that is not good. "
             "Good ones are taken however many of those come. 0: as often as "
             "it likes."},
    {"rate.failureBurst", AT(rate.failure_burst), .type = &type_int,
     .preset = "100", .min = 1, .max = 10 * 1000 * 1000,
     .what = "And how many of those may come at once before that counts."},
    {"rate.exempt", AT(rate.exempt), .type = &type_list,
     .preset = "[\"127.0.0.0/8\",\"[::1]\"]", .elements = &network_elements,
     .what = "Addresses that have no limit of their own, here and in "
             "`http.maxConnectionsPerAddress`: this machine, and a reverse "
             "proxy elsewhere. The limit of a user counts there too."},

    {"agents.list", AT(agents), .type = &type_cards, .preset = "[]",
     .what = "The agents that messages can be sent to."},
    {"agents.defaults", AT(agents), .type = &type_defaults, .preset = "{}",
     .what = "What every agent of the list has unless it says otherwise: laid "
             "under each of them, object by object, where a list or `null` in "
             "the agent takes the place of what is here. `signalbox check "
             "--print` shows each agent with them in it."},
    {"agents.default", AT(default_agent), .type = &type_name_or_none,
     .preset = "\"\"",
     .what = "Who gets what nobody else is chosen for; empty: such messages "
             "are refused. `default` in `agents.list` says the same."},
    {"agents.owner", AT(agents_owner), .type = &type_text, .preset = "\"\"",
     .max = PRINCIPAL_NAME_MAX,
     .what = "The user who, besides admins, may register names that rules and "
             "settings mention: `agents.default`, a `backup` in `agents.list`, "
             "and agents of the rules that have no `owner` there. Empty: "
             "admins alone."},

#include "config/choosing_rows.inc"

    {"processes", AT(processes), .type = &type_map, .preset = "{}",
     .elements = &process_elements,
     .what = "Programs that agents are: `url` `process:NAME`, or `process` in "
             "`agents.list`, where one that no other agent needs can stand "
             "itself."},

    {"models", AT(models), .type = &type_map, .preset = "{}",
     .elements = &model_elements,
     .what = "Models behind OpenAI's `/v1/chat/completions` or Anthropic's "
             "`/v1/messages` that agents are: "
             "`url` `model:NAME`, or `model` in `agents.list`. `NAME/MODEL` is "
             "that model of the endpoint NAME."},

    {"registry.maxAgents", AT(registry.max_agents), .type = &type_int,
     .preset = "100000", .min = 1, .max = 1000000,
     .what = "Agents there may be, those of the configuration included; at "
             "the limit new ones are refused."},
    {"registry.maxSkills", AT(registry.max_skills), .type = &type_int,
     .preset = "500000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "And how many skills they may have together."},
    {"registry.maxAgentsPerUser", AT(registry.max_agents_per_user),
     .type = &type_int, .preset = "1000", .min = 0, .max = 1000000,
     .what = "How many of those agents one user may have registered, so that "
             "one cannot take all. 0: as many as there may be."},
    {"registry.maxCardBytesPerUser", AT(registry.max_card_bytes_per_user),
     .type = &type_int, .preset = "8388608", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "How long the cards of one user's agents may be together, as "
             "they are stored: an agent takes many times that of memory. An "
             "admin's are not bound. 0: no limit."},
    {"registry.maxSkillsPerUser", AT(registry.max_skills_per_user),
     .type = &type_int, .preset = "2000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "How many skills one user's agents may have together: every "
             "search and every choice looks at all that are seen. An "
             "admin's are not bound. 0: no limit."},
    {"registry.maxIndexBytesPerUser", AT(registry.max_index_bytes_per_user),
     .type = &type_int, .preset = "33554432", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "What one user's agents may take of the index: a vector for "
             "each skill, and the words, where an agent's own are in each "
             "of its skills again. 0: no limit."},
    {"registry.maxAgentsPerOrg", AT(registry.max_agents_per_org),
     .type = &type_int, .preset = "5000", .min = 0, .max = 1000000,
     .what = "How many agents the users of one org may have registered "
             "together. 0: no limit."},
    {"registry.maxSkillsPerOrg", AT(registry.max_skills_per_org),
     .type = &type_int, .preset = "10000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "And how many skills those may have."},
    {"registry.maxCardBytesPerOrg", AT(registry.max_card_bytes_per_org),
     .type = &type_int, .preset = "41943040", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes", .what = "And how long their cards may be."},
    {"registry.maxIndexBytesPerOrg", AT(registry.max_index_bytes_per_org),
     .type = &type_int, .preset = "167772160", .min = 0,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "And what they may take of the index."},

    {"seal.keyFile", AT(secrets.key_file), .type = &type_rules,
     .preset = "\"auto\"", .needs_restart = true,
     .what = "The file with the key that the credentials of cards are sealed "
             "with in the database: 64 hexadecimal digits, outside the data "
             "folder. `auto` is `signalbox.key` of systemd's credentials, else "
             "`~/.config/signalbox/card.key`, which is made if it is missing. "
             "Empty: they are not sealed."},
    {"seal.keyVariable", AT(secrets.key_variable), .type = &type_variable,
     .explain = setting_explain_variable, .preset = "\"\"",
     .needs_restart = true,
     .what = "The name of the environment variable that holds the key, in "
             "place of a file."},
    {"seal.ignoreWrongKey", AT(secrets.ignores_wrong_key), .type = &type_bool,
     .preset = "false", .needs_restart = true,
     .what = "Whether to start although credentials were sealed with another "
             "key. Their agents are called without them, and they are lost "
             "when the card is next changed."},

    {"search.semanticWeight", AT(search.semantic_weight), .type = &type_real,
     .preset = "0.7", .min = 0, .max = 1,
     .what = "How much it counts for a score that a skill means what was "
             "asked for."},
    {"search.textWeight", AT(search.text_weight), .type = &type_real,
     .preset = "0.3", .min = 0, .max = 1,
     .what = "And how much that it has the same words. One of the two must be "
             "more than 0."},
    {"search.fusion", AT(search.fusion), .type = &type_enum,
     .preset = "\"weighted\"", .names = fusion_names,
     .what = "How the two become one score: their weighted sum, or "
             "`rrf`, which goes by the places in the two rankings and leaves "
             "the weights out of it."},
    {"search.order", AT(search.order), .type = &type_enum,
     .preset = "\"spread\"", .names = order_names,
     .what = "The order of the first ten: `spread` puts the third agent of a "
             "creator from outside the requester's org, and every further one, "
             "behind those of others that have at least 0.8 of its score; "
             "`plain` goes by the score alone. Admins get the plain order; a "
             "search may say which it wants."},

    {"outgoing.allow", AT(outgoing.allow), .type = &type_list, .preset = "[]",
     .elements = &range_elements,
     .what = "Where agents may make the server connect to although it is "
             "within: this machine, private networks and the like, which are "
             "refused otherwise. With a port, only to that one."},
    {"outgoing.proxy", AT(outgoing.proxy), .type = &type_proxy,
     .explain = setting_explain_proxy, .preset = "\"\"",
     .what = "The HTTP proxy that outgoing requests go through; empty: none, "
             "whatever the environment says. It is the proxy that connects "
             "then, and it must refuse what is within."},
    {"outgoing.caFile", AT(outgoing.ca_file), .type = &type_file,
     .preset = "\"\"",
     .what = "Certificates (PEM) to trust beside those of the system."},
    {"outgoing.maxOpen", AT(outgoing.max_open), .type = &type_int,
     .preset = "256", .min = 1, .max = 100000,
     .what = "Outgoing requests under way at once; more are refused, and for "
             "one host from a quarter of that on."},
    {"outgoing.maxPerHost", AT(outgoing.max_per_host), .type = &type_int,
     .preset = "16", .min = 1, .max = 10000,
     .what = "Connections to one host; more requests wait for one of them."},
    {"outgoing.maxKept", AT(outgoing.max_kept), .type = &type_int,
     .preset = "64", .min = 0, .max = 10000,
     .what = "Connections that are kept open for the next request."},
    {"outgoing.connectTimeoutMs", AT(outgoing.connect_timeout_ms),
     .type = &type_int, .preset = "5000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long finding and reaching a host may take, TLS included."},
    {"outgoing.maxHeaderBytes", AT(outgoing.max_header_bytes),
     .type = &type_int, .preset = "65536", .min = KIB, .max = MIB,
     .unit = "bytes", .what = "All header lines of an answer together."},
    {"outgoing.maxBodyBytes", AT(outgoing.max_body_bytes), .type = &type_int,
     .preset = "8388608", .min = 1, .max = 1024 * MIB, .unit = "bytes",
     .what = "The largest answer."},

    {"embed.kind", AT(embed.kind), .type = &type_enum, .preset = "\"builtin\"",
     .names = embed_names, .needs_restart = true,
     .what = "What turns text into vectors: `builtin` is both models inside "
             "the binary, the table first and the transformer where that is "
             "not sure; `table` and `transformer` are either of them alone; "
             "`minilm` is all-MiniLM-L6-v2 on a thread of its own (`signalbox "
             "model install minilm` fetches it); `http` is a provider that "
             "speaks OpenAI's `/v1/embeddings`."},
    {"embed.secondMargin", AT(embed.second_margin), .type = &type_real,
     .preset = "3", .min = 0, .max = 10,
     .what = "With `builtin`: by how much the table's choice must exceed the "
             "threshold for the transformer not to be asked, in units of the "
             "distance between the agent's median score and its 95th "
             "percentile for messages of others. 0: it is asked where the "
             "table is not sure; 10: as good as always."},
    {"embed.modelFile", AT(embed.model_file), .type = &type_file,
     .preset = "\"\"", .needs_restart = true,
     .what = "The file of minilm; empty: `models/minilm.sbm` in the data "
             "folder."},
    {"embed.cacheEntries", AT(embed.cache_entries), .type = &type_int,
     .preset = "4096", .min = 0, .max = 1000000,
     .what =
         "Vectors of questions that are kept for the next time they are "
         "asked by the same org, or by the same user without one, up to 64 "
         "MiB of them, with `minilm` and `http`; the models inside the binary "
         "keep none."},
    {"embed.maxWaiting", AT(embed.max_waiting), .type = &type_int,
     .preset = "4096", .min = 1, .max = 1000000,
     .what = "Texts that may wait for their vectors; a quarter of it is kept "
             "for questions."},
    {"embed.maxWaitingBytes", AT(embed.max_waiting_bytes), .type = &type_int,
     .preset = "33554432", .min = MIB, .max = 1024 * MIB, .unit = "bytes",
     .what = "And how much memory those and their vectors may take."},
    {"embed.timeoutMs", AT(embed.timeout_ms), .type = &type_int,
     .preset = "60000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a question may wait for its vector, all in all; what is "
             "to be found, ten times as long."},

    {"embed.http.url", AT(embed.http.url), .type = &type_endpoint,
     .explain = setting_explain_endpoint, .preset = "\"\"",
     .needs_restart = true,
     .what = "The provider, with the whole path: "
             "`http://127.0.0.1:11434/v1/embeddings`. It may be on this "
             "machine or within, whatever `outgoing.allow` says."},
    {"embed.http.model", AT(embed.http.model), .type = &type_text,
     .preset = "\"\"", .max = 127, .needs_restart = true,
     .what = "The model, by the provider's name for it."},
    {"embed.http.keyVariable", AT(embed.http.key_variable),
     .type = &type_variable, .explain = setting_explain_variable,
     .preset = "\"\"", .needs_restart = true,
     .what = "The name of the environment variable that holds the provider's "
             "key; empty: none is sent."},
    {"embed.http.dimensions", AT(embed.http.dimensions), .type = &type_int,
     .preset = "0", .min = 0, .max = 8192, .needs_restart = true,
     .what = "How many numbers a vector is to have. 0: as many as the model "
             "gives, without asking for it."},
    {"embed.http.queryPrefix", AT(embed.http.query_prefix), .type = &type_text,
     .preset = "\"\"", .max = 1024, .needs_restart = true,
     .what = "What stands before every question, for models that want it: "
             "`\"query: \"`."},
    {"embed.http.documentPrefix", AT(embed.http.document_prefix),
     .type = &type_text, .preset = "\"\"", .max = 1024, .needs_restart = true,
     .what = "And before what is to be found: `\"passage: \"`."},
    {"embed.http.batch", AT(embed.http.batch), .type = &type_int,
     .preset = "64", .min = 1, .max = 2048,
     .what = "Texts in one request, and fewer where their vectors would "
             "have more than 32768 numbers together."},
    {"embed.http.maxRequests", AT(embed.http.max_requests), .type = &type_int,
     .preset = "4", .min = 1, .max = 64,
     .what = "Requests at the same time; one of several is kept for "
             "questions."},
    {"embed.http.maxTextBytes", AT(embed.http.max_text_bytes),
     .type = &type_int, .preset = "8192", .min = 16, .max = 64 * KIB,
     .unit = "bytes", .needs_restart = true,
     .what = "Longer texts are cut off there."},
    {"embed.http.timeoutMs", AT(embed.http.timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "How long an answer may take."},
    {"embed.http.breakerFailures", AT(embed.http.breaker_failures),
     .type = &type_int, .preset = "5", .min = 1, .max = 1000,
     .what = "After so many failures in a row the provider is left alone."},
    {"embed.http.breakerPauseMs", AT(embed.http.breaker_pause_ms),
     .type = &type_int, .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "For so long; then one request finds out whether it is back. A "
             "provider that says `Retry-After` is given up to ten minutes."},

    {"tasks.maxUnfinished", AT(tasks.max_unfinished), .type = &type_int,
     .preset = "100000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "Tasks that are not over yet; at the limit new messages are "
             "refused. One in 50 is kept for admins and for what agents "
             "delegate."},
    {"tasks.maxUnfinishedBytes", AT(tasks.max_unfinished_bytes),
     .type = &type_int, .preset = "268435456", .min = 64 * KIB,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "What those tasks may hold in memory together; at the limit new "
             "messages are refused."},
    {"tasks.maxUnfinishedPerUser", AT(tasks.max_unfinished_per_user),
     .type = &type_int, .preset = "50000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "How many of those tasks may be one user's, delegated ones "
             "included, and never more than twice (an org's: four times) as "
             "many as are still free, so that the next user finds room. What "
             "agents delegate may go to double that; admins have this limit "
             "alone. 0: as many as there may be."},
    {"tasks.maxUnfinishedBytesPerUser", AT(tasks.max_unfinished_bytes_per_user),
     .type = &type_int, .preset = "134217728", .min = 0,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "What one user's tasks may hold in memory together; it shrinks in "
             "the same way. 0: as much as there may be."},
    {"tasks.timeoutMs", AT(tasks.timeout_ms), .type = &type_int,
     .preset = "600000", .min = 1, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long a task may take unless its message says otherwise; "
             "then it has expired."},

    {"gate.maxAgeMs", AT(gate.max_age_ms), .type = &type_int, .preset = "0",
     .min = 0, .max = INT64_C(366) * 24 * HOUR_MS, .unit = "milliseconds",
     .what = "An envelope whose timestamp is older is refused, whatever the "
             "rules allow (`timestamps.age`). 0: it is taken however old it "
             "is, and the decision says that it is `stale`."},

    {"deliver.maxInFlight", AT(deliver.max_in_flight), .type = &type_int,
     .preset = "10000", .min = 1, .max = 1000 * 1000,
     .what = "Tasks that are with their agents at once, of all together; "
             "more wait, but for what agents delegate."},
    {"deliver.inFlight", AT(deliver.in_flight), .type = &type_int,
     .preset = "64", .min = 1, .max = AGENT_IN_FLIGHT_MAX,
     .what = "And of one agent whose card has no `limits.inFlight`."},
    {"deliver.queue", AT(deliver.queue), .type = &type_int, .preset = "10000",
     .min = 1, .max = AGENT_QUEUE_MAX,
     .what = "Unfinished tasks of one agent whose card has no `limits.queue`; "
             "at the limit new ones are refused."},
    {"deliver.maxAttempts", AT(deliver.max_attempts), .type = &type_int,
     .preset = "8", .min = 1, .max = 1000,
     .what = "How often a task is carried to an agent and comes to nothing "
             "before it has failed."},
    {"deliver.retryMs", AT(deliver.retry_ms), .type = &type_int,
     .preset = "500", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "The pause before the second attempt, roughly; each further one "
             "is twice as long."},
    {"deliver.retryMaxMs", AT(deliver.retry_max_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "But no longer than this."},
    {"deliver.breakerFailures", AT(deliver.breaker_failures), .type = &type_int,
     .preset = "5", .min = 1, .max = 1000,
     .what = "After so many failures in a row an agent is left alone."},
    {"deliver.breakerPauseMs", AT(deliver.breaker_pause_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "For so long; then one task finds out whether it is back."},
    {"deliver.wakeMs", AT(deliver.wake_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = AGENT_WAKE_MAX_MS,
     .unit = "milliseconds",
     .what = "How long an agent may take to wake up whose card has no "
             "`wake.timeoutMs`."},
    {"deliver.onOffline", AT(deliver.on_offline), .type = &type_enum,
     .preset = "\"refuse\"", .names = offline_names,
     .what = "What becomes of a message to an agent that is not connected and "
             "cannot be woken: it is refused, or held until the agent is there "
             "or the task's time is over."},
    {"deliver.silenceMs", AT(deliver.silence_ms), .type = &type_int,
     .preset = "60000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long an agent that is reached by HTTP may say nothing within "
             "an answer."},
    {"deliver.inputMs", AT(deliver.input_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a dialog that an agent's program shows waits while "
             "nobody listens to the task or its root who says that they "
             "answer (`Signalbox-Answers: input`); then it is cancelled."},
    {"deliver.maxGatheredBytes", AT(deliver.max_gathered_bytes),
     .type = &type_int, .preset = "268435456", .min = MIB,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "What is kept of answers that come in pieces, of all tasks "
             "together, until they are whole."},

    {"hub.maxOpen", AT(hub.max_open), .type = &type_int, .preset = "256",
     .min = 1, .max = 100000,
     .what = "Requests of one connection that are not answered yet; more are "
             "refused."},
    {"hub.maxListening", AT(hub.max_listening), .type = &type_int,
     .preset = "1024", .min = 1, .max = 1000 * 1000,
     .what = "Tasks that one connection hears of at once."},
    {"hub.messagesPerSecond", AT(hub.messages_per_second), .type = &type_int,
     .preset = "0", .min = 0, .max = 1000 * 1000,
     .what = "Messages a second from one connection, each of a batch; beyond "
             "it the server reads more slowly. 0: no limit."},

    {"delegation.timeoutMs", AT(delegation.timeout_ms), .type = &type_int,
     .preset = "180000", .min = SHORTEST_MS, .max = DAY_MS,
     .unit = "milliseconds",
     .what = "How long work may take that an agent gives to another and says "
             "nothing about it. Never longer than the task it is part of."},
    {"delegation.maxDepth", AT(delegation.max_depth), .type = &type_int,
     .preset = "5", .min = 0, .max = DELEGATION_CHAIN_MAX,
     .what = "How deep work may be given on, below an agent whose card has no "
             "`delegation.maxDepth`. 1: its delegate may not go on; 0: nobody "
             "gives work to anybody."},
    {"delegation.maxConcurrent", AT(delegation.max_concurrent),
     .type = &type_int, .preset = "16", .min = 0, .max = AGENT_CONCURRENT_MAX,
     .what = "Delegations of one agent that are being done at once, where its "
             "card has no `delegation.maxConcurrent`. Further ones wait. 0: it "
             "gives no work to anybody."},
    {"delegation.maxWaiting", AT(delegation.max_waiting), .type = &type_int,
     .preset = "1000", .min = 0, .max = MILLION,
     .what = "Delegations of one agent beyond `maxConcurrent` that wait until "
             "one of those is over, first come, first served; their time runs. "
             "Further ones are refused. 0: none waits."},
    {"delegation.maxPerRoot", AT(delegation.max_per_root), .type = &type_int,
     .preset = "256", .min = 1, .max = MILLION,
     .what = "Tasks that agents may make because of one message, at any depth "
             "and in all."},
    {"delegation.maxOpen", AT(delegation.max_open), .type = &type_int,
     .preset = "100000", .min = 1, .max = MILLION,
     .what = "Delegations that are kept, of all agents: those that are not "
             "over, and results that nobody has had yet."},
    {"delegation.maxUnacked", AT(delegation.max_unacked), .type = &type_int,
     .preset = "1000", .min = 1, .max = MILLION,
     .what = "Results that are kept for one agent until it acknowledges them; "
             "beyond that it gives no more work, and is told to send "
             "`delegation.ack`."},
    {"delegation.keepMs", AT(delegation.keep_ms), .type = &type_int,
     .preset = "86400000", .min = SECOND_MS, .max = 30LL * DAY_MS,
     .unit = "milliseconds",
     .what = "How long a result is kept for an agent that does not "
             "acknowledge it."},
    {"delegation.onDisconnect", AT(delegation.on_disconnect),
     .type = &type_enum, .preset = "\"keep\"", .names = disconnect_names,
     .what = "What becomes of work whose agent's connection ends, where the "
             "request has no `onDisconnect`: it goes on and its result is "
             "kept, or it is cancelled."},

    {"ledger.feePpm", AT(ledger.fee_ppm), .type = &type_int, .preset = "0",
     .min = 0, .max = MILLION, .unit = "millionths",
     .what = "Of each price that is earned, what the platform gets; rounded "
             "down. An agent without a creator earns all of it for the "
             "platform."},
    {"ledger.perDay", AT(ledger.per_day), .type = &type_int, .preset = "0",
     .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "What one user may spend in a day (UTC), what is reserved "
             "included. 0: as much as the balance allows."},
    {"ledger.perConversation", AT(ledger.per_conversation), .type = &type_int,
     .preset = "0", .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "What the messages of one conversation may cost themselves; what "
             "agents delegate because of them is of other conversations, and "
             "perRoot bounds it. 0: no limit."},
    {"ledger.perRoot", AT(ledger.per_root), .type = &type_int, .preset = "0",
     .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "What a message may cost together with all that agents delegate "
             "because of it, at any depth. 0: no limit."},
    {"ledger.delegationAllowance", AT(ledger.delegation_allowance),
     .type = &type_int, .preset = "100000", .min = 0, .max = BUDGET_MAX,
     .unit = "micro-units",
     .what =
         "What agents may spend on delegations because of a message that "
         "has no `max_cost_micros`, at any depth, beside its price. 0: they "
         "delegate at no cost of others, or not at all."},
    {"ledger.currency", AT(ledger.currency), .type = &type_text,
     .preset = "\"USD\"", .min = 1, .max = AGENT_CURRENCY_MAX,
     .what = "What the unit of account is called. A card's price may be given "
             "as an amount of it; an amount of any other currency is refused. "
             "What is there already is not converted."},

    {"retention.days", AT(retention.days), .type = &type_int, .preset = "30",
     .min = 1, .max = 36500, .unit = "days",
     .what = "How long what is over is kept."},
    {"retention.rows", AT(retention.rows), .type = &type_int,
     .preset = "1000000", .min = 1, .max = 1000 * 1000 * 1000,
     .what = "How many tasks that are over are kept, and how many events; the "
             "oldest go first."},

    {"traces.endpoint", AT(traces.endpoint), .type = &type_endpoint,
     .explain = setting_explain_endpoint, .preset = "\"\"",
     .what = "A collector of OpenTelemetry's that takes OTLP over HTTP, with "
             "the whole path: `http://127.0.0.1:4318/v1/traces`. It gets a "
             "span for each turn of a task that is over, and no text of "
             "anybody's. It may be on this machine or within, whatever "
             "`outgoing.allow` says. Empty: none."},
    {"traces.headersVariable", AT(traces.headers_variable),
     .type = &type_variable, .explain = setting_explain_variable,
     .preset = "\"\"",
     .what = "The name of the environment variable that holds headers for it, "
             "as `name=value,name=value`, such as "
             "`OTEL_EXPORTER_OTLP_HEADERS`; empty: none are sent."},
    {"traces.service", AT(traces.service), .type = &type_text,
     .preset = "\"signalbox\"", .max = 127,
     .what = "What the spans say this server is (`service.name`)."},
    {"traces.maxWaiting", AT(traces.max_waiting), .type = &type_int,
     .preset = "2048", .min = 1, .max = 100000,
     .what = "Spans that may wait for the collector; beyond that the oldest "
             "are dropped, and counted."},
    {"traces.batch", AT(traces.batch), .type = &type_int, .preset = "512",
     .min = 1, .max = 10000, .what = "Spans in one request, at most."},
    {"traces.delayMs", AT(traces.delay_ms), .type = &type_int, .preset = "1000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long spans wait for more of them."},
    {"traces.timeoutMs", AT(traces.timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "How long an answer may take."},
};

const struct setting_table config_settings = {rows,
                                              sizeof(rows) / sizeof(rows[0])};
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= SETTINGS_MAX,
               "config.c keeps a place for each row");
