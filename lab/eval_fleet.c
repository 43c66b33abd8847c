/* The registry needs a store, which is in memory if the system has a memory
 * file system, else on disk. It is written once and never read, so it costs
 * little. Rejected: building an index by hand. The evaluation must measure what
 * a server does, also after changes to the server. */
#include "lab/eval_fleet_own.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/settings.h"
#include "watch/watch.h"

static const char asker[] = "asker", home[] = "home";
static const char colleague[] = "colleague";

enum { CARD_BYTES = 4 * 1024 * 1024, BY_CHANCE = 17, LOOK_MS = 2 };

static const uint64_t fleet_seed[2] = {0x5ea2c4, 0x1dea};

/* The folder. */

static bool make_folder_in(struct eval_fleet *f, const char *root)
{
    int n;

    if (!root || !*root)
        return false;
    n = snprintf(f->folder, sizeof(f->folder), "%s/signalbox-eval-XXXXXX",
                 root);
    return n < (int)sizeof(f->folder) && mkdtemp(f->folder);
}

/* In TMPDIR if it is set, else in memory. */
static enum err fleet_make_folder(struct eval_fleet *f, struct why *why)
{
    f->has_folder = make_folder_in(f, config_env(environ, "TMPDIR")) ||
                    make_folder_in(f, "/dev/shm") || make_folder_in(f, "/tmp");
    if (!f->has_folder)
        return why_err(why, ERR_IO,
                       "cannot create a folder in $TMPDIR, /dev/shm or /tmp");
    f->is_held = !store_folder_open(&f->held, str_of(f->folder), why);
    return f->is_held ? OK : ERR_IO;
}

static int fleet_remove_file(const char *path, const struct stat *st, int type,
                             struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)!remove(path);
    return 0;
}

static void fleet_remove_folder(struct eval_fleet *f)
{
    enum { FILES_OPEN = 8 };

    if (f->is_held)
        store_folder_close(&f->held);
    if (f->has_folder)
        nftw(f->folder, fleet_remove_file, FILES_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* The agents. */

/* Each stranger is the only user of an org with the same name. */
static struct str fleet_org_of(void *ctx, struct str user)
{
    (void)ctx;
    return str_eq(user, str_of(asker)) || str_eq(user, str_of(colleague))
               ? str_of(home)
               : user;
}

/* All agents are online. */
static enum agent_state fleet_agent_state(void *ctx, const struct agent *a)
{
    (void)ctx;
    (void)a;
    return AGENT_IDLE;
}

static enum err fleet_open_registry(struct eval_fleet *f, struct why *why)
{
    static const struct schema *const schemas[] = {&registry_schema,
                                                   &watch_schema};
    struct eval_model *m = f->opts.model;
    struct store_opts store = {.folder = f->folder,
                               .schemas = schemas,
                               .n_schemas = 2,
                               .max_waiting = 64,
                               .is_inline = true,
                               .loop = &m->loop};
    struct registry_opts opts = {
        .loop = &m->loop,
        .log = &m->log,
        .embed = m->providers.embeds[0],
        .reference = {f->reference, embed_reference(f->reference)},
        .ids = &f->ids,
        .seed = {fleet_seed[0], fleet_seed[1]},
        .limits = {.max_agents = EVAL_AGENTS_MAX + 1000,
                   .max_skills = EVAL_TEXTS_MAX + 1000},
        .org_of = fleet_org_of,
    };
    enum err e = store_open(&f->store, &store, why);

    if (e)
        return e;
    opts.store = f->store;
    f->registry = registry_new(&opts);
    if (!f->registry)
        return why_err(why, ERR_NOMEM, "out of memory");
    e = registry_load(f->registry, why);
    if (e)
        return e;
    registry_set_state_of(f->registry, fleet_agent_state, f);
    registry_begin(f->registry);
    return OK;
}

/* Gives a skill an id that means nothing, unless its own is valid. */
static enum err fleet_name_skill(struct eval_fleet *f, struct skill *s,
                                 size_t nth)
{
    char id[32];
    char *p;

    if (agent_name_is_valid(s->id))
        return OK;
    snprintf(id, sizeof(id), "skill-%zu", nth + 1);
    p = arena_strdup(&f->arena, str_of(id));
    s->id = (struct str){p, p ? strlen(p) : 0};
    return p ? OK : ERR_NOMEM;
}

/* The agent's skills, and one more for the examples. That one has the agent's
 * name, so that the name adds no information. */
static enum err fleet_fill_skills(struct eval_fleet *f,
                                  const struct eval_agent *a,
                                  const struct strs *examples,
                                  struct agent *card)
{
    size_t n = a->n_skills;
    struct skill *all = arena_array(&f->arena, n + 1, sizeof(*all));
    enum err e = all ? OK : ERR_NOMEM;

    for (size_t i = 0; i < n && !e; i++) {
        all[i] = a->skills[i];
        e = fleet_name_skill(f, &all[i], i);
    }
    if (!e && examples && examples->n)
        all[n++] = (struct skill){
            .id = STR("examples"), .name = a->name, .examples = *examples};
    card->skills = all;
    card->n_skills = n;
    return e;
}

/* Checks a card. Errors set why. */
static enum err fleet_check_card(const struct agent *a, struct why *why)
{
    struct card_opts opts = {.rights = CARD_MAY_ALL};
    struct card_problems problems = {.n = 0};
    struct arena scratch;
    struct agent read;
    struct buf text;
    struct json_out o = json_out(&text);
    struct json *json;
    enum err e;

    buf_init(&text, CARD_BYTES);
    arena_init(&scratch, (size_t)4 * CARD_BYTES);
    card_write(&o, a, CARD_STORED);
    json = text.over ? NULL : json_parse(&scratch, buf_str(&text), 0, NULL);
    e = json ? card_read(&scratch, json, &opts, &read, &problems) : ERR_LIMIT;
    if (e == ERR_BAD_REQUEST)
        card_problems_say(&problems, why);
    else if (e)
        why_err(why, e, "it is too large");
    arena_fini(&scratch);
    buf_fini(&text);
    return e;
}

/* Explains why the agents were rejected, by the first invalid card. */
static enum err fleet_explain_rejection(const struct eval_fleet *f, size_t n,
                                        enum err e, struct why *why)
{
    for (size_t i = 0; i < n; i++) {
        struct why words = {""};
        enum err bad = fleet_check_card(&f->cards[i], &words);

        if (bad)
            return why_err(why, bad, "agent \"%.*s\" has an invalid card: %s",
                           STR_ARG(f->cards[i].name), words.text);
    }
    return e;
}

/* A name that the API reserves gets a prefix. Text before a dot is not a word
 * of the agent, so the prefix does not change its words. */
static struct str fleet_agent_name(struct eval_fleet *f, struct str name)
{
    char with[AGENT_NAME_MAX + 8];
    char *p;

    if (!str_eq_nocase(name, STR("search")))
        return name;
    snprintf(with, sizeof(with), PREFIX "%.*s", STR_ARG(name));
    p = arena_strdup(&f->arena, str_of(with));
    return (struct str){p, p ? name.n + sizeof(PREFIX) - 1 : 0};
}

static enum err fleet_fill_card(struct eval_fleet *f, size_t i)
{
    const struct eval_agent *a = &f->opts.set->agents[i];
    struct agent *card = &f->cards[i];
    const struct strs *more = f->opts.examples ? &f->opts.examples[i] : NULL;

    *card =
        (struct agent){.name = fleet_agent_name(f, a->name),
                       .description = a->description,
                       .url = STR("echo:"),
                       .visibility = VISIBILITY_PUBLIC,
                       .routing = {.keywords = a->keywords},
                       .delegation = {.max_concurrent = -1, .max_depth = -1},
                       .kind = AGENT_PLATFORM};
    return fleet_fill_skills(f, a, more, card);
}

/* A default agent outside of the set cannot be chosen by score. */
static void fleet_add_default(struct eval_fleet *f, size_t *n)
{
    struct str name = f->opts.default_agent;

    if (!name.n || eval_find(f->opts.set, name))
        return;
    f->cards[(*n)++] =
        (struct agent){.name = name,
                       .url = STR("echo:"),
                       .visibility = VISIBILITY_PUBLIC,
                       .routing = {.is_unroutable = true},
                       .delegation = {.max_concurrent = -1, .max_depth = -1},
                       .kind = AGENT_PLATFORM};
}

static void fleet_on_committed(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
}

static enum err fleet_commit(struct eval_fleet *f, struct registry_change *c,
                             enum err e, struct why *why)
{
    if (!e && !c->is_same) {
        store_submit(f->store, &c->tx, fleet_on_committed, NULL);
        store_turn(f->store);
    }
    if (!e)
        e = registry_settle(f->registry, c, why);
    registry_change_fini(c);
    return e;
}

static struct caller fleet_user(const char *name)
{
    struct caller c = {.role = ROLE_USER,
                       .scopes = SCOPE_READ | SCOPE_SEND | SCOPE_AGENTS};
    struct str org = fleet_org_of(NULL, str_of(name));

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    snprintf(c.org, sizeof(c.org), "%.*s", STR_ARG(org));
    return c;
}

/* Registers a card, given as JSON, for a user. */
static enum err fleet_put_card(struct eval_fleet *f,
                               const struct caller *caller, struct str card,
                               struct why *why)
{
    struct registry_by by = {.caller = caller, .now_ms = cli_now_ms()};
    struct card_problems problems = {.n = 0};
    struct registry_change change;
    struct arena scratch;
    struct json *json;
    enum err e;

    arena_init(&scratch, (size_t)4 * CARD_BYTES);
    json = json_parse(&scratch, card, 0, NULL);
    registry_change_init(&change);
    e = json ? registry_put(f->registry, &change, STR(""), json, &by, &problems,
                            why)
             : why_err(why, ERR_NOMEM, "out of memory");
    if (e == ERR_BAD_REQUEST || e == ERR_NOT_ALLOWED)
        card_problems_say(&problems, why);
    e = fleet_commit(f, &change, e, why);
    arena_fini(&scratch);
    return e;
}

/* Registers the set's agents for users: the requester, a colleague, or one
 * owner for each. */
static enum err fleet_put_users_agents(struct eval_fleet *f, size_t n,
                                       struct why *why)
{
    enum err e = OK;
    struct buf text;

    buf_init(&text, CARD_BYTES);
    for (size_t i = 0; i < n && !e; i++) {
        struct json_out o = json_out(&text);
        char owner[32];
        struct caller caller;

        snprintf(owner, sizeof(owner), "owner-%zu", i);
        caller = fleet_user(f->opts.relation == EVAL_OWN   ? asker
                            : f->opts.relation == EVAL_ORG ? colleague
                                                           : owner);
        buf_clear(&text);
        f->cards[i].kind = AGENT_MANAGED;
        card_write(&o, &f->cards[i], CARD_STORED);
        e = text.over ? why_err(why, ERR_NOMEM, "out of memory")
                      : fleet_put_card(f, &caller, buf_str(&text), why);
    }
    buf_fini(&text);
    return e;
}

static enum err fleet_put_agents(struct eval_fleet *f, struct why *why)
{
    const struct eval_set *s = f->opts.set;
    struct registry_change change;
    size_t n = s->n_agents;
    enum err e = OK;

    f->cards = calloc(n + 2, sizeof(*f->cards));
    if (!f->cards)
        return why_err(why, ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n && !e; i++)
        e = fleet_fill_card(f, i);
    if (e)
        return why_err(why, ERR_NOMEM, "out of memory");
    if (f->opts.relation != EVAL_PLATFORM)
        return fleet_put_users_agents(f, n, why);
    fleet_add_default(f, &n);
    registry_change_init(&change);
    e = fleet_commit(f, &change,
                     registry_configure(f->registry, &change, f->cards, n, NULL,
                                        cli_now_ms(), why),
                     why);
    return e ? fleet_explain_rejection(f, n, e, why) : OK;
}

static void fleet_on_timer(struct timer *t)
{
    loop_stop(&LIST_OF(t, struct eval_fleet, look)->opts.model->loop);
}

static void fleet_ignore_vector(void *ctx, size_t i, const float *vector,
                                uint32_t dims)
{
    (void)ctx;
    (void)i;
    (void)vector;
    (void)dims;
}

/* Waits for the agents' vectors and levels. The registry would retry a failing
 * provider for ever; here one failure ends the wait. The registry does not
 * report the provider's error, so one more request gets it. Missing levels are
 * missing in a server too: then every choice with "auto" is unsure. */
static enum err fleet_wait_for_vectors(struct eval_fleet *f, struct why *why)
{
    int64_t all = registry_stats(f->registry).agents;
    struct str word = STR("hello");
    struct registry_stats s;
    struct cli_bar bar;
    enum err e;

    cli_bar_start(&bar, f->opts.cli, "embedding the agents");
    for (;;) {
        s = registry_stats(f->registry);
        if (s.embed_failures_total ||
            (!s.unembedded && (s.has_levels || s.reference_failures_total)))
            break;
        if (all)
            cli_bar_move(&bar, (int)(1000 - 1000 * s.unembedded / all));
        loop_timer_set(&f->opts.model->loop, &f->look, LOOK_MS);
        loop_run(&f->opts.model->loop);
    }
    cli_bar_end(&bar);
    if (!s.unembedded)
        return OK;
    e = eval_model_embed(f->opts.model, &word, 1, EMBED_DOCUMENT,
                         fleet_ignore_vector, f, why);
    return e ? e : why_err(why, ERR_UNREACHABLE, "the agents have no vectors");
}

bool eval_fleet_has_levels(const struct eval_fleet *f)
{
    return registry_stats(f->registry).has_levels;
}

/* Opening and closing. */

void eval_fleet_forget(struct eval_fleet *f)
{
    struct learn_settings s = settings_learning(f->opts.config).learn;

    learn_free(f->learn);
    choose_shares_free(f->shares);
    f->learn =
        learn_new(&s, str_of(f->stamp.hash), f->stamp.quick_dims, fleet_seed);
    f->shares = choose_shares_new(fleet_seed);
    f->seq = 0;
}

static enum err fleet_open(struct eval_fleet *f, struct why *why)
{
    enum err e = fleet_make_folder(f, why);

    if (!e)
        e = fleet_open_registry(f, why);
    if (!e)
        e = fleet_put_agents(f, why);
    if (!e)
        e = fleet_wait_for_vectors(f, why);
    if (e)
        return e;
    f->stamp = eval_model_stamp(f->opts.model);
    e = speller_new(&f->speller, why);
    if (!e)
        eval_fleet_forget(f);
    return e;
}

enum err eval_fleet_open(struct eval_fleet **out,
                         const struct eval_fleet_opts *opts, struct why *why)
{
    struct eval_fleet *f = mem_new(sizeof(*f));
    enum err e;

    *out = NULL;
    f->opts = *opts;
    if (!f->opts.default_agent.n)
        f->opts.default_agent = opts->config->default_agent;
    f->chance = (struct rand_seeded){BY_CHANCE};
    id_maker_init(&f->ids, rand_seeded(&f->chance));
    arena_init(&f->arena, (size_t)EVAL_FILE_MAX);
    f->asker =
        (struct caller){.role = ROLE_USER, .scopes = SCOPE_READ | SCOPE_SEND};
    snprintf(f->asker.principal, sizeof(f->asker.principal), "%s", asker);
    snprintf(f->asker.org, sizeof(f->asker.org), "%s", home);
    f->settings = settings_route(f->opts.config).choose;
    f->settings.default_agent = f->opts.default_agent;
    f->settings.intent.is_on = false; /* no provider is called */
    f->unrated = EVAL_NOBODY;
    f->look.fire = fleet_on_timer;
    e = fleet_open(f, why);
    if (e)
        eval_fleet_close(f);
    else
        *out = f;
    return e;
}

void eval_fleet_close(struct eval_fleet *f)
{
    if (!f)
        return;
    if (f->registry)
        registry_stop(f->registry);
    /* The registry's pending requests to the model end first. */
    eval_model_close(f->opts.model);
    store_close(f->store);
    registry_free(f->registry);
    learn_free(f->learn);
    speller_free(f->speller);
    choose_shares_free(f->shares);
    fleet_remove_folder(f);
    arena_fini(&f->arena);
    free(f->cards);
    free(f->candidates);
    free(f);
}

struct choose_settings *eval_fleet_settings(struct eval_fleet *f)
{
    return &f->settings;
}

struct learn *eval_fleet_learn(struct eval_fleet *f)
{
    return f->learn;
}

/* Strangers. */

static struct caller fleet_stranger(size_t nth)
{
    char name[32];

    snprintf(name, sizeof(name), "stranger-%zu", nth);
    return fleet_user(name);
}

static void fleet_write_skill(struct json_out *o, size_t nth, struct str name,
                              struct str description, struct strs examples)
{
    char id[32];

    snprintf(id, sizeof(id), "skill-%zu", nth);
    name = str_head(name, SKILL_NAME_MAX);
    json_open(o, '{');
    json_member_text(o, "id", str_of(id));
    json_member_text(o, "name", str_trim(str_cut(&name, '\n')));
    if (description.n)
        json_member_text(o, "description",
                         str_head(description, SKILL_DESCRIPTION_MAX));
    json_key(o, STR("examples"));
    json_open(o, '[');
    for (size_t i = 0; i < examples.n; i++)
        json_put_str(o, str_head(examples.list[i], SKILL_EXAMPLE_MAX));
    json_close(o, ']');
    json_close(o, '}');
}

static void fleet_write_card(struct buf *out, const struct eval_card *card)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "name", card->name);
    json_member_text(&o, "description", card->description);
    json_member_text(&o, "url", STR("echo:"));
    json_member_text(&o, "visibility", STR("public"));
    json_key(&o, STR("skills"));
    json_open(&o, '[');
    for (size_t i = 0; i < card->skills.n; i++)
        fleet_write_skill(&o, i, card->skills.list[i], card->skills.list[i],
                          (struct strs){NULL, 0});
    if (card->examples.n)
        fleet_write_skill(&o, card->skills.n, card->name, STR(""),
                          card->examples);
    json_close(&o, ']');
    json_key(&o, STR("routing"));
    json_open(&o, '{');
    json_key(&o, STR("keywords"));
    json_open(&o, '[');
    for (size_t i = 0; i < card->keywords.n; i++)
        json_put_str(&o, card->keywords.list[i]);
    json_close(&o, ']');
    json_close(&o, '}');
    json_close(&o, '}');
}

enum err eval_fleet_bring(struct eval_fleet *f, const struct eval_card *card,
                          struct why *why)
{
    struct caller caller = fleet_stranger(card->owner);
    struct buf text;
    enum err e;

    buf_init(&text, CARD_BYTES);
    fleet_write_card(&text, card);
    e = text.over ? why_err(why, ERR_NOMEM, "out of memory")
                  : fleet_put_card(f, &caller, buf_str(&text), why);
    buf_fini(&text);
    return e ? e : fleet_wait_for_vectors(f, why);
}

enum err eval_fleet_remove(struct eval_fleet *f, size_t owner, struct str name,
                           struct why *why)
{
    struct caller caller = fleet_stranger(owner);
    struct registry_by by = {.caller = &caller, .now_ms = cli_now_ms()};
    struct registry_change change;

    registry_change_init(&change);
    return fleet_commit(
        f, &change, registry_remove(f->registry, &change, name, &by, why), why);
}

void eval_fleet_distrust(struct eval_fleet *f, uint32_t agent)
{
    f->unrated = agent;
}

enum err eval_fleet_praise(struct eval_fleet *f, struct str agent, size_t by,
                           struct str text, struct str vector, int64_t now_ms)
{
    char user[32], scope[48];
    struct outcome o = {
        .seq = ++f->seq,
        .at_ms = now_ms,
        .kind = OUTCOME_FEEDBACK,
        .verdict = VERDICT_POSITIVE,
        .decision_id = id_make(&f->ids, "dec", now_ms),
        .layer = LAYER_SEMANTIC,
        .agent = agent,
        .text = str_head(text, DECISION_TEXT_MAX),
        .vector = vector,
        .model_hash = str_of(f->stamp.hash),
    };

    snprintf(user, sizeof(user), "stranger-%zu", by);
    snprintf(scope, sizeof(scope), "org:%s", user);
    o.by = str_of(user);
    o.scope = str_of(scope);
    return learn_apply(f->learn, &o);
}
