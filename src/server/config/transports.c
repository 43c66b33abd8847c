/* Transports of agents: how `process`, `model` and `workspace` of an entry
 * become its url and a definition, and whether the named ones exist.
 *
 *     url              used as it is; the others are ignored
 *     process: NAME    process:NAME; with a workspace or model of its own, a
 *                      definition of the agent's own, copied from NAME
 *     process: {…}     a definition of the agent's own, with the agent's name
 *     model: NAME      model:NAME
 *     model: NAME,     if models has no such entry: a definition of the agent's
 *     workspace: DIR   own, which runs pi from the PATH with that model
 *     none of them     the agent connects by itself
 *
 * An entry overrides the defaults, but a model in the entry with the process of
 * the defaults is the model of that process. So a list of agents that each have
 * a workspace and a model is a list of programs of one kind.
 *
 * Agents' own definitions are added to `processes`, and printing the
 * configuration shows them there. Rejected: keeping them with the agents.
 * Delivery looks definitions up by name, and a reload replaces all at once. */
#include <stdio.h>

#include "model/card.h"
#include "server/config/internal.h"

enum { PATH_BYTES = 96, PI_BLOCK_BYTES = 1024 };

/* The process or model that an agent names, and its position. Not taken from
 * the agent's url, since agents are discarded after an error. */
struct transport_ref {
    struct value_pos at;
    const char *member;   /* "url" or "model"; NULL: none */
    struct agent_url url; /* points into the source */
};

/* A member of an entry, or of the defaults if the entry does not have it. */
struct entry_member {
    const struct json *v; /* NULL: neither has it */
    struct value_pos at;
    bool is_own;
};

static const struct json *unless_null(const struct json *v)
{
    return v && v->type != JSON_NULL ? v : NULL;
}

static struct entry_member entry_get(const struct entry *e, const char *member)
{
    const struct json *own = json_get(e->v, str_of(member));
    struct entry_member s = {.at = own ? e->at : e->defaults_at,
                             .is_own = own != NULL};

    s.v = unless_null(own ? own : json_get(e->defaults, str_of(member)));
    if (s.v)
        s.at.at = s.at.key_at = s.v->at;
    return s;
}

static void entry_path(const struct entry *e, const struct entry_member *s,
                       const char *member, char out[PATH_BYTES])
{
    if (s->is_own)
        snprintf(out, PATH_BYTES, "agents.list[%zu].%s", e->i, member);
    else
        snprintf(out, PATH_BYTES, "agents.defaults.%s", member);
}

/* Names. */

static const struct process_def *find_process(const struct config *c,
                                              struct str name)
{
    for (size_t i = 0; i < c->processes.n; i++)
        if (str_eq_nocase(c->processes.list[i].name, name))
            return &c->processes.list[i];
    return NULL;
}

static const struct model_def *config_model_find(const struct config *c,
                                                 struct str name)
{
    for (size_t i = 0; i < c->models.n; i++)
        if (str_eq(c->models.list[i].name, name))
            return &c->models.list[i];
    return NULL;
}

static void report_no_process(struct load *l, struct value_pos at,
                              const char *path, struct str name)
{
    struct str_guess g = str_guess(name);

    for (size_t i = 0; i < l->c->processes.n; i++)
        str_guess_offer(&g, l->c->processes.list[i].name,
                        str_distance(name, l->c->processes.list[i].name));
    report_error(&l->report, at,
                 "%s names the process %s, and processes has no entry of that "
                 "name%s%.*s%s",
                 path, quote(name).text, g.name.n ? "; did you mean \"" : "",
                 STR_ARG(g.name), g.name.n ? "\"?" : "");
}

static void report_no_model(struct load *l, struct value_pos at,
                            const char *path, struct str name)
{
    struct str rest = name, head = str_cut(&rest, '/');
    struct str_guess g = str_guess(head);

    for (size_t i = 0; i < l->c->models.n; i++) {
        struct str other = l->c->models.list[i].name;

        str_guess_offer(&g, other, str_distance(head, other));
        str_guess_offer(&g, other, str_distance(name, other));
    }
    report_error(&l->report, at,
                 "%s names the model %s, and models has neither that nor "
                 "\"%.*s\"%s%.*s%s",
                 path, quote(name).text, STR_ARG(str_head(head, QUOTED_MAX)),
                 g.name.n ? "; did you mean \""
                          : "; if the agent had a workspace, pi would run it",
                 STR_ARG(g.name), g.name.n ? "\"?" : "");
}

/* Values. */

/* "process:code" in the configuration's memory. */
static void set_agent_url(struct load *l, struct value_pos at, struct agent *a,
                          const char *head, struct str name)
{
    size_t n = strlen(head) + name.n;
    char *p = arena_alloc(&l->c->arena, n + 1);

    if (!p) {
        report_no_memory(&l->report, at);
        return;
    }
    snprintf(p, n + 1, "%s%.*s", head, STR_ARG(name));
    a->url = (struct str){p, n};
}

/* Reads a text into *out; is_path: the path of a folder. */
static void read_entry_text(struct load *l, const struct entry_member *s,
                            const char *path, bool is_path, struct str *out)
{
    struct str text;

    if (s->v->type != JSON_STR || !s->v->s.n || s->v->s.n > SETTING_STR_MAX ||
        memchr(s->v->s.p, 0, s->v->s.n)) {
        report_error(&l->report, s->at, "%s must be %s, not %s", path,
                     is_path ? "the path of a folder" : "the name of a model",
                     value_words(s->v).text);
        return;
    }
    text = s->v->s;
    if (!is_path || load_path(l, s->at, &text))
        load_keep(l, s->at, text, out);
}

/* Whether a workspace or model replaces that of a process: always if the entry
 * has it, and if only the defaults have it, where the definition has none. */
static bool replaces_definition(const struct entry_member *s, struct str before)
{
    return s->v && (s->is_own || !before.n);
}

static void warn_of_unused(struct load *l, const struct entry *e,
                           const char *member, const char *because)
{
    struct entry_member s = entry_get(e, member);

    if (s.v && s.is_own)
        report_warning(&l->report, s.at, "agents.list[%zu].%s is not used: %s",
                       e->i, member, because);
}

/* Programs. */

static void add_reference(struct load *l, const struct entry *e,
                          const struct entry_member *s, const char *member,
                          struct agent_url url)
{
    l->transports[e->i] =
        (struct transport_ref){.at = s->at, .member = member, .url = url};
}

static void read_process_block(struct load *l, const struct entry *e,
                               const struct entry_member *s, const char *path,
                               struct process_def *out)
{
    const struct json *under =
        s->is_own ? json_get(e->defaults, STR("process")) : NULL;
    const struct json *v = s->v;
    struct value_pos at = s->at;

    if (under && under->type == JSON_OBJ)
        v = card_merge(&l->scratch, under, s->v);
    at.inside = str_of(path);
    if (v)
        load_object(l, process_elements.table, out, at, v);
    else
        report_no_memory(&l->report, at);
}

/* Adds the agent's own definition, under the agent's name. */
static void add_own_process(struct load *l, const struct entry *e,
                            const struct entry_member *s, struct agent *a,
                            struct process_def *d)
{
    struct process_def *to = l->own_processes;

    /* A copy, since the agent may be discarded. */
    if (!load_keep(l, s->at, a->name, &d->name))
        return;
    if (find_process(l->c, a->name)) {
        report_error(&l->report, s->at,
                     "agents.list[%zu] needs a definition of its own, and "
                     "processes already has one with the name %s; rename that "
                     "one",
                     e->i, quote(a->name).text);
        return;
    }
    if (l->c->processes.n == TRANSPORTS_MAX) {
        report_error(&l->report, s->at,
                     "there may be up to %d processes, including agents' own",
                     TRANSPORTS_MAX);
        return;
    }
    to[l->c->processes.n++] = *d;
    set_agent_url(l, s->at, a, "process:", a->name);
}

static void add_workspace_and_model(struct load *l, const struct entry *e,
                                    struct process_def *d)
{
    struct entry_member workspace = entry_get(e, "workspace"),
                        model = entry_get(e, "model");
    char path[PATH_BYTES];

    if (replaces_definition(&workspace, d->workspace)) {
        entry_path(e, &workspace, "workspace", path);
        read_entry_text(l, &workspace, path, true, &d->workspace);
    }
    if (d->dialect != DIALECT_PI) {
        warn_of_unused(l, e, "model", "its process does not speak pi");
    } else if (replaces_definition(&model, d->model)) {
        entry_path(e, &model, "model", path);
        read_entry_text(l, &model, path, false, &d->model);
    }
}

static void transport_process(struct load *l, const struct entry *e,
                              const struct entry_member *s, struct agent *a)
{
    unsigned n_errors = l->report.out->n_errors;
    struct process_def d = {.min = 0};
    const struct process_def *named = NULL;
    struct process_def before;
    char path[PATH_BYTES];

    entry_path(e, s, "process", path);
    if (s->v->type == JSON_STR) {
        named = find_process(l->c, s->v->s);
        if (named && named >= l->own_processes + l->n_processes)
            named = NULL; /* another agent's own */
        if (named)
            d = *named;
        else if (!l->has_bad_transports)
            report_no_process(l, s->at, path, s->v->s);
    } else if (s->v->type == JSON_OBJ) {
        read_process_block(l, e, s, path, &d);
    } else {
        report_error(&l->report, s->at,
                     "%s must be an object or a name in processes, not %s",
                     path, value_words(s->v).text);
    }
    if (l->report.out->n_errors > n_errors || (!named && !d.command.n))
        return;
    before = d;
    add_workspace_and_model(l, e, &d);
    if (l->report.out->n_errors > n_errors)
        return;
    if (named && str_eq(before.workspace, d.workspace) &&
        str_eq(before.model, d.model))
        set_agent_url(l, s->at, a, "process:", named->name);
    else
        add_own_process(l, e, s, a, &d);
}

/* pi. */

static bool is_ascii_letter(char c)
{
    return str_lower(c) >= 'a' && str_lower(c) <= 'z';
}

static void put_variable(struct json_out *o, struct str head, const char *tail)
{
    char name[96];

    snprintf(name, sizeof(name), "%.*s%s", STR_ARG(head), tail);
    json_put_str(o, str_of(name));
}

/* The variables that pi reads: the provider's key, and the location of pi's own
 * files. */
static void put_pi_variables(struct json_out *o, struct str model)
{
    struct str rest = model, provider = str_head(str_cut(&rest, '/'), 64);
    char name[64];

    json_put_str(o, STR("PI_CODING_AGENT_DIR"));
    json_put_str(o, STR("PI_OFFLINE"));
    if (!rest.n || !provider.n || !is_ascii_letter(provider.p[0]))
        return;
    if (str_eq(provider, STR("google")))
        provider = STR("gemini");
    for (size_t i = 0; i < provider.n; i++) {
        char c = provider.p[i];

        if (is_ascii_letter(c))
            name[i] = (char)(str_lower(c) - 'a' + 'A');
        else
            name[i] = c >= '0' && c <= '9' ? c : '_';
    }
    put_variable(o, (struct str){name, provider.n}, "_API_KEY");
    put_variable(o, (struct str){name, provider.n}, "_OAUTH_TOKEN");
}

/* The `process` object that runs pi with its default options. */
static const struct json *pi_block(struct load *l, struct str model)
{
    struct buf text;
    struct json_out o;
    char *kept;

    buf_init(&text, PI_BLOCK_BYTES);
    o = json_out(&text);
    json_open(&o, '{');
    json_key(&o, STR("command"));
    json_put_raw(&o, STR("[\"pi\",\"--mode\",\"rpc\",\"--no-session\"]"));
    json_member_text(&o, "dialect", STR("pi"));
    json_key(&o, STR("envAllowed"));
    json_open(&o, '[');
    put_pi_variables(&o, model);
    json_close(&o, ']');
    json_close(&o, '}');
    kept = text.over ? NULL : arena_strdup(&l->scratch, buf_str(&text));
    buf_fini(&text);
    return kept ? json_parse(&l->scratch, str_of(kept), 0, NULL) : NULL;
}

/* Whether pi runs the agent: it has a workspace, and a model that `models` does
 * not define. */
static bool entry_is_for_pi(const struct load *l, const struct entry *e,
                            const struct entry_member *model)
{
    struct str ignored;

    return entry_get(e, "workspace").v && model->v->type == JSON_STR &&
           model->v->s.n && !l->has_bad_transports &&
           !model_def_find(l->c->models.list, l->c->models.n, model->v->s,
                           &ignored);
}

static void transport_pi(struct load *l, const struct entry *e,
                         const struct entry_member *s, struct agent *a)
{
    unsigned n_errors = l->report.out->n_errors;
    const struct json *block = pi_block(l, s->v->s);
    struct process_def d = {.min = 0};

    if (block)
        load_object(l, process_elements.table, &d, s->at, block);
    else
        report_no_memory(&l->report, s->at);
    if (l->report.out->n_errors == n_errors)
        add_workspace_and_model(l, e, &d);
    if (l->report.out->n_errors == n_errors)
        add_own_process(l, e, s, a, &d);
}

/* Models. */

static void transport_model(struct load *l, const struct entry *e,
                            const struct entry_member *s, struct agent *a)
{
    struct str name = {0};
    struct agent_url url;
    char path[PATH_BYTES];
    struct why why;

    entry_path(e, s, "model", path);
    read_entry_text(l, s, path, false, &name);
    if (!name.n)
        return;
    set_agent_url(l, s->at, a, "model:", name);
    if (agent_url_read(a->url, &url, &why))
        report_error(&l->report, s->at, "%s %s", path, why.text);
    else
        add_reference(
            l, e, s, "model",
            (struct agent_url){.transport = TRANSPORT_MODEL, .id = s->v->s});
    warn_of_unused(l, e, "workspace", "a model has no working folder");
}

void load_transport(struct load *l, const struct entry *e, struct agent *a)
{
    struct entry_member url = entry_get(e, "url"),
                        process = entry_get(e, "process"),
                        model = entry_get(e, "model");
    bool has_own = (process.v && process.is_own) || (model.v && model.is_own);
    struct agent_url read;

    if (url.v && (url.is_own || !has_own)) {
        if (agent_url_read(json_str_or(url.v, STR("")), &read, NULL) == OK)
            add_reference(l, e, &url, "url", read);
        warn_of_unused(l, e, "process", "the agent has a url");
        warn_of_unused(l, e, "model", "the agent has a url");
        warn_of_unused(l, e, "workspace", "the agent has a url");
    } else if (process.v) {
        transport_process(l, e, &process, a);
    } else if (model.v && entry_is_for_pi(l, e, &model)) {
        transport_pi(l, e, &model, a);
    } else if (model.v) {
        transport_model(l, e, &model, a);
    } else {
        warn_of_unused(l, e, "workspace", "the agent has no process");
    }
}

/* Checked once, not once for each agent. An entry may add missing members. */
static void check_default_process(struct load *l, const struct json *defaults,
                                  struct value_pos at)
{
    const struct json *v = unless_null(json_get(defaults, STR("process")));
    struct process_def ignored = {.min = 0};

    if (!v)
        return;
    at.at = at.key_at = v->at;
    at.inside = STR("agents.defaults.process");
    if (v->type == JSON_OBJ)
        load_walk(l, process_elements.table, &ignored, (struct str){0}, at, v);
}

static void check_default_text(struct load *l, const struct json *defaults,
                               struct value_pos at, const char *member)
{
    const struct json *v = unless_null(json_get(defaults, str_of(member)));

    if (!v || v->type == JSON_STR)
        return;
    at.at = v->at;
    report_error(&l->report, at, "agents.defaults.%s must be a text, not %s",
                 member, value_words(v).text);
}

bool load_transports_begin(struct load *l, const struct json *defaults,
                           struct value_pos at, size_t n)
{
    unsigned n_errors = l->report.out->n_errors;
    size_t n_given = l->c->processes.n;

    if (defaults) {
        check_default_process(l, defaults, at);
        check_default_text(l, defaults, at, "model");
        check_default_text(l, defaults, at, "workspace");
    }
    l->transports = arena_array(&l->scratch, n + 1, sizeof(*l->transports));
    l->own_processes =
        arena_array(&l->c->arena, n_given + n + 1, sizeof(*l->own_processes));
    if (!l->transports || !l->own_processes) {
        report_no_memory(&l->report, at);
        return false;
    }
    if (n_given)
        memcpy(l->own_processes, l->c->processes.list,
               n_given * sizeof(*l->own_processes));
    l->c->processes.list = l->own_processes;
    l->n_processes = n_given;
    return l->report.out->n_errors == n_errors;
}

static void check_model_ref(struct load *l, struct value_pos at,
                            const char *path, struct str name)
{
    const struct model_def *d = config_model_find(l->c, name);
    struct str rest = name, head = str_cut(&rest, '/');

    if (d && !d->model.n)
        report_error(&l->report, at,
                     "%s names the model %s, which has no \"model\": give it "
                     "one, or write \"%.*s/MODEL\" here",
                     path, quote(name).text, STR_ARG(name));
    else if (!d && (!rest.n || !config_model_find(l->c, head)))
        report_no_model(l, at, path, name);
}

void load_transports_end(struct load *l)
{
    if (!l->transports || l->has_bad_transports)
        return;
    for (size_t i = 0; i < l->c->agents.n; i++) {
        struct transport_ref ref = l->transports[i];
        char path[PATH_BYTES];

        if (!ref.member)
            continue;
        snprintf(path, sizeof(path), "agents.list[%zu].%s", i, ref.member);
        if (ref.url.transport == TRANSPORT_PROCESS &&
            !find_process(l->c, ref.url.id))
            report_no_process(l, ref.at, path, ref.url.id);
        else if (ref.url.transport == TRANSPORT_MODEL)
            check_model_ref(l, ref.at, path, ref.url.id);
    }
}
