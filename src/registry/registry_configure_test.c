/* The agents of the configuration: these, and none of those it had before. */
#include "test/lib/registry_stage.h"

#define AGENT(n)                                                          \
    {                                                                     \
        .name = {n, sizeof(n) - 1}, .url = {"echo:", 5}, .description = { \
            "d",                                                          \
            1                                                             \
        }                                                                 \
    }

static const struct agent ab[] = {AGENT("a"), AGENT("b")};

TEST(the_list_is_what_is_configured)
{
    static const struct agent bc[] = {AGENT("b"), AGENT("c")};
    struct stage s;
    const struct agent *a;

    stage_open(&s);
    CHECK(stage_configure(&s, ab, 2) == OK);
    a = stage_find(&s, &stage_carl, "a");
    CHECK(a && a->is_configured && a->visibility == VISIBILITY_PUBLIC);
    CHECK(a->kind == AGENT_PLATFORM && a->creator.n == 0 && a->org.n == 0);
    CHECK(stage_configure(&s, bc, 2) == OK);
    CHECK(!stage_find(&s, NULL, "a"));
    CHECK_INT(stage_find(&s, NULL, "b")->revision, 1);
    CHECK(stage_find(&s, NULL, "c"));
    stage_restart(&s, false);
    CHECK_INT(registry_agents(s.r).n, 2);
    CHECK(stage_configure(&s, NULL, 0) == OK);
    CHECK_INT(registry_agents(s.r).n, 0);
    stage_close(&s);
}

TEST(the_same_list_again_is_no_change)
{
    struct stage s;
    size_t n_feed;

    stage_open(&s);
    CHECK(stage_configure(&s, ab, 2) == OK && !s.is_same);
    n_feed = stage_feed(&s, NULL);
    CHECK_INT(n_feed, 2);
    s.now_ms += 1000;
    CHECK(stage_configure(&s, ab, 2) == OK && s.is_same);
    stage_restart(&s, true);
    CHECK(stage_configure(&s, ab, 2) == OK && s.is_same);
    CHECK_INT(stage_feed(&s, NULL), n_feed);
    CHECK_INT(registry_stats(s.r).seq, 1);
    stage_close(&s);
}

TEST(what_it_says_of_an_agent_is_kept)
{
    struct agent a = AGENT("a");
    struct stage s;

    a.visibility = VISIBILITY_SHARED;
    a.org = STR("acme");
    a.kind = AGENT_MANAGED;
    stage_open(&s);
    CHECK(stage_configure(&s, &a, 1) == OK);
    for (int i = 0; i < 2; i++) {
        CHECK(stage_find(&s, &stage_anna, "a"));
        CHECK(!stage_find(&s, &stage_carl, "a"));
        CHECK(stage_find(&s, NULL, "a")->kind == AGENT_MANAGED);
        stage_restart(&s, false);
    }
    /* Admins set its grants, which outlive another card. */
    CHECK(stage_grant(&s, &stage_admin, "a", "carl", "", 0) == OK);
    CHECK(stage_grant(&s, &stage_anna, "a", "bob", "", 0) == ERR_NOT_ALLOWED);
    a.title = STR("A");
    CHECK(stage_configure(&s, &a, 1) == OK);
    CHECK(stage_find(&s, &stage_carl, "a"));
    CHECK(stage_configure(&s, NULL, 0) == OK);
    CHECK_INT(registry_stats(s.r).grants, 0);
    stage_close(&s);
}

TEST(it_is_changed_there_and_nowhere_else)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_configure(&s, ab, 2) == OK);
    CHECK(stage_put(&s, &stage_admin, "{\"name\":\"a\"}") == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "comes from the configuration"));
    CHECK(stage_patch(&s, &stage_admin, "a", "{}") == ERR_NOT_ALLOWED);
    CHECK(stage_remove(&s, &stage_admin, "a") == ERR_NOT_ALLOWED);
    CHECK(stage_remove(&s, &stage_anna, "a") == ERR_NOT_ALLOWED);
    stage_close(&s);
}

/* The log so far, from the beginning. */
static void read_log(struct stage *s, char *out, size_t n)
{
    ssize_t got = pread(s->log.fd, out, n - 1, 0);

    CHECK(got >= 0);
    out[got] = '\0';
}

static void log_into_a_file(struct stage *s)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/log", s->folder);
    close(s->log.fd);
    s->log.fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(s->log.fd >= 0);
}

TEST(a_name_of_somebody_stays_theirs)
{
    struct stage s;
    const struct agent *a;
    char log[4096], *first;

    stage_open(&s);
    log_into_a_file(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"A\",\"visibility\":\"shared\"}") == OK);
    CHECK(stage_grant(&s, &stage_anna, "a", "carl", "", 0) == OK);
    CHECK(stage_configure(&s, ab, 2) == OK);
    a = stage_find(&s, &stage_carl, "a");
    CHECK(a && !a->is_configured && a->revision == 1 && a->n_grants == 1);
    CHECK_STR(a->creator, "anna");
    CHECK(stage_find(&s, NULL, "b")->is_configured);
    read_log(&s, log, sizeof(log));
    first = strstr(log, "agents.list: a is skipped: anna registered that "
                        "name; remove that agent (signalbox agents remove A) "
                        "and reload, or choose another id");
    CHECK(first && strstr(log, "\"error\"") && !strstr(first, "\n{"));
    stage_restart(&s, false);
    CHECK(stage_configure(&s, ab, 2) == OK && s.is_same);
    CHECK(stage_configure(&s, NULL, 0) == OK);
    CHECK(stage_find(&s, &stage_carl, "a") && !stage_find(&s, NULL, "b"));
    /* Once it is gone the name is free for the configuration. */
    CHECK(stage_remove(&s, &stage_admin, "a") == OK);
    CHECK(stage_configure(&s, ab, 2) == OK);
    CHECK(stage_find(&s, NULL, "a")->is_configured);
    stage_close(&s);
}

TEST(what_users_have_does_not_keep_it_out)
{
    static const struct agent three[] = {AGENT("a"), AGENT("b"), AGENT("c")};
    static const struct skill skill = {.id = {"s", 1}, .name = {"s", 1}};
    static const char card[] =
        "{\"name\":\"u%d\",\"skills\":[{\"id\":\"s\",\"name\":\"s\"}]}";
    struct agent skilled = AGENT("a");
    char text[128];
    struct stage s;

    stage_prepare(&s);
    s.opts.limits = (struct registry_limits){.max_agents = 2, .max_skills = 2};
    CHECK(stage_start(&s) == OK);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), card, i);
        CHECK(stage_put(&s, &stage_anna, text) == OK);
    }
    skilled.skills = &skill;
    skilled.n_skills = 1;
    CHECK(stage_configure(&s, &skilled, 1) == OK);
    CHECK(stage_configure(&s, three, 2) == OK);
    CHECK(stage_configure(&s, three, 3) == ERR_LIMIT);
    CHECK(strstr(s.why.text, "maxAgents"));
    /* And they count: there are four, and two is the limit. */
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"u3\"}") == ERR_LIMIT);
    CHECK(strstr(s.why.text, "the limit of 2 agents"));
    CHECK(stage_remove(&s, &stage_anna, "u0") == OK);
    CHECK(stage_put(&s, &stage_bob, "{\"name\":\"u3\"}") == ERR_LIMIT);
    stage_restart(&s, false);
    CHECK_INT(registry_agents(s.r).n, 3);
    stage_close(&s);
}

TEST(all_of_it_or_nothing)
{
    static const struct agent twice[] = {AGENT("c"), AGENT("d"), AGENT("C")};
    static const struct agent bad[] = {AGENT("c"), AGENT("a b")};
    static const struct agent four[] = {AGENT("e"), AGENT("f"), AGENT("g"),
                                        AGENT("h")};
    struct stage s;
    struct registry_change c;

    stage_prepare(&s);
    s.opts.limits = (struct registry_limits){.max_agents = 3, .max_skills = 10};
    CHECK(stage_start(&s) == OK);
    CHECK(stage_configure(&s, ab, 2) == OK);
    CHECK(stage_configure(&s, twice, 3) == ERR_EXISTS);
    CHECK(strstr(s.why.text, "\"c\" and \"C\""));
    CHECK(stage_configure(&s, bad, 2) == ERR_BAD_REQUEST);
    CHECK(stage_configure(&s, four, 4) == ERR_LIMIT);
    stage_check(&s);
    CHECK(stage_find(&s, NULL, "a") && !stage_find(&s, NULL, "e"));
    fault_arm_at("store.op.full", 1);
    CHECK(stage_configure(&s, &ab[1], 1) == ERR_NO_SPACE);
    CHECK(stage_find(&s, NULL, "a"));
    /* Prepared, and never submitted. */
    registry_change_init(&c);
    CHECK(registry_configure(s.r, &c, &ab[1], 1, NULL, s.now_ms, &s.why) == OK);
    CHECK(stage_configure(&s, NULL, 0) == ERR_BUSY);
    CHECK(registry_settle(s.r, &c, &s.why) != OK);
    registry_change_fini(&c);
    CHECK(stage_find(&s, NULL, "a"));
    CHECK(stage_configure(&s, four, 3) == OK); /* those who leave make room */
    CHECK(stage_configure(&s, NULL, 0) == OK);
    stage_close(&s);
}

/* With so much in one tx the last ones' vectors must come later. */
TEST(many_large_agents_do_not_hold_up_the_start)
{
    enum { BIG = 325, PROMPT = AGENT_PROMPT_MAX };
    struct stage s;
    struct agent *list = calloc(BIG + 2, sizeof(*list));
    char names[BIG][8], *prompt = malloc(PROMPT);

    CHECK(list && prompt);
    memset(prompt, 'x', PROMPT);
    list[0] = (struct agent)AGENT("small-1");
    for (int i = 0; i < BIG; i++) {
        list[1 + i] = (struct agent)AGENT("x");
        snprintf(names[i], sizeof(names[i]), "b%d", i);
        list[1 + i].name = str_of(names[i]);
        list[1 + i].routing.system_prompt = (struct str){prompt, PROMPT};
    }
    list[BIG + 1] = (struct agent)AGENT("small-2");
    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    CHECK(stage_configure(&s, list, BIG + 2) == OK);
    CHECK(registry_is_embedded(s.r, stage_find(&s, NULL, "small-1")));
    CHECK(!registry_is_embedded(s.r, stage_find(&s, NULL, "small-2")));
    CHECK(stage_configure(&s, list, BIG + 2) == OK && s.is_same);
    free(list);
    free(prompt);
    stage_close(&s);
}

/* Names that rules and settings mention. */

static bool is_kept_from(void *ctx, struct str name, struct str user)
{
    (void)ctx;
    return str_eq_nocase(name, STR("gate")) && !str_eq(user, STR("anna")) &&
           !str_eq(user, STR("admin"));
}

TEST(a_reserved_name_is_refused_to_strangers_and_means_nothing_of_theirs)
{
    struct stage s;
    const struct agent *a;

    stage_prepare(&s);
    s.opts.is_kept_from = is_kept_from;
    CHECK(stage_start(&s) == OK);
    CHECK(stage_put(&s, &stage_carl, "{\"name\":\"GATE\"}") ==
          ERR_NAME_RESERVED);
    CHECK(strstr(s.why.text, "is reserved"));
    CHECK(stage_put(&s, &stage_carl, "{\"name\":\"gates\"}") == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"gate\"}") == OK);
    a = stage_find(&s, NULL, "gate");
    CHECK(a && registry_is_meant(s.r, a));
    CHECK(registry_is_meant(s.r, stage_find(&s, NULL, "gates")));
    /* One who had it before keeps it, and is not meant. */
    CHECK(stage_remove(&s, &stage_admin, "gate") == OK);
    s.opts.is_kept_from = NULL;
    stage_restart(&s, false);
    CHECK(stage_put(&s, &stage_carl, "{\"name\":\"gate\"}") == OK);
    s.opts.is_kept_from = is_kept_from;
    stage_restart(&s, false);
    CHECK(stage_patch(&s, &stage_carl, "gate", "{\"title\":\"G\"}") == OK);
    CHECK(!registry_is_meant(s.r, stage_find(&s, NULL, "gate")));
    CHECK(stage_remove(&s, &stage_carl, "gate") == OK);
    CHECK(stage_put(&s, &stage_carl, "{\"name\":\"gate\"}") ==
          ERR_NAME_RESERVED);
    CHECK(stage_put(&s, &stage_admin, "{\"name\":\"gate\"}") == OK);
    stage_close(&s);
}
