/* A model of two tiers with the real modules: the table decides clear messages,
 * the transformer is asked about the rest, and a message survives if it does
 * not answer. */
#include <math.h>
#include <poll.h>

#include "base/fault.h"
#include "base/vec.h"
#include "choose/routing.h"
#include "test/lib/walk_stage.h"

enum { TURNS_MAX = 200 * 1000, WAIT_MS = 1000, WAITING_MAX = 64 };

static const char clear[] = "why does this program segfault";
static const char unclear[] = "something went wrong again since yesterday";

static const struct embed_opts both = {.kind = EMBED_BUILTIN,
                                       .cache_entries = 100,
                                       .max_waiting = WAITING_MAX,
                                       .max_waiting_bytes = 64 << 20,
                                       .timeout_ms = 60 * 60 * 1000};

#define AWAIT(condition)                                               \
    do {                                                               \
        struct pollfd fd = {.fd = uv_backend_fd(&stage.loop.uv),       \
                            .events = POLLIN};                         \
        for (int left = TURNS_MAX; !(condition) && left > 0; left--) { \
            loop_turn(&stage.loop);                                    \
            if (!(condition))                                          \
                poll(&fd, 1, 1);                                       \
        }                                                              \
        CHECK(condition);                                              \
    } while (0)

static bool is_ready(void)
{
    return registry_stats(stage.registry).is_ready &&
           registry_has_full(stage.registry);
}

static void begin_tiers(void)
{
    static const struct str examples[] = {
        STR("why does this program segfault")};
    static struct skill debug;
    static const struct {
        const char *name, *says;
    } others[] = {{"cook", "Recipes for bread and soup"},
                  {"lawyer", "Contracts and the law of companies"},
                  {"translator", "Translates letters into French"}};

    debug =
        (struct skill){.id = STR("debug"),
                       .name = STR("Debugging"),
                       .description = STR("Finds and fixes bugs in programs"),
                       .examples = {examples, 1}};
    stage_ground();
    stage.model = &both;
    stage.routing.choose = choose_defaults();
    stage.routing.vector_timeout_ms = WAIT_MS;
    stage.agents[0] = (struct agent){.name = STR("engineer"),
                                     .url = STR("echo:"),
                                     .description = STR("Builds software"),
                                     .skills = &debug,
                                     .n_skills = 1};
    for (size_t i = 0; i < 3; i++)
        stage.agents[i + 1] =
            (struct agent){.name = str_of(others[i].name),
                           .url = STR("echo:"),
                           .description = str_of(others[i].says)};
    stage.n_agents = 4;
    stage_start();
}

static void open_tiers(void)
{
    begin_tiers();
    AWAIT(is_ready());
}

static struct letter plain(const char *text, const char *conversation)
{
    return (struct letter){
        .text = text, .conversation = conversation, .is_plain = true};
}

static struct told sent_and_back(struct letter l)
{
    struct told t;

    CHECK(post(l, &t));
    AWAIT(t.is_back);
    return t;
}

/* Its strings are in `a`. */
static struct decision decision_of(struct arena *a, const struct id *id)
{
    struct decision d;
    struct query q;
    struct str *strings[] = {
        &d.agent,  &d.reason,   &d.tier_note,          &d.vector,
        &d.text,   &d.skill,    &d.conversation_id,    &d.executor,
        &d.source, &d.stuck_to, &d.rules.default_agent};
    struct candidate *list;

    query_init(&q, &decision_table, 1);
    query_if(&q, DECISION_ID, IS, value_text(str_of(id->text)));
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK_INT(q.n_rows, 1);
    CHECK_INT(decision_from_row(a, q.rows, &d), OK);
    for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
        CHECK(arena_keep(a, *strings[i], strings[i]));
    list = arena_array(a, d.n_candidates + 1, sizeof(*list));
    for (size_t i = 0; list && i < d.n_candidates; i++) {
        list[i] = d.candidates[i];
        CHECK(arena_keep(a, list[i].agent, &list[i].agent) &&
              arena_keep(a, list[i].skill, &list[i].skill) &&
              arena_keep(a, list[i].keyword, &list[i].keyword));
    }
    d.candidates = list;
    query_fini(&q);
    return d;
}

static enum tier tier_of_sent(struct letter l)
{
    struct told t = sent_and_back(l);
    struct arena a;
    enum tier tier;

    arena_init(&a, 1 << 20);
    CHECK(t.decision_id.text[0]);
    tier = decision_of(&a, &t.decision_id).tier;
    arena_fini(&a);
    return tier;
}

static int64_t n_full(void)
{
    return embed_stats(stage.embed).texts_total;
}

TEST(the_table_decides_what_is_clear_and_the_transformer_the_rest)
{
    int64_t before;

    open_tiers();
    before = n_full();
    CHECK_INT(tier_of_sent(plain(clear, NULL)), TIER_TABLE);
    CHECK_INT(n_full(), before);
    CHECK_INT(tier_of_sent(plain(unclear, NULL)), TIER_TRANSFORMER);
    CHECK_INT(n_full(), before + 1);
    CHECK_INT(tier_of_sent(plain(unclear, NULL)), TIER_TRANSFORMER);
    CHECK_INT(n_full(), before + 2); /* nothing is kept of the first */
    CHECK_INT(router_stats(stage.router).by_tier[TIER_TABLE], 1);
    CHECK_INT(router_stats(stage.router).by_tier[TIER_TRANSFORMER], 2);
    CHECK_INT(router_stats(stage.router).full_failed_total, 0);
    stage_close();
}

/* The control: the same message with other margins, and by the table alone. */
TEST(the_margin_decides_who_is_asked)
{
    static struct embed_opts table;

    open_tiers();
    stage.routing.choose.second_margin = 10;
    router_set(stage.router, &stage.routing);
    CHECK_INT(tier_of_sent(plain(clear, NULL)), TIER_TRANSFORMER);
    stage.routing.choose.second_margin = 0;
    router_set(stage.router, &stage.routing);
    CHECK_INT(tier_of_sent(plain(clear, NULL)), TIER_TABLE);
    stage_close();

    table = both;
    table.kind = EMBED_TABLE;
    stage_ground();
    stage.model = &table;
    stage.routing.choose = choose_defaults();
    stage_start();
    CHECK_INT(tier_of_sent(plain(clear, NULL)), TIER_NONE);
    CHECK_INT(tier_of_sent(plain(unclear, NULL)), TIER_NONE);
    stage_close();
}

static bool is_quick(struct str vector)
{
    struct embed_stamp stamp = embed_stamp(stage.embed);
    struct vec_packed p;

    CHECK(vec_packed_open(&p, (const uint8_t *)vector.p, vector.n, stamp.dims));
    return vec_packed_is_quick(&p, stamp.quick_dims);
}

/* The size of a vector's first part. */
static double first_part(struct str vector)
{
    struct embed_stamp stamp = embed_stamp(stage.embed);
    struct vec_packed p;
    double sum = 0;

    CHECK(vec_packed_open(&p, (const uint8_t *)vector.p, vector.n, stamp.dims));
    for (size_t i = 0; i < stamp.quick_dims; i++) {
        double v = (double)p.scale * (256 * p.high[i] + p.low[i]);

        sum += v * v;
    }
    return sum;
}

TEST(a_record_has_the_vector_that_decided_and_decides_itself_again)
{
    static const char *const texts[] = {clear, unclear};
    struct decision again;
    struct arena a;

    open_tiers();
    arena_init(&a, 1 << 20);
    for (int i = 0; i < 2; i++) {
        struct told t = sent_and_back(plain(texts[i], NULL));
        struct decision d = decision_of(&a, &t.decision_id);

        CHECK_INT(is_quick(d.vector), i == 0);
        CHECK(!d.tier_note.n && d.rules.second_margin == 3);
        CHECK_INT(choose_again(NULL, NULL, &d, &a, &again),
                  t.err ? ERR_NO_ROUTE : OK);
        CHECK(str_eq(again.agent, d.agent) && str_eq(again.reason, d.reason));
        CHECK(again.score == d.score && again.tier == d.tier);
        CHECK(again.band == d.band && again.margin == d.margin);
    }
    arena_fini(&a);
    stage_close();
}

/* A log with a question below it: two texts, whose vectors are added up. */
static const char *long_message(const char *asks)
{
    static char text[2048];
    size_t at = 0;

    for (int i = 0; i < 20; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "2026-05-01 12:00:%02d [INFO] worker %d: ok\n",
                               i, i);
    snprintf(text + at, sizeof(text) - at, "\n%s\n", asks);
    return text;
}

TEST(a_long_message_is_read_in_parts_by_both_tiers)
{
    struct arena a;

    open_tiers();
    arena_init(&a, 1 << 20);
    for (int is_full = 0; is_full < 2; is_full++) {
        struct told t;
        struct decision d;

        stage.routing.choose.second_margin = is_full ? 10 : 0;
        router_set(stage.router, &stage.routing);
        t = sent_and_back(
            plain(long_message("Could you please find and fix the bug in my "
                               "program? Why does it segfault?"),
                  NULL));
        d = decision_of(&a, &t.decision_id);
        CHECK_INT(d.tier, is_full ? TIER_TRANSFORMER : TIER_TABLE);
        CHECK_STR(d.agent, "engineer");
        CHECK(fabs(first_part(d.vector) - (is_full ? VEC_QUICK_PART : 1)) <
              1e-3);
    }
    arena_fini(&a);
    stage_close();
}

TEST(who_is_named_costs_no_vector)
{
    struct letter l = plain(clear, NULL);
    int64_t full, quick;

    open_tiers();
    full = n_full();
    quick = embed_stats(stage.embed).quick_total;
    CHECK_INT(tier_of_sent((struct letter){.to = "cook"}), TIER_NONE);
    l.text = "/cook and so on";
    CHECK_INT(tier_of_sent(l), TIER_NONE);
    CHECK_INT(n_full(), full);
    CHECK_INT(embed_stats(stage.embed).quick_total, quick);
    /* Small talk and random keys do not need the transformer. */
    CHECK_INT(tier_of_sent(plain("ok thanks", NULL)), TIER_TABLE);
    CHECK_INT(tier_of_sent(plain("asdkjh qwlekj", NULL)), TIER_NONE);
    CHECK_INT(n_full(), full);
    stage_close();
}

static void no_more(void *ctx, uint64_t id, enum err e,
                    const struct embed_result *r, const struct why *why)
{
    (void)id;
    (void)e;
    (void)r;
    (void)why;
    ++*(int *)ctx;
}

/* Another user's text that keeps the transformer busy until the test cancels
 * it. */
static uint64_t holder;

static void hold_with(size_t n)
{
    static const char text[] = "flights to Rome, and back again on Sunday by "
                               "way of Vienna or Munich if that is cheaper";
    static struct str texts[WAITING_MAX];
    static int n_done;

    for (size_t i = 0; i < n; i++)
        texts[i] = (struct str){text, i + 1};
    fault_arm_at("embed.held", 1);
    CHECK_INT(embed_start(stage.embed, texts, n, EMBED_QUERY, no_more, &n_done,
                          &holder, NULL),
              OK);
}

static void let_go(void)
{
    fault_arm(0);
    embed_cancel(stage.embed, holder);
}

static void check_table_decided(const struct told *t, const char *because,
                                int64_t n_failed)
{
    char words[128];
    struct decision d, again;
    struct arena a;

    snprintf(words, sizeof(words), "the transformer %s, so the table decided",
             because);
    arena_init(&a, 1 << 20);
    d = decision_of(&a, &t->decision_id);
    CHECK_INT(d.tier, TIER_TABLE);
    CHECK_STR(d.tier_note, words);
    CHECK(is_quick(d.vector));
    CHECK(memmem(d.reason.p, d.reason.n, words, strlen(words)));
    CHECK_INT(choose_again(NULL, NULL, &d, &a, &again),
              t->err ? ERR_NO_ROUTE : OK);
    CHECK(str_eq(again.reason, d.reason) && str_eq(again.agent, d.agent));
    CHECK_INT(router_stats(stage.router).full_failed_total, n_failed);
    arena_fini(&a);
}

static bool has_tier_note(const struct told *t)
{
    struct arena a;
    bool has;

    arena_init(&a, 1 << 20);
    has = decision_of(&a, &t->decision_id).tier_note.n > 0;
    arena_fini(&a);
    return has;
}

/* Vectors of reference texts come back in turns of the loop, and there were
 * none. */
TEST(until_the_cards_are_read_the_table_decides_and_says_so)
{
    struct told first, t;

    begin_tiers();
    CHECK(!registry_has_full(stage.registry));
    CHECK(post(plain(unclear, NULL), &first));
    CHECK(post(plain(clear, NULL), &t));
    CHECK(!registry_has_full(stage.registry));
    AWAIT(is_ready() && first.is_back && t.is_back);
    check_table_decided(&first, "is still reading the agents' cards", 0);
    CHECK_INT(tier_of_sent(plain(unclear, NULL)), TIER_TRANSFORMER);
    /* A clear message would not have asked. */
    CHECK(!has_tier_note(&t));
    stage_close();
}

TEST(a_transformer_with_too_much_to_do_leaves_it_to_the_table)
{
    struct told t;

    open_tiers();
    hold_with(WAITING_MAX);
    CHECK(post(plain(unclear, NULL), &t));
    pass_ms(0);
    CHECK(t.is_back); /* it has not waited */
    check_table_decided(&t, "has too much to do", 1);
    let_go();
    CHECK_INT(tier_of_sent(plain(unclear, NULL)), TIER_TRANSFORMER);
    stage_close();
}

TEST(a_transformer_that_is_late_leaves_it_to_the_table)
{
    struct told t;

    open_tiers();
    hold_with(1);
    CHECK(post(plain(unclear, NULL), &t));
    pass_ms(0);
    CHECK(!t.is_back && router_stats(stage.router).waiting == 1);
    pass_ms(WAIT_MS + 1);
    CHECK(t.is_back);
    check_table_decided(&t, "did not answer in time", 1);
    CHECK_INT(router_stats(stage.router).waiting, 0);
    let_go();
    stage_close();
}

TEST(others_pass_and_the_same_conversation_waits)
{
    struct told first, second, other;
    struct arena a;

    open_tiers();
    arena_init(&a, 1 << 20);
    hold_with(1);
    CHECK(post(plain(unclear, "c"), &first));
    CHECK(post(plain(clear, "c"), &second));
    CHECK(post(plain(clear, "d"), &other));
    pass_ms(0);
    CHECK(!first.is_back && !second.is_back);
    CHECK(other.is_back && !other.err);
    let_go();
    AWAIT(first.is_back && second.is_back);
    CHECK_INT(decision_of(&a, &first.decision_id).tier, TIER_TRANSFORMER);
    if (!first.err) /* it has the conversation */
        CHECK_INT(decision_of(&a, &second.decision_id).layer, LAYER_STICKY);
    arena_fini(&a);
    stage_close();
}

TEST(who_waits_for_the_transformer_when_it_stops_is_told_so)
{
    struct told t;

    open_tiers();
    hold_with(1);
    CHECK(post(plain(unclear, NULL), &t));
    pass_ms(0);
    CHECK(!t.is_back);
    router_stop(stage.router);
    pass_ms(0);
    CHECK(t.is_back && t.err == ERR_STOPPING);
    let_go();
    stage_close();
}

/* Other messages fill the limit: there is no room to wait, but there is a
 * table. */
TEST(without_room_to_wait_the_table_decides)
{
    enum { SHARE = ROUTING_WAITING_BYTES_MAX / MSG_TEXT_MAX / ROUTING_SHARE };
    static struct told waiting[SHARE];
    static char text[MSG_TEXT_MAX + 1];
    struct told t;

    open_tiers();
    memset(text, 'x', MSG_TEXT_MAX);
    memcpy(text, "something went wrong again ", 27);
    for (size_t i = 27; i < MSG_TEXT_MAX; i += 64)
        text[i] = ' ';
    hold_with(1);
    for (int i = 0; i < SHARE; i++)
        CHECK(post(plain(text, "c"), &waiting[i]));
    pass_ms(0);
    CHECK_INT(router_stats(stage.router).waiting, SHARE);
    CHECK(post(plain(unclear, NULL), &t));
    pass_ms(0);
    CHECK(t.is_back && t.err != ERR_OVERLOADED);
    check_table_decided(&t, "has too much to do", 1);
    router_stop(stage.router);
    let_go();
    stage_close();
}

/* Long texts of one user wait for the transformer only up to a limit; another
 * user's text is read meanwhile. */
TEST(one_user_has_so_much_waiting_for_the_transformer)
{
    enum { EACH = 3000, FIT = ROUTING_FULL_BYTES_MAX / EACH };
    static struct told waiting[FIT + 1];
    static char text[EACH + 1];
    struct told other;
    struct letter l = plain(unclear, NULL);

    open_tiers();
    for (size_t i = 0; i < EACH; i++)
        text[i] = "something went wrong again "[i % 27];
    hold_with(1);
    for (int i = 0; i <= FIT; i++)
        CHECK(post(plain(text, NULL), &waiting[i]));
    l.from = "bob";
    CHECK(post(l, &other));
    pass_ms(0);
    CHECK_INT(router_stats(stage.router).waiting, FIT + 1); /* and bob's */
    CHECK(waiting[FIT].is_back && !waiting[FIT - 1].is_back && !other.is_back);
    CHECK_INT(router_stats(stage.router).full_failed_total, 1);
    let_go();
    AWAIT(other.is_back && waiting[FIT - 1].is_back);
    CHECK_INT(router_stats(stage.router).waiting, 0);
    stage_close();
}
