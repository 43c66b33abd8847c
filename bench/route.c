/* bench_route SIGNALBOX DATA: from a text to a decision.
 * bench_route crowd DATA [SKILLS [SEARCHED]]: the same beside as many public
 * cards as all limits allow by default.
 *
 *     inside   20, 1 000 and 10 000 agents, each with a skill, two examples and
 *              three routing keywords, in a registry over a real store, with
 *              2 000 corrections learnt: what one decision by meaning takes,
 *              embedding included; by the table alone, by the transformer
 *              alone, and by both as a server does by default, where those that
 *              each tier decided are counted apart
 *     http     20 agents: decisions a second through the whole server, each
 *              recorded with its task in one durable transaction, the server
 *              on one core; and what it takes of the processor for each
 *
 * Agents and texts are made up of words about topics, always the same, and each
 * text is asked once: no vector comes from a cache. How many go to which tier
 * is that of these texts, and says nothing of people's. Processor time of all
 * threads, and beside it time on the wall, which a busy machine makes longer.
 * BENCH_CPU=avx2 or plain makes it an older processor (bench/cpu.c); on a plain
 * one the transformer is asked for 20 agents alone. DATA is a folder for data,
 * on the disk that counts. Exit status 1 unless, of the decisions that the
 * table makes, half take less than 100 us of 20 agents and less than 2 ms of 10
 * 000, and 99 of 100 decisions by both take less than 1 ms of 20 agents
 * (AVX-512).
 *
 * crowd: 250 users have registered 2 000 public skills each, in cards of 5
 * skills, or of as many as are said (1 to 256), all about the topics that are
 * asked about. What it takes the loop's thread to decide for a user who has no
 * agent, and to search, half and 99 of 100; exit status 1 where the latter is
 * 5 ms or more. The cards keep their quick vectors, since full ones of so many
 * take half an hour; a walk over them reads as many bytes. DATA may be in
 * memory. */
#include "choose/route.h"

#include <sys/epoll.h>
#include <sys/stat.h>

#include "bench/peer.h"
#include "delegation/delegation.h"
#include "gate/gatekeeper.h"
#include "ledger/ledger.h"
#include "task/task.h"
#include "watch/watch.h"

enum { LESSONS = 2000, TEXT_BYTES = 512, TEXTS_MAX = 4000, WARM = 50 };

static const size_t SIZES[] = {20, 1000, 10 * 1000};
static const double GOAL_US[] = {100, 0, 2000}; /* of the table, half */
static const double GOAL_BOTH_US = 1000;        /* of both, 99 of 100 */

static const struct way {
    const char *name;
    enum embed_kind kind;
    bool is_deep; /* embed.secondMargin at its most: where the transformer can
                   * be asked it is */
} WAYS[] = {
    {"table", EMBED_TABLE, false},
    {"transformer", EMBED_TRANSFORMER, false},
    {"both", EMBED_BUILTIN, false},
    {"both-deep", EMBED_BUILTIN, true},
};
static const double MARGIN_MAX = 10;

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
    &task_schema,  &watch_schema,      &registry_schema,   &choose_schema,
    &learn_schema, &gatekeeper_schema, &delegation_schema, &ledger_schema,
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
    struct learning *learning;
    struct router *router;
    struct caller caller;
    const struct way *way;
    size_t n_agents, max_searched;

    /* Of the decision that was made last. */
    bool is_done, is_waited_for;
    enum tier tier;
    size_t by_layer[N_LAYERS];

    /* Of all of them, in microseconds. */
    double cpu_us[TEXTS_MAX], wall_us[TEXTS_MAX];
    enum tier tiers[TEXTS_MAX];
    size_t n;
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
    struct embed_opts embed = {.kind = s->way->kind,
                               .max_waiting = 100 * 1000,
                               .max_waiting_bytes = 256 << 20,
                               .timeout_ms = 60 * 1000};

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
    struct registry_opts registry = {
        .loop = &s->loop,
        .log = &s->log,
        .store = s->store,
        .embed = s->embed,
        .reference = {s->reference, n_reference},
        .ids = &s->ids,
        .seed = {1, 2},
        .limits = {.max_agents = 100 * 1000,
                   .max_skills = 500 * 1000,
                   .max_searched = s->max_searched},
        .org_of = no_org};
    struct embed_stamp stamp = embed_stamp(s->embed);
    struct learning_opts learning = {.loop = &s->loop,
                                     .log = &s->log,
                                     .store = s->store,
                                     .model_hash = str_of(stamp.hash),
                                     .quick_dims = stamp.quick_dims,
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

    if (s->way->is_deep)
        router.settings.choose.second_margin = MARGIN_MAX;
    s->registry = router.registry = registry_new(&registry);
    s->learning = router.learning = learning_new(&learning);
    if (!s->registry || !s->learning)
        die("memory");
    want(registry_load(s->registry, &why), &why);
    want(learning_load(s->learning, &why), &why);
    registry_begin(s->registry);
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

static void add_card(struct inside *s, const struct caller *caller,
                     const char *card)
{
    struct registry_by by = {.caller = caller, .now_ms = 1};
    struct card_problems problems = {.n = 0};
    struct why why = {""};
    struct registry_change c;
    struct arena arena;
    struct json *json;

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

static void add_agent(struct inside *s, size_t i)
{
    char card[2048];

    any_card(card, sizeof(card), i);
    add_card(s, &s->caller, card);
}

/* Whatever is under way goes on, and the thread has a moment for it. */
static void turn(struct inside *s)
{
    store_turn(s->store);
    loop_turn(&s->loop);
    usleep(20);
}

static void await_cards(struct inside *s)
{
    struct registry_stats now;

    do {
        turn(s);
        now = registry_stats(s->registry);
    } while (now.unembedded > 0 || !now.has_levels);
}

struct asked {
    float *out;
    bool is_done;
};

static void on_vector(void *ctx, uint64_t id, enum err e,
                      const struct embed_result *r, const struct why *why)
{
    struct asked *a = ctx;

    (void)id;
    want(e, why);
    memcpy(a->out, r->vectors, r->stamp.dims * sizeof(*a->out));
    a->is_done = true;
}

static void vector_of(struct inside *s, const char *text, float *out)
{
    struct asked a = {out, false};
    struct str one = str_of(text);
    struct why why = {""};
    uint64_t id;

    want(embed_start(s->embed, &one, 1, EMBED_QUERY, on_vector, &a, &id, &why),
         &why);
    while (!a.is_done)
        turn(s);
}

/* As if people had corrected so many decisions. */
static void learn_some(struct inside *s)
{
    struct learn *l = learning_learn(s->learning);
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
        vector_of(s, text, v);
        if (!vec_pack(v, stamp.dims, packed))
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
    s->tier = m->known.tier;
    s->is_done = true;
    if (s->is_waited_for)
        loop_stop(&s->loop);
}

static double clock_s(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t) != 0)
        die("a clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void decide(struct inside *s, const char *text)
{
    struct msg *m = msg_new(&s->caller, 1);

    if (!m)
        die("memory");
    m->call.text = str_of(text);
    s->is_done = s->is_waited_for = false;
    route_look(s->router, m, on_routed, s);
    s->is_waited_for = !s->is_done;
    if (s->is_waited_for)
        loop_run(&s->loop);
    msg_free(m);
}

static void measure_inside(struct inside *s)
{
    size_t n = s->n_agents < 100    ? TEXTS_MAX
               : s->n_agents < 5000 ? TEXTS_MAX / 2
                                    : TEXTS_MAX / 4;
    char text[TEXT_BYTES];

    if (cpu_level() == CPU_PLAIN && s->way->kind != EMBED_TABLE)
        n = TEXTS_MAX / 10;
    for (size_t i = 0; i < WARM + n; i++) {
        double wall, cpu;

        any_text(text, sizeof(text));
        wall = clock_s(CLOCK_MONOTONIC);
        cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        decide(s, text);
        if (i < WARM)
            continue;
        s->cpu_us[s->n] = (clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6;
        s->wall_us[s->n] = (clock_s(CLOCK_MONOTONIC) - wall) * 1e6;
        s->tiers[s->n++] = s->tier;
    }
}

struct quantiles {
    size_t n;
    double half, most; /* p50 and p99 */
};

/* Of those that a tier decided; N_TIERS: of all. */
static struct quantiles quantiles(const struct inside *s, const double *us,
                                  enum tier tier)
{
    static double some[TEXTS_MAX];
    struct quantiles q = {0, 0, 0};

    for (size_t i = 0; i < s->n; i++)
        if (tier == N_TIERS || s->tiers[i] == tier)
            some[q.n++] = us[i];
    if (!q.n)
        return q;
    qsort(some, q.n, sizeof(some[0]), by_value);
    q.half = some[q.n / 2];
    q.most = some[q.n * 99 / 100];
    return q;
}

static void show_row(const struct inside *s, const char *what, enum tier tier)
{
    struct quantiles cpu = quantiles(s, s->cpu_us, tier);
    struct quantiles wall = quantiles(s, s->wall_us, tier);

    if (cpu.n)
        printf("%6zu agents  %-32s%6zu  %8.0f%8.0f    %8.0f%8.0f\n",
               s->n_agents, what, cpu.n, cpu.half, cpu.most, wall.half,
               wall.most);
}

static bool is_missed(const char *what, double us, double goal)
{
    if (goal <= 0 || us < goal)
        return false;
    printf("  MISSED: %s took %.0f us, and %.0f is the goal\n", what, us, goal);
    return true;
}

/* Whether the goals were reached. */
static bool show_inside(const struct inside *s, size_t at)
{
    struct quantiles all = quantiles(s, s->cpu_us, N_TIERS);
    struct quantiles table = quantiles(s, s->cpu_us, TIER_TABLE);

    if (s->way->is_deep) {
        show_row(s, "both, the transformer always", TIER_TRANSFORMER);
        return true;
    }
    show_row(s, s->way->name, N_TIERS);
    if (s->way->kind != EMBED_BUILTIN)
        return s->way->kind != EMBED_TABLE ||
               !is_missed("half by the table", all.half, GOAL_US[at]);
    show_row(s, "both, the table decided", TIER_TABLE);
    show_row(s, "both, the transformer decided", TIER_TRANSFORMER);
    show_row(s, "both, neither was asked", TIER_NONE);
    return !is_missed("half of those by the table", table.half, GOAL_US[at]) &
           !is_missed("one in a hundred", all.most,
                      at == 0 &&
                              strcmp(cpu_level_name(cpu_level()), "avx512") == 0
                          ? GOAL_BOTH_US
                          : 0);
}

static void close_inside(struct inside *s)
{
    router_stop(s->router);
    learning_stop(s->learning);
    registry_stop(s->registry);
    store_close(s->store);
    router_free(s->router);
    learning_free(s->learning);
    registry_free(s->registry);
    embed_free(s->embed);
    store_folder_close(&s->held);
    loop_turn(&s->loop);
}

static bool inside(const char *data, const struct way *way, size_t at)
{
    struct inside *s = calloc(1, sizeof(*s));
    char folder[512];
    bool is_good;

    if (!s)
        die("memory");
    snprintf(folder, sizeof(folder), "%s/inside-%s-%s-%zu", data,
             cpu_level_name(cpu_level()), way->name, SIZES[at]);
    s->way = way;
    s->n_agents = SIZES[at];
    s->caller = (struct caller){.role = ROLE_USER, .scopes = SCOPE_ALL};
    snprintf(s->caller.principal, sizeof(s->caller.principal), "bench");
    dice = 1;
    open_below(s, folder);
    open_above(s);
    for (size_t i = 0; i < s->n_agents; i++)
        add_agent(s, i);
    await_cards(s);
    learn_some(s);
    measure_inside(s);
    is_good = show_inside(s, at);
    fflush(stdout);
    if (!s->by_layer[LAYER_SEMANTIC])
        die("no one was chosen");
    close_inside(s);
    free(s);
    return is_good;
}

static bool inside_all(const char *data)
{
    bool is_good = true;

    printf("text to decision (%s): decisions, processor time p50 and p99, and "
           "on the wall, in us\n",
           cpu_level_name(cpu_level()));
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
        for (size_t k = 0; k < sizeof(WAYS) / sizeof(WAYS[0]); k++)
            if (i == 0 || WAYS[k].kind == EMBED_TABLE ||
                cpu_level() > CPU_PLAIN)
                is_good &= inside(data, &WAYS[k], i);
    return is_good;
}

/* Crowds. */

enum {
    MAX_SEARCHED = 4 * 1024, /* as registry.maxSearched is */
    CROWD_USERS = 250,
    CROWD_SKILLS = 2000,
    CROWD_CARDS = 399, /* of one user: 100 000 with those that are there */
    CROWD_ASKED = 400
};
static const double GOAL_CROWD_US = 5000; /* 99 of 100 */

static void crowd_card(char *out, size_t room, size_t user, size_t i,
                       size_t n_skills)
{
    size_t at = (size_t)snprintf(out, room,
                                 "{\"name\":\"u%zu-%zu\",\"url\":\"echo:\","
                                 "\"visibility\":\"public\",\"description\":"
                                 "\"Helps to %s the %s\",\"skills\":[",
                                 user, i, verb(), word());

    for (size_t k = 0; k < n_skills; k++)
        at += (size_t)snprintf(out + at, room - at,
                               "%s{\"id\":\"%zu\",\"name\":\"%s %s %s\"}",
                               k ? "," : "", k, verb(), word(), word());
    snprintf(out + at, room - at, "]}");
}

static void add_crowd(struct inside *s, size_t n_skills)
{
    static char card[64 * 1024];

    for (size_t u = 0; u < CROWD_USERS; u++) {
        struct caller owner = {.role = ROLE_USER, .scopes = SCOPE_ALL};

        snprintf(owner.principal, sizeof(owner.principal), "u%zu", u);
        for (size_t i = 0; i < CROWD_SKILLS / n_skills && i < CROWD_CARDS;
             i++) {
            crowd_card(card, sizeof(card), u, i, n_skills);
            add_card(s, &owner, card);
        }
        loop_turn(&s->loop);
    }
}

static void on_found(void *ctx, uint64_t id, const struct search_result *r)
{
    struct inside *s = ctx;

    (void)id;
    want(r->err, NULL);
    s->is_done = true;
    loop_stop(&s->loop);
}

static void look_up(struct inside *s, const char *text)
{
    struct search q = {.text = str_of(text),
                       .eyes = {.user = STR("bench")},
                       .limit = SEARCH_LIMIT,
                       .max_price = -1};
    struct why why = {""};
    uint64_t id;

    s->is_done = false;
    want(registry_search(s->registry, &q, on_found, s, &id, &why), &why);
    while (!s->is_done)
        loop_run(&s->loop);
}

static bool crowd_of(struct inside *s, const char *what,
                     void (*ask)(struct inside *s, const char *text))
{
    struct quantiles cpu, wall;
    char text[TEXT_BYTES];

    s->n = 0;
    for (size_t i = 0; i < WARM + CROWD_ASKED; i++) {
        double on_wall = clock_s(CLOCK_MONOTONIC);
        double on_cpu = clock_s(CLOCK_THREAD_CPUTIME_ID);

        any_text(text, sizeof(text));
        ask(s, text);
        if (i < WARM)
            continue;
        s->cpu_us[s->n] = (clock_s(CLOCK_THREAD_CPUTIME_ID) - on_cpu) * 1e6;
        s->wall_us[s->n++] = (clock_s(CLOCK_MONOTONIC) - on_wall) * 1e6;
    }
    cpu = quantiles(s, s->cpu_us, N_TIERS);
    wall = quantiles(s, s->wall_us, N_TIERS);
    printf("%-8s %8.0f%8.0f    %8.0f%8.0f\n", what, cpu.half, cpu.most,
           wall.half, wall.most);
    return !is_missed(what, cpu.most, GOAL_CROWD_US);
}

static int crowd(const char *data, size_t n_skills, size_t max_searched)
{
    /* Room for a question, and not for a document, which has three quarters. */
    static const struct embed_opts no_documents = {.kind = EMBED_BUILTIN,
                                                   .max_waiting = 100,
                                                   .max_waiting_bytes = 3000,
                                                   .timeout_ms = 60 * 1000};
    struct inside *s = calloc(1, sizeof(*s));
    struct registry_stats stats;
    char folder[512];
    bool is_good;

    if (!s || !n_skills || n_skills > AGENT_SKILLS_MAX)
        die("skills");
    snprintf(folder, sizeof(folder), "%s/crowd-%zu", data, n_skills);
    s->way = &WAYS[2];
    s->max_searched = max_searched;
    s->caller = (struct caller){.role = ROLE_USER, .scopes = SCOPE_ALL};
    snprintf(s->caller.principal, sizeof(s->caller.principal), "bench");
    open_below(s, folder);
    open_above(s);
    for (size_t i = 0; i < SIZES[0]; i++)
        add_agent(s, i);
    await_cards(s);
    embed_set(s->embed, &no_documents);
    add_crowd(s, n_skills);
    stats = registry_stats(s->registry);
    printf("%lld agents with %lld skills: us of the loop's thread, p50 and "
           "p99, and on the wall\n",
           (long long)stats.agents, (long long)stats.skills);
    is_good = crowd_of(s, "decision", decide);
    is_good &= crowd_of(s, "search", look_up);
    close_inside(s);
    free(s);
    return is_good ? 0 : 1;
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
    bool is_good;
    struct peer p;

    if (argc >= 3 && strcmp(argv[1], "crowd") == 0)
        return crowd(argv[2], argc > 3 ? strtoul(argv[3], NULL, 10) : 5,
                     argc > 4 ? strtoul(argv[4], NULL, 10) : MAX_SEARCHED);
    if (argc != 3) {
        fprintf(stderr, "usage: bench_route SIGNALBOX DATA\n");
        return 2;
    }
    if (mkdir(argv[2], 0700) != 0 && errno != EEXIST)
        die(argv[2]);
    is_good = inside_all(argv[2]);
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
