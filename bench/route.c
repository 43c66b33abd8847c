/* bench_route SIGNALBOX DATA: from a text to a decision.
 *
 *     inside   18, 1 000 and 10 000 agents, each with a skill, two examples and
 *              three routing keywords, in a registry over a real store, with
 *              2 000 corrections learnt: what one decision by meaning takes of
 *              the processor, embedding by the built-in model included
 *     http     18 agents: decisions a second through the whole server, each
 *              recorded with its task in one durable transaction, the server
 *              on one core; and what it takes of the processor for each
 *
 * Agents and texts are made up of words about topics, always the same. Median
 * of the rounds. DATA is a folder for data, on the disk that counts. Exit
 * status 1 unless a decision takes less than 100 us of 18 agents and less than
 * 2 ms of 10 000. */
#include "route/route.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#include "bench/peer.h"
#include "broker/broker.h"
#include "hire/hire.h"
#include "ledger/ledger.h"
#include "task/task.h"
#include "watch/watch.h"

enum { ROUNDS = 9, TEXTS = 64, LESSONS = 2000, TEXT_BYTES = 512 };

static const double GOAL_US[] = {100, 0, 2000};
static const size_t SIZES[] = {18, 1000, 10 * 1000};

/* What things are about: an agent has two of these, a text one. */
static const char *const words[] = {
    "invoice",   "refund",   "payment",   "tax",       "budget",  "salary",
    "flight",    "hotel",    "train",     "passport",  "luggage", "visa",
    "recipe",    "dinner",   "vegetable", "wine",      "bread",   "cake",
    "code",      "compiler", "database",  "migration", "deploy",  "server",
    "contract",  "lawyer",   "lease",     "patent",    "court",   "privacy",
    "symptom",   "doctor",   "medicine",  "allergy",   "sleep",   "exercise",
    "translate", "french",   "grammar",   "essay",     "poem",    "headline",
    "weather",   "storm",    "garden",    "soil",      "harvest", "insect",
    "football",  "chess",    "marathon",  "swimming",  "bicycle", "tennis",
    "guitar",    "melody",   "concert",   "album",     "piano",   "drum",
    "laptop",    "printer",  "password",  "network",   "backup",  "email",
    "painting",  "museum",   "sculpture", "colour",    "pottery", "fashion",
    "history",   "empire",   "battle",    "physics",   "planet",  "molecule",
    "school",    "exam",     "homework",  "teacher",   "library", "college",
    "car",       "engine",   "tyre",      "battery",   "parking", "insurance",
    "dog",       "cat",      "vet",       "horse",     "fish",    "bird",
};
enum { N_WORDS = sizeof(words) / sizeof(words[0]) };

static const char *const verbs[] = {"book",   "explain", "compare", "find",
                                    "repair", "plan",    "review",  "write",
                                    "cancel", "check",   "draw up", "improve"};
enum { N_VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static uint64_t dice = 1;

static uint32_t draw(uint32_t below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice >> 33) % below);
}

static const char *word(void)
{
    return words[draw(N_WORDS)];
}

static const char *verb(void)
{
    return verbs[draw(N_VERBS)];
}

/* A card, as JSON. */
static void any_card(char *out, size_t room, size_t i)
{
    const char *a = word(), *b = word();

    snprintf(out, room,
             "{\"name\":\"%s-%s-%zu\",\"url\":\"echo:\","
             "\"visibility\":\"public\",\"description\":\"Helps to %s a %s and "
             "to %s whatever has to do with the %s, the %s and the %s of "
             "others\",\"routing\":{\"keywords\":[\"%s %s\",\"%s\",\"%s "
             "%s\"]},\"skills\":[{\"id\":\"s\",\"name\":\"%s %s\","
             "\"description\":\"%s the %s of a %s\",\"examples\":[\"please %s "
             "my %s before the %s\",\"can you %s this %s\"]}]}",
             a, b, i, verb(), a, verb(), b, word(), word(), a, b, word(),
             verb(), a, verb(), b, verb(), a, b, verb(), a, b, verb(), b);
}

static void any_text(char *out, size_t room)
{
    snprintf(out, room,
             "could you please %s the %s for me before the %s, and "
             "%s my %s",
             verb(), word(), word(), verb(), word());
}

/* Inside. */

static const struct schema *const schemas[] = {
    &task_schema,  &watch_schema,  &registry_schema, &choose_schema,
    &learn_schema, &broker_schema, &hire_schema,     &ledger_schema,
};

struct inside {
    struct clock clock;
    struct loop loop;
    struct log log;
    struct id_maker ids;
    struct store_folder held;
    struct store *store;
    struct embed *embed;
    struct str reference[EMBED_REFERENCE_MAX];
    struct registry *registry;
    struct lessons *lessons;
    struct router *router;
    struct caller caller;
    char texts[TEXTS][TEXT_BYTES];
    size_t by_layer[N_LAYERS];
};

static void want(enum err e, const struct why *why)
{
    if (!e)
        return;
    fprintf(stderr, "bench_route: %s: %s\n", err_row(e)->wording,
            why ? why->text : "");
    exit(1);
}

static struct str no_org(void *ctx, struct str user)
{
    (void)ctx;
    (void)user;
    return STR("");
}

static bool is_over(void *ctx, struct str task_id)
{
    (void)ctx;
    (void)task_id;
    return false;
}

static void open_below(struct inside *s, const char *folder)
{
    struct why why = {""};
    struct store_opts opts = {.folder = folder,
                              .schemas = schemas,
                              .n_schemas = sizeof(schemas) / sizeof(*schemas),
                              .max_waiting = 1000,
                              .is_inline = true,
                              .loop = &s->loop};
    struct embed_opts embed = {.kind = EMBED_TABLE,
                               .max_waiting = 1000,
                               .max_waiting_bytes = 16 << 20,
                               .timeout_ms = 1000};

    s->clock = clock_system();
    want(loop_init(&s->loop, s->clock), NULL);
    log_init(&s->log, STDERR_FILENO, LOG_ERROR, LOG_TEXT, s->clock);
    id_maker_init(&s->ids, rand_system());
    want(store_folder_open(&s->held, str_of(folder), &why), &why);
    want(store_open(&s->store, &opts, &why), &why);
    want(embed_new(&s->embed, &s->loop, &s->log, NULL, &embed, &why), &why);
}

static void open_above(struct inside *s)
{
    struct why why = {""};
    size_t n_reference = embed_reference(s->reference);
    struct registry_opts registry = {.loop = &s->loop,
                                     .log = &s->log,
                                     .store = s->store,
                                     .embed = s->embed,
                                     .reference = {s->reference, n_reference},
                                     .ids = &s->ids,
                                     .seed = {1, 2},
                                     .limits = {.max_agents = 100 * 1000},
                                     .org_of = no_org};
    struct embed_stamp stamp = embed_stamp(s->embed);
    struct lessons_opts lessons = {.loop = &s->loop,
                                   .log = &s->log,
                                   .store = s->store,
                                   .model_hash = str_of(stamp.hash),
                                   .is_going_on = is_over,
                                   .seed = {1, 2},
                                   .settings = {.learn = learn_defaults()}};
    struct router_opts router = {.loop = &s->loop,
                                 .log = &s->log,
                                 .store = s->store,
                                 .embed = s->embed,
                                 .ids = &s->ids,
                                 .seed = {1, 2},
                                 .settings = {.choose = choose_defaults()}};

    s->registry = router.registry = registry_new(&registry);
    s->lessons = router.lessons = lessons_new(&lessons);
    if (!s->registry || !s->lessons)
        die("memory");
    want(registry_load(s->registry, &why), &why);
    want(lessons_load(s->lessons, &why), &why);
    s->router = router_new(&router);
    if (!s->router)
        die("memory");
}

static void on_done(struct tx *tx, void *ctx)
{
    (void)ctx;
    if (tx->result != TX_COMMITTED)
        die("a commit");
}

static void add_agent(struct inside *s, size_t i)
{
    struct registry_by by = {.caller = &s->caller, .now_ms = 1};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    struct registry_change c;
    struct arena arena;
    char card[2048];
    struct json *json;

    any_card(card, sizeof(card), i);
    arena_init(&arena, 1 << 20);
    json = json_parse(&arena, str_of(card), 0, NULL);
    if (!json)
        die(card);
    registry_change_init(&c);
    want(registry_put(s->registry, &c, STR(""), json, &by, &problems, &why),
         &why);
    store_submit(s->store, &c.tx, on_done, NULL);
    store_turn(s->store);
    want(registry_settle(s->registry, &c, &why), &why);
    registry_change_fini(&c);
    arena_fini(&arena);
}

/* As if people had corrected so many decisions. */
static void learn_some(struct inside *s)
{
    struct learn *l = lessons_learn(s->lessons);
    struct agents all = registry_agents(s->registry);
    struct embed_stamp stamp = embed_stamp(s->embed);
    float v[EMBED_DIMS_MAX];
    uint8_t packed[8 + 2 * 1024];
    char text[TEXT_BYTES];

    for (int i = 1; i <= LESSONS; i++) {
        struct outcome o = {
            .seq = i,
            .at_ms = i,
            .kind = OUTCOME_CORRECTION,
            .verdict = VERDICT_NEGATIVE,
            .layer = LAYER_SEMANTIC,
            .agent = all.list[draw((uint32_t)all.n)]->name,
            .right_agent = all.list[draw((uint32_t)all.n)]->name,
            .scope = STR("user:bench"),
            .model_hash = str_of(stamp.hash),
        };

        any_text(text, sizeof(text));
        if (!embed_now(s->embed, str_of(text), EMBED_QUERY, v) ||
            !vec_pack(v, stamp.dims, packed))
            die("a vector");
        o.text = str_of(text);
        o.vector = (struct str){(char *)packed, vec_packed_bytes(stamp.dims)};
        want(learn_apply(l, &o), NULL);
    }
}

static void on_routed(struct msg *m, enum err e, void *ctx)
{
    struct inside *s = ctx;

    if (e && e != ERR_NO_ROUTE)
        want(e, &m->why);
    s->by_layer[e ? LAYER_NONE : m->choice.layer]++;
}

static double cpu_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        die("processor time");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void decide(struct inside *s, const char *text)
{
    struct msg *m = msg_new(&s->caller, 1);

    if (!m)
        die("memory");
    m->call.text = str_of(text);
    route_look(s->router, m, on_routed, s);
    msg_free(m);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Microseconds of a decision, the median of the rounds. */
static double measure_inside(struct inside *s, size_t n)
{
    size_t each = n < 100 ? 2000 : n < 5000 ? 400 : 100;
    double took[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        double start = cpu_s();

        for (size_t k = 0; k < each; k++)
            decide(s, s->texts[k % TEXTS]);
        took[i] = (cpu_s() - start) * 1e6 / (double)each;
    }
    qsort(took, ROUNDS, sizeof(took[0]), by_size);
    return took[ROUNDS / 2];
}

static void close_inside(struct inside *s)
{
    router_stop(s->router);
    lessons_stop(s->lessons);
    registry_stop(s->registry);
    store_close(s->store);
    router_free(s->router);
    lessons_free(s->lessons);
    registry_free(s->registry);
    embed_free(s->embed);
    store_folder_close(&s->held);
    loop_turn(&s->loop);
}

static bool inside(const char *data, size_t at)
{
    struct inside *s = calloc(1, sizeof(*s));
    char folder[512];
    double us;
    bool is_good;

    if (!s)
        die("memory");
    snprintf(folder, sizeof(folder), "%s/inside-%zu", data, SIZES[at]);
    s->caller = (struct caller){.role = ROLE_USER, .scopes = SCOPE_ALL};
    snprintf(s->caller.principal, sizeof(s->caller.principal), "bench");
    open_below(s, folder);
    open_above(s);
    for (size_t i = 0; i < SIZES[at]; i++)
        add_agent(s, i);
    learn_some(s);
    for (size_t i = 0; i < TEXTS; i++)
        any_text(s->texts[i], sizeof(s->texts[i]));
    us = measure_inside(s, SIZES[at]);
    is_good = GOAL_US[at] <= 0 || us < GOAL_US[at];
    printf("%6zu agents%12.1f us%s%s\n", SIZES[at], us,
           GOAL_US[at] <= 0 ? ""
           : is_good        ? ", the goal is "
                            : ", MISSED: ",
           GOAL_US[at] <= 0    ? ""
           : GOAL_US[at] < 500 ? "100"
                               : "2000");
    if (!s->by_layer[LAYER_SEMANTIC])
        die("nobody was chosen");
    close_inside(s);
    free(s);
    return is_good;
}

/* Over HTTP. */

enum { MAX_CONNS = 64, ROUND_MS = 2000, IN_BYTES = 16384, TOKEN_BYTES = 128 };

struct conn {
    int fd;
    size_t n;
    char in[IN_BYTES];
};

static char token[TOKEN_BYTES];

static struct peer start(const char *binary, const char *data)
{
    char path[512], folder[512], card[2048];
    struct peer p;
    const char *at;
    FILE *f;

    snprintf(folder, sizeof(folder), "%s/http", data);
    snprintf(path, sizeof(path), "%s/http.jsonc", data);
    f = fopen(path, "w");
    if (!f)
        die(path);
    dice = 1;
    fprintf(f, "{\"agents\":{\"default\":\"echo\",\"list\":[{\"id\":\"echo\","
               "\"url\":\"echo:\"}");
    for (size_t i = 0; i < SIZES[0]; i++) {
        any_card(card, sizeof(card), i);
        fprintf(f, ",{\"id\"%s", card + strlen("{\"name\""));
    }
    fprintf(f, "]}}\n");
    fclose(f);
    p = peer_run("signalbox",
                 (const char *[]){"taskset", "-c", "0", binary, "serve",
                                  "--json", "--config", path, "--listen",
                                  "127.0.0.1:0", "--data", folder, "--set",
                                  "log.level=warn", "--set", "rate.perUser=0",
                                  NULL});
    at = strstr(p.line, "\"token\":\"");
    if (!at)
        die(p.line);
    at += strlen("\"token\":\"");
    snprintf(token, sizeof(token), "%.*s", (int)strcspn(at, "\""), at);
    return p;
}

static void conn_send(struct conn *c, const struct peer *p)
{
    char text[TEXT_BYTES], body[1024], out[2048];
    int n_body, n;

    any_text(text, sizeof(text));
    n_body =
        snprintf(body, sizeof(body), "{\"text\":\"%s\",\"wait_ms\":0}", text);
    n = snprintf(out, sizeof(out),
                 "POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                 "Authorization: Bearer %s\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %d\r\n\r\n%s",
                 p->port, token, n_body, body);
    peer_send(c->fd, out, (size_t)n);
}

/* Read once; whether the answer is whole. */
static bool conn_read(struct conn *c)
{
    static const char length[] = "Content-Length: ";
    ssize_t got = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, 0);
    const char *end, *at;
    size_t whole;

    if (got <= 0)
        die("the server hung up");
    c->n += (size_t)got;
    end = memmem(c->in, c->n, "\r\n\r\n", 4);
    if (!end)
        return false;
    at = memmem(c->in, (size_t)(end - c->in), length, sizeof(length) - 1);
    if (!at || memcmp(c->in, "HTTP/1.1 20", 11) != 0) {
        fprintf(stderr, "bench_route: odd reply: %.*s\n", (int)c->n, c->in);
        exit(1);
    }
    whole =
        (size_t)(end + 4 - c->in) + strtoul(at + sizeof(length) - 1, NULL, 10);
    if (c->n < whole)
        return false;
    c->n = 0; /* nothing was pipelined behind it */
    return true;
}

static double clock_s(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t) != 0)
        die("a clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure_http(const struct peer *p, int n_conns)
{
    static struct conn conns[MAX_CONNS];
    struct epoll_event ready[MAX_CONNS];
    int poll = epoll_create1(0);
    double begun, took, cpu = clock_s(p->cpu);
    long n_done = 0;

    for (int i = 0; i < n_conns; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};

        conns[i] = (struct conn){.fd = peer_connect(p->port)};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &e) != 0)
            die("epoll");
        conn_send(&conns[i], p);
    }
    begun = clock_s(CLOCK_MONOTONIC);
    do {
        int n = epoll_wait(poll, ready, MAX_CONNS, 10000);

        if (n <= 0)
            die("no answer for ten seconds");
        for (int i = 0; i < n; i++)
            if (conn_read(ready[i].data.ptr)) {
                n_done++;
                conn_send(ready[i].data.ptr, p);
            }
        took = clock_s(CLOCK_MONOTONIC) - begun;
    } while (took < ROUND_MS / 1e3);
    cpu = clock_s(p->cpu) - cpu;
    for (int i = 0; i < n_conns; i++)
        close(conns[i].fd);
    close(poll);
    printf("%3d connection%-2s%10.0f a second%10.1f us of the server's "
           "processor each\n",
           n_conns, n_conns == 1 ? "" : "s", (double)n_done / took,
           cpu * 1e6 / (double)n_done);
}

int main(int argc, char **argv)
{
    bool is_good = true;
    struct peer p;

    if (argc != 3) {
        fprintf(stderr, "usage: bench_route SIGNALBOX DATA\n");
        return 2;
    }
    if (mkdir(argv[2], 0700) != 0 && errno != EEXIST)
        die(argv[2]);
    printf("text to decision, processor time\n");
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
        is_good &= inside(argv[2], i);
    printf("POST /api/messages with plain text, decided among %zu agents, "
           "recorded and carried; the server on one core\n",
           SIZES[0] + 1);
    p = start(argv[1], argv[2]);
    measure_http(&p, 1);
    measure_http(&p, 16);
    measure_http(&p, MAX_CONNS);
    peer_stop(&p);
    return is_good ? 0 : 1;
}
