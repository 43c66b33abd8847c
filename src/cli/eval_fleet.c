/* A registry needs a store, so it gets one: in memory where the system has such
 * a place, else on the disk; it is written once and read never, so that this
 * costs little. To build an index by hand instead was turned down: what is
 * measured shall be what a server does, also where that changes. */
#include "cli/eval_fleet_own.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "settings.h"
#include "watch/watch.h"

static const char asker[] = "asker", home[] = "home";
static const char colleague[] = "colleague";

enum { CARD_BYTES = 4 * 1024 * 1024, BY_CHANCE = 17, LOOK_MS = 2 };

static const uint64_t seed[2] = {0x5ea2c4, 0x1dea};

static enum err no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM, "out of memory");
}

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

/* Where the user says, else in memory. */
static enum err make_folder(struct eval_fleet *f, struct why *why)
{
    f->has_folder = make_folder_in(f, config_env(environ, "TMPDIR")) ||
                    make_folder_in(f, "/dev/shm") || make_folder_in(f, "/tmp");
    if (!f->has_folder)
        return why_err(why, ERR_IO,
                       "cannot make a folder in $TMPDIR, /dev/shm or /tmp");
    f->is_held = !store_folder_open(&f->held, str_of(f->folder), why);
    return f->is_held ? OK : ERR_IO;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)!remove(path);
    return 0;
}

static void remove_folder(struct eval_fleet *f)
{
    enum { FILES_OPEN = 8 };

    if (f->is_held)
        store_folder_close(&f->held);
    if (f->has_folder)
        nftw(f->folder, remove_one, FILES_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* The agents. */

/* A stranger is alone in an org of the same name. */
static struct str org_of(void *ctx, struct str user)
{
    (void)ctx;
    return str_eq(user, str_of(asker)) || str_eq(user, str_of(colleague))
               ? str_of(home)
               : user;
}

/* All of them are there. */
static enum agent_state state_of(void *ctx, const struct agent *a)
{
    (void)ctx;
    (void)a;
    return AGENT_IDLE;
}

static enum err open_rooms(struct eval_fleet *f, struct why *why)
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
        .embed = m->outward.embeds[0],
        .reference = {f->reference, embed_reference(f->reference)},
        .ids = &f->ids,
        .seed = {seed[0], seed[1]},
        .limits = {.max_agents = EVAL_AGENTS_MAX + 1000,
                   .max_skills = EVAL_TEXTS_MAX + 1000},
        .org_of = org_of,
    };
    enum err e = store_open(&f->store, &store, why);

    if (e)
        return e;
    opts.store = f->store;
    f->registry = registry_new(&opts);
    if (!f->registry)
        return no_memory(why);
    e = registry_load(f->registry, why);
    if (e)
        return e;
    registry_set_state_of(f->registry, state_of, f);
    registry_begin(f->registry);
    return OK;
}

/* An id must be one for machines; which one says nothing. */
static enum err name_skill(struct eval_fleet *f, struct skill *s, size_t nth)
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

/* The skills it has, and one for the examples; that one's name is the agent's,
 * so that it says nothing new. */
static enum err fill_skills(struct eval_fleet *f, const struct eval_agent *a,
                            const struct strs *examples, struct agent *card)
{
    size_t n = a->n_skills;
    struct skill *all = arena_array(&f->arena, n + 1, sizeof(*all));
    enum err e = all ? OK : ERR_NOMEM;

    for (size_t i = 0; i < n && !e; i++) {
        all[i] = a->skills[i];
        e = name_skill(f, &all[i], i);
    }
    if (!e && examples && examples->n)
        all[n++] = (struct skill){
            .id = STR("examples"), .name = a->name, .examples = *examples};
    card->skills = all;
    card->n_skills = n;
    return e;
}

/* What is wrong with a card in words; OK: nothing is. */
static enum err check_card(const struct agent *a, struct why *why)
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

/* Why the agents were not taken: the first whose card is none. */
static enum err blame(const struct eval_fleet *f, size_t n, enum err e,
                      struct why *why)
{
    for (size_t i = 0; i < n; i++) {
        struct why words = {""};
        enum err bad = check_card(&f->cards[i], &words);

        if (bad)
            return why_err(why, bad, "agent \"%.*s\" is no card: %s",
                           STR_ARG(f->cards[i].name), words.text);
    }
    return e;
}

/* A few names are taken by the API. What stands before a dot is no word of the
 * agent's, so that it is found by the same words with it. */
static struct str name_here(struct eval_fleet *f, struct str name)
{
    char with[AGENT_NAME_MAX + 8];
    char *p;

    if (!str_eq_nocase(name, STR("search")))
        return name;
    snprintf(with, sizeof(with), PREFIX "%.*s", STR_ARG(name));
    p = arena_strdup(&f->arena, str_of(with));
    return (struct str){p, p ? name.n + sizeof(PREFIX) - 1 : 0};
}

static enum err fill_card(struct eval_fleet *f, size_t i)
{
    const struct eval_agent *a = &f->opts.set->agents[i];
    struct agent *card = &f->cards[i];
    const struct strs *more = f->opts.examples ? &f->opts.examples[i] : NULL;

    *card =
        (struct agent){.name = name_here(f, a->name),
                       .description = a->description,
                       .url = STR("echo:"),
                       .visibility = VISIBILITY_PUBLIC,
                       .routing = {.keywords = a->keywords},
                       .delegation = {.max_concurrent = -1, .max_depth = -1},
                       .kind = AGENT_PLATFORM};
    return fill_skills(f, a, more, card);
}

/* Who is not of the set is only there for what nobody else gets. */
static void add_default(struct eval_fleet *f, size_t *n)
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

static void on_done(struct tx *tx, void *ctx)
{
    (void)tx;
    (void)ctx;
}

static enum err commit(struct eval_fleet *f, struct registry_change *c,
                       enum err e, struct why *why)
{
    if (!e && !c->is_same) {
        store_submit(f->store, &c->tx, on_done, NULL);
        store_turn(f->store);
    }
    if (!e)
        e = registry_settle(f->registry, c, why);
    registry_change_fini(c);
    return e;
}

static struct caller user_here(const char *name)
{
    struct caller c = {.role = ROLE_USER,
                       .scopes = SCOPE_READ | SCOPE_SEND | SCOPE_AGENTS};
    struct str org = org_of(NULL, str_of(name));

    snprintf(c.principal, sizeof(c.principal), "%s", name);
    snprintf(c.org, sizeof(c.org), "%.*s", STR_ARG(org));
    return c;
}

/* A card that a user registers, as JSON. */
static enum err put_json(struct eval_fleet *f, const struct caller *caller,
                         struct str card, struct why *why)
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
             : no_memory(why);
    if (e == ERR_BAD_REQUEST || e == ERR_NOT_ALLOWED)
        card_problems_say(&problems, why);
    e = commit(f, &change, e, why);
    arena_fini(&scratch);
    return e;
}

/* The set's agents as cards of users: the requester's, a colleague's, or one
 * owner for each. */
static enum err put_users_agents(struct eval_fleet *f, size_t n,
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
        caller = user_here(f->opts.relation == EVAL_OWN   ? asker
                           : f->opts.relation == EVAL_ORG ? colleague
                                                          : owner);
        buf_clear(&text);
        f->cards[i].kind = AGENT_MANAGED;
        card_write(&o, &f->cards[i], CARD_STORED);
        e = text.over ? no_memory(why)
                      : put_json(f, &caller, buf_str(&text), why);
    }
    buf_fini(&text);
    return e;
}

static enum err put_agents(struct eval_fleet *f, struct why *why)
{
    const struct eval_set *s = f->opts.set;
    struct registry_change change;
    size_t n = s->n_agents;
    enum err e = OK;

    f->cards = calloc(n + 2, sizeof(*f->cards));
    if (!f->cards)
        return no_memory(why);
    for (size_t i = 0; i < n && !e; i++)
        e = fill_card(f, i);
    if (e)
        return no_memory(why);
    if (f->opts.relation != EVAL_PLATFORM)
        return put_users_agents(f, n, why);
    add_default(f, &n);
    registry_change_init(&change);
    e = commit(f, &change,
               registry_configure(f->registry, &change, f->cards, n, NULL,
                                  cli_now_ms(), why),
               why);
    return e ? blame(f, n, e, why) : OK;
}

static void on_look(struct timer *t)
{
    loop_stop(&LIST_OF(t, struct eval_fleet, look)->opts.model->loop);
}

static void let_go(void *ctx, size_t i, const float *vector, uint32_t dims)
{
    (void)ctx;
    (void)i;
    (void)vector;
    (void)dims;
}

/* Waits for the agents' vectors and levels. A provider that fails would be
 * asked again for ever: once is enough here. The registry keeps the provider's
 * error to itself, so the provider is asked once more. Levels that it cannot
 * have are missing in a server, too: then every choice at `auto` is unsure. */
static enum err wait_for_vectors(struct eval_fleet *f, struct why *why)
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
        if (loop_timer_set(&f->opts.model->loop, &f->look, LOOK_MS))
            break;
        loop_run(&f->opts.model->loop);
    }
    cli_bar_end(&bar);
    if (!s.unembedded)
        return OK;
    e = eval_model_embed(f->opts.model, &word, 1, EMBED_DOCUMENT, let_go, f,
                         why);
    return e ? e : why_err(why, ERR_UNREACHABLE, "the agents have no vectors");
}

bool eval_fleet_has_levels(const struct eval_fleet *f)
{
    return registry_stats(f->registry).has_levels;
}

/* Life. */

static struct choose_settings settings_of(const struct eval_fleet *f)
{
    struct choose_settings s = settings_route(f->opts.config).choose;

    s.default_agent = f->opts.default_agent;
    s.intent.is_on = false; /* nobody is asked */
    return s;
}

enum err eval_fleet_forget(struct eval_fleet *f)
{
    struct learn_settings s = settings_lessons(f->opts.config).learn;
    struct learn *fresh =
        learn_new(&s, str_of(f->stamp.hash), f->stamp.quick_dims, seed);
    struct choose_shares *shares = choose_shares_new(seed);

    if (!fresh || !shares) {
        learn_free(fresh);
        choose_shares_free(shares);
        return ERR_NOMEM;
    }
    learn_free(f->learn);
    choose_shares_free(f->shares);
    f->learn = fresh;
    f->shares = shares;
    f->seq = 0;
    return OK;
}

static enum err open_all(struct eval_fleet *f, struct why *why)
{
    enum err e = make_folder(f, why);

    if (!e)
        e = open_rooms(f, why);
    if (!e)
        e = put_agents(f, why);
    if (!e)
        e = wait_for_vectors(f, why);
    if (e)
        return e;
    f->stamp = eval_model_stamp(f->opts.model);
    e = speller_new(&f->speller, why);
    if (e)
        return e;
    return eval_fleet_forget(f) ? no_memory(why) : OK;
}

enum err eval_fleet_open(struct eval_fleet **out,
                         const struct eval_fleet_opts *opts, struct why *why)
{
    struct eval_fleet *f = calloc(1, sizeof(*f));
    enum err e;

    *out = NULL;
    if (!f)
        return no_memory(why);
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
    f->settings = settings_of(f);
    f->unrated = EVAL_NOBODY;
    f->look.fire = on_look;
    e = open_all(f, why);
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
    /* What it has asked of the model comes back first. */
    eval_model_close(f->opts.model);
    store_close(f->store);
    registry_free(f->registry);
    learn_free(f->learn);
    speller_free(f->speller);
    choose_shares_free(f->shares);
    remove_folder(f);
    arena_fini(&f->arena);
    free(f->cards);
    free(f->room);
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

static struct caller stranger_here(size_t nth)
{
    char name[32];

    snprintf(name, sizeof(name), "stranger-%zu", nth);
    return user_here(name);
}

static void write_skill(struct json_out *o, size_t nth, struct str name,
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

static void write_card(struct buf *out, const struct eval_card *card)
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
        write_skill(&o, i, card->skills.list[i], card->skills.list[i],
                    (struct strs){NULL, 0});
    if (card->examples.n)
        write_skill(&o, card->skills.n, card->name, STR(""), card->examples);
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
    struct caller caller = stranger_here(card->owner);
    struct buf text;
    enum err e;

    buf_init(&text, CARD_BYTES);
    write_card(&text, card);
    e = text.over ? no_memory(why) : put_json(f, &caller, buf_str(&text), why);
    buf_fini(&text);
    return e ? e : wait_for_vectors(f, why);
}

enum err eval_fleet_remove(struct eval_fleet *f, size_t owner, struct str name,
                           struct why *why)
{
    struct caller caller = stranger_here(owner);
    struct registry_by by = {.caller = &caller, .now_ms = cli_now_ms()};
    struct registry_change change;

    registry_change_init(&change);
    return commit(f, &change,
                  registry_remove(f->registry, &change, name, &by, why), why);
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
